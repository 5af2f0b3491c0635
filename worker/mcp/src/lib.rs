//! A client of MCP servers (ADR 26): one connection per definition and credential, opened when it is first needed, closed when it is
//! idle, and opened again with a growing pause after failures. Answers, times and the number of tools are bounded, because a server is
//! not trusted. A connection with the credential of a caller belongs to one attempt and is never shared.

mod bounded;
mod bounds;
mod connection;
mod era;
mod error;
mod http;
mod lines;
mod network;
mod outcome;
mod pool;
mod program;
mod reading;
mod sse;
mod target;
mod tools;
mod waiting;
mod words;

pub use atlas_mcp_spec::{
    CallEffects, Meta, RemoteTool, ServerSpec, Transport, Verdict, digest, for_models, for_server,
};
pub use error::{McpError, McpErrorKind};
pub use network::Network;
pub use outcome::CallResult;
pub use pool::Pool;
pub use program::{Launcher, Program, RunningProgram};
pub use target::{Surroundings, Target};
pub use tools::Listing;
