//! The parts of an HTTP request, and why a request cannot be encoded.

use std::fmt;

use atlas_model::Role;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Serialize;

use crate::{Endpoint, Secret};

/// Why a request was not encoded. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The provider has no such feature.
    #[error("{provider} does not support {feature}")]
    Unsupported { provider: &'static str, feature: String },
    /// A header has characters that HTTP forbids. Its value may be a secret and is not named.
    #[error("the header \"{name}\" has characters that HTTP does not allow")]
    Header { name: String },
    /// A part of the request is not what the provider takes.
    #[error("{what} is not valid: {problem}")]
    Invalid { what: &'static str, problem: String },
}

impl EncodeError {
    /// A message has a part that only the other side writes, for example the result of a tool in a message of the model.
    pub fn misplaced(role: Role) -> Self {
        let what = if role == Role::User { "a message of the user" } else { "a message of the model" };
        Self::Invalid { what, problem: "it has a part that only the other side writes".to_owned() }
    }
}

/// The parts of an HTTP request. Values of headers that hold keys are marked as sensitive, so `Debug` does not print them; nor
/// does it print the body, which may hold a key as well.
#[derive(Clone, PartialEq, Eq)]
pub struct Parts {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Settings of the request that the protocol has no member for. They were left out.
    pub dropped: Vec<&'static str>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, url, headers, body, dropped } = self;
        let body = format_args!("{} bytes", body.len());
        f.debug_struct("Parts")
            .field("method", method)
            .field("url", url)
            .field("headers", headers)
            .field("body", &body)
            .field("dropped", dropped)
            .finish()
    }
}

impl Parts {
    /// A request without a body.
    pub fn get(url: String) -> Self {
        Self { method: Method::GET, url, headers: HeaderMap::new(), body: Vec::new(), dropped: Vec::new() }
    }

    /// A request with a JSON body of plain data, which can always be written.
    pub fn post(url: String, body: &impl Serialize) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self {
            method: Method::POST,
            url,
            headers,
            body: serde_json::to_vec(body).unwrap_or_default(),
            dropped: Vec::new(),
        }
    }

    /// Notes settings that the protocol leaves out: each name whose condition is true.
    pub fn leave_out(&mut self, settings: &[(&'static str, bool)]) {
        self.dropped.extend(settings.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name));
    }

    /// A request with the body of a form, already encoded.
    pub fn form(url: String, body: String) -> Self {
        let mut headers = HeaderMap::new();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(http::header::CONTENT_TYPE, form);
        headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json"));
        Self { method: Method::POST, url, headers, body: body.into_bytes(), dropped: Vec::new() }
    }

    /// Sets a header.
    pub fn header(&mut self, name: &str, value: &str) -> Result<(), EncodeError> {
        self.set(name, value, false)
    }

    /// Sets a header whose value is not printed, and is removed from messages of errors.
    pub fn secret_header(&mut self, name: &str, value: &str) -> Result<(), EncodeError> {
        self.set(name, value, true)
    }

    /// Sets `Authorization: Bearer`.
    pub fn bearer(&mut self, key: &Secret) -> Result<(), EncodeError> {
        self.secret_header("authorization", &format!("Bearer {}", key.expose()))
    }

    /// Sets the headers of the endpoint. Called after those of the protocol are set.
    pub fn endpoint_headers(&mut self, endpoint: &Endpoint) -> Result<(), EncodeError> {
        endpoint.headers.iter().try_for_each(|(name, value)| self.secret_header(name, value.expose()))
    }

    fn set(&mut self, name: &str, value: &str, sensitive: bool) -> Result<(), EncodeError> {
        let refused = || EncodeError::Header { name: name.to_owned() };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| refused())?;
        value.set_sensitive(sensitive);
        self.headers.insert(key, value);
        Ok(())
    }
}
