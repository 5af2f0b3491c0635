//! Adding documents. One with the same source replaces the old one; one that is there already changes nothing, so a repeated upload does not.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use atlas_api::types::{AddedDocument, AddedDocuments, DocumentDraft};
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::BaseSpec;
use atlas_types::Expect;

use crate::catalogue::Row;
use crate::document::{Document, Unusable};
use crate::readers::Readable;
use crate::write::{TRIES, key, unknown};
use crate::{BASE_BYTES_MAX, Bases, DOCUMENTS_AT_ONCE_MAX, DOCUMENTS_MAX};

/// What happens to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its source is new.
    Added,
    /// Another document had its source.
    Replaced,
    /// It is there.
    Unchanged,
    /// Another document that may not be replaced has its source.
    Taken,
}

impl Fate {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Replaced => "replaced",
            Self::Unchanged => "unchanged",
            Self::Taken => "refused",
        }
    }
}

/// What a change of a base consists of.
struct Plan {
    /// What happens to each document.
    fates: Vec<Fate>,
    /// Places of documents that are to be stored.
    stored: Vec<usize>,
    /// Ids of documents that are no longer removed: a segment still has them.
    restored: HashSet<String>,
    /// Ids of documents that are removed.
    removed: Vec<String>,
}

/// Which documents of a base may be replaced, and why others may not.
pub(crate) struct Replaceable<By> {
    pub(crate) by: By,
    pub(crate) or: Unusable,
}

impl Plan {
    /// The plan that brings usable documents, with their ids, into a base. `live` has the id of each source in it, and whether the document
    /// may be replaced.
    fn new(documents: &[(Document, String)], live: &HashMap<Arc<str>, (Arc<str>, bool)>, removed: &[String]) -> Self {
        let gone: HashSet<&String> = removed.iter().collect();
        let mut plan = Self { fates: Vec::new(), stored: Vec::new(), restored: HashSet::new(), removed: Vec::new() };
        for (place, (document, id)) in documents.iter().enumerate() {
            let old = live.get(&document.source).map(|(old, may_replace)| (old, *may_replace));
            if let Some((old, may_replace)) = old
                && (**old == **id || !may_replace)
            {
                plan.fates.push(if **old == **id { Fate::Unchanged } else { Fate::Taken });
                continue;
            }
            let old = old.map(|(old, _)| old);
            if let Some(old) = old {
                plan.removed.push(old.to_string());
            }
            if gone.contains(id) {
                plan.restored.insert(id.clone());
            } else {
                plan.stored.push(place);
            }
            plan.fates.push(if old.is_some() { Fate::Replaced } else { Fate::Added });
        }
        plan
    }

    fn is_nothing(&self) -> bool {
        self.fates.iter().all(|fate| matches!(fate, Fate::Unchanged | Fate::Taken))
    }
}

impl Bases {
    /// Adds documents. The answer says of each what happened to it; one that is refused costs no other.
    pub async fn add(&self, caller: &Caller, name: &str, drafts: Vec<DocumentDraft>) -> Result<AddedDocuments, Error> {
        let of_caller = Replaceable {
            by: |spec: &BaseSpec, row: &Row| Readable::new(&spec.readers, caller).may_read(row),
            or: Unusable::Taken,
        };
        self.add_by(caller, name, drafts, of_caller).await
    }

    /// The same, with what may be replaced.
    pub(crate) async fn add_by(
        &self,
        caller: &Caller,
        name: &str,
        drafts: Vec<DocumentDraft>,
        replaceable: Replaceable<impl Fn(&BaseSpec, &Row) -> bool + Send + Sync>,
    ) -> Result<AddedDocuments, Error> {
        if drafts.len() > DOCUMENTS_AT_ONCE_MAX {
            let text =
                format!("{} documents at once; at most {DOCUMENTS_AT_ONCE_MAX} are added by one request", drafts.len());
            return Err(Error::Malformed(text));
        }
        let Ok(key) = key(caller, name) else { return Err(unknown(name)) };
        let (documents, mut answers) = self.off(move || usable(drafts)).await?;
        let documents = Arc::new(documents);
        // Those that change a base at this controller wait for each other instead of being refused by turns.
        let _turn = self.turns.take(&key).await;
        for _ in 0..TRIES {
            let (object, mut spec) = self.find(caller, name, Consistency::Linearizable).await?;
            let contents = self.contents(&spec).await?;
            contents.check(name)?;
            let sources: HashSet<&str> = documents.iter().map(|(document, _)| &*document.source).collect();
            let known = contents.live(&spec).filter(|row| sources.contains(&*row.source));
            let known = known.map(|row| (row, (replaceable.by)(&spec, row)));
            let live = known.map(|(row, may_replace)| (row.source.clone(), (row.id.clone(), may_replace))).collect();
            let plan = Plan::new(&documents, &live, &spec.removed);
            if !plan.is_nothing() {
                let added = plan.fates.iter().filter(|fate| **fate == Fate::Added).count();
                check_room(name, spec.documents() + added as u64, DOCUMENTS_MAX, "documents")?;
                spec.removed.retain(|id| !plan.restored.contains(id));
                spec.removed.extend(plan.removed.iter().cloned());
                let stored = plan.stored.iter().filter_map(|place| Some(documents.get(*place)?.0.clone())).collect();
                self.append(&mut spec, Arc::new(stored)).await?;
                self.compact(&mut spec, &contents).await?;
                check_room(name, spec.bytes(), BASE_BYTES_MAX, "bytes")?;
                let expect = Expect::Revision(object.revision);
                match self.put(caller, (&object.key, (*object.labels).clone()), &spec, expect).await {
                    Ok(()) => {}
                    // Another controller changed the base, or the settings were changed.
                    Err(Error::ObjectChanged { .. }) => continue,
                    Err(error) => return Err(error),
                }
            }
            let mut fates = plan.fates.iter().zip(documents.iter());
            for answer in answers.iter_mut().filter(|answer| answer.reason.is_none()) {
                if let Some((fate, (_, id))) = fates.next() {
                    answer.status = fate.as_str().to_owned();
                    match fate {
                        Fate::Taken => answer.reason = Some(replaceable.or.to_string()),
                        _ => answer.id = Some(id.clone()),
                    }
                }
            }
            return Ok(AddedDocuments { documents: answers });
        }
        Err(Error::Overloaded)
    }
}

/// The usable documents with their ids, and an answer for each draft: a refused one has its reason.
fn usable(drafts: Vec<DocumentDraft>) -> (Vec<(Document, String)>, Vec<AddedDocument>) {
    let (mut documents, mut answers, mut sources) = (Vec::new(), Vec::new(), HashSet::new());
    for DocumentDraft { source, text, metadata } in drafts {
        let document = Document { source: source.into(), metadata, text };
        let checked = match document.check() {
            Ok(()) if !sources.insert(document.source.clone()) => Err(Unusable::Twice),
            checked => checked,
        };
        let shown: String = document.source.chars().take(255).collect();
        let mut answer = AddedDocument { source: shown, ..AddedDocument::default() };
        match checked {
            Ok(()) => {
                let id = document.id();
                documents.push((document, id));
            }
            Err(error) => (answer.status, answer.reason) = ("refused".to_owned(), Some(error.to_string())),
        }
        answers.push(answer);
    }
    (documents, answers)
}

fn check_room(name: &str, count: u64, most: u64, what: &str) -> Result<(), Error> {
    if count <= most {
        return Ok(());
    }
    Err(Error::BaseFull(format!(
        "the base \"{name}\" would have {count} {what}, more than {most}; use another base for some of them"
    )))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// `live` and `removed` have `source=text`, with commas between them; so have the documents that are added. The caller may not read what is at
    /// `hidden`.
    fn check(live: &str, removed: &str, added: &str, expected: &Expect) {
        let documents = |text: &str| -> Vec<(Document, String)> {
            let one = |pair: &str| {
                let (source, text) = pair.split_once('=').expect("a pair");
                let document = Document { source: source.into(), metadata: Default::default(), text: text.to_owned() };
                let id = document.id();
                (document, id)
            };
            text.split(',').filter(|pair| !pair.is_empty()).map(one).collect()
        };
        let known: HashMap<String, String> = [live, removed, added]
            .into_iter()
            .flat_map(documents)
            .map(|(document, id)| (id, format!("{}={}", document.source, document.text)))
            .collect();
        let may_read = |document: &Document| &*document.source != "hidden";
        let live = documents(live).into_iter().map(|(document, id)| {
            let may_read = may_read(&document);
            (document.source, (id.into(), may_read))
        });
        let live = live.collect();
        let removed: Vec<String> = documents(removed).into_iter().map(|(_, id)| id).collect();
        let added = documents(added);
        let Plan { fates, stored, restored, removed } = Plan::new(&added, &live, &removed);
        let names = |ids: Vec<&String>| ids.into_iter().map(|id| known[id].as_str()).collect::<Vec<_>>().join(",");
        let (restored, removed) = (names(restored.iter().collect()), names(removed.iter().collect()));
        expected.assert_eq(&format!("{fates:?} stored {stored:?} restored [{restored}] removed [{removed}]"));
    }

    #[test]
    fn a_source_has_one_document() {
        check("", "", "a=1", &expect!["[Added] stored [0] restored [] removed []"]);
        check("a=1", "", "a=1,b=1", &expect!["[Unchanged, Added] stored [1] restored [] removed []"]);
        check("a=1", "", "a=2", &expect!["[Replaced] stored [0] restored [] removed [a=1]"]);
    }

    #[test]
    fn what_the_caller_may_not_read_is_not_replaced() {
        check("hidden=1", "", "hidden=2,b=1", &expect!["[Taken, Added] stored [1] restored [] removed []"]);
        // An upload that is repeated changes nothing, as ever.
        check("hidden=1", "", "hidden=1", &expect!["[Unchanged] stored [] restored [] removed []"]);
    }

    #[test]
    fn what_a_segment_still_has_comes_back() {
        check("", "a=1", "a=1", &expect!["[Added] stored [] restored [a=1] removed []"]);
        check("a=2", "a=1", "a=1", &expect!["[Replaced] stored [] restored [a=1] removed [a=2]"]);
    }

    #[test]
    fn one_bad_document_costs_one() {
        let draft = |source: &str, text: &str| DocumentDraft {
            source: source.to_owned(),
            text: text.to_owned(),
            ..DocumentDraft::default()
        };
        let (documents, answers) = usable(vec![draft("a", "x"), draft("", "x"), draft("a", "y"), draft("b", "\0")]);
        assert_eq!(documents.len(), 1);
        let said: Vec<_> = answers.iter().map(|answer| answer.reason.as_deref().unwrap_or("ok")).collect();
        expect![[r#"
            [
                "ok",
                "its source is empty",
                "another document of the request has its source",
                "it is no text: it has a null character",
            ]
        "#]]
        .assert_debug_eq(&said);
    }
}
