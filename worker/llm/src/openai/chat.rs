//! Chat completions.

mod decode;
mod encode;
mod shape;
#[cfg(test)]
mod tests;

use atlas_model::Request;
use http::HeaderMap;

use super::Access;
use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, Secret, decoder};

/// The protocol, for OpenAI, for compatible servers and for Azure.
#[derive(Debug, Clone, Default)]
pub struct Chat {
    pub access: Access,
    pub dialect: Dialect,
}

/// Where servers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Ask streams for usage with `stream_options`.
    pub stream_options: bool,
    /// The server knows `top_k`.
    pub top_k: bool,
    /// The server takes ids of calls with nine letters and digits alone.
    pub nine_letter_ids: bool,
    /// Limit the answer with `max_completion_tokens` instead of `max_tokens`.
    pub max_completion_tokens: bool,
}

impl Default for Dialect {
    /// OpenAI.
    fn default() -> Self {
        Self { stream_options: true, top_k: false, nine_letter_ids: false, max_completion_tokens: false }
    }
}

impl Chat {
    /// OpenAI, with its key.
    pub fn openai(key: Secret) -> Self {
        Self { access: Access::Bearer { key, organization: None }, dialect: Dialect::default() }
    }

    /// A compatible server. `name` is one of [`known`](super::known) or any other.
    pub fn compatible(name: &str, key: Option<Secret>) -> Self {
        let access = key.map_or(Access::Open, |key| Access::Bearer { key, organization: None });
        let server = super::known::find(name);
        let dialect = Dialect {
            stream_options: server.is_none_or(|server| server.stream_options),
            top_k: true,
            nine_letter_ids: server.is_some_and(|server| server.nine_letter_ids),
            max_completion_tokens: false,
        };
        Self { access, dialect }
    }

    /// Azure. Without a version, [`AZURE_API_VERSION`](super::AZURE_API_VERSION).
    pub fn azure(key: Secret, api_version: Option<String>) -> Self {
        let api_version = api_version.unwrap_or_else(|| super::AZURE_API_VERSION.to_owned());
        Self { access: Access::Azure { key, api_version }, dialect: Dialect::default() }
    }
}

impl Protocol for Chat {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        encode::parts(self, endpoint, request)
    }

    fn base_url_rule(&self) -> &'static str {
        match self.access {
            Access::Azure { .. } => {
                "is that of the resource, such as \"https://NAME.openai.azure.com\", without a path"
            }
            _ => "is what comes before \"/chat/completions\"; at most servers it ends with \"/v1\"",
        }
    }

    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        let state = decode::State::new(request);
        if request.stream { decoder::events(headers, state) } else { decoder::whole(state) }
    }

    fn successor(&self, member: &str) -> Option<&'static str> {
        (member == "max_tokens").then_some("max_completion_tokens")
    }

    fn probe(&self, endpoint: &Endpoint, _model: &str) -> Result<Option<Parts>, EncodeError> {
        super::probe(&self.access, endpoint)
    }

    fn has_model(&self, model: &str, body: &[u8]) -> bool {
        super::has_model(&self.access, model, body)
    }
}
