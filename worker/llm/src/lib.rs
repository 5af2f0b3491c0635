//! Model calls over the protocols of their providers.
//!
//! A protocol is pure: it encodes a [`Request`] as the parts of an HTTP request, and a [`Decoder`] turns the bytes of the answer
//! into [`Event`]s. The client sends the parts, and knows no protocol. The modules between them are shared by the protocols:
//! framing ([`mod@array`], [`json`], and `atlas_http::sse`), building an answer from pieces ([`assembly`]), decoders around a protocol's own part
//! ([`decoder`]), errors ([`failure`]) and names of tools ([`names`]).

pub mod anthropic;
pub mod array;
pub mod assembly;
pub mod auth;
pub mod bedrock;
mod body;
pub mod bounds;
pub mod client;
pub mod cohere;
pub mod connect;
pub mod decoder;
pub mod embedding;
pub mod failure;
pub mod gemini;
mod ids;
pub mod image;
pub mod json;
pub mod local;
pub mod names;
pub mod ollama;
pub mod openai;
mod parts;
pub mod patch;
mod percent;
mod raw;
pub mod redact;
pub mod reranking;
pub mod scripted;
#[cfg(test)]
mod testing;
mod utc;
pub mod vertex;
mod whole;

use atlas_http::Secret;
use atlas_model::{Answer, CallError, Delta, Request};
use http::{HeaderMap, StatusCode};

pub use parts::{EncodeError, Parts};

/// Where and how a model is reached.
#[derive(Debug, Clone, Default)]
pub struct Endpoint {
    /// The base address of the API without a slash at its end, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// Headers in addition to those of the protocol, with secrets resolved. They replace headers of the same name.
    pub headers: Vec<(String, Secret)>,
}

impl Endpoint {
    /// An address under [`Endpoint::base_url`]; `path` begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url.trim_end_matches('/'))
    }
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

    /// What the base URL of a model must be, as the end of a sentence about it. The request's path follows it.
    fn base_url_rule(&self) -> &'static str;

    /// A decoder for an answer with a status of success.
    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder>;

    /// What an answer with another status means. `body` is its beginning, at most [`bounds::ERROR_BODY_BYTES_MAX`].
    fn failure(&self, status: StatusCode, _headers: &HeaderMap, body: &[u8]) -> CallError {
        failure::of_response(status, body)
    }

    /// The request for an access token, if the protocol needs one and holds none that is valid at `now`. The caller sends it,
    /// passes what it gets to [`Protocol::token_answer`], and only then sends a request to the model. One request at a time is
    /// enough for all calls that wait, and some issuers answer a second one with an error.
    fn token_request(&self, _now: UnixSeconds) -> Result<Option<Parts>, CallError> {
        Ok(None)
    }

    /// The answer to [`Protocol::token_request`], at most [`bounds::ERROR_BODY_BYTES_MAX`] bytes of it. The token is kept.
    fn token_answer(&self, status: StatusCode, body: &[u8], _now: UnixSeconds) -> Result<(), CallError> {
        Err(failure::of_response(status, body))
    }

    /// Adds what covers the whole request or depends on the time: a signature, a token. Called for each try, after all other
    /// changes to the request.
    fn sign(&self, _parts: &mut Parts, _now: UnixSeconds) -> Result<(), CallError> {
        Ok(())
    }

    /// A request that shows whether the provider can be reached and knows a model, without a model call. None if the
    /// protocol has no such request.
    fn probe(&self, _endpoint: &Endpoint, _model: &str) -> Result<Option<Parts>, EncodeError> {
        Ok(None)
    }

    /// Whether the successful answer to [`Protocol::probe`] says that the provider has the model.
    fn has_model(&self, _model: &str, _body: &[u8]) -> bool {
        true
    }

    /// Whether the address of a request is part of the protocol, so that a patch does not replace it.
    fn keeps_url(&self) -> bool {
        false
    }

    /// The member of the body that gets the value of `member` when a patch removes it. For servers that renamed a member.
    fn successor(&self, _member: &str) -> Option<&'static str> {
        None
    }
}

/// Seconds since 1970-01-01 00:00 UTC.
pub type UnixSeconds = u64;

/// Reads the answer to one request. Its memory is bounded.
pub trait Decoder: Send {
    /// More bytes. Their events go to `out`, those before an error too. An error ends the call.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), CallError>;

    /// The connection ended properly. Without an answer before or now this is an error.
    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError>;
}
