//! Knowledge (compatibility §23): entries in domains, which agents search, read and write as their contracts allow.

use std::collections::BTreeMap;

use atlas_api::types;
use atlas_desk::{Caller, Consistency, Error};
use atlas_knowledge::{Acl, Draft, Entry, EntryChange, Name};

use crate::objects::iso;
use crate::store::{EntryPage, EntryQuery, EntryRecord, EntryUpdate, Reader, Writer};
use crate::{Library, WriteKey, WritingJob};

/// How often a change is tried while others change the same entry.
const TRIES: usize = 32;

/// How many entries are asked for at once, where all are.
const PAGE: usize = 1000;

/// Most entries that are looked at, where all are.
const ENTRIES_MAX: usize = 100_000;

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

impl Library {
    /// The entries that match and may be read. What may not be read counts for no limit.
    pub async fn search(
        &self,
        caller: &Caller,
        wanted: &KnowledgeFilter,
        acl: &Acl,
        limit: usize,
        consistency: Consistency,
    ) -> Result<Vec<types::KnowledgeEntry>, Error> {
        let KnowledgeFilter { text, domain, tags } = wanted;
        let domains = match domain.as_deref().filter(|domain| !domain.is_empty()) {
            Some(domain) if acl.reads(domain) => Some(vec![domain.to_owned()]),
            Some(_) => return Ok(Vec::new()),
            None if acl.reads_all() => None,
            None => Some(acl.read_domains.clone()),
        };
        let wanted = EntryQuery { text, domains: domains.as_deref(), tags, limit };
        let found = self.knowledge_store(caller)?.search(Reader { caller, consistency }, wanted).await?;
        let is_wanted = |kept: &EntryRecord| {
            let domain = kept.entry.domain.as_str();
            acl.reads(domain) && domains.as_ref().is_none_or(|domains| domains.iter().any(|wanted| wanted == domain))
        };
        Ok(found.into_iter().filter(is_wanted).take(limit).map(shown).collect())
    }

    /// A page of the entries, by domain and id.
    pub async fn entries(
        &self,
        caller: &Caller,
        domain: Option<&str>,
        (limit, offset): (usize, usize),
        consistency: Consistency,
    ) -> Result<Vec<types::KnowledgeEntry>, Error> {
        let page = EntryPage { domain, limit, offset };
        let found = self.knowledge_store(caller)?.list(Reader { caller, consistency }, page).await?;
        let is_wanted =
            |kept: &EntryRecord| domain.is_none_or(|domain| domain.is_empty() || kept.entry.domain.as_str() == domain);
        Ok(found.into_iter().filter(is_wanted).take(limit).map(shown).collect())
    }

    /// The domains that have entries, by name.
    pub async fn domains(
        &self,
        caller: &Caller,
        consistency: Consistency,
    ) -> Result<Vec<types::KnowledgeDomain>, Error> {
        let store = self.knowledge_store(caller)?;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        // Objects are one state, which pages would read again and again.
        let limit = if store.place().is_none() { ENTRIES_MAX } else { PAGE };
        for offset in (0..ENTRIES_MAX).step_by(limit) {
            let page = store.list(Reader { caller, consistency }, EntryPage { domain: None, limit, offset }).await?;
            for kept in &page {
                *counts.entry(kept.entry.domain.to_string()).or_default() += 1;
            }
            if page.len() < limit {
                break;
            }
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
        let found = self.find(Reader { caller, consistency }, id).await?;
        Ok(found.filter(|kept| acl.reads(kept.entry.domain.as_str())).map(shown))
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
        let mut may = vec![entry.domain.to_string()];
        if is_named {
            // One that is replaced may be in another domain.
            let reader = Reader { caller, consistency: Consistency::Linearizable };
            may.extend(self.find(reader, entry.id.as_str()).await?.map(|kept| kept.entry.domain.to_string()));
        }
        if let Some(domain) = may.into_iter().find(|domain| !acl.writes(domain)) {
            return Err(KnowledgeError::Domain(domain));
        }
        let writer = Writer { caller, key, job };
        let stored = self.knowledge_store(caller)?.create(writer, &entry, is_named).await;
        Ok(shown(stored.map_err(Error::from)?))
    }

    /// Changes an entry; none if there is none, or if it may not be read.
    pub async fn change(
        &self,
        caller: &Caller,
        id: &str,
        change: types::KnowledgeChange,
        acl: &Acl,
        key: WriteKey,
        job: Option<&WritingJob>,
    ) -> Result<Option<types::KnowledgeEntry>, KnowledgeError> {
        let types::KnowledgeChange { content, tags, metadata } = change;
        let change = EntryChange { content, tags, metadata };
        let (reader, writer) = (Reader { caller, consistency: Consistency::Linearizable }, Writer { caller, key, job });
        for _ in 0..TRIES {
            let Some(old) = self.find(reader, id).await? else { return Ok(None) };
            let domain = old.entry.domain.to_string();
            if !acl.writes(&domain) {
                // Who may not read it does not learn that it is there.
                return if acl.reads(&domain) { Err(KnowledgeError::Domain(domain)) } else { Ok(None) };
            }
            let new = old.entry.clone().changed(change.clone(), &self.now()).map_err(|error| refused(&error))?;
            let update = EntryUpdate { old: &old, new: &new, change: &change };
            match self.knowledge_store(caller)?.update(writer, update).await.map_err(Error::from) {
                Ok(kept) => return Ok(Some(shown(kept))),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Overloaded.into())
    }

    /// Deletes an entry. True if it was there.
    pub async fn delete_entry(&self, caller: &Caller, id: &str) -> Result<bool, Error> {
        // A text that is no id names no entry.
        let Ok(id) = Name::new(id) else { return Ok(false) };
        let key = WriteKey::random(self.desk.env.entropy.u128());
        Ok(self.knowledge_store(caller)?.delete(Writer { caller, key, job: None }, &id).await?)
    }

    async fn find(&self, reader: Reader<'_>, id: &str) -> Result<Option<EntryRecord>, Error> {
        // A text that is no id names no entry.
        let Ok(id) = Name::new(id) else { return Ok(None) };
        let found = self.knowledge_store(reader.caller)?.get(reader, &id).await?;
        Ok(found.filter(|kept| kept.entry.id == id))
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

fn shown(kept: EntryRecord) -> types::KnowledgeEntry {
    let EntryRecord { entry, author, agent, job, .. } = kept;
    types::KnowledgeEntry {
        id: entry.id.to_string(),
        content: entry.content,
        domain: entry.domain.to_string(),
        tags: entry.tags,
        metadata: entry.metadata,
        created_at: entry.created_at,
        updated_at: entry.updated_at,
        author,
        agent,
        job,
    }
}
