//! Models on Vertex AI, which speak the protocol of their publisher.

pub mod adc;
#[cfg(test)]
mod tests;

use atlas_model::{CallError, Request};
use http::{HeaderMap, StatusCode};

use crate::auth::Auth;
use crate::openai::chat::Dialect;
use crate::openai::{Access, Chat};
use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, UnixSeconds, anthropic, gemini, percent};

const PROVIDER: &str = "Vertex AI";

/// The version of the messages protocol, which goes into the body here.
const ANTHROPIC_VERSION: &str = "vertex-2023-10-16";

/// Vertex AI in a project and a location.
#[derive(Clone)]
pub struct VertexAi {
    pub project: String,
    /// For example `europe-west4`, or `global`.
    pub location: String,
    pub auth: Auth,
    /// The project that pays for the calls, if it is another one.
    pub quota_project: Option<String>,
}

/// Who made a model, by the beginning of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Publisher {
    Google,
    Anthropic,
    Mistral,
}

impl Publisher {
    fn of(model: &str) -> Result<Self, EncodeError> {
        let is = |beginnings: &[&str]| beginnings.iter().any(|beginning| model.starts_with(beginning));
        match () {
            () if is(&["gemini"]) => Ok(Self::Google),
            () if is(&["claude"]) => Ok(Self::Anthropic),
            () if is(&["mistral", "codestral"]) => Ok(Self::Mistral),
            () => Err(EncodeError::Unsupported { provider: PROVIDER, feature: format!("the model {model:?}") }),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Google => "google",
            Self::Anthropic => "anthropic",
            Self::Mistral => "mistralai",
        }
    }

    fn method(self, request: &Request) -> &'static str {
        match self {
            Self::Google => gemini::method(request),
            Self::Anthropic | Self::Mistral if request.stream => "streamRawPredict",
            Self::Anthropic | Self::Mistral => "rawPredict",
        }
    }

    /// The request with the body of the publisher's protocol. Its address is not yet that of Vertex AI.
    fn parts(self, request: &Request) -> Result<Parts, EncodeError> {
        match self {
            Self::Google => Ok(Parts::post(String::new(), &gemini::body(request)?)),
            Self::Anthropic => {
                let mut body = anthropic::body(request, PROVIDER)?;
                body.members.insert("anthropic_version".into(), ANTHROPIC_VERSION.into());
                if request.stream {
                    body.members.insert("stream".into(), true.into());
                }
                Ok(Parts::post(String::new(), &body))
            }
            Self::Mistral => MISTRAL.encode(&Endpoint::default(), request),
        }
    }

    fn decoder(self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        match self {
            Self::Google => gemini::decoder(request, headers),
            Self::Anthropic => anthropic::decoder(request, headers),
            Self::Mistral => MISTRAL.decoder(request, headers),
        }
    }
}

/// Mistral's own protocol is chat completions; its streams count tokens without being asked.
const MISTRAL: Chat = Chat {
    access: Access::Open,
    dialect: Dialect { stream_options: false, top_k: false, nine_letter_ids: false, max_completion_tokens: false },
};

impl VertexAi {
    /// The address of the location. It becomes part of a host name, so only the characters of locations are taken.
    fn base_url(&self) -> Result<String, EncodeError> {
        percent::check_host_label("the location", &self.location)?;
        Ok(match self.location.as_str() {
            "global" => "https://aiplatform.googleapis.com/v1".to_owned(),
            location => format!("https://{location}-aiplatform.googleapis.com/v1"),
        })
    }
}

impl Protocol for VertexAi {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        let publisher = Publisher::of(&request.model)?;
        let own = self.base_url()?;
        let base_url = if endpoint.base_url.is_empty() { &own } else { endpoint.base_url.trim_end_matches('/') };
        let url = format!(
            "{base_url}/projects/{}/locations/{}/publishers/{}/models/{}:{}",
            percent::encode(&self.project, ""),
            self.location,
            publisher.name(),
            // Versions of models follow an at sign.
            percent::encode(&request.model, "@"),
            publisher.method(request),
        );
        let mut parts = publisher.parts(request)?;
        parts.url = url;
        if let Some(project) = &self.quota_project {
            parts.header("x-goog-user-project", project)?;
        }
        self.auth.set(&mut parts, "x-goog-api-key")?;
        parts.endpoint_headers(endpoint)?;
        Ok(parts)
    }

    fn base_url_rule(&self) -> &'static str {
        "ends with \"/v1\", or is left out"
    }

    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        // A model without a publisher has no request, and so no answer.
        Publisher::of(&request.model).unwrap_or(Publisher::Google).decoder(request, headers)
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
