//! The MCP gateway: Atlas as a server of the Model Context Protocol (MCP), with a few tools that find, run and observe agents.
//!
//! The protocol itself is the work of `rmcp`: sessions, versions, framing. Here is what Atlas offers over it. A tool call is a
//! service function with a caller, like a request to the HTTP door; the gateway stores nothing about a job. A call that takes longer
//! than a client waits answers with the job's id, or with a task if the client knows them (ADR 23).

mod agent;
mod arguments;
mod bases;
mod bearer;
mod body;
mod call;
mod chain;
mod compatible;
mod context;
mod docs;
mod door;
mod hints;
mod lists;
mod media;
mod names;
mod owners;
mod page;
mod pins;
mod priming;
mod progress;
mod questions;
mod registry;
mod resources;
mod schema;
mod server;
mod sessions;
mod task;
mod texts;
mod together;
mod tools;
mod verbs;
mod view;

pub use compatible::{Compatible, CompatibleOptions, Token};
pub use door::{Gateway, GatewayOptions, GatewayResponse};
pub use registry::RegistryOptions;
pub use verbs::{McpVerb, mcp_verbs};
