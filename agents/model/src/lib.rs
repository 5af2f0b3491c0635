//! Model calls in terms that belong to no provider: requests, answers, usage, errors, the specs of models and their prices.
//!
//! The agent loop (`atlas-turn`) makes requests and reads answers; the adapters (`atlas-llm`) translate both to and from the
//! protocol of a provider. Nothing here does I/O.

mod answer;
mod compatible;
mod day;
mod error;
pub mod estimate;
pub mod live;
mod message;
mod money;
mod price;
mod price_list;
mod request;
mod spec;
pub mod task;
mod url;
mod usage;

/// The contract of the agent that asks whether a model can be reached. Who needs it first registers it.
pub const PROBE_CONTRACT: &str = include_str!("probe.yaml");
/// The name of that agent.
pub const PROBE_AGENT: &str = "model-probe";
/// The contract of the agent that makes vectors of texts and sorts texts, for document bases. The controllers register it.
pub const DOCUMENTS_CONTRACT: &str = include_str!("document_models.yaml");
/// The name of that agent.
pub const DOCUMENTS_AGENT: &str = "document-models";
/// Most texts of one job of that agent, as its contract says.
pub const DOCUMENTS_TEXTS_MAX: usize = 512;
/// The contract of the agent that answers messages with a model that its input names, for conversations with models. The controllers register it.
pub const CHAT_CONTRACT: &str = include_str!("chat.yaml");
/// The name of that agent.
pub const CHAT_AGENT: &str = "model-chat";
/// The contract of the agent that makes one model call as its input asks for it. The controllers register it.
pub const CALL_CONTRACT: &str = include_str!("model_call.yaml");
/// The name of that agent.
pub const CALL_AGENT: &str = "model-call";

pub use answer::{Answer, Delta, Stop};
pub use atlas_secrets::Reference;
pub use compatible::compatible_cost;
pub use day::{Day, DayError};
pub use error::{CallError, CallErrorKind};
pub use message::{Image, Message, Messages, Part, Role, ToolCall, ToolResult};
pub use money::{AmountError, NANODOLLARS_PER_DOLLAR, NanoDollars};
pub use price::Prices;
pub use price_list::{PRICE_LIST_BYTES_MAX, PriceList, PriceListError, PriceRow};
pub use request::{OutputSchema, Request, Tool, ToolChoice};
pub use spec::{
    Capability, FALLBACKS_MAX, HEADERS_MAX, KnownIssuer, LOCAL_DIMENSIONS, LOCAL_MODELS, Limits, LoginSpec, ModelSpec,
    NAME_BYTES_MAX, PATCH_BYTES_MAX, Patch, PatchBody, Provider, Purpose, Retry, SCOPES_MAX, SpecError, TokenBody,
    VALUE_BYTES_MAX, check_headers, login_secret,
};
pub use task::{ModelTask, NumbersError};
pub use url::{URL_BYTES_MAX, check_url};
pub use usage::Usage;
