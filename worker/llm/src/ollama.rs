//! Ollama's own chat protocol: JSON lines.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use atlas_model::Request;
use http::HeaderMap;

use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, Secret, decoder, json};

/// The address of a server on the same machine.
pub const LOCAL: &str = "http://localhost:11434";

/// The protocol.
#[derive(Debug, Clone, Default)]
pub struct Ollama {
    /// For servers behind a proxy that wants one.
    pub key: Option<Secret>,
}

impl Protocol for Ollama {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        encode::parts(self, endpoint, request)
    }

    fn base_url_rule(&self) -> &'static str {
        "is that of the server, such as \"http://localhost:11434\", without a path"
    }

    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        let state = decode::State::new(request);
        if request.stream { decoder::objects(headers, state) } else { decoder::whole(state) }
    }

    fn probe(&self, endpoint: &Endpoint, _model: &str) -> Result<Option<Parts>, EncodeError> {
        let mut parts = Parts::get(endpoint.url("/api/tags"));
        self.key.as_ref().map_or(Ok(()), |key| parts.bearer(key))?;
        parts.endpoint_headers(endpoint)?;
        Ok(Some(parts))
    }

    fn has_model(&self, model: &str, body: &[u8]) -> bool {
        let list = json::parse(body).unwrap_or_default();
        let names = json::list(&list, "/models").iter().filter_map(|entry| json::text(entry, "/name"));
        names.into_iter().any(|name| name == model || name.strip_suffix(":latest") == Some(model))
    }
}
