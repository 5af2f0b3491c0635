//! The command line of Atlas: arguments in, requests to the HTTP API out, answers rendered.
//!
//! It only uses the HTTP API. The exception is `dev`, which starts a controller and a worker and then uses their HTTP
//! API.
//! stdout carries the result, everything else goes to stderr.

mod answers;
mod arguments;
mod browser;
mod client;
mod command;
mod config;
mod confirm;
mod context;
mod difference;
mod dispatch;
mod display;
mod editor;
mod ending;
mod exit;
mod failure;
mod filter;
mod globals;
#[cfg(test)]
mod hints;
mod input;
mod keys;
mod masked;
mod names;
mod output;
mod pallas;
mod program;
mod questions;
mod quorum;
#[cfg(test)]
mod reference;
mod runtime;
mod shipped;
mod sign_in;
mod sse;
mod stillness;
mod trial;
mod types;
mod vault;
mod watch;
mod words;

use std::process::ExitCode;

pub use crate::client::Client;
pub use crate::command::mcp::bridge as mcp_bridge;
pub use crate::command::peer::{AddedPeer, add_peer};
pub use crate::ending::wait_quietly as wait;
pub use crate::exit::Exit;
pub use crate::failure::Failure;

use crate::arguments::Arguments;
use crate::context::Context;

/// Runs one command line and returns its exit code. `heap` is the program's allocator.
pub fn main(heap: atlas_env::Heap) -> ExitCode {
    // The worker of `dev` starts this program again as the supervisor of its agents' processes.
    atlas_dev::run_if_asked();
    if let Some(code) = atlas_bundled::run_if_asked() {
        return code;
    }
    atlas_env::no_huge_pages();
    atlas_env::know_start_memory(heap);
    if let Err(error) = atlas_env::no_core_dumps() {
        #[expect(clippy::print_stderr, reason = "nothing else is set up to print an error")]
        {
            eprintln!("error: {}", atlas_env::chain(&error));
        }
        return Exit::Usage.into();
    }
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version also arrive here as errors. A failure to print them does not change the exit code.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let context = Context::new(&arguments.globals);
    match dispatch::run(&context, arguments.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let failure = dispatch::explain(&context, failure);
            context.report(&failure);
            failure.exit.into()
        }
    }
}
