//! What agents know together: shared memory and knowledge entries (compatibility §22, §23, [ADR 83](../../../docs/adr/0083-shared-memory.md)).
//!
//! Both are kept as objects. A [memory] is one text for all that use its scope; each append is an object of its own, so that appends
//! never disturb each other and a repeated one is found. A [knowledge entry](knowledge) is one object. The rules are those of
//! `atlas-knowledge`; who may call is decided before: by the row of an operation, or by the contract of an agent.

mod key;
pub mod knowledge;
pub mod memory;
mod write;

use std::sync::Arc;

use atlas_desk::Desk;
use atlas_types::JobId;

pub use key::WriteKey;
pub use memory::{MemoryScope, ScopeError};

/// The memory and the knowledge of a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Library {
    desk: Arc<Desk>,
}

impl Library {
    /// The library of a controller.
    pub fn new(desk: Arc<Desk>) -> Self {
        Self { desk }
    }
}

/// The job that writes; a person or another program is none.
#[derive(Debug, Clone)]
pub struct WritingJob {
    pub agent: String,
    pub job: JobId,
}
