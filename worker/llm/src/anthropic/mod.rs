//! The messages protocol of Anthropic, and of the servers that are compatible with it.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use atlas_model::{CallError, Request};
use http::{HeaderMap, StatusCode};

use crate::auth::Auth;
use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, Secret, UnixSeconds, decoder, percent};

use decode::Reader;
pub(crate) use encode::body;

/// The address that holds where an endpoint has none.
pub const BASE_URL: &str = "https://api.anthropic.com";

/// The version of the protocol.
const VERSION: &str = "2023-06-01";

/// The messages protocol. A key goes into the header `x-api-key`.
#[derive(Clone)]
pub struct Anthropic {
    pub auth: Auth,
}

impl Anthropic {
    /// The key and the address of the environment: `ATLAS_API_KEY` before `ANTHROPIC_API_KEY`, and `ANTHROPIC_BASE_URL`.
    /// Empty values count as absent. None without a key.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<(Self, Endpoint)> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let key = variable("ATLAS_API_KEY").or_else(|| variable("ANTHROPIC_API_KEY"))?;
        let base_url = variable("ANTHROPIC_BASE_URL").unwrap_or_else(|| BASE_URL.to_owned());
        Some((Self { auth: Auth::Key(Secret::from(key)) }, Endpoint { base_url, headers: Vec::new() }))
    }
}

impl Protocol for Anthropic {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        let mut body = body(request, "Anthropic")?;
        let mut whole = serde_json::Map::new();
        whole.insert("model".into(), request.model.clone().into());
        whole.append(&mut body.members);
        if request.stream {
            whole.insert("stream".into(), true.into());
        }
        body.members = whole;
        let mut parts = Parts::post(url(&endpoint.base_url, "messages"), &body);
        parts.header("anthropic-version", VERSION)?;
        self.auth.set(&mut parts, "x-api-key")?;
        parts.endpoint_headers(endpoint)?;
        Ok(parts)
    }

    fn base_url_rule(&self) -> &'static str {
        "is what comes before \"/v1/messages\", or is left out"
    }

    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        decoder(request, headers)
    }

    fn failure(&self, status: StatusCode, _headers: &HeaderMap, body: &[u8]) -> CallError {
        self.auth.failure(status, body)
    }

    fn probe(&self, endpoint: &Endpoint, model: &str) -> Result<Option<Parts>, EncodeError> {
        let mut parts = Parts::get(url(&endpoint.base_url, &format!("models/{}", percent::encode(model, ""))));
        parts.header("anthropic-version", VERSION)?;
        self.auth.set(&mut parts, "x-api-key")?;
        parts.endpoint_headers(endpoint)?;
        Ok(Some(parts))
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

/// A decoder for the answer to `request`.
pub(crate) fn decoder(request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
    let reader = Reader::new(request);
    if request.stream { decoder::events(headers, reader) } else { decoder::whole(reader) }
}

/// Addresses are given with the version in their path or without it.
fn url(base_url: &str, path: &str) -> String {
    let base_url = if base_url.is_empty() { BASE_URL } else { base_url.trim_end_matches('/') };
    if base_url.ends_with("/v1") { format!("{base_url}/{path}") } else { format!("{base_url}/v1/{path}") }
}
