//! `/v1/`: OpenAI's interface ([ADR 89](../../../../docs/adr/0089-openai-door.md)). A model call is a job of the agent `model-call`, and an
//! agent named as a model gets the messages as its input. The formats are those of `atlas-openai`; here requests become jobs, and what is
//! heard of jobs becomes answers.
//!
//! Errors on these paths have OpenAI's form, also those of the gate.

mod answered;
mod begin;
mod calls;
mod errors;
mod follow;
mod listed;
mod responses;
mod stream;

use atlas_api::OPENAI;
use http::HeaderName;

use super::request::Request;

pub(super) use calls::{chat, complete, embed};
pub(super) use errors::refused;
pub(super) use listed::{list, model, model_of};
pub(super) use responses::{cancel, create, delete, get, input_items};

/// The id of the job behind an answer.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header by which OpenAI's clients name a project, which is a namespace here.
const PROJECT: &str = "openai-project";
/// Longest body, in bytes.
const BODY_BYTES_MAX: usize = 16 << 20;

/// Whether a path is one of OpenAI's interface.
pub(super) fn is_path(path: &str) -> bool {
    path.starts_with(OPENAI)
}

/// The namespace that a request names as a project, if it does.
pub(super) fn project(request: &Request) -> Option<String> {
    request.header(PROJECT).filter(|name| !name.is_empty()).map(str::to_owned)
}
