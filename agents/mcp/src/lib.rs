//! MCP servers as agents use them: the spec of a server, files that other programs keep such definitions in, the hash by which a tool's
//! definition is pinned, and the search over the tools of a server. It is pure: controllers, workers and the command line share it.

mod import;
mod pin;
mod read;
mod remote;
mod schema;
mod search;
mod spec;
mod tool;

/// The contract of the agent that asks a server: for its tools, for a call, or only whether it answers. Who needs it first registers it.
pub const CHECK_CONTRACT: &str = include_str!("check.yaml");
/// The name of that agent.
pub const CHECK_AGENT: &str = "mcp-check";

pub use import::{ImportError, ImportedServer, import};
pub use pin::{Pins, Verdict, digest};
pub use remote::Remote;
pub use schema::{for_models, for_server};
pub use search::search;
pub use spec::{
    ARGUMENTS_MAX, CallEffects, HEADERS_MAX, ServerSpec, TEXT_BYTES_MAX, TOOLS_MAX, Transport, VARIABLES_MAX,
};
pub use tool::{Meta, RemoteTool};
