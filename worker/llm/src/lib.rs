//! Calls of models over the protocols of their providers.
//!
//! A protocol is pure: it encodes a [`Request`] as the parts of an HTTP request, and a [`Decoder`] turns the bytes of the answer
//! into [`Event`]s. The client sends the parts, and knows no protocol.

use atlas_model::{Answer, CallError, Delta, Request};

/// Where and how a model is reached.
#[derive(Debug, Clone, Default)]
pub struct Endpoint {
    /// The base address of the API without a slash at its end, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// Headers in addition to those of the protocol, with secrets resolved.
    pub headers: Vec<(String, String)>,
}

/// What a protocol can fail with before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The provider has no such feature.
    #[error("{provider} does not support {feature}")]
    Unsupported { provider: &'static str, feature: String },
}

/// The parts of an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    pub method: http::Method,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What a decoder reads from the bytes of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A piece of the answer.
    Delta(Delta),
    /// The whole answer. Nothing follows.
    Answer(Box<Answer>),
}

/// The protocol of a provider. Implementations hold the credentials that they need.
pub trait Protocol: Send + Sync {
    /// The request as HTTP.
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError>;

    /// A decoder for the answer to `request`. `content_type` is that of the answer.
    fn decoder(&self, request: &Request, status: http::StatusCode, headers: &http::HeaderMap) -> Box<dyn Decoder>;
}

/// Reads the answer to one request. Its memory is bounded.
pub trait Decoder: Send {
    /// More bytes. An error ends the call.
    fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, CallError>;

    /// The connection ended.
    fn end(&mut self) -> Result<Vec<Event>, CallError>;
}
