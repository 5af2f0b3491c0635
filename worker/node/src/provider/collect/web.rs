//! Requests for pages: bounded in time and size, and only to addresses where they may go.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_http::{Check, ConnectOptions, Connector, Dial, Proxy, Trust, Versions, body, limited};
use atlas_pages::{Exemption, Kind, gunzipped, is_public, kind};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderName, HeaderValue, Request, Response};
use hyper_util::client::legacy::Client;
use url::Url;

use super::STOPS;
use crate::provider::elsewhere;

/// How long one request may take, from the name of the server to the last byte of its body.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(16);

/// Most bytes of a body.
pub(super) const BODY_BYTES_MAX: usize = 10 << 20;

/// Most redirects of one page.
pub(super) const REDIRECTS_MAX: usize = 5;

/// How long an unused connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// What is read best comes first.
const ACCEPTED: HeaderValue = HeaderValue::from_static("text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.5");

/// Asks servers for pages.
pub(super) struct Web {
    client: Client<Connector, String>,
    env: Env,
    check: Arc<Check>,
}

/// A page, or a file.
#[derive(Debug)]
pub(super) struct Answer {
    /// Where it came from, after redirects.
    pub(super) url: Url,
    pub(super) kind: Kind,
    /// The encoding that the server names.
    pub(super) encoding: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Why there is no page.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WebError {
    #[error("the server answered {0}")]
    Status(u16),
    #[error("no answer: {0}")]
    Exchange(String),
    #[error("no whole answer within {} s", REQUEST_TIME_MAX.as_secs())]
    Slow,
    #[error("it has more than {BODY_BYTES_MAX} bytes")]
    Large,
    #[error("it redirects more than {REDIRECTS_MAX} times")]
    Redirects,
    #[error("it redirects to {0}, which is not followed")]
    Elsewhere(String),
    #[error("{0}")]
    Unreadable(String),
    #[error("it is a {0} file; the worker's option --loader {0}='PROGRAM $1' says how it is read")]
    NoLoader(String),
    /// A picture, for example: nobody would miss it.
    #[error("it is no text: {0}")]
    NoText(String),
}

impl WebError {
    /// Whether the server says that there is no such document. Everything else may pass.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Status(404 | 410))
    }
}

/// The end of one request.
pub(super) enum Hop {
    To(Redirect),
    Answer(Answer),
}

/// Where a page is now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    pub(super) to: Url,
    /// Whether it has left its old address for good.
    pub(super) is_permanent: bool,
}

impl Web {
    pub(super) fn new(env: &Env, trust: &Trust, allowed: &Arc<[Exemption]>) -> Result<Self, String> {
        let (env, allowed) = (env.clone(), Arc::clone(allowed));
        let check: Arc<Check> = Arc::new(move |host, port, address| screen(&allowed, host, port, address));
        let dial = Dial::checked(Arc::clone(&check));
        // A proxy would resolve names by itself, so it could not be checked where a request goes.
        let options = ConnectOptions { dial, proxy: &Proxy::Direct, trust, versions: Versions::Both, limit: None };
        let connector = Connector::with(options).map_err(|error| atlas_env::chain(&*error))?;
        Ok(Self { client: atlas_http::pool(connector, IDLE_TIMEOUT), env, check })
    }

    /// The addresses of a server to which requests may go.
    pub(super) async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        let addresses =
            limited(&*self.env.clock, REQUEST_TIME_MAX, atlas_http::resolved(host, port, &*self.check)).await;
        let addresses = addresses.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?;
        Ok(addresses.iter().map(std::net::SocketAddr::ip).collect())
    }

    /// Gets a page, wherever it is now. `takes` refuses what is not wanted before its body is read.
    pub(super) async fn get(
        &self,
        url: &Url,
        takes: &(dyn Fn(&Kind) -> Result<(), WebError> + Sync),
    ) -> Result<Answer, WebError> {
        let mut at = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            match self.hop(&at, takes).await? {
                Hop::Answer(answer) => return Ok(answer),
                Hop::To(next) => at = next.to,
            }
        }
        Err(WebError::Redirects)
    }

    /// Sends one request.
    pub(super) async fn hop(
        &self,
        url: &Url,
        takes: &(dyn Fn(&Kind) -> Result<(), WebError> + Sync),
    ) -> Result<Hop, WebError> {
        let hop = limited(&*self.env.clock, REQUEST_TIME_MAX, self.ask(url, takes)).await;
        hop.unwrap_or(Err(WebError::Slow))
    }

    async fn ask(&self, url: &Url, takes: &(dyn Fn(&Kind) -> Result<(), WebError> + Sync)) -> Result<Hop, WebError> {
        let wrong = |error: http::Error| WebError::Unreadable(format!("its address cannot be used: {error}"));
        let request = Request::get(url.as_str())
            .header(USER_AGENT, atlas_http::USER_AGENT)
            .header(ACCEPT, ACCEPTED)
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))
            .body(String::new())
            .map_err(wrong)?;
        let exchanged = self.client.request(request).await;
        let mut response = exchanged.map_err(|error| WebError::Exchange(atlas_env::chain(&error)))?;
        let status = response.status();
        if status.is_redirection() && status.as_u16() != 304 {
            let to = redirected(url, header(&response, &LOCATION).unwrap_or_default())?;
            return Ok(Hop::To(Redirect { to, is_permanent: matches!(status.as_u16(), 301 | 308) }));
        }
        if !status.is_success() {
            return Err(WebError::Status(status.as_u16()));
        }
        let (kind, encoding) = kind(header(&response, &CONTENT_TYPE), url.path());
        takes(&kind)?;
        let compression = header(&response, &CONTENT_ENCODING).unwrap_or("identity").to_ascii_lowercase();
        let body = match body::whole(response.body_mut(), BODY_BYTES_MAX).await {
            Ok(body) => body,
            Err(body::BodyError::TooLarge) => return Err(WebError::Large),
            Err(body::BodyError::Broken(error)) => return Err(WebError::Exchange(atlas_env::chain(&error))),
        };
        let body = match compression.as_str() {
            "identity" => body,
            "gzip" | "x-gzip" => {
                // A few bytes may become many.
                let inside = elsewhere(&self.env, BODY_BYTES_MAX, move || gunzipped(body, BODY_BYTES_MAX)).await;
                let inside = inside.ok_or_else(|| WebError::Exchange(STOPS.to_owned()))?;
                inside.map_err(|error| WebError::Unreadable(error.to_string()))?
            }
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(WebError::Unreadable(format!("its compression \"{other}\" is not known")));
            }
        };
        Ok(Hop::Answer(Answer { url: url.clone(), kind, encoding, body }))
    }
}

fn header<'a, B>(response: &'a Response<B>, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// Where a redirect leads. What was asked for over TLS is not read without it.
fn redirected(from: &Url, location: &str) -> Result<Url, WebError> {
    let nowhere = || WebError::Elsewhere("nowhere".to_owned());
    let to = from.join(location).ok().filter(|_| !location.is_empty()).ok_or_else(nowhere)?;
    let to = atlas_pages::normal(to).ok_or_else(nowhere)?;
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(WebError::Elsewhere(to.to_string()));
    }
    Ok(to)
}

/// Refuses an address that is not public, unless the operator allows its server.
fn screen(allowed: &[Exemption], host: &str, port: u16, address: IpAddr) -> io::Result<()> {
    if is_public(address) || allowed.iter().any(|server| server.permits(host, port)) {
        return Ok(());
    }
    let why =
        format!("{address} is not a public address; the worker's option --collect-allow {host}:{port} permits it");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}
