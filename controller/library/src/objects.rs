//! Knowledge entries as objects of the cluster ([ADR 83](../../../docs/adr/0083-shared-memory.md)).

use std::sync::Arc;

use atlas_desk::{Caller, Consistency, Desk, Error};
use atlas_knowledge::{Acl, Entry, Name, Query, list, search};
use atlas_objects::KnowledgeSpec;
use atlas_state::State;
use atlas_types::{Expect, Namespace, Object, ObjectKind, Timestamp};
use futures::future::FutureExt as _;

use crate::store::{
    EntryPage, EntryQuery, EntryRecord, EntryUpdate, KnowledgeStore, Reader, StoreAnswer, StorePlace, Writer,
};
use crate::write;

const KIND: &str = "knowledge";

/// The objects of the kind `knowledge`.
pub(crate) struct Objects(pub(crate) Arc<Desk>);

impl KnowledgeStore for Objects {
    fn place(&self) -> Option<&StorePlace> {
        None
    }

    fn search<'a>(&'a self, reader: Reader<'a>, wanted: EntryQuery<'a>) -> StoreAnswer<'a, Vec<EntryRecord>> {
        async move {
            let EntryQuery { text, domains, tags, limit } = wanted;
            let acl = domains
                .map_or_else(Acl::everything, |domains| Acl { read_domains: domains.to_vec(), ..Acl::everything() });
            let query = Query { text, domain: None, tags, acl: &acl };
            Ok(search(self.all(reader).await?, &query, limit))
        }
        .boxed()
    }

    fn list<'a>(&'a self, reader: Reader<'a>, page: EntryPage<'a>) -> StoreAnswer<'a, Vec<EntryRecord>> {
        async move {
            let EntryPage { domain, limit, offset } = page;
            Ok(list(self.all(reader).await?, domain, &Acl::everything(), limit, offset))
        }
        .boxed()
    }

    fn get<'a>(&'a self, reader: Reader<'a>, id: &'a Name) -> StoreAnswer<'a, Option<EntryRecord>> {
        async move { Ok(find(&self.0.state(reader.consistency).await?, reader.caller, id)?) }.boxed()
    }

    fn create<'a>(&'a self, writer: Writer<'a>, entry: &'a Entry, is_named: bool) -> StoreAnswer<'a, EntryRecord> {
        async move {
            let expect = if is_named { Expect::Any } else { Expect::Absent };
            match self.put(writer, entry, expect).await {
                Ok(()) => Ok(self.read_back(writer.caller, &entry.id).await?),
                // Another try of the same write was faster; or another write with its key.
                Err(Error::ObjectChanged { .. }) if !is_named => {
                    let earlier = self.read_back(writer.caller, &entry.id).await?;
                    // What a job stored may have been changed since.
                    let is_own = writer.job.is_some_and(|job| earlier.job == Some(job.job.to_string()));
                    let is_same = (&earlier.entry.content, &earlier.entry.domain) == (&entry.content, &entry.domain);
                    if is_own || is_same { Ok(earlier) } else { Err(Error::RequestConflict.into()) }
                }
                Err(error) => Err(error.into()),
            }
        }
        .boxed()
    }

    fn update<'a>(&'a self, writer: Writer<'a>, update: EntryUpdate<'a>) -> StoreAnswer<'a, EntryRecord> {
        async move {
            let expect = update.old.revision.map_or(Expect::Any, Expect::Revision);
            self.put(writer, update.new, expect).await?;
            Ok(self.read_back(writer.caller, &update.new.id).await?)
        }
        .boxed()
    }

    fn delete<'a>(&'a self, writer: Writer<'a>, id: &'a Name) -> StoreAnswer<'a, bool> {
        let caller = writer.caller;
        async move { Ok(write::delete(&self.0, caller, write::key(caller, KIND, id.as_str())?).await?) }.boxed()
    }
}

impl Objects {
    /// All entries of the caller's namespace, by domain and id.
    async fn all(&self, reader: Reader<'_>) -> Result<Vec<EntryRecord>, Error> {
        let state = self.0.state(reader.consistency).await?;
        let mut all = all(&state, &reader.caller.namespace)?;
        all.sort_by(|a, b| (&a.entry.domain, &a.entry.id).cmp(&(&b.entry.domain, &b.entry.id)));
        Ok(all)
    }

    async fn put(&self, writer: Writer<'_>, entry: &Entry, expect: Expect) -> Result<(), Error> {
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
            agent: writer.job.map(|job| job.agent.clone()),
            job: writer.job.map(|job| job.job.to_string()),
        };
        let key = write::key(writer.caller, KIND, entry.id.as_str())?;
        write::put(&self.0, writer.caller, &key, &spec, expect, "the entry", writer.job).await
    }

    async fn read_back(&self, caller: &Caller, id: &Name) -> Result<EntryRecord, Error> {
        let state = self.0.state(Consistency::Linearizable).await?;
        // Somebody may have deleted it since.
        find(&state, caller, id)?.ok_or_else(|| crate::knowledge::unknown_entry(id.as_str()))
    }
}

fn all(state: &State, namespace: &Namespace) -> Result<Vec<EntryRecord>, Error> {
    state.objects(namespace, &ObjectKind::new(KIND)?, None).map(read).collect()
}

fn find(state: &State, caller: &Caller, id: &Name) -> Result<Option<EntryRecord>, Error> {
    let Ok(key) = write::key(caller, KIND, id.as_str()) else { return Ok(None) };
    state.object(&key).map(read).transpose()
}

fn read(object: &Arc<Object>) -> Result<EntryRecord, Error> {
    let unreadable = |error| Error::internal("read an entry", &error);
    let spec = KnowledgeSpec::read(&object.spec).map_err(|error| Error::internal("read an entry", &error))?;
    let entry = Entry {
        id: Name::new(object.key.name.as_str()).map_err(unreadable)?,
        content: spec.content,
        domain: Name::new(&spec.domain).map_err(unreadable)?,
        tags: spec.tags,
        metadata: serde_json::from_str(&spec.metadata).unwrap_or_default(),
        created_at: spec.created_at,
        updated_at: iso(object.updated),
    };
    let author = object.by.as_str().to_owned();
    Ok(EntryRecord { entry, author, agent: spec.agent, job: spec.job, revision: Some(object.revision) })
}

/// In ISO 8601, to the microsecond.
pub(crate) fn iso(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.0).unwrap_or_default().to_string()
}
