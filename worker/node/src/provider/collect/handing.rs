//! Handing documents to the controllers, in messages of bounded size.
//!
//! What is not there any more is removed from the base, but only what is known to be gone. So each reason why a document is missing has one of
//! three ways in here: [`Handing::gone`] if its website says so, [`Handing::unread`] if one document is there and could not be read, and
//! [`Handing::missing`] for everything else, after which nothing of the source is removed.

use std::collections::BTreeSet;
use std::iter::Peekable;

use atlas_pages::{ADDRESS_BYTES_MAX, parts, written};
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

/// Most bytes of the name of a document, and most bytes of its metadata as JSON: controllers take no longer ones.
const NAME_BYTES_MAX: usize = ADDRESS_BYTES_MAX;
const METADATA_BYTES_MAX: usize = 16 << 10;

/// Most documents of one job, as many as a base has. Their names take at most 2 × 100 MiB.
const DOCUMENTS_MAX: usize = 100_000;

/// Most documents of one source that were not read and stay; a source with more is not whole.
const UNREAD_MAX: usize = 2_000;

/// Most parts of a document. Two parts in a row have more than one is allowed to, and a byte takes at most six in JSON.
const PARTS_MAX: usize = 2 * (6 * TEXT_BYTES_MAX / PART_BYTES_MAX) + 1;

/// Most bytes of the names that one message lists; those of the parts of one document come on top.
const LISTED_BYTES_MAX: usize = 512 << 10;
const MESSAGE_BYTES_MAX: usize = 960 << 10;

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
    /// The sources that were begun.
    begun: BTreeSet<String>,
    /// Whether nothing of the source is missing for a reason that may pass.
    is_whole: bool,
    batch: Vec<Value>,
    batch_bytes: usize,
    /// What the source has.
    seen: BTreeSet<String>,
    /// Documents of the source that were not read, with all their parts: what the base has of them stays.
    unread: BTreeSet<String>,
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
            begun: BTreeSet::new(),
            is_whole: true,
            batch: Vec::new(),
            batch_bytes: 0,
            seen: BTreeSet::new(),
            unread: BTreeSet::new(),
            all: BTreeSet::new(),
            sums: Sums::default(),
        }
    }

    /// Asks whether this job may hand documents over: nothing is read or run for one that may not.
    pub(super) async fn check(&self) -> Result<(), Fault> {
        self.ask("begin", json!({})).await.map(drop)
    }

    /// Begins a source. False if it was read already: a second look would find that all its documents were handed over, and none would be
    /// left for it.
    pub(super) fn begin(&mut self, from: &str) -> bool {
        if !self.begun.insert(from.to_owned()) {
            return false;
        }
        self.from = from.to_owned();
        self.is_whole = true;
        self.seen.clear();
        self.unread.clear();
        true
    }

    /// Notes that the website of a document says that there is no such one.
    pub(super) fn gone(&mut self, what: &str, why: &str) {
        self.note(what, why);
    }

    /// Notes why a document was not read that is there. What the base has of it stays.
    pub(super) fn unread(&mut self, name: &str, why: &str) {
        self.note(name, why);
        self.keep(name);
    }

    /// Lets what the base has of a document stay.
    pub(super) fn keep(&mut self, name: &str) {
        // No longer one is in a base.
        if name.len() > NAME_BYTES_MAX {
            return;
        }
        if self.unread.len() < UNREAD_MAX && written(name) <= 2 * NAME_BYTES_MAX {
            self.unread.insert(name.to_owned());
        } else if self.is_whole {
            self.missing(name, "too much of its source could not be read, so nothing of it is removed");
        }
    }

    /// Notes why a part of a source is missing. Nothing that came from the source is removed this time.
    pub(super) fn missing(&mut self, what: &str, why: &str) {
        self.note(what, why);
        self.is_whole = false;
    }

    /// Lets everything stay that came from the source. Why has been noted.
    pub(super) fn incomplete(&mut self) {
        self.is_whole = false;
    }

    fn note(&mut self, what: &str, why: &str) {
        if self.sums.errors.len() < ERRORS_MAX {
            // A long name leaves room for the reason.
            let name: String = what.chars().take(ERROR_CHARS_MAX / 2).collect();
            let cut = if name.len() < what.len() { "…" } else { "" };
            let text = format!("{name}{cut}: {why}").replace(char::is_control, " ");
            self.sums.errors.push(text.chars().take(ERROR_CHARS_MAX).collect());
        } else {
            self.sums.more_errors += 1;
        }
    }

    /// Hands a document over. One with a long text becomes several.
    pub(super) async fn document(&mut self, read: Read) -> Result<(), Fault> {
        let Read { name, text, metadata } = read;
        let metadata_bytes = Value::Object(metadata.clone()).to_string().len();
        if let Some(why) = too_large(&name, &text, metadata_bytes) {
            self.unread(&name, &why);
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
                name = part_of(&name, place + 1);
                metadata.insert("part".to_owned(), format!("{} of {count}", place + 1).into());
            }
            self.one(name, part, metadata).await?;
        }
        Ok(())
    }

    async fn one(&mut self, name: String, text: &str, metadata: Map<String, Value>) -> Result<(), Fault> {
        if self.all.contains(&name) {
            return Ok(());
        }
        if name.len() > NAME_BYTES_MAX {
            self.note(&name, &format!("its name has more than {NAME_BYTES_MAX} bytes"));
            return Ok(());
        }
        if self.all.len() >= DOCUMENTS_MAX {
            self.missing(&name, &format!("a base has at most {DOCUMENTS_MAX} documents"));
            return Ok(());
        }
        self.all.insert(name.clone());
        let bytes = written(text) + written(&name) + Value::Object(metadata.clone()).to_string().len() + 128;
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
            // It is among what was seen, so what the base has of it stays, also if that came from another source which is read later.
            self.all.remove(&text("source"));
            self.note(&text("source"), &text("reason"));
        }
        Ok(())
    }

    /// Ends a source. If it could be read as a whole, what it no longer has is removed: in several messages if its names do not fit into one,
    /// each for a range of names.
    pub(super) async fn end(&mut self) -> Result<(), Fault> {
        self.flush().await?;
        let (seen, unread) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.unread));
        if !self.is_whole {
            return Ok(());
        }
        let mut left = Names { seen: seen.into_iter().peekable(), unread: unread.into_iter().peekable() }.peekable();
        let mut after: Option<String> = None;
        loop {
            let (mut listed, mut bytes, mut until) = (Vec::new(), 0, String::new());
            // The parts of a document may come behind the next names, which then belong to the same range.
            while let Some(names) =
                left.next_if(|names| bytes < LISTED_BYTES_MAX || names.first().is_some_and(|first| *first <= until))
            {
                bytes += names.iter().map(|name| written(name) + 4).sum::<usize>();
                until = names.iter().max().filter(|last| **last > until).cloned().unwrap_or(until);
                listed.extend(names);
            }
            let until = left.peek().map(|_| until);
            if bytes > MESSAGE_BYTES_MAX {
                let from = self.from.clone();
                self.missing(&from, "its names are too long for a message, so no more of it is removed");
                return Ok(());
            }
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

/// Why a document is not taken.
fn too_large(name: &str, text: &str, metadata_bytes: usize) -> Option<String> {
    let bounds = [
        ("name", name.len(), NAME_BYTES_MAX),
        ("text", text.len(), TEXT_BYTES_MAX),
        ("metadata", metadata_bytes, METADATA_BYTES_MAX),
    ];
    let (what, bytes, most) = bounds.into_iter().find(|(_, bytes, most)| bytes > most)?;
    Some(format!("its {what} has {bytes} bytes, more than {most}"))
}

/// The names of what stays, in order by their first ones: of a document that was seen, or of one that was not read and of all the parts that it
/// may have.
struct Names<I: Iterator<Item = String>> {
    seen: Peekable<I>,
    unread: Peekable<I>,
}

impl<I: Iterator<Item = String>> Iterator for Names<I> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        let is_unread = match (self.seen.peek(), self.unread.peek()) {
            (Some(seen), Some(unread)) => unread <= seen,
            (seen, _) => seen.is_none(),
        };
        if !is_unread {
            return self.seen.next().map(|name| vec![name]);
        }
        let name = self.unread.next()?;
        let parts = (1..=PARTS_MAX).map(|number| part_of(&name, number)).filter(|part| part.len() <= NAME_BYTES_MAX);
        let parts: Vec<String> = parts.collect();
        Some([vec![name], parts].concat())
    }
}

fn part_of(name: &str, number: usize) -> String {
    format!("{name} (part {number})")
}

#[cfg(test)]
mod tests;
