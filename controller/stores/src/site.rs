//! Requests to one server: with its token, within a time, and with bounded answers.

use std::time::Duration;

use atlas_env::{Env, chain};
use atlas_http::{Connector, Proxy, Secret, Trust, TrustError, USER_AGENT, body, limited, pool};
use atlas_library::{StoreError, StorePlace};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use url::Url;

/// Maximum time of a request with its answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long an unused connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest answer, in bytes.
pub(crate) const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Most entries that a server is asked for.
pub(crate) const LIMIT_MAX: usize = 1000;

/// Why an address cannot be used. It does not show the address, which may contain a password.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    #[error("it is no URL")]
    Url(#[source] url::ParseError),
    #[error("it does not begin with http:// or https:// and a host")]
    Scheme,
    #[error("it contains a user; give the token by its own option")]
    User,
    #[error("it contains a query or a fragment")]
    Query,
    #[error("the token cannot be sent in a header")]
    Token,
    #[error("no certificate would be trusted")]
    Trust(#[source] TrustError),
    #[error("TLS could not be set up: {0}")]
    Tls(String),
}

/// One server.
pub(crate) struct Site {
    env: Env,
    client: Client<Connector, Full<Bytes>>,
    url: Url,
    authorization: Option<HeaderValue>,
    place: StorePlace,
}

/// What is sent.
pub(crate) struct Sent<'s> {
    pub(crate) method: Method,
    /// What follows the address of the server.
    pub(crate) path: &'s [&'s str],
    pub(crate) query: Vec<(&'s str, String)>,
    pub(crate) headers: Vec<(HeaderName, String)>,
    /// As JSON; empty for none.
    pub(crate) body: Vec<u8>,
}

/// The head of an answer, and what follows.
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Incoming,
}

impl Site {
    /// A server at an address. It blocks if it has to read the system's certificates.
    pub(crate) fn new(env: &Env, address: &str, token: Option<Secret>) -> Result<Self, SiteError> {
        let url = Url::parse(address).map_err(SiteError::Url)?;
        let host = url.host_str().filter(|host| !host.is_empty() && matches!(url.scheme(), "http" | "https"));
        let host = host.ok_or(SiteError::Scheme)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(SiteError::User);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(SiteError::Query);
        }
        let name = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let authorization = token.filter(|token| !token.expose().is_empty()).map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            value.iter_mut().for_each(|value| value.set_sensitive(true));
            value.map_err(|_| SiteError::Token)
        });
        let authorization = authorization.transpose()?;
        let trust = if url.scheme() == "https" { Trust::default() } else { Trust::only([]) };
        if url.scheme() == "https" {
            trust.load().map_err(SiteError::Trust)?;
        }
        let connector = Connector::new(env, &Proxy::Direct, &trust);
        let connector = connector.map_err(|error| SiteError::Tls(chain(&*error)))?;
        let place = StorePlace { name, is_shared: true };
        Ok(Self { env: env.clone(), client: pool(connector, IDLE_TIMEOUT), url, authorization, place })
    }

    pub(crate) fn place(&self) -> &StorePlace {
        &self.place
    }

    /// An error of this server.
    pub(crate) fn failed(&self, why: &str) -> StoreError {
        StoreError::Outside(format!("the store at {} failed: {why}", self.place.name))
    }

    /// Does something that asks the server, in its time.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let late = || self.failed(&format!("no answer within {} s", TIMEOUT.as_secs()));
        limited(&*self.env.clock, TIMEOUT, work).await.unwrap_or_else(|| Err(late()))
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(&self, sent: Sent<'_>) -> Result<Answered, StoreError> {
        let Sent { method, path, query, headers, body } = sent;
        let mut url = self.url.clone();
        if !path.is_empty() {
            let mut parts = url.path_segments_mut().map_err(|()| self.failed("its address cannot be used"))?;
            parts.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request =
            Request::builder().method(method).uri(url.as_str()).header(http::header::USER_AGENT, USER_AGENT);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if !headers.iter().any(|(name, _)| *name == ACCEPT) {
            request = request.header(ACCEPT, "*/*");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request =
            request.body(Full::new(Bytes::from(body))).map_err(|_| self.failed("the request cannot be sent"))?;
        let answer = self.client.request(request).await;
        let (head, body) = answer.map_err(|error| self.failed(&chain(&error))).map(Response::into_parts)?;
        match head.status {
            status if status.is_redirection() => {
                let why = format!(
                    "it answered {}, and redirects are not followed; give the server's own address",
                    status.as_u16()
                );
                Err(self.failed(&why))
            }
            status => Ok(Answered { status, headers: head.headers, body }),
        }
    }

    /// The whole body of an answer. Any status but those of success is an error; the text of the answer is not shown, because it may repeat
    /// what was sent.
    pub(crate) async fn whole(&self, answer: Answered) -> Result<Vec<u8>, StoreError> {
        let Answered { status, mut body, .. } = answer;
        if !status.is_success() {
            return Err(self.failed(&format!("it answered {}", status.as_u16())));
        }
        let whole = body::whole(&mut body, ANSWER_BYTES_MAX).await;
        whole.map_err(|error| match error {
            body::BodyError::TooLarge => self.failed(&format!("its answer has more than {ANSWER_BYTES_MAX} bytes")),
            body::BodyError::Broken(error) => self.failed(&format!("its answer broke off: {}", chain(&error))),
        })
    }
}
