//! Runs tools: scripts in Python, TypeScript and Bash, each call in a process of its own (compatibility §35).
//!
//! A [`Script`] is a file whose declarations were read; [`Script::prepare`] writes what is needed to run it, beside and never over the
//! author's file. [`Tool::call`] gives the arguments, waits, and returns the value that the model gets: also what went wrong is a value.
//!
//! A call has a time limit and limits of its output, and everything that it started is killed when it ends. What it may reach is not
//! limited here: a tool runs with the rights of the process that calls it.

mod arguments;
mod environment;
mod interpreter;
mod limits;
mod outcome;
mod process;
mod script;

pub use environment::{Owner, ScriptSurroundings};
pub use limits::CallLimits;
pub use outcome::CallResult;
pub use process::{Children, Launch, Process, ProcessEnd, ProcessStart};
pub use script::{PrepareError, Script, Tool};
