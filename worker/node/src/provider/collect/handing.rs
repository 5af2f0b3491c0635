//! Handing documents to the controllers, in messages of bounded size.

use std::collections::BTreeSet;

use atlas_pages::{parts, written};
use atlas_types::COLLECT;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Fault;
use crate::journal::hashed;
use crate::mailbox::Answer;
use crate::provider::platform::{Platform, Stopped};

/// Most bytes of the documents of one message. A message has at most 1 MiB.
const BATCH_BYTES_MAX: usize = 720 << 10;

/// Most documents of one message.
const BATCH_MAX: usize = 500;

/// Most bytes of a part of a document, as JSON: longer documents are parted.
const PART_BYTES_MAX: usize = 512 << 10;

/// Most bytes of a text.
pub(super) const TEXT_BYTES_MAX: usize = 4 << 20;

/// Most bytes of the sources that one message lists.
const LISTED_BYTES_MAX: usize = 512 << 10;

/// Most errors that are kept, and most characters of one.
const ERRORS_MAX: usize = 20;
const ERROR_CHARS_MAX: usize = 500;

/// Who takes the documents.
pub(super) trait Controllers {
    /// Calls a tool for workers.
    async fn ask(&self, tool: &str, arguments: &Value) -> Result<Answer, Stopped>;
}

impl Controllers for Platform {
    async fn ask(&self, tool: &str, arguments: &Value) -> Result<Answer, Stopped> {
        Self::ask(self, tool, arguments, hashed(&(tool, arguments))).await
    }
}

/// A document that was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Read {
    /// Its name in the base.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) metadata: Map<String, Value>,
}

/// What a job did.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub(super) struct Sums {
    /// Documents that the sources have.
    pub(super) documents: u64,
    added: u64,
    replaced: u64,
    unchanged: u64,
    removed: u64,
    /// The first few.
    pub(super) errors: Vec<String>,
    /// Further errors.
    more_errors: u64,
}

/// Hands the documents of one base over.
pub(super) struct Handing<'a, C> {
    controllers: &'a C,
    base: &'a str,
    /// The source that is read.
    from: String,
    batch: Vec<Value>,
    batch_bytes: usize,
    /// What the source has.
    seen: BTreeSet<String>,
    /// What all sources have: the first one that has a document keeps it.
    all: BTreeSet<String>,
    sums: Sums,
}

impl<'a, C: Controllers> Handing<'a, C> {
    pub(super) fn new(controllers: &'a C, base: &'a str) -> Self {
        Self {
            controllers,
            base,
            from: String::new(),
            batch: Vec::new(),
            batch_bytes: 0,
            seen: BTreeSet::new(),
            all: BTreeSet::new(),
            sums: Sums::default(),
        }
    }

    /// Asks whether this job may hand documents over: nothing is read or run for one that may not.
    pub(super) async fn check(&self) -> Result<(), Fault> {
        self.ask("begin", json!({})).await.map(drop)
    }

    /// Begins a source.
    pub(super) fn begin(&mut self, from: &str) {
        self.from = from.to_owned();
        self.seen.clear();
    }

    /// Notes why a part of a source is missing.
    pub(super) fn error(&mut self, what: &str, why: &str) {
        if self.sums.errors.len() < ERRORS_MAX {
            let text = format!("{what}: {why}").replace(char::is_control, " ");
            self.sums.errors.push(text.chars().take(ERROR_CHARS_MAX).collect());
        } else {
            self.sums.more_errors += 1;
        }
    }

    /// Hands a document over. One with a long text becomes several.
    pub(super) async fn document(&mut self, read: Read) -> Result<(), Fault> {
        let Read { name, text, metadata } = read;
        if text.len() > TEXT_BYTES_MAX {
            self.error(&name, &format!("its text has {} bytes, more than {TEXT_BYTES_MAX}", text.len()));
            return Ok(());
        }
        let parts = parts(&text, PART_BYTES_MAX);
        let count = parts.len();
        for (place, part) in parts.into_iter().enumerate() {
            if part.trim().is_empty() {
                continue;
            }
            let (mut name, mut metadata) = (name.clone(), metadata.clone());
            if count > 1 {
                name = format!("{name} (part {})", place + 1);
                metadata.insert("part".to_owned(), format!("{} of {count}", place + 1).into());
            }
            self.one(name, part, metadata).await?;
        }
        Ok(())
    }

    async fn one(&mut self, name: String, text: &str, metadata: Map<String, Value>) -> Result<(), Fault> {
        if !self.all.insert(name.clone()) {
            return Ok(());
        }
        let bytes = written(text) + 2 * name.len() + Value::Object(metadata.clone()).to_string().len() + 128;
        if self.batch_bytes + bytes > BATCH_BYTES_MAX || self.batch.len() >= BATCH_MAX {
            self.flush().await?;
        }
        self.batch_bytes += bytes;
        self.batch.push(json!({"source": name, "text": text, "metadata": metadata}));
        self.seen.insert(name);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Fault> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.batch_bytes = 0;
        let documents = std::mem::take(&mut self.batch);
        let count = documents.len() as u64;
        let said = self.ask("put", json!({"from": self.from, "documents": documents})).await?;
        let number = |name: &str| said[name].as_u64().unwrap_or_default();
        let refused = said["refused"].as_array().cloned().unwrap_or_default();
        self.sums.added += number("added");
        self.sums.replaced += number("replaced");
        self.sums.unchanged += number("unchanged");
        self.sums.documents += count.saturating_sub(refused.len() as u64);
        for one in refused {
            let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
            self.error(&text("source"), &text("reason"));
        }
        Ok(())
    }

    /// Ends a source. If it could be read as a whole, what it no longer has is removed: in several messages if its names do not fit into one,
    /// each for a range of names.
    pub(super) async fn end(&mut self, is_whole: bool) -> Result<(), Fault> {
        self.flush().await?;
        if !is_whole {
            return Ok(());
        }
        let mut after: Option<String> = None;
        let mut left = std::mem::take(&mut self.seen).into_iter().peekable();
        loop {
            let (mut listed, mut bytes) = (Vec::new(), 0);
            while let Some(name) = left.next_if(|_| bytes < LISTED_BYTES_MAX) {
                bytes += written(&name) + 4;
                listed.push(name);
            }
            let until = left.peek().and(listed.last().cloned());
            let said =
                self.ask("keep", json!({"from": self.from, "after": after, "until": until, "seen": listed})).await?;
            self.sums.removed += said["removed"].as_u64().unwrap_or_default();
            if until.is_none() {
                return Ok(());
            }
            after = until;
        }
    }

    /// Ends the job: what came from other sources than these is removed, and what happened is written to the base.
    pub(super) async fn finish(mut self, sources: &[String]) -> Result<Sums, Fault> {
        let (documents, errors) = (self.sums.documents, self.sums.errors.clone());
        let said = self.ask("end", json!({"sources": sources, "documents": documents, "errors": errors})).await?;
        self.sums.removed += said["removed"].as_u64().unwrap_or_default();
        Ok(self.sums)
    }

    async fn ask(&self, verb: &str, mut arguments: Value) -> Result<Value, Fault> {
        arguments["base"] = self.base.into();
        match self.controllers.ask(&format!("{COLLECT}{verb}"), &arguments).await? {
            Answer::Completed(said) => serde_json::from_slice(&said).map_err(|error| Fault::Machine(error.to_string())),
            Answer::Failed(why) | Answer::Refused(why) => Err(Fault::Refused(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Takes what it gets, and says that all of it is new.
    #[derive(Default)]
    struct Taker(Mutex<Vec<(String, Value)>>);

    impl Controllers for Taker {
        async fn ask(&self, tool: &str, arguments: &Value) -> Result<Answer, Stopped> {
            let added = arguments["documents"].as_array().map_or(0, Vec::len);
            assert!(arguments.to_string().len() < 1 << 20, "a message of {tool} is too large");
            self.0.lock().expect("not poisoned").push((tool.to_owned(), arguments.clone()));
            Ok(Answer::Completed(json!({"added": added}).to_string().into_bytes().into()))
        }
    }

    fn read(name: &str, text: String) -> Read {
        Read { name: name.to_owned(), text, metadata: Map::new() }
    }

    #[tokio::test]
    async fn long_texts_are_parted_and_messages_stay_small() {
        let taker = Taker::default();
        let mut handing = Handing::new(&taker, "b");
        handing.begin("s");
        // Each quotation mark takes two bytes in a message.
        handing.document(read("long", "\"line\"\n".repeat(200_000))).await.expect("taken");
        handing.document(read("short", "text".to_owned())).await.expect("taken");
        handing.document(read("short", "again".to_owned())).await.expect("taken once");
        handing.document(read("huge", "x".repeat(TEXT_BYTES_MAX + 1))).await.expect("noted");
        handing.end(true).await.expect("ended");
        let sums = handing.finish(&["s".to_owned()]).await.expect("finished");
        assert_eq!(
            sums.errors,
            [format!("huge: its text has {} bytes, more than {TEXT_BYTES_MAX}", TEXT_BYTES_MAX + 1)]
        );
        let said = taker.0.lock().expect("not poisoned");
        let puts = said.iter().filter(|(tool, _)| tool == "$documents-put");
        let documents: Vec<&Value> =
            puts.flat_map(|(_, put)| put["documents"].as_array().into_iter().flatten()).collect();
        assert_eq!(documents.len() as u64, sums.documents);
        let text: String =
            documents.iter().filter(|one| one["source"] != "short").filter_map(|one| one["text"].as_str()).collect();
        assert_eq!(text, "\"line\"\n".repeat(200_000));
        assert_eq!(documents[0]["source"], "long (part 1)");
        let (last, end) = said.last().expect("an end");
        assert_eq!((last.as_str(), &end["documents"]), ("$documents-end", &json!(sums.documents)));
    }

    #[tokio::test]
    async fn many_names_are_listed_in_ranges() {
        let taker = Taker::default();
        let mut handing = Handing::new(&taker, "b");
        handing.begin("s");
        let names: Vec<String> = (0..2_000).map(|number| format!("{number:04}{}", "n".repeat(500))).collect();
        for name in &names {
            handing.document(read(name, "text".to_owned())).await.expect("taken");
        }
        handing.end(true).await.expect("ended");
        let said = taker.0.lock().expect("not poisoned");
        let keeps: Vec<&Value> =
            said.iter().filter(|(tool, _)| tool == "$documents-keep").map(|(_, keep)| keep).collect();
        assert!(keeps.len() > 1, "{} messages", keeps.len());
        let listed: Vec<&str> = keeps
            .iter()
            .flat_map(|keep| keep["seen"].as_array().into_iter().flatten())
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(listed, names);
        assert_eq!((&keeps[0]["after"], &keeps[keeps.len() - 1]["until"]), (&Value::Null, &Value::Null));
        for pair in keeps.windows(2) {
            assert_eq!(pair[0]["until"], pair[1]["after"]);
        }
    }

    #[tokio::test]
    async fn a_source_that_is_not_whole_removes_nothing() {
        let taker = Taker::default();
        let mut handing = Handing::new(&taker, "b");
        handing.begin("s");
        handing.document(read("a", "text".to_owned())).await.expect("taken");
        handing.end(false).await.expect("ended");
        let said = taker.0.lock().expect("not poisoned");
        assert_eq!(said.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>(), ["$documents-put"]);
    }
}
