//! Knowledge (compatibility §23): entries in domains, which agents search, read and write as their contracts allow.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_api::types;
use atlas_desk::{Caller, Consistency, Error};
use atlas_knowledge::{Acl, Draft, Entry, EntryChange, Name, Query, list, search};
use atlas_objects::KnowledgeSpec;
use atlas_state::State;
use atlas_types::{Expect, Namespace, Object, ObjectKind, Timestamp};

use crate::{Library, WriteKey, WritingJob};

const KIND: &str = "knowledge";

/// How often a change is tried while others change the same entry.
const TRIES: usize = 32;

/// Which entries are wanted.
#[derive(Debug, Clone, Default)]
pub struct KnowledgeFilter {
    /// Compared without case with the content and the tags; empty for all.
    pub text: String,
    /// Only those of this domain; none for all.
    pub domain: Option<String>,
    /// Only those with one of these tags; empty for all.
    pub tags: Vec<String>,
}

/// Why an agent gets no answer, or the caller.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// The contract of the agent does not allow it.
    #[error("Agent not allowed to write to knowledge domain '{0}'")]
    Domain(String),
    /// Of the cluster.
    #[error(transparent)]
    Cluster(#[from] Error),
}

/// An entry with its object.
struct Stored {
    entry: Entry,
    spec: KnowledgeSpec,
    object: Arc<Object>,
}

impl AsRef<Entry> for Stored {
    fn as_ref(&self) -> &Entry {
        &self.entry
    }
}

impl Library {
    /// The entries that match and may be read, by domain and id.
    pub async fn search(
        &self,
        caller: &Caller,
        wanted: &KnowledgeFilter,
        acl: &Acl,
        limit: usize,
        consistency: Consistency,
    ) -> Result<Vec<types::KnowledgeEntry>, Error> {
        let stored = self.stored(caller, consistency).await?;
        let query = Query { text: &wanted.text, domain: wanted.domain.as_deref(), tags: &wanted.tags, acl };
        Ok(search(stored, &query, limit).into_iter().map(shown).collect())
    }

    /// A page of the entries that may be read, by domain and id.
    pub async fn entries(
        &self,
        caller: &Caller,
        domain: Option<&str>,
        (limit, offset): (usize, usize),
        consistency: Consistency,
    ) -> Result<Vec<types::KnowledgeEntry>, Error> {
        let stored = self.stored(caller, consistency).await?;
        Ok(list(stored, domain, &Acl::everything(), limit, offset).into_iter().map(shown).collect())
    }

    /// The domains that have entries, by name.
    pub async fn domains(
        &self,
        caller: &Caller,
        consistency: Consistency,
    ) -> Result<Vec<types::KnowledgeDomain>, Error> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for stored in self.stored(caller, consistency).await? {
            *counts.entry(stored.entry.domain.to_string()).or_default() += 1;
        }
        Ok(counts.into_iter().map(|(domain, entries)| types::KnowledgeDomain { domain, entries }).collect())
    }

    /// One entry; none if there is none, or if it may not be read.
    pub async fn entry(
        &self,
        caller: &Caller,
        id: &str,
        acl: &Acl,
        consistency: Consistency,
    ) -> Result<Option<types::KnowledgeEntry>, Error> {
        let state = self.desk.state(consistency).await?;
        let found = find(&state, caller, id)?;
        Ok(found.filter(|stored| acl.reads(stored.entry.domain.as_str())).map(shown))
    }

    /// Stores an entry. One with the same id is replaced. Without an id a repeat with the same key finds the entry of the first try.
    pub async fn store(
        &self,
        caller: &Caller,
        draft: types::KnowledgeDraft,
        acl: &Acl,
        key: WriteKey,
        job: Option<&WritingJob>,
    ) -> Result<types::KnowledgeEntry, KnowledgeError> {
        let is_named = !draft.id.is_empty();
        let draft = Draft {
            id: draft.id,
            domain: if draft.domain.is_empty() { atlas_knowledge::DEFAULT_DOMAIN.to_owned() } else { draft.domain },
            content: draft.content,
            tags: draft.tags,
            metadata: draft.metadata,
        };
        let entry = Entry::new(draft, &self.now(), key.number()).map_err(|error| refused(&error))?;
        let id = entry.id.to_string();
        let mut may = vec![entry.domain.to_string()];
        let expect = if is_named {
            // One that is replaced may be in another domain.
            let state = self.desk.state(Consistency::Linearizable).await?;
            may.extend(find(&state, caller, &id)?.map(|stored| stored.entry.domain.to_string()));
            Expect::Any
        } else {
            Expect::Absent
        };
        if let Some(domain) = may.into_iter().find(|domain| !acl.writes(domain)) {
            return Err(KnowledgeError::Domain(domain));
        }
        match self.put_entry(caller, &entry, expect, job).await {
            Ok(()) => self.read_back(caller, &id).await,
            // Another try of the same write was faster; or another write with its key.
            Err(Error::ObjectChanged { .. }) if !is_named => {
                let earlier = self.read_back(caller, &id).await?;
                // What a job stored may have been changed since.
                let is_own = job.is_some_and(|job| earlier.job == Some(job.job.to_string()));
                let is_same = (&earlier.content, earlier.domain.as_str()) == (&entry.content, entry.domain.as_str());
                if is_own || is_same { Ok(earlier) } else { Err(Error::RequestConflict.into()) }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Changes an entry; none if there is none, or if it may not be read.
    pub async fn change(
        &self,
        caller: &Caller,
        id: &str,
        change: types::KnowledgeChange,
        acl: &Acl,
        job: Option<&WritingJob>,
    ) -> Result<Option<types::KnowledgeEntry>, KnowledgeError> {
        let types::KnowledgeChange { content, tags, metadata } = change;
        let change = EntryChange { content, tags, metadata };
        for _ in 0..TRIES {
            let state = self.desk.state(Consistency::Linearizable).await?;
            let Some(stored) = find(&state, caller, id)? else { return Ok(None) };
            let domain = stored.entry.domain.to_string();
            if !acl.writes(&domain) {
                // Who may not read it does not learn that it is there.
                return if acl.reads(&domain) { Err(KnowledgeError::Domain(domain)) } else { Ok(None) };
            }
            let entry = stored.entry.changed(change.clone(), &self.now()).map_err(|error| refused(&error))?;
            match self.put_entry(caller, &entry, Expect::Revision(stored.object.revision), job).await {
                Ok(()) => return Ok(Some(self.read_back(caller, id).await?)),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Overloaded.into())
    }

    /// Deletes an entry. True if it was there.
    pub async fn delete_entry(&self, caller: &Caller, id: &str) -> Result<bool, Error> {
        self.delete(caller, Self::key(caller, KIND, id)?).await
    }

    async fn put_entry(
        &self,
        caller: &Caller,
        entry: &Entry,
        expect: Expect,
        job: Option<&WritingJob>,
    ) -> Result<(), Error> {
        let metadata = &entry.metadata;
        let spec = KnowledgeSpec {
            content: entry.content.clone(),
            domain: entry.domain.to_string(),
            tags: entry.tags.clone(),
            metadata: if metadata.is_empty() {
                String::new()
            } else {
                serde_json::to_string(metadata).map_err(|error| Error::internal("write an entry", &error))?
            },
            created_at: entry.created_at.clone(),
            agent: job.map(|job| job.agent.clone()),
            job: job.map(|job| job.job.to_string()),
        };
        let key = Self::key(caller, KIND, entry.id.as_str())?;
        self.put(caller, &key, &spec, expect, "the entry").await
    }

    async fn read_back(&self, caller: &Caller, id: &str) -> Result<types::KnowledgeEntry, KnowledgeError> {
        let state = self.desk.state(Consistency::Linearizable).await?;
        // Somebody may have deleted it since.
        let stored = find(&state, caller, id)?.ok_or_else(|| unknown_entry(id))?;
        Ok(shown(stored))
    }

    /// All entries of the caller's namespace, by domain and id.
    async fn stored(&self, caller: &Caller, consistency: Consistency) -> Result<Vec<Stored>, Error> {
        let state = self.desk.state(consistency).await?;
        let mut stored = all(&state, &caller.namespace)?;
        stored.sort_by(|a, b| (&a.entry.domain, &a.entry.id).cmp(&(&b.entry.domain, &b.entry.id)));
        Ok(stored)
    }

    fn now(&self) -> String {
        iso(self.desk.env.clock.wall())
    }
}

/// There is no entry of this id.
pub fn unknown_entry(id: &str) -> Error {
    Error::UnknownObject(format!("no such entry: \"{}\"", id.chars().take(255).collect::<String>()))
}

fn refused(error: &atlas_knowledge::EntryError) -> Error {
    let mut text = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        text = format!("{text}: {source}");
    }
    Error::Malformed(text)
}

fn all(state: &State, namespace: &Namespace) -> Result<Vec<Stored>, Error> {
    state.objects(namespace, &ObjectKind::new(KIND)?, None).map(read).collect()
}

fn find(state: &State, caller: &Caller, id: &str) -> Result<Option<Stored>, Error> {
    // A text that is no id names no entry.
    if Name::new(id).is_err() {
        return Ok(None);
    }
    let Ok(key) = Library::key(caller, KIND, id) else { return Ok(None) };
    state.object(&key).map(read).transpose()
}

fn read(object: &Arc<Object>) -> Result<Stored, Error> {
    let unreadable = |error| Error::internal("read an entry", &error);
    let spec = KnowledgeSpec::read(&object.spec).map_err(|error| Error::internal("read an entry", &error))?;
    let entry = Entry {
        id: Name::new(object.key.name.as_str()).map_err(unreadable)?,
        content: spec.content.clone(),
        domain: Name::new(&spec.domain).map_err(unreadable)?,
        tags: spec.tags.clone(),
        metadata: serde_json::from_str(&spec.metadata).unwrap_or_default(),
        created_at: spec.created_at.clone(),
        updated_at: iso(object.updated),
    };
    Ok(Stored { entry, spec, object: Arc::clone(object) })
}

fn shown(stored: Stored) -> types::KnowledgeEntry {
    let Stored { entry, spec, object } = stored;
    types::KnowledgeEntry {
        id: entry.id.to_string(),
        content: entry.content,
        domain: entry.domain.to_string(),
        tags: entry.tags,
        metadata: entry.metadata,
        created_at: entry.created_at,
        updated_at: entry.updated_at,
        author: object.by.as_str().to_owned(),
        agent: spec.agent,
        job: spec.job,
    }
}

/// In ISO 8601, to the microsecond.
fn iso(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.0).unwrap_or_default().to_string()
}
