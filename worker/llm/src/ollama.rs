//! Ollama's own chat protocol: JSON lines.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use atlas_model::Request;
use http::HeaderMap;

use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, Secret, decoder};

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

    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        let state = decode::State::new(request);
        if request.stream { decoder::json_lines(headers, state) } else { decoder::whole(|value| state.whole(&value)) }
    }
}
