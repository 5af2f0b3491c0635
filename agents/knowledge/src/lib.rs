//! Knowledge and shared memory (compatibility §22, §23).
//!
//! Knowledge is a set of [entries](Entry) in domains. [`document`] is the format of their files, [`search`](search()) and [`list`](list())
//! select among them, [`Acl`] says which domains an agent reads and writes, and [`Folder`] keeps the files. The [`memory`] is one text for
//! all agents. What decides is a plain function over plain data; only `folder.rs` and `memory.rs` touch files, and times and random numbers
//! come in as values. No door uses this crate yet: [ADR 35](../../../docs/adr/0035-rules-before-doors.md) says what will, and what of it stays when the
//! cluster keeps entries in its state: the rules, and the two files for single machines.

mod acl;
pub mod document;
mod entry;
mod files;
mod folder;
pub mod memory;
mod search;

pub use acl::{Acl, ProtectedDomains, ProtectedError};
pub use entry::{
    CONTENT_BYTES_MAX, DEFAULT_DOMAIN, Draft, Entry, EntryChange, EntryError, METADATA_DEPTH_MAX, Name, NameError,
    TAGS_MAX,
};
pub use folder::{Folder, FolderError, KnowledgeAccess};
pub use search::{LIST_LIMIT, Query, SEARCH_LIMIT, list, search};
