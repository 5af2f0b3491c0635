//! What agents know together: shared memory and knowledge entries (compatibility §22, §23).
//!
//! Both are kept as objects ([ADR 83](../../../docs/adr/0083-shared-memory.md)), unless the controller was started with another
//! [store](Stores) for those of the namespace `default` ([ADR 84](../../../docs/adr/0084-other-stores.md)). A [memory] is one text for
//! all that use its scope; as objects, each append is an object of its own, so that appends never disturb each other and a repeated one is
//! found. A [knowledge entry](knowledge) is one object. The rules are those of `atlas-knowledge`; who may call is decided before: by the row of
//! an operation, or by the contract of an agent.

mod elsewhere;
mod key;
pub mod knowledge;
pub mod memory;
mod objects;
mod store;
mod write;

use std::sync::Arc;

use atlas_desk::Desk;
use atlas_knowledge::ProtectedDomains;
use atlas_types::JobId;

use elsewhere::Recent;
use objects::Objects;

pub use key::WriteKey;
pub use memory::{MemoryScope, ScopeError};
pub use store::{
    EntryPage, EntryQuery, EntryRecord, EntryUpdate, KnowledgeStore, MemoryStore, Reader, StoreAnswer, StoreError,
    StorePlace, Stores, Writer,
};

/// The memory and the knowledge of a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Library {
    desk: Arc<Desk>,
    objects: Arc<Objects>,
    stores: Stores,
    recent: Arc<Recent>,
}

impl Library {
    /// The library of a controller.
    pub fn new(desk: Arc<Desk>, stores: Stores) -> Self {
        let objects = Arc::new(Objects(desk.clone()));
        Self { desk, objects, stores, recent: Arc::default() }
    }

    /// Domains that the operator of this controller protects, besides those of a namespace's object.
    pub fn protected(&self) -> &ProtectedDomains {
        &self.stores.protected
    }
}

/// The job that writes; a person or another program is none.
#[derive(Debug, Clone)]
pub struct WritingJob {
    pub agent: String,
    pub job: JobId,
}
