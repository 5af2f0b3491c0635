//! Stores of memory and knowledge outside of the cluster (compatibility §22, §23.2, [ADR 84](../../../docs/adr/0084-other-stores.md)).
//!
//! A memory is a file or a server over HTTP; knowledge is a folder, a server over HTTP or a server over MCP. They carry out what
//! `atlas-library` asks and decide nothing. What a server answers is bounded in size and time, and what is not an entry is left out. A token
//! goes to the given address alone: redirects are not followed.

mod file;
mod http;
mod json;
mod mcp;
mod options;
mod site;

pub use atlas_http::Secret;
pub use options::{StoreOptions, StoresError};
pub use site::SiteError;
