//! The worker against a controller that a test plays: real streams, real processes.
#![expect(clippy::print_stderr, reason = "tests that skip say so")]

mod environment;
mod exec;
mod hostile;
mod python;
mod session;
mod spawn;
mod stopped;
mod support;
mod tree;
