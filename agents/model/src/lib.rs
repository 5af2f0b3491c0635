//! Calls of models in terms that belong to no provider: requests, answers, usage and errors.
//!
//! The agent loop (`atlas-turn`) makes requests and reads answers; the adapters (`atlas-llm`) translate both to and from the
//! protocol of a provider. Nothing here does I/O.

mod answer;
mod error;
mod message;
mod request;
mod usage;

pub use answer::{Answer, Delta, Stop};
pub use error::{CallError, CallErrorKind};
pub use message::{Image, Message, Part, Role, ToolCall, ToolResult};
pub use request::{OutputSchema, Request, Tool, ToolChoice};
pub use usage::Usage;
