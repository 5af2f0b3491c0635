//! What a turn asks its driver to do.

use atlas_model::{CallError, NanoDollars, ToolCall};
use serde_json::Value;

use crate::Key;
use crate::budget::dollars;

/// What the driver has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Call the model with [`Turn::request`](crate::Turn::request), and report the answer.
    Call { key: Key },
    /// Call these tools and report their results together.
    Tools {
        key: Key,
        /// With the tools' own names and checked arguments, in the model's order.
        calls: Vec<ToolCall>,
        /// Most of them at the same time.
        parallel: usize,
    },
    /// The agent is about to stop while helpers of it work: report [`Event::Stopping`](crate::Event::Stopping).
    Stop { key: Key },
    /// Log a warning and count it: the turn was ended because the model repeated itself.
    Warn(Halt),
    /// The turn is over.
    Finish { output: Value, end: End },
    /// The turn failed.
    Fail(Failure),
}

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The model was done.
    Answer,
    /// All requests were used up.
    Limit,
    /// The model repeated itself.
    Repeats,
}

/// A turn that was ended because the model made the same calls and got the same results again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// The tools of the repeated round, sorted.
    pub tools: Vec<String>,
    /// How often it was made in a row.
    pub repeats: u32,
    /// The threshold that it reached.
    pub threshold: u32,
    /// The number of the request that asked for the last one, from 1.
    pub request: u32,
    /// The beginning of the first call's arguments.
    pub arguments: String,
    /// The beginning of the first call's result.
    pub result: String,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The call of the model failed.
    #[error(transparent)]
    Call(CallError),
    /// The input has images, and the model accepts none.
    #[error("the model \"{model}\" does not accept images")]
    Vision { model: String },
    /// The next request could cost more than what is left.
    #[error(
        "budget used up: the next call may cost {}, {} is left of {}; raise it with --budget",
        dollars(*.next),
        dollars(NanoDollars(.budget.0.saturating_sub(.spent.0))),
        dollars(*.budget)
    )]
    Budget { budget: NanoDollars, spent: NanoDollars, next: NanoDollars },
    /// There is a budget, and the price of a model that may answer is unknown.
    #[error(
        "the price of the model \"{model}\", or of one of its fallbacks, is not known, so the budget of {} cannot be kept: give its object \
         prices (atlasctl model add NAME … --price-in USD --price-out USD --replace), or run without --budget",
        dollars(*.budget)
    )]
    Unpriced { model: String, budget: NanoDollars },
    /// The driver reported an event that does not follow from the effects.
    #[error("the turn expected {expected}, and was told of {got}")]
    Disorder { expected: &'static str, got: &'static str },
}
