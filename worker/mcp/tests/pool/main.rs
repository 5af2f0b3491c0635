//! The pool against a strict server that can misbehave in every way a test asks for, and against programs.

mod http;
mod odd;
mod pinned;
mod program;
mod scripted;
mod server;
mod sse;
mod support;
mod tls;
