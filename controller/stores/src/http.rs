//! A memory and knowledge at servers over HTTP, by the protocols of Atlas for Python.

use atlas_knowledge::{Entry, Name};
use atlas_library::{
    EntryPage, EntryQuery, EntryRecord, EntryUpdate, KnowledgeStore, MemoryStore, Reader, StoreAnswer, StoreError,
    StorePlace, WriteKey, Writer,
};
use futures::future::FutureExt as _;
use http::header::HeaderName;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::json;
use crate::site::{Answered, LIMIT_MAX, Sent, Site};

/// By which servers that know it find repeats.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A memory: `GET` of its address is the text, `POST` changes it.
pub(crate) struct HttpMemory(Site);

impl HttpMemory {
    pub(crate) fn new(site: Site) -> Self {
        Self(site)
    }
}

impl MemoryStore for HttpMemory {
    fn place(&self) -> &StorePlace {
        self.0.place()
    }

    fn read(&self) -> StoreAnswer<'_, String> {
        let Self(site) = self;
        let read = async move {
            let bytes = site.whole(site.send(get(&[], Vec::new())).await?).await?;
            String::from_utf8(bytes).map_err(|_| site.failed("its answer is not UTF-8"))
        };
        site.within(read).boxed()
    }

    fn write<'a>(&'a self, text: &'a str, replaces: bool, key: WriteKey) -> StoreAnswer<'a, ()> {
        let Self(site) = self;
        let written = async move {
            let action = if replaces { "write" } else { "append" };
            let sent = change(Method::POST, &[], &json!({"content": text, "action": action}), key);
            site.whole(site.send(sent).await?).await.map(drop)
        };
        site.within(written).boxed()
    }
}

/// Knowledge: entries below its address.
pub(crate) struct HttpKnowledge(Site);

impl HttpKnowledge {
    pub(crate) fn new(site: Site) -> Self {
        Self(site)
    }

    /// The JSON of an answer; none if the server has no such thing.
    async fn json(&self, answer: Answered) -> Result<Option<Value>, StoreError> {
        let Self(site) = self;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let bytes = site.whole(answer).await?;
        // The parser's words would show parts of the answer.
        serde_json::from_slice(&bytes).map(Some).map_err(|_| site.failed("its answer is not JSON"))
    }

    async fn list(&self, path: &[&str], query: Vec<(&str, String)>) -> Result<Vec<EntryRecord>, StoreError> {
        let Self(site) = self;
        let answer = self.json(site.send(get(path, query)).await?).await?;
        // A server that finds nothing may say so by its status.
        let Some(answer) = answer else { return Ok(Vec::new()) };
        let entries = json::entries(&answer).ok_or_else(|| site.failed("its answer is no list of entries"))?;
        Ok(entries.into_iter().map(EntryRecord::from).collect())
    }

    async fn write(&self, sent: Sent<'_>, otherwise: &Entry) -> Result<EntryRecord, StoreError> {
        let Self(site) = self;
        let answer = self.json(site.send(sent).await?).await?;
        let answer = answer.ok_or_else(|| site.failed("it answered 404"))?;
        // A server may answer with less than the entry.
        Ok(json::entry(&answer).unwrap_or_else(|| otherwise.clone()).into())
    }
}

impl KnowledgeStore for HttpKnowledge {
    fn place(&self) -> Option<&StorePlace> {
        Some(self.0.place())
    }

    fn search<'a>(&'a self, _: Reader<'a>, wanted: EntryQuery<'a>) -> StoreAnswer<'a, Vec<EntryRecord>> {
        let EntryQuery { text, domains, tags, limit } = wanted;
        let query = move |domain: Option<&str>| {
            let mut query = vec![("q", text.to_owned()), ("limit", limit.min(LIMIT_MAX).to_string())];
            query.extend(domain.map(|domain| ("domain", domain.to_owned())));
            query.extend((!tags.is_empty()).then(|| ("tags", tags.join(","))));
            query
        };
        let searched = async move {
            let Some(domains) = domains else { return self.list(&["search"], query(None)).await };
            // The server takes one domain at a time, and would count others for the limit.
            let mut found = Vec::new();
            for domain in domains {
                found.extend(self.list(&["search"], query(Some(domain))).await?);
                if found.len() >= limit {
                    break;
                }
            }
            Ok(found)
        };
        self.0.within(searched).boxed()
    }

    fn list<'a>(&'a self, _: Reader<'a>, page: EntryPage<'a>) -> StoreAnswer<'a, Vec<EntryRecord>> {
        let EntryPage { domain, limit, offset } = page;
        let mut query = vec![("limit", limit.to_string()), ("offset", offset.to_string())];
        query.extend(domain.filter(|domain| !domain.is_empty()).map(|domain| ("domain", domain.to_owned())));
        self.0.within(Self::list(self, &["entries"], query)).boxed()
    }

    fn get<'a>(&'a self, _: Reader<'a>, id: &'a Name) -> StoreAnswer<'a, Option<EntryRecord>> {
        let Self(site) = self;
        let got = async move {
            let path = ["entries", id.as_str()];
            let Some(answer) = self.json(site.send(get(&path, Vec::new())).await?).await? else { return Ok(None) };
            if answer.is_null() {
                return Ok(None);
            }
            let entry = json::entry(&answer).ok_or_else(|| site.failed("its answer is no entry"))?;
            Ok(Some(entry.into()))
        };
        site.within(got).boxed()
    }

    fn create<'a>(&'a self, writer: Writer<'a>, entry: &'a Entry, _: bool) -> StoreAnswer<'a, EntryRecord> {
        let created = async move {
            let sent = change(Method::POST, &["entries"], &json::written(entry), writer.key);
            self.write(sent, entry).await
        };
        self.0.within(created).boxed()
    }

    fn update<'a>(&'a self, writer: Writer<'a>, update: EntryUpdate<'a>) -> StoreAnswer<'a, EntryRecord> {
        let updated = async move {
            let path = ["entries", update.new.id.as_str()];
            let sent = change(Method::PATCH, &path, &Value::Object(json::change(update.change)), writer.key);
            self.write(sent, update.new).await
        };
        self.0.within(updated).boxed()
    }

    fn delete<'a>(&'a self, writer: Writer<'a>, id: &'a Name) -> StoreAnswer<'a, bool> {
        let Self(site) = self;
        let deleted = async move {
            let path = ["entries", id.as_str()];
            let sent = change(Method::DELETE, &path, &Value::Null, writer.key);
            let answer = site.send(sent).await?;
            if answer.status == StatusCode::NOT_FOUND {
                return Ok(false);
            }
            site.whole(answer).await.map(|_| true)
        };
        site.within(deleted).boxed()
    }
}

fn get<'s>(path: &'s [&'s str], query: Vec<(&'s str, String)>) -> Sent<'s> {
    Sent { method: Method::GET, path, query, headers: Vec::new(), body: Vec::new() }
}

fn change<'s>(method: Method, path: &'s [&'s str], body: &Value, key: WriteKey) -> Sent<'s> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Sent { method, path, query: Vec::new(), headers: vec![(IDEMPOTENCY_KEY, key.digits())], body }
}

#[cfg(test)]
mod tests;
