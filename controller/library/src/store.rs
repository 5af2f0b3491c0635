//! Where memory and knowledge are kept: as objects of the cluster, or elsewhere (ADR 84).
//!
//! A store keeps and finds; it decides nothing. Who may read and write what, which ids and domains are valid and how much is shown is decided
//! by [`Library`](crate::Library), the same for every store. What a store answers is not trusted.

use std::sync::Arc;

use atlas_desk::{Caller, Consistency, Error};
use atlas_knowledge::{Entry, EntryChange, Name, ProtectedDomains};
use atlas_types::EventSeq;
use futures::future::BoxFuture;

use crate::{WriteKey, WritingJob};

/// What a store answers, later.
pub type StoreAnswer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Why a store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Of the cluster.
    #[error(transparent)]
    Cluster(#[from] Error),
    /// Of a store outside of the cluster: where it is and what happened, for people. It shows nothing that was sent.
    #[error("{0}")]
    Outside(String),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Cluster(error) => error,
            StoreError::Outside(why) => Self::StoreFailed(why),
        }
    }
}

/// What is known of a store outside of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePlace {
    /// Where it is, for people, without credentials.
    pub name: String,
    /// Whether all controllers of a cluster reach the same one. A file belongs to one controller.
    pub is_shared: bool,
}

/// Who reads. Stores outside of the cluster know nobody.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub caller: &'a Caller,
    pub consistency: Consistency,
}

/// Who writes.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    pub caller: &'a Caller,
    /// What the write is known by: a repeat has the same one.
    pub key: WriteKey,
    pub job: Option<&'a WritingJob>,
}

/// Which entries are wanted. A store returns those that match, in its order, and at most `limit`.
#[derive(Debug, Clone, Copy)]
pub struct EntryQuery<'a> {
    /// Compared without case with the content and the tags; empty for all.
    pub text: &'a str,
    /// Only entries of these domains; none for all.
    pub domains: Option<&'a [String]>,
    /// Only those with one of these tags; empty for all.
    pub tags: &'a [String],
    pub limit: usize,
}

/// A part of all entries, by domain and id.
#[derive(Debug, Clone, Copy)]
pub struct EntryPage<'a> {
    pub domain: Option<&'a str>,
    pub limit: usize,
    pub offset: usize,
}

/// An entry that a store has, and who wrote it as far as the store knows.
#[derive(Debug, Clone)]
pub struct EntryRecord {
    pub entry: Entry,
    /// The principal that wrote it last; empty if that is not known.
    pub author: String,
    pub agent: Option<String>,
    pub job: Option<String>,
    /// With which a change is refused if another one came first; none if the store has none.
    pub revision: Option<EventSeq>,
}

impl From<Entry> for EntryRecord {
    fn from(entry: Entry) -> Self {
        Self { entry, author: String::new(), agent: None, job: None, revision: None }
    }
}

impl AsRef<Entry> for EntryRecord {
    fn as_ref(&self) -> &Entry {
        &self.entry
    }
}

/// A change of one entry.
#[derive(Debug, Clone, Copy)]
pub struct EntryUpdate<'a> {
    /// As it was.
    pub old: &'a EntryRecord,
    /// As it is to be.
    pub new: &'a Entry,
    /// What of it changes.
    pub change: &'a EntryChange,
}

/// A store of knowledge entries.
pub trait KnowledgeStore: Send + Sync {
    /// None for the cluster itself.
    fn place(&self) -> Option<&StorePlace>;
    fn search<'a>(&'a self, reader: Reader<'a>, wanted: EntryQuery<'a>) -> StoreAnswer<'a, Vec<EntryRecord>>;
    fn list<'a>(&'a self, reader: Reader<'a>, page: EntryPage<'a>) -> StoreAnswer<'a, Vec<EntryRecord>>;
    fn get<'a>(&'a self, reader: Reader<'a>, id: &'a Name) -> StoreAnswer<'a, Option<EntryRecord>>;
    /// Stores an entry. One with the same id is replaced if the id was given; otherwise it is a repeat of the same write.
    fn create<'a>(&'a self, writer: Writer<'a>, entry: &'a Entry, is_named: bool) -> StoreAnswer<'a, EntryRecord>;
    /// Changes an entry. [`Error::ObjectChanged`] if another change came first.
    fn update<'a>(&'a self, writer: Writer<'a>, update: EntryUpdate<'a>) -> StoreAnswer<'a, EntryRecord>;
    /// Deletes an entry; whether there was one.
    fn delete<'a>(&'a self, writer: Writer<'a>, id: &'a Name) -> StoreAnswer<'a, bool>;
}

/// A store of one memory outside of the cluster.
pub trait MemoryStore: Send + Sync {
    fn place(&self) -> &StorePlace;
    /// The text; empty if there is none.
    fn read(&self) -> StoreAnswer<'_, String>;
    /// Appends a line, or replaces the text.
    fn write<'a>(&'a self, text: &'a str, replaces: bool, key: WriteKey) -> StoreAnswer<'a, ()>;
}

/// The stores outside of the cluster, which a controller is started with. They are those of the namespace `default`.
#[derive(Clone, Default)]
pub struct Stores {
    /// The memory of the namespace; none for objects.
    pub memory: Option<Arc<dyn MemoryStore>>,
    /// None for objects.
    pub knowledge: Option<Arc<dyn KnowledgeStore>>,
    /// Domains that the operator protects, besides those of the namespace's object.
    pub protected: ProtectedDomains,
}
