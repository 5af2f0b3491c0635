//! Knowledge and shared memory (compatibility §22, §23).
//!
//! Knowledge is a set of [entries](Entry) in domains. [`document`] is the format of their files, [`search`](search()) and [`list`](list())
//! select among them, [`Acl`] says which domains an agent reads and writes, and [`Folder`] keeps the files. The [`memory`] is one text for
//! all agents. What decides is a plain function over plain data; only `folder.rs` and `memory.rs` touch files, and times and random numbers
//! come in as values. A cluster keeps entries as objects ([ADR 83](../../../docs/adr/0083-shared-memory.md)) and decides by these rules; the files are
//! for imports and exports.

mod acl;
pub mod document;
mod entry;
mod files;
mod folder;
pub mod memory;
mod search;

pub use acl::{Acl, ProtectedDomains, ProtectedError, Reason};
pub use entry::{
    CONTENT_BYTES_MAX, DEFAULT_DOMAIN, Draft, Entry, EntryChange, EntryError, METADATA_DEPTH_MAX, Name, NameError,
    TAGS_MAX,
};
pub use folder::{Folder, FolderError, KnowledgeAccess};
pub use search::{LIST_LIMIT, Query, SEARCH_LIMIT, list, search};
