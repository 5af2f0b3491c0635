//! The chat protocol of Cohere, version 2.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use atlas_model::{CallError, Request};
use http::{HeaderMap, StatusCode};

use crate::auth::Auth;
use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, UnixSeconds, decoder};

/// The address that holds where an endpoint has none.
pub const BASE_URL: &str = "https://api.cohere.com/v2";

/// The protocol of Cohere. A key goes into the header `authorization`, like a token.
#[derive(Clone)]
pub struct Cohere {
    pub auth: Auth,
}

impl Protocol for Cohere {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        let base_url = if endpoint.base_url.is_empty() { BASE_URL } else { endpoint.base_url.trim_end_matches('/') };
        let mut parts = Parts::post(format!("{base_url}/chat"), &encode::body(request)?);
        match &self.auth {
            Auth::Key(key) => parts.bearer(key)?,
            auth => auth.set(&mut parts, "authorization")?,
        }
        parts.endpoint_headers(endpoint)?;
        Ok(parts)
    }

    fn base_url_rule(&self) -> &'static str {
        "ends with \"/v2\", or is left out"
    }

    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        let reader = decode::Reader::new(request);
        if request.stream { decoder::events(headers, reader) } else { decoder::whole(reader) }
    }

    fn failure(&self, status: StatusCode, _headers: &HeaderMap, body: &[u8]) -> CallError {
        self.auth.failure(status, body)
    }

    fn token_request(&self, now: UnixSeconds) -> Result<Option<Parts>, CallError> {
        self.auth.request(now)
    }

    fn token_answer(&self, status: StatusCode, body: &[u8], now: UnixSeconds) -> Result<(), CallError> {
        self.auth.answer(status, body, now)
    }

    fn sign(&self, parts: &mut Parts, now: UnixSeconds) -> Result<(), CallError> {
        self.auth.sign(parts, now)
    }
}
