//! A request as handlers see it.

use std::net::{IpAddr, SocketAddr};

use atlas_api::Operation;
use atlas_service::{Consistency, View};
use atlas_types::{RequestId, Seq, TraceContext};
use bytes::Bytes;
use http::header::ACCEPT;
use http::{Method, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use serde::de::DeserializeOwned;

use super::answer::Problem;
use super::linger::Unread;
use super::names::{check_body, check_query, refuses_body};
use super::query::Query;
use super::{HttpDoor, INDEX};

/// The longest body that is read only to know whether it says something, in bytes.
const SHORT_MAX: u64 = 1 << 10;

/// A request whose body has not been read.
pub(crate) struct Request {
    pub(crate) parts: Parts,
    body: Option<Incoming>,
    /// The other end of the connection.
    peer: SocketAddr,
    /// Whether its port listens on loopback only.
    loopback: bool,
    /// Set if part of the body was not read.
    unread: Unread,
    /// The requested operation, once the path and the method are known.
    operation: Option<&'static Operation>,
}

impl Request {
    pub(crate) fn new(request: http::Request<Incoming>, unread: Unread, peer: SocketAddr, loopback: bool) -> Self {
        let (parts, body) = request.into_parts();
        unread.set(!body.is_end_stream());
        Self { parts, body: Some(body), peer, loopback, unread, operation: None }
    }

    /// The other end of the connection, which may be a proxy.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether nobody on a network can read what the client sends.
    pub(crate) fn is_private(&self, door: &HttpDoor) -> bool {
        self.loopback || door.authority.is_some()
    }

    pub(crate) fn method(&self) -> &Method {
        &self.parts.method
    }

    pub(crate) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    pub(crate) fn query(&self) -> Query<'_> {
        Query::new(self.parts.uri.query())
    }

    /// A header's value as text; none if it is absent or not text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// The values of all headers of this name that are text, with commas between them; none if there is none.
    pub(crate) fn joined_header(&self, name: &str) -> Option<String> {
        let all: Vec<&str> = self.parts.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        (!all.is_empty()).then(|| all.join(","))
    }

    /// Refuses a request that a browser sends for a foreign site: for a page of another origin, or to a host name that someone pointed at
    /// this machine. So is one whose headers leave open to whom it goes.
    pub(crate) fn check_site(&self, pages: Pages) -> Result<(), Problem> {
        let all = |name| self.parts.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        let mut hosts = all("host");
        let host = hosts.next().unwrap_or_default();
        if hosts.next().is_some() {
            return Err(Problem::malformed("the request has several 'Host' headers; send one"));
        }
        let foreign = |site: &str| Err(atlas_service::Error::Foreign(site.chars().take(255).collect()).into());
        // A host that is not valid text is not a name of this machine either.
        if self.loopback && !host.is_empty() && !is_this_machine(&host) {
            return foreign(&host);
        }
        let reads = matches!(*self.method(), Method::GET | Method::HEAD);
        let may_read = pages == Pages::Read && reads && self.header("upgrade").is_none() && !self.accepts_sse();
        match all("origin").find(|origin| !is_at(origin, &host)) {
            Some(origin) if !may_read => foreign(&origin),
            _ => Ok(()),
        }
    }

    fn accepts(&self, media_type: &str) -> bool {
        self.parts.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| {
            value.split(',').any(|part| part.split(';').next().is_some_and(|found| found.trim() == media_type))
        })
    }

    /// Whether errors should be problem documents.
    pub(crate) fn accepts_problem(&self) -> bool {
        self.parts.headers.contains_key(ACCEPT) && self.accepts("application/problem+json")
    }

    /// Whether the client wants server-sent events.
    pub(crate) fn accepts_sse(&self) -> bool {
        self.accepts("text/event-stream")
    }

    /// The members that objects contain: `?view=full`.
    pub(crate) fn view(&self) -> View {
        if self.query().get("view").as_deref() == Some("full") { View::Full } else { View::Plain }
    }

    /// How fresh the answer must be: `?consistency=stale`.
    pub(crate) fn consistency(&self) -> Consistency {
        let stale = self.query().get("consistency").as_deref() == Some("stale");
        if stale { Consistency::Stale } else { Consistency::Linearizable }
    }

    /// The caller's W3C trace context. A malformed one is ignored, as the standard requires.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        TraceContext::read(self.header("traceparent")?)
    }

    /// The caller's idempotency key, by which a repeat is recognised. Reads need none.
    pub(crate) fn request_id(&self) -> Result<Option<RequestId>, Problem> {
        if matches!(*self.method(), Method::GET | Method::HEAD) {
            return Ok(None);
        }
        let Some(key) = self.parts.headers.get("idempotency-key") else { return Ok(None) };
        let key = key.to_str().map_err(|_| Problem::malformed("'Idempotency-Key' must be text"))?;
        client_key(key).map(Some)
    }

    /// The number of entries that the state must have applied to answer this client, which has already seen that many
    /// (`X-Atlas-Index`).
    pub(crate) fn seen(&self) -> Result<Option<Seq>, Problem> {
        let Some(value) = self.parts.headers.get(INDEX) else { return Ok(None) };
        let seq = value.to_str().ok().and_then(|text| text.parse().ok());
        seq.map(|seq| Some(Seq(seq))).ok_or_else(|| Problem::malformed("'X-Atlas-Index' must be a whole number"))
    }

    /// `Last-Event-ID`, or `?after=` for clients that cannot set headers.
    pub(crate) fn last_event(&self) -> Option<String> {
        self.header("last-event-id").map(str::to_owned).or_else(|| self.query().filled("after"))
    }

    /// Sets the requested operation, and refuses query members that it does not know.
    pub(crate) fn is_for(&mut self, operation: &'static Operation) -> Result<(), Problem> {
        self.operation = Some(operation);
        check_query(operation, &self.query())
    }

    /// Reads a JSON body of up to `max` bytes, and refuses members that the operation does not know.
    pub(crate) async fn json_text(&mut self, door: &HttpDoor, max: usize) -> Result<Bytes, Problem> {
        let body = self.body(door, max).await?;
        self.operation.map_or(Ok(()), |operation| check_body(operation, &body))?;
        Ok(body)
    }

    /// Refuses a body that says something, for an operation that has none: what it asks for would not be done.
    pub(crate) async fn without_body(&mut self, door: &HttpDoor) -> Result<(), Problem> {
        let refuses = self.operation.is_some_and(refuses_body);
        match refuses && self.says_something(door).await? {
            true => Err(Problem::malformed("this operation takes no body; its parameters are in the query")),
            false => Ok(()),
        }
    }

    /// Whether the body says something.
    pub(crate) async fn says_something(&mut self, door: &HttpDoor) -> Result<bool, Problem> {
        let body = self.body(door, door.limits.body_bytes_max).await?;
        Ok(!matches!(body.trim_ascii(), b"" | b"{}" | b"null"))
    }

    /// Whether the body says something, for an operation that goes on without it: what is long, or of a length that nobody told, does and is not
    /// read.
    pub(crate) async fn says_something_short(&mut self, door: &HttpDoor) -> bool {
        let length = self.body.as_ref().map_or(Some(0), |body| body.size_hint().exact());
        length.is_none_or(|length| length > SHORT_MAX) || self.says_something(door).await.unwrap_or(true)
    }

    /// Reads the body as JSON. An empty body counts as an empty object.
    pub(crate) async fn read_json<T: DeserializeOwned>(&mut self, door: &HttpDoor) -> Result<T, Problem> {
        let body = self.json_text(door, door.limits.body_bytes_max).await?;
        let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
        serde_json::from_slice(body).map_err(|error| Problem::malformed(error.to_string()))
    }

    /// Reads the body, up to `max` bytes and within the door's time limit.
    pub(crate) async fn body(&mut self, door: &HttpDoor, max: usize) -> Result<Bytes, Problem> {
        let too_large = || atlas_service::Error::TooLarge { what: "the body", limit: max as u64 }.into();
        let Some(body) = self.body.take() else { return Ok(Bytes::new()) };
        if body.size_hint().lower() > max as u64 {
            // The body is not read, so a client that sent `Expect: 100-continue` does not have to send it.
            return Err(too_large());
        }
        let collected = tokio::time::timeout(door.limits.body_timeout, Limited::new(body, max).collect()).await;
        match collected.map_err(|_| Problem::Late)? {
            Ok(body) => {
                self.unread.set(false);
                Ok(body.to_bytes())
            }
            Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
            Err(_) => Err(Problem::malformed("the body was cut short")),
        }
    }
}

/// What pages of other origins may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Nothing.
    None,
    /// Send requests that change nothing and end: their browser does not show them the answers.
    Read,
}

/// True if an origin is that of the pages at a host.
fn is_at(origin: &str, host: &str) -> bool {
    let Some((scheme, site)) = origin.split_once("://") else { return false };
    let port = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    // Browsers leave out the usual port.
    let plain = |text: &str| text.strip_suffix(port).unwrap_or(text).to_ascii_lowercase();
    plain(site) == plain(host)
}

/// Checks a client's idempotency key.
pub(crate) fn client_key(key: &str) -> Result<RequestId, Problem> {
    let id = RequestId::new(key).map_err(atlas_service::Error::from)?;
    if id.is_generated() {
        return Err(Problem::malformed("'Idempotency-Key' must not begin with '~'"));
    }
    Ok(id)
}

/// True if the host of a `Host` header is this machine. A name without a dot belongs to the local network, so no
/// outsider can point it here.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    !name.contains('.') && !name.contains(':')
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_as_browsers_write_them() {
        for (origin, host) in [
            ("http://127.0.0.1:7400", "127.0.0.1:7400"),
            ("https://atlas.example", "Atlas.Example"),
            ("https://atlas.example", "atlas.example:443"),
            ("http://localhost", "localhost:80"),
            ("http://[::1]:80", "[::1]"),
        ] {
            assert!(is_at(origin, host), "{origin} {host}");
        }
        for (origin, host) in [
            ("null", "localhost"),
            ("localhost", "localhost"),
            ("http://localhost", "localhost:443"),
            ("http://localhost:7401", "localhost:7400"),
            ("http://a.example", ""),
            ("", ""),
        ] {
            assert!(!is_at(origin, host), "{origin} {host}");
        }
    }
}
