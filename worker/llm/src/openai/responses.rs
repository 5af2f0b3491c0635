//! Responses.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use atlas_model::Request;
use http::HeaderMap;

use super::Access;
use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, Secret, decoder};

/// The protocol. Requests ask the provider to store nothing; encrypted reasoning goes back with each request instead.
#[derive(Debug, Clone, Default)]
pub struct Responses {
    pub access: Access,
}

impl Responses {
    /// OpenAI, with its key.
    pub fn openai(key: Secret) -> Self {
        Self { access: Access::Bearer { key, organization: None } }
    }
}

impl Protocol for Responses {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        encode::parts(self, endpoint, request)
    }

    fn base_url_rule(&self) -> &'static str {
        "is what comes before \"/responses\"; at most servers it ends with \"/v1\""
    }

    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        let state = decode::State::new(request.model.clone(), request.messages.len());
        if request.stream { decoder::events(headers, state) } else { decoder::whole(state) }
    }

    fn probe(&self, endpoint: &Endpoint, _model: &str) -> Result<Option<Parts>, EncodeError> {
        super::probe(&self.access, endpoint)
    }

    fn has_model(&self, model: &str, body: &[u8]) -> bool {
        super::has_model(&self.access, model, body)
    }
}
