//! Shared memory (compatibility §22): one text for all that use its scope.
//!
//! The text is that of the newest entry that replaces the others and of all appended after it, each on a line of its own. Their order is
//! that of the cluster's events, so every controller shows the same. A summary has the place of the last entry for which it stands.

mod compact;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use atlas_api::types;
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::MemorySpec;
use atlas_state::State;
use atlas_types::{Expect, Namespace, Object, ObjectKind, ObjectName};

use crate::store::MemoryStore;
use crate::{Library, WriteKey, WritingJob, write};

const KIND: &str = "memory";

/// Longest text, in bytes: it travels to agents in one frame and is read by models.
pub const TEXT_BYTES_MAX: usize = 768 << 10;

/// Most entries of one text.
pub const ENTRIES_MAX: usize = 10_000;

/// How many replaced entries are kept as history.
const REPLACED_MAX: usize = 100;

/// How many entries one call removes at once.
const REMOVED_AT_ONCE: usize = 512;

/// Longest text of a scope, in bytes: the name of an object has room for it and a key.
const SCOPE_BYTES_MAX: usize = 200;

/// Who shares a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryScope {
    /// All agents of the namespace, as in Atlas for Python.
    Namespace,
    /// The jobs of one agent.
    Agent(String),
    /// The jobs of one principal.
    User(String),
    /// The jobs of one conversation.
    Conversation(String),
}

/// A text that names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no scope of a memory; use namespace, agent:NAME, user:NAME or conversation:ID")]
pub struct ScopeError(String);

impl FromStr for MemoryScope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let refused = || ScopeError(text.chars().take(SCOPE_BYTES_MAX).collect());
        if text.len() > SCOPE_BYTES_MAX {
            return Err(refused());
        }
        if text.is_empty() || text == "namespace" {
            return Ok(Self::Namespace);
        }
        let (kind, name) = text.split_once(':').filter(|(_, name)| !name.is_empty()).ok_or_else(refused)?;
        let name = name.to_owned();
        match kind {
            "agent" => Ok(Self::Agent(name)),
            "user" => Ok(Self::User(name)),
            "conversation" => Ok(Self::Conversation(name)),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for MemoryScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace => f.write_str("namespace"),
            Self::Agent(name) => write!(f, "agent:{name}"),
            Self::User(name) => write!(f, "user:{name}"),
            Self::Conversation(id) => write!(f, "conversation:{id}"),
        }
    }
}

/// One entry of a memory.
struct Entry {
    spec: MemorySpec,
    key: String,
    object: Arc<Object>,
}

impl Library {
    /// The text of a memory; empty if nothing was written.
    pub async fn memory(
        &self,
        caller: &Caller,
        scope: &MemoryScope,
        consistency: Consistency,
    ) -> Result<types::Memory, Error> {
        if let Some(store) = self.memory_store(caller, scope)? {
            return Ok(outside(scope, read_outside(store).await?));
        }
        let state = self.desk.state(consistency).await?;
        Ok(shown(scope, &entries(&state, &caller.namespace, scope)?))
    }

    /// All entries of a memory, with those that were replaced, the oldest first. A memory that is kept elsewhere is one entry.
    pub async fn memory_entries(
        &self,
        caller: &Caller,
        scope: &MemoryScope,
        consistency: Consistency,
    ) -> Result<Vec<types::MemoryEntry>, Error> {
        if let Some(store) = self.memory_store(caller, scope)? {
            let text = read_outside(store).await?;
            let id = store.place().name.clone();
            let entry = types::MemoryEntry { id, text, replaces: true, ..types::MemoryEntry::default() };
            return Ok(Some(entry).filter(|entry| !entry.text.is_empty()).into_iter().collect());
        }
        let state = self.desk.state(consistency).await?;
        let entries = entries(&state, &caller.namespace, scope)?;
        let live = live(&entries);
        let shown = |(at, entry): (usize, Entry)| types::MemoryEntry {
            id: entry.key,
            text: entry.spec.text,
            replaces: entry.spec.replaces,
            replaced: at < live,
            summary: entry.spec.through.is_some(),
            author: entry.object.by.as_str().to_owned(),
            agent: entry.spec.agent,
            job: entry.spec.job,
            written_at: seconds(&entry.object),
        };
        Ok(entries.into_iter().enumerate().map(shown).collect())
    }

    /// Appends an entry, or replaces the text by it. A repeat with the same key changes nothing.
    pub async fn write_memory(
        &self,
        caller: &Caller,
        scope: &MemoryScope,
        text: &str,
        replaces: bool,
        key: WriteKey,
        job: Option<&WritingJob>,
    ) -> Result<(), Error> {
        if let Some(store) = self.memory_store(caller, scope)? {
            if text.len() > TEXT_BYTES_MAX {
                return Err(Error::Malformed(format!("the text has more than {TEXT_BYTES_MAX} bytes")));
            }
            return self.once(key, store.write(text, replaces, key)).await;
        }
        let digits = key.digits();
        let state = self.desk.state(Consistency::Linearizable).await?;
        let found = entries(&state, &caller.namespace, scope)?;
        if let Some(earlier) = found.iter().find(|entry| entry.key == digits) {
            return earlier.is_repeated_by(text, replaces);
        }
        if !replaces {
            check_room(&found[live(&found)..], text)?;
        }
        let spec = MemorySpec {
            text: text.to_owned(),
            replaces,
            through: None,
            agent: job.map(|job| job.agent.clone()),
            job: job.map(|job| job.job.to_string()),
        };
        let object = write::key(caller, KIND, &MemorySpec::name(&scope.to_string(), &digits))?;
        match write::put(&self.desk, caller, &object, &spec, Expect::Absent, "the entry of the memory", job).await {
            Ok(()) => {}
            // Another try of the same write was faster; or another write with its key.
            Err(Error::ObjectChanged { .. }) => {
                let state = self.desk.state(Consistency::Linearizable).await?;
                let found = entries(&state, &caller.namespace, scope)?;
                let earlier = found.iter().find(|entry| entry.key == digits);
                return earlier.map_or(Ok(()), |earlier| earlier.is_repeated_by(text, replaces));
            }
            Err(error) => return Err(error),
        }
        if replaces {
            let gone = found.len().saturating_sub(REPLACED_MAX).min(REMOVED_AT_ONCE);
            write::delete_all(&self.desk, caller, found.iter().take(gone).map(|entry| &entry.object.key)).await?;
        }
        Ok(())
    }

    /// Removes a memory with its history. True if there was one.
    pub async fn clear_memory(&self, caller: &Caller, scope: &MemoryScope) -> Result<bool, Error> {
        if let Some(store) = self.memory_store(caller, scope)? {
            let was_there = !read_outside(store).await?.is_empty();
            store.write("", true, WriteKey::random(self.desk.env.entropy.u128())).await?;
            return Ok(was_there);
        }
        let mut was_there = false;
        loop {
            let state = self.desk.state(Consistency::Linearizable).await?;
            let found = entries(&state, &caller.namespace, scope)?;
            if found.is_empty() {
                return Ok(was_there);
            }
            was_there = true;
            write::delete_all(&self.desk, caller, found.iter().take(REMOVED_AT_ONCE).map(|entry| &entry.object.key))
                .await?;
        }
    }
}

/// The text that a store outside of the cluster has. Agents get no longer one than from the cluster.
async fn read_outside(store: &dyn MemoryStore) -> Result<String, Error> {
    let text = store.read().await?;
    if text.len() > TEXT_BYTES_MAX {
        let place = &store.place().name;
        return Err(Error::StoreFailed(format!("the memory in {place} has more than {TEXT_BYTES_MAX} bytes")));
    }
    Ok(text)
}

fn outside(scope: &MemoryScope, text: String) -> types::Memory {
    let entries = u64::from(!text.is_empty());
    types::Memory { scope: scope.to_string(), bytes: text.len() as u64, text, entries, updated_at: None }
}

impl Entry {
    /// The event at which it stands: of a summary, that of the last entry for which it stands.
    fn place(&self) -> u64 {
        self.spec.through.unwrap_or(self.object.uid.0)
    }

    /// Whether a write with the key of this entry is its repeat; another one with the same key is a mistake of the caller.
    fn is_repeated_by(&self, text: &str, replaces: bool) -> Result<(), Error> {
        if self.spec.text == text && self.spec.replaces == replaces { Ok(()) } else { Err(Error::RequestConflict) }
    }
}

/// The entries of a scope, the oldest first.
fn entries(state: &State, namespace: &Namespace, scope: &MemoryScope) -> Result<Vec<Entry>, Error> {
    let scope = scope.to_string();
    let prefix = MemorySpec::name(&scope, "");
    let unusable = |error| Error::Malformed(format!("there is no memory of {scope}: {error}"));
    let first = ObjectName::new(&prefix).map_err(unusable)?;
    let named = state.objects(namespace, &ObjectKind::new(KIND)?, Some(&first));
    let mut entries = Vec::new();
    for object in named.take_while(|object| object.key.name.as_str().starts_with(&prefix)) {
        // A longer scope begins alike.
        let Some((_, key)) = MemorySpec::parts(object.key.name.as_str()).filter(|(found, _)| *found == scope) else {
            continue;
        };
        let spec = MemorySpec::read(&object.spec).map_err(|error| Error::internal("read a memory", &error))?;
        entries.push(Entry { spec, key: key.to_owned(), object: Arc::clone(object) });
    }
    entries.sort_by_key(|entry| (entry.place(), entry.object.uid));
    Ok(entries)
}

/// Where the text begins: at the newest entry that replaces the others.
fn live(entries: &[Entry]) -> usize {
    entries.iter().rposition(|entry| entry.spec.replaces).unwrap_or(0)
}

fn shown(scope: &MemoryScope, entries: &[Entry]) -> types::Memory {
    let live = &entries[live(entries)..];
    let text = text_of(live);
    types::Memory {
        scope: scope.to_string(),
        bytes: text.len() as u64,
        text,
        entries: live.len() as u64,
        updated_at: live.last().map(|entry| seconds(&entry.object)),
    }
}

fn text_of(entries: &[Entry]) -> String {
    text(entries.iter().map(|entry| (entry.spec.text.as_str(), entry.spec.replaces)))
}

/// What texts make, with whether each replaces: a text that replaces stands as it is, and each that is appended is a line of its own.
fn text<'t>(entries: impl Iterator<Item = (&'t str, bool)>) -> String {
    let mut text = String::new();
    for (entry, replaces) in entries {
        if !replaces && !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(entry);
        if !replaces {
            text.push('\n');
        }
    }
    text
}

fn check_room(live: &[Entry], text: &str) -> Result<(), Error> {
    let bytes: usize = live.iter().map(|entry| entry.spec.text.len() + 1).sum();
    let full = |what: String| {
        Err(Error::Malformed(format!("the memory is full: {what}; replace it by a shorter one: atlasctl memory set")))
    };
    if live.len() >= ENTRIES_MAX {
        return full(format!("it has {ENTRIES_MAX} entries"));
    }
    if bytes + text.len() + 2 > TEXT_BYTES_MAX {
        return full(format!("it would have more than {TEXT_BYTES_MAX} bytes"));
    }
    Ok(())
}

fn seconds(object: &Object) -> i64 {
    object.updated.0.div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for scope in ["namespace", "agent:a/b", "user:ada@example.com", "conversation:trip"] {
            assert_eq!(scope.parse::<MemoryScope>().map(|read| read.to_string()), Ok(scope.to_owned()));
        }
        assert_eq!("".parse(), Ok(MemoryScope::Namespace));
        for scope in ["agent", "agent:", "team:a", &format!("agent:{}", "x".repeat(SCOPE_BYTES_MAX))] {
            assert!(scope.parse::<MemoryScope>().is_err(), "{scope}");
        }
    }

    proptest! {
        /// The same as the memory of Atlas for Python in a file.
        #[test]
        fn texts_are_appended_as_in_a_file(first in "[ab\n]{0,4}", appended in proptest::collection::vec("[ab\n]{0,4}", 0..6)) {
            let entries = std::iter::once((first.as_str(), true)).chain(appended.iter().map(|text| (text.as_str(), false)));
            let expected = appended.iter().try_fold(first.clone(), |text, entry| atlas_knowledge::memory::appended(&text, entry));
            prop_assert_eq!(text(entries), expected.expect("there is room"));
        }
    }
}
