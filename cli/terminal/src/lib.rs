//! Model answers on a terminal: text in, bytes for the terminal out.
//!
//! A [`Printer`] takes the pieces of an answer as they arrive and returns what to write now. What is on the screen is never erased or printed
//! again, so nothing flickers and the scrollback stays as it was read. Characters that control a terminal are made visible and never sent,
//! because a model repeats what it read elsewhere. [`tool_call`], [`tool_result`] and [`turn_footer`] are the lines between answers,
//! [`PromptTemplate`] is the line before a question, [`code_blocks`] are the blocks that `--code` prints.
//!
//! This crate writes nothing itself, reads no environment and does not ask the terminal for its size: its caller does.

mod block;
mod code;
mod highlight;
mod inline;
mod look;
mod printer;
mod prompt;
mod status;
mod style;
mod visible;
mod writer;

pub use code::{CodeBlock, code_blocks};
pub use highlight::grammar_licenses;
pub use printer::Printer;
pub use prompt::{PromptError, PromptTemplate};
pub use status::{TurnFigures, tool_call, tool_result, turn_footer};
pub use style::{ColorDepth, Style, Theme};
pub use visible::visible;
