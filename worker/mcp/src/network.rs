//! Requests to servers over HTTP and TLS. Redirects are followed only on the same origin: a server must not send a credential to
//! another one.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{LOCATION, USER_AGENT};
use ::http::{HeaderMap, Method, Request, Response};
use atlas_env::Env;
use atlas_http::{Connector, Proxy, Trust};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::{self, Client};
use url::Url;

use crate::era::Eras;
use crate::error::{McpError, McpErrorKind};
use crate::target::Target;

/// Most redirects of one request.
const REDIRECTS_MAX: usize = 3;
/// How long a TCP connection stays open between two requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// What all connections of a pool share: whom they trust, and the proxies of the environment.
#[derive(Clone)]
pub struct Network {
    trust: Trust,
    environment: Arc<Variables>,
    /// What servers speak.
    pub(crate) eras: Eras,
}

/// Finds the value of a variable.
type Variables = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Network {
    /// Servers are those whose certificates `trust` accepts. `environment` has the usual variables of proxies.
    pub fn new(trust: Trust, environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { trust, environment: Arc::new(environment), eras: Eras::default() }
    }

    /// The requests to one server. They share TCP connections with no other server.
    pub(crate) fn caller(&self, env: &Env, target: &Target) -> Result<Caller, McpError> {
        let refused = |why: String| {
            McpError::new(McpErrorKind::Configuration, format!("the MCP server {} cannot be used: {why}", target.name))
        };
        let address = target.spec.url.as_deref().unwrap_or_default();
        let url = Url::parse(address).map_err(|error| refused(format!("its address is wrong: {error}")))?;
        let proxy = Proxy::choose(None, &*self.environment, address).map_err(|error| refused(error.to_string()))?;
        let connector = Connector::new(env, &proxy, &self.trust).map_err(|error| refused(atlas_env::chain(&*error)))?;
        Ok(Caller { client: atlas_http::pool(connector, IDLE_TIMEOUT), url })
    }
}

/// Sends requests to one server.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client<Connector, Full<Bytes>>,
    url: Url,
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the address cannot be used")]
    Address,
    #[error("no answer")]
    Exchange(#[source] legacy::Error),
    #[error("it redirects to {0}, which is not followed; give the server's own address")]
    Elsewhere(String),
    #[error("the answer broke off")]
    Body(#[source] hyper::Error),
    #[error("it answered {status}{}", said(.words.as_deref()))]
    Status { status: u16, words: Option<String> },
    /// The server does not know the session, so it did nothing.
    #[error("it answered {status} to its session{}", said(.words.as_deref()))]
    Session { status: u16, words: Option<String> },
}

/// What the server said, after a status.
fn said(words: Option<&str>) -> String {
    words.map(|words| format!(": {words}")).unwrap_or_default()
}

impl Caller {
    /// The address of the server.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a request, and again where a redirect on the same origin points.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, SendError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = url.as_str().parse().map_err(|_| SendError::Address)?;
            *request.headers_mut() = headers.clone();
            request.headers_mut().entry(USER_AGENT).or_insert(atlas_http::USER_AGENT);
            let response = self.client.request(request).await.map_err(SendError::Exchange)?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            url = redirected(&url, &response)?;
        }
        Err(SendError::Elsewhere("itself again and again".to_owned()))
    }
}

/// Where a redirect points, if it may be followed: with the method and the body of the request, to the same origin.
fn redirected(from: &Url, response: &Response<Incoming>) -> Result<Url, SendError> {
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default();
    let to = from.join(location).map_err(|_| SendError::Elsewhere("nowhere".to_owned()))?;
    let keeps_method = matches!(response.status().as_u16(), 307 | 308);
    if !keeps_method || to.origin() != from.origin() || location.is_empty() {
        return Err(SendError::Elsewhere(to.host_str().unwrap_or("nowhere").to_owned()));
    }
    Ok(to)
}
