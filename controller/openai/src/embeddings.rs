//! `POST /v1/embeddings`.

use atlas_model::{Answer, Request};
use serde_json::Value;

use crate::WireError;

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EmbeddingsRequest {
    /// The model, as the client names it.
    pub model: String,
    /// The request without `model`: the texts are the parts of its message.
    pub request: Request,
    /// How many texts it has.
    pub texts: usize,
    pub encoding: Encoding,
    /// The client's own user, for records; not sent to providers.
    pub user: Option<String>,
}

/// How vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// As lists of numbers.
    #[default]
    Float,
    /// As `f32`, least byte first, in Base64.
    Base64,
}

/// Reads a body. Errors name the member that is wrong.
pub fn read(_body: &[u8]) -> Result<EmbeddingsRequest, WireError> {
    Err(WireError::internal("not read yet"))
}

/// The answer. An error (502) if it has not a vector for each text.
pub fn whole(_answer: &Answer, _request: &EmbeddingsRequest) -> Result<Value, WireError> {
    Ok(Value::Null)
}
