//! The formats of OpenAI's interface, for the door `/v1` of the controllers: what clients send becomes requests in the terms of
//! `atlas-model`, and answers, pieces of answers and errors become what clients read.
//!
//! Every operation has a module with `read`, which refuses what is wrong with the path of the member, and `whole`, which writes
//! an answer. Those that stream have a machine (`Chunks`, `Events`) that turns pieces into the values that follow `data: `. The door frames,
//! sends and stores; nothing here waits, reads a clock or makes up an id.
//!
//! Which parameters are used, passed on, ignored or refused is one table: [`parameters`].

mod body;
pub mod chat;
pub mod completions;
mod dialogue;
pub mod embeddings;
mod error;
mod images;
mod meta;
pub mod models;
pub mod parameters;
mod pieces;
#[cfg(test)]
mod reference;
pub mod responses;
mod settings;
#[cfg(test)]
mod testing;
mod usage;

pub use dialogue::{Dialogue, DialogueMessage};
pub use error::WireError;
pub use meta::{AnswerMeta, job_input};
