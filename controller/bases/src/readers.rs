//! Who finds which documents. A rule names callers and documents; a document is found by whom any rule with it names. A caller gets the answers of a
//! base that holds only what it may read: searches, lists, counts and removals leave out the rest.

use atlas_api::types::{self, UnreadableSegment};
use atlas_desk::{Caller, Error};
use atlas_objects::{BaseSpec, ReadRule};
use atlas_types::Object;
use serde_json::Value;

use crate::Bases;
use crate::catalogue::{Contents, Row};
use crate::remove::fits;
use crate::settings::shown;

/// What a text of a rule begins with that stands for something known of the caller.
const CALLER: &str = "caller.";

/// What one caller may read of a base.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Readable(Option<Vec<Part>>);

/// Documents that a caller may read.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    /// Their sources begin with it.
    source: String,
    /// Their metadata has each of these members, with one of the values.
    metadata: Vec<(String, Vec<Value>)>,
}

impl Readable {
    /// What a caller may read by the rules of a base: all without a rule. The cluster itself reads all, to keep the base in order.
    pub(crate) fn new(rules: &[ReadRule], caller: &Caller) -> Self {
        if rules.is_empty() || caller.is_cluster() {
            return Self::all();
        }
        Self(Some(rules.iter().filter_map(|rule| part(rule, caller)).collect()))
    }

    /// All documents, for what the cluster does by itself.
    pub(crate) fn all() -> Self {
        Self(None)
    }

    /// Whether there is nothing that the caller may not read.
    pub(crate) fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the caller may read a document.
    pub(crate) fn may_read(&self, row: &Row) -> bool {
        self.0.as_ref().is_none_or(|parts| parts.iter().any(|part| part.has(row)))
    }

    /// How many documents the caller may read, and their bytes.
    pub(crate) fn counted<'a>(&self, rows: impl Iterator<Item = &'a Row>) -> (u64, u64) {
        let read = rows.filter(|row| self.may_read(row));
        read.fold((0, 0), |(documents, bytes), row| (documents + 1, bytes + row.bytes))
    }

    /// What cannot be read of a base, as this caller is told it: how many documents are lost counts also those of others.
    pub(crate) fn told(&self, unreadable: &[UnreadableSegment]) -> Vec<UnreadableSegment> {
        let told = |segment: &UnreadableSegment| match self.is_all() {
            true => segment.clone(),
            false => UnreadableSegment { documents: 0, ..segment.clone() },
        };
        unreadable.iter().map(told).collect()
    }
}

impl Contents {
    /// The documents of the base that a caller may read.
    pub(crate) fn readable<'a>(&'a self, spec: &'a BaseSpec, readable: &'a Readable) -> impl Iterator<Item = &'a Row> {
        self.live(spec).filter(|row| readable.may_read(row))
    }
}

impl Bases {
    /// A base as a caller is told of it. Who may change a base is told all of it; others count what they may read.
    pub(crate) async fn shown_to(
        &self,
        caller: &Caller,
        object: &Object,
        spec: &BaseSpec,
    ) -> Result<types::Base, Error> {
        let whole = shown(object, spec);
        let readable = Readable::new(&spec.readers, caller);
        if readable.is_all() || caller.may(atlas_api::Bases::ChangeBase.id()).is_ok() {
            return Ok(whole);
        }
        let contents = self.contents(spec).await?;
        let (documents, bytes) = readable.counted(contents.live(spec));
        let vectors = whole.vectors.map(|vectors| types::BaseVectors { chunks: 0, missing: 0, error: None, ..vectors });
        let segments = u64::from(documents > 0);
        Ok(types::Base { documents, bytes, segments, vectors, collected: None, sources: Vec::new(), ..whole })
    }
}

impl Part {
    fn has(&self, row: &Row) -> bool {
        let fits = |(name, wanted): &(String, Vec<Value>)| {
            row.metadata.get(name).is_some_and(|value| wanted.iter().any(|wanted| is_or_has(value, wanted)))
        };
        row.source.starts_with(&self.source) && self.metadata.iter().all(fits)
    }
}

/// Whether a member of metadata is a value, or a list with it.
fn is_or_has(value: &Value, wanted: &Value) -> bool {
    value == wanted || value.as_array().is_some_and(|items| items.contains(wanted))
}

/// The documents that a rule lets a caller read; none if it does not name the caller, or compares with what is not known of it.
fn part(rule: &ReadRule, caller: &Caller) -> Option<Part> {
    let is_named = |pattern: &String| fits(pattern, caller.principal.as_str());
    if !rule.principals.is_empty() && !rule.principals.iter().any(is_named) {
        return None;
    }
    let wanted = |(name, value): (&String, &Value)| Some((name.clone(), values(value, caller)?));
    let metadata = rule.metadata.iter().map(wanted).collect::<Option<_>>()?;
    Some(Part { source: rule.source.clone(), metadata })
}

/// The values that a member may have; none if that is not known.
fn values(value: &Value, caller: &Caller) -> Option<Vec<Value>> {
    let Some(name) = value.as_str().and_then(|text| text.strip_prefix(CALLER)) else {
        return Some(vec![value.clone()]);
    };
    let known: Vec<Value> = match name {
        "principal" => vec![caller.principal.as_str().into()],
        "namespace" => vec![caller.namespace.as_str().into()],
        name => caller.attribute(name).iter().map(|value| value.as_str().into()).collect(),
    };
    Some(known).filter(|known| !known.is_empty())
}

#[cfg(test)]
mod tests;
