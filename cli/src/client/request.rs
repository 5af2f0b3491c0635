//! A request before it is sent. It can be sent again as it is.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde_json::Value;
use url::Url;

use crate::failure::Failure;

/// A request.
#[derive(Clone)]
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Request {
    /// A request without a body. A user and a password in the address become a header.
    pub(super) fn new(method: Method, mut url: Url) -> Self {
        let mut headers = HeaderMap::new();
        if !url.username().is_empty() || url.password().is_some() {
            let user = format!("{}:{}", decoded(url.username()), decoded(url.password().unwrap_or_default()));
            if let Ok(mut basic) = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(user))) {
                basic.set_sensitive(true);
                headers.insert(AUTHORIZATION, basic);
            }
            // Both are possible for addresses of HTTP.
            let _ = url.set_username("");
            let _ = url.set_password(None);
        }
        Self { method, url, headers, body: Bytes::new() }
    }

    /// The same with more in its query.
    pub(super) fn query(mut self, query: &[(&str, &str)]) -> Self {
        if !query.is_empty() {
            self.url.query_pairs_mut().extend_pairs(query);
        }
        self
    }

    /// The same with a header.
    pub(super) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same with a header whose value comes from the user.
    pub(super) fn header_of(self, name: HeaderName, value: &str) -> Result<Self, Failure> {
        let wrong = |_| Failure::usage(format!("\"{value}\" cannot be the value of the header {name}"));
        let value = HeaderValue::from_str(value).map_err(wrong)?;
        Ok(self.header(name, value))
    }

    /// The same with a document as its body.
    pub(super) fn json(self, body: &Value) -> Self {
        self.content("application/json", body.to_string().into())
    }

    /// The same with a body.
    pub(super) fn content(self, kind: &'static str, body: Bytes) -> Self {
        Self { body, ..self.header(CONTENT_TYPE, HeaderValue::from_static(kind)) }
    }

    /// The address, as it is sent.
    pub(super) fn uri(&self) -> Result<Uri, http::uri::InvalidUri> {
        self.url.as_str().parse()
    }
}

/// Without the body and the query, in which secrets and codes of logins are.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} with {} bytes", self.method, self.url.path(), self.body.len())
    }
}

/// A part of an address without its escapes.
fn decoded(part: &str) -> String {
    let pair = format!("x={}", part.replace('+', "%2B"));
    url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> Request {
        Request::new(Method::GET, url.parse().expect("an address"))
    }

    #[test]
    fn a_user_in_the_address_is_a_header() {
        let request = request("http://ada:p%40+w@host:1/x");
        assert_eq!(request.headers[AUTHORIZATION], "Basic YWRhOnBAK3c=");
        assert_eq!(request.url.as_str(), "http://host:1/x");
    }

    #[test]
    fn bodies_and_queries_are_not_printed() {
        let request = request("http://ada:pass@host/login?code=secret").json(&serde_json::json!({"code": "secret"}));
        assert_eq!(format!("{request:?}"), "GET /login with 17 bytes");
    }

    #[test]
    fn a_query_is_added_to_that_of_the_address() {
        let query = |query: &[(&str, &str)]| request("http://host/x?a=1").query(query).url.to_string();
        assert_eq!(query(&[]), "http://host/x?a=1");
        assert_eq!(query(&[("b", "ü &"), ("c", "")]), "http://host/x?a=1&b=%C3%BC+%26&c=");
    }
}
