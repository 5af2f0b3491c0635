//! Personas, which Loki calls roles, and macros: the files of both, and what a model or a session gets of them.
//!
//! A [`Persona`] is a text that says how a model answers, with settings above it. A [`Macro`] is a list of lines that a session reads as if
//! they were typed. This crate reads neither files nor the machine: its caller has the text, and the values of special variables.

mod macros;
mod persona;
mod substitution;
mod yaml;

pub use macros::{Macro, MacroError, MacroVariable, NESTING_MAX, nested};
pub use persona::{Persona, PersonaPrompt, Speaker};
pub use substitution::SPECIAL_VARIABLES;
pub use yaml::{FileError, FilePlace};
