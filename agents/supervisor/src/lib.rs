//! Helpers of agents: an agent starts others, collects what they found, keeps tasks for them, and answers their questions
//! (compatibility §33).
//!
//! A [`Tree`] holds an agent that a person started, its helpers, and theirs. [`Tree::call`] runs a tool of one of them; what it has to
//! start or to cancel is in [`Tree::take_effects`], and what it has to wait for is in the [`Answer`]. The driver reports what came of
//! it ([`Tree::finished`]) and asks again ([`Tree::resume`]).
//!
//! Pure: no clock and no I/O. Times arrive with the calls, ids are made from the seed of the tree, and the same calls give the same
//! tree, so that a driver that records them can continue elsewhere.
//!
//! Invariants:
//! - an agent has at most [`Settings::concurrent`] helpers that are not collected, and none is deeper than [`Settings::depth`];
//! - what is collected or cancelled is gone, with all its helpers;
//! - messages of one sender arrive in their order;
//! - nothing grows without limit ([`limits`]).

mod declarations;
mod escalation;
mod helpers;
mod inbox;
pub mod limits;
mod settings;
mod stop;
mod task_tools;
mod tasks;
#[cfg(test)]
mod tests;
mod tree;
mod user;

pub use declarations::{supervisor_tools, teammate_tools, user_tools};
pub use escalation::Escalation;
pub use helpers::Summary;
pub use inbox::{Envelope, Payload, messages};
pub use settings::{Agents, Settings};
pub use stop::Stop;
pub use tasks::{Status, Task};
pub use tree::{AgentId, Answer, Call, Effect, HelperOutcome, Tree, WaitCause};
pub use user::{Question, QuestionKind};
