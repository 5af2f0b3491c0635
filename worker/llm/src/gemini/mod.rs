//! The protocol of Gemini: `generateContent` and `streamGenerateContent`.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use atlas_model::{CallError, Request};
use http::{HeaderMap, StatusCode};

use crate::auth::Auth;
use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, UnixSeconds, decoder, percent};

pub(crate) use encode::body;

/// The address that holds where an endpoint has none.
pub const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

/// The protocol of Gemini. A key goes into the header `x-goog-api-key`.
#[derive(Clone)]
pub struct Gemini {
    pub auth: Auth,
}

impl Protocol for Gemini {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        let base_url = if endpoint.base_url.is_empty() { BASE_URL } else { endpoint.base_url.trim_end_matches('/') };
        let body = body(request)?;
        let mut parts = Parts::post(format!("{base_url}/{}:{}", path(&request.model), method(request)), &body);
        self.auth.set(&mut parts, "x-goog-api-key")?;
        parts.endpoint_headers(endpoint)?;
        Ok(parts)
    }

    fn base_url_rule(&self) -> &'static str {
        "ends with \"/v1beta\", or is left out"
    }

    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        decoder(request, headers)
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

/// A decoder for the answer to `request`. A stream is events or, from servers that ignore `alt`, one array.
pub(crate) fn decoder(request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
    let reader = decode::Reader::new(request);
    if request.stream { decoder::objects(headers, reader) } else { decoder::whole(reader) }
}

/// The method of a model and its parameters.
pub(crate) fn method(request: &Request) -> &'static str {
    if request.stream { "streamGenerateContent?alt=sse" } else { "generateContent" }
}

/// Models are given by their id or, tuned ones, by their path.
pub(crate) fn path(model: &str) -> String {
    let path = percent::encode(model, "/");
    if path.contains('/') { path } else { format!("models/{path}") }
}
