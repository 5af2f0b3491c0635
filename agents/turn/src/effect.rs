//! What a turn asks its driver to do.

use std::fmt;

use atlas_model::{Answer, CallError, NanoDollars, ToolCall};
use serde_json::Value;

use crate::budget::dollars;
use crate::{Key, judge};

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
    /// Log a warning and count it.
    Warn(Warning),
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

/// What the log of the job has to say about the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The model repeated itself.
    Halted(Halt),
    /// The output comes from an answer that was cut.
    Cut(CutAnswer),
}

/// An answer that was cut at a limit of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutAnswer {
    /// The model, as it names itself.
    pub model: String,
    /// The limit of the request. None if it stated none: then the limit is the model's, or that of its provider for such requests.
    pub max_tokens: Option<u32>,
}

impl fmt::Display for CutAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, max_tokens } = self;
        write!(f, "the answer of the model \"{model}\" was cut at its limit of tokens")?;
        match max_tokens {
            Some(most) => write!(
                f,
                " (max_tokens is {most}): raise provider.max_tokens in the contract, or output_tokens_max and context_window of the model if \
                 they are lower"
            ),
            None => f.write_str(
                ", which the request did not state (Anthropic takes 4096 then, and so does a budget): ask for less, or choose another model",
            ),
        }
    }
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

impl Failure {
    /// Of an answer that is a refusal.
    pub fn refused(answer: &Answer) -> Self {
        Self::Refused { words: judge::words(answer), model: judge::bounded(&answer.model) }
    }
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The model call failed.
    #[error(transparent)]
    Call(CallError),
    /// The model refused to answer, or the filter of its provider did.
    #[error(
        "the model \"{model}\" refused to answer, or the filter of its provider did{}; it is not asked again: change the input or the \
         system text, or choose another model",
        .words.as_ref().map_or_else(String::new, |words| format!(": {words}"))
    )]
    Refused {
        model: String,
        /// What it said, if it said anything.
        words: Option<String>,
    },
    /// An answer that must be whole was cut.
    #[error("{0}")]
    Cut(CutAnswer),
    /// The model said nothing of use, however often it was asked.
    #[error(
        "the model \"{model}\" gave {} in a row without text and without a call that can be made{}: choose another model, or change the \
         system text or the tools",
        if *.times == 1 { "1 answer".to_owned() } else { format!("{} answers", .times) },
        .word.as_ref().map_or_else(String::new, |word| format!(" (it stopped with \"{word}\")"))
    )]
    Empty {
        model: String,
        times: u32,
        /// The provider's word for why it stopped.
        word: Option<String>,
    },
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
