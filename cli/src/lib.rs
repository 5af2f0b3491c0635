//! The command line of Atlas: arguments in, requests to the HTTP API out, answers rendered.
//!
//! Uses the HTTP API and nothing else; `dev` alone starts a controller and a worker, and then talks to them like anybody.
//! stdout carries the result, everything else goes to stderr.

mod api;
mod arguments;
mod client;
mod command;
mod config;
mod confirm;
mod context;
mod difference;
mod editor;
mod ending;
mod exit;
mod failure;
mod filter;
#[cfg(test)]
mod hints;
mod input;
mod keys;
mod names;
mod output;
mod program;
#[cfg(test)]
mod reference;
mod source;
mod sse;
mod stillness;
mod trial;
mod watch;
mod words;

use std::process::ExitCode;

use clap::Parser;
pub use source::main as source_main;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::exit::Exit;

/// Runs one command line and returns its exit code.
pub fn main() -> ExitCode {
    // The worker of `dev` starts this program again to hold its agents' processes.
    atlas_dev::run_if_asked();
    if let Some(code) = atlas_bundled::run_if_asked() {
        return code;
    }
    atlas_env::no_huge_pages();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are results; a failure to print them changes nothing.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let context = Context::new(&arguments);
    match command::run(&context, arguments.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            context.report(&failure);
            failure.exit.into()
        }
    }
}
