//! The agent loop: [`Turn::step`] takes an event and returns effects. Pure: it knows no clock and does no I/O.
//!
//! It decides what a model is asked, which of its tool calls are made and with what arguments, and when the turn is over. The tools of
//! a todo list are part of it: they have no effects.
//! Its driver calls the model and the tools and reports what they answered. The same settings and events give the same
//! effects, so a driver that records the events can continue the turn elsewhere without a call that was already made.
//!
//! Invariants:
//! - a turn never makes more requests than [`Limits::requests`];
//! - every tool call of an answer gets exactly one result, whatever the driver reports;
//! - after [`Effect::Finish`] or [`Effect::Fail`] there are no more effects.
//!
//! ```
//! use atlas_model::{Answer, Part, Stop, Usage};
//! use atlas_turn::{Effect, Event, Settings, Turn, NoChecks};
//! use serde_json::json;
//!
//! let mut turn = Turn::new(Settings { model: "small".into(), ..Settings::default() });
//! let effects = turn.step(Event::Started { input: json!({"text": "hi"}), images: Vec::new(), said: Vec::new() }, &NoChecks);
//! assert!(matches!(effects[..], [Effect::Call { .. }]));
//! assert_eq!(turn.request().messages[0].text(), r#"{"text": "hi"}"#);
//!
//! let parts = vec![Part::Text { text: r#"{"summary": "s"}"#.into() }];
//! let answer = Answer { parts, stop: Stop::End, usage: Usage::default(), model: "small".into(), id: None, raw: Default::default() };
//! let effects = turn.step(Event::Answered(Box::new(answer)), &NoChecks);
//! assert!(matches!(&effects[..], [Effect::Finish { output, .. }] if *output == json!({"summary": "s"})));
//! ```

mod budget;
mod checks;
mod chosen;
mod continuation;
mod effect;
mod event;
mod guard;
pub mod images;
mod judge;
mod key;
pub mod messages;
pub mod outage;
mod output;
mod pages;
mod permits;
pub mod python;
pub mod record;
pub mod replay;
mod round;
mod same_calls;
mod settings;
#[cfg(test)]
mod tests;
pub mod todo;
mod turn;

pub use budget::{CountedUsage, cost, cost_max, used};
pub use checks::{Checks, NoChecks, Problem};
pub use chosen::{ChosenSettings, model_member};
pub use continuation::{AutoContinue, AutoContinueLayer, Continuation, Planner, TodoError};
pub use effect::{CutAnswer, Effect, End, Failure, Halt, Warning};
pub use event::{Event, Outcome, ToolReturn};
pub use judge::thoughtless;
pub use key::Key;
pub use outage::Outage;
pub use permits::{Permits, ToolAction, ToolRule};
pub use settings::{AtLimit, Format, Limits, OfferedTool, Plan, Sampling, Settings};
pub use todo::TodoList;
pub use turn::{Totals, Turn};
