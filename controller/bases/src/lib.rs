//! Document bases: documents that the cluster keeps, and that people and agents search
//! ([ADR 85](../../../docs/adr/0085-document-bases.md)).
//!
//! An object of the kind `base` has the settings and names segments: artifacts with documents, which never change. A change makes
//! a new segment and swaps the list with the revision of the object, so a search sees the base before the change or after it. Who may call is
//! decided before: by the row of an operation, or by the contract of an agent.

mod add;
mod cache;
mod catalogue;
mod collect;
mod document;
mod list;
mod loaded;
mod merge;
mod readers;
mod rebuild;
mod remove;
mod search;
mod segment;
mod settings;
mod vectors;
mod write;

use std::sync::Arc;

use atlas_desk::{Desk, Turns};

use cache::Cache;
use catalogue::Catalogues;

pub use collect::{COLLECTED_FROM, CollectedBase, Intake, KeptRange, collecting, collection_due, collection_key};
pub use list::DocumentFilter;
pub use search::{BaseModels, VectorQuestion};
pub use vectors::{NewVectors, VectorGap, chunk_key};

/// Most documents of one request.
pub const DOCUMENTS_AT_ONCE_MAX: usize = 1_000;

/// Most documents of one base.
pub const DOCUMENTS_MAX: u64 = 100_000;

/// Most bytes of the segments of one base.
pub const BASE_BYTES_MAX: u64 = 256 << 20;

/// Most bytes of a request that adds documents.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// The document bases of a cluster, as one controller reads and changes them. Cheap to clone.
#[derive(Clone)]
pub struct Bases {
    desk: Arc<Desk>,
    /// The bases that are changed here.
    turns: Arc<Turns>,
    catalogues: Arc<Catalogues>,
    cache: Arc<Cache>,
    /// The bases that are loaded here.
    loads: Arc<Turns>,
}

impl Bases {
    /// The bases of a controller that has just started: none is loaded yet.
    pub fn new(desk: Arc<Desk>) -> Self {
        Self { desk, turns: Arc::default(), catalogues: Arc::default(), cache: Arc::default(), loads: Arc::default() }
    }
}
