//! What comes from the sources of a base ([ADR 86](../../../docs/adr/0086-sources-of-document-bases.md)). A document says in its metadata which
//! source it came from; one that says nothing was added by somebody, and is neither replaced nor removed here.

use std::collections::HashSet;

use atlas_api::types::{BaseCollecting, DocumentDraft};
use atlas_artifacts::digest_of;
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::{BaseCollection, BaseSpec};
use atlas_types::{Expect, JobId};
use serde_json::Value;

use crate::Bases;
use crate::add::Replaceable;
use crate::catalogue::Row;
use crate::document::Unusable;
use crate::write::{TRIES, key, unknown, written_bytes};

/// The member of the metadata of a document that names the source it came from.
pub const COLLECTED_FROM: &str = "collected_from";

/// Most errors of sources that a base keeps, and most characters of one.
const ERRORS_MAX: usize = 20;
const ERROR_CHARS_MAX: usize = 500;
/// Most bytes of all of them, as the object has them.
pub(crate) const ERRORS_BYTES_MAX: usize = 4 << 10;

/// The first pause after a failure, and the longest one, in seconds.
const AGAIN: (i64, i64) = (60, 3_600);

/// How documents of a source were taken.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Intake {
    pub added: u64,
    pub replaced: u64,
    pub unchanged: u64,
    /// Documents that were not taken, and why.
    pub refused: Vec<(String, String)>,
}

/// Documents of a source whose names are within a range, and those of them that the source still has.
#[derive(Debug, Clone, Default)]
pub struct KeptRange {
    /// Names behind it; none from the first one on.
    pub after: Option<String>,
    /// Names up to it; none to the last one.
    pub until: Option<String>,
    pub seen: HashSet<String>,
}

/// How a job that read the sources of a base ended.
#[derive(Debug, Clone)]
pub struct CollectedBase {
    /// None if there could be no job.
    pub job: Option<JobId>,
    /// The sources that it read.
    pub sources: Vec<String>,
    pub documents: u64,
    pub errors: Vec<String>,
    /// Whether it did not get to its end.
    pub failed: bool,
}

impl Bases {
    /// Takes documents of a source.
    pub async fn take(
        &self,
        caller: &Caller,
        name: &str,
        from: &str,
        mut drafts: Vec<DocumentDraft>,
    ) -> Result<Intake, Error> {
        for draft in &mut drafts {
            draft.metadata.insert(COLLECTED_FROM.to_owned(), from.into());
        }
        let mut taken = Intake::default();
        // The cluster replaces what it has collected, whoever may read it, and nothing else: somebody may add a document at the same time.
        let of_sources = Replaceable { by: |_: &BaseSpec, row: &Row| source_of(row).is_some(), or: Unusable::Own };
        for added in self.add_by(caller, name, drafts, of_sources).await?.documents {
            match (added.status.as_str(), added.reason) {
                (_, Some(reason)) => taken.refused.push((added.source, reason)),
                ("added", None) => taken.added += 1,
                ("replaced", None) => taken.replaced += 1,
                _ => taken.unchanged += 1,
            }
        }
        Ok(taken)
    }

    /// Removes what a source no longer has. The answer is how many documents that were.
    pub async fn keep_seen(&self, caller: &Caller, name: &str, from: &str, range: &KeptRange) -> Result<u64, Error> {
        self.remove_rows(caller, name, |row| source_of(row) == Some(from) && range.lacks(&row.source)).await
    }

    /// Removes what came from other sources than the base has now, and writes down how its sources were read. The answer is how many
    /// documents were removed.
    pub async fn end_collection(&self, caller: &Caller, name: &str, ended: &CollectedBase) -> Result<u64, Error> {
        let (_, spec) = self.find(caller, name, Consistency::Linearizable).await?;
        let sources: HashSet<&str> = spec.sources.iter().map(String::as_str).collect();
        let is_gone = |row: &Row| source_of(row).is_some_and(|from| !sources.contains(from));
        let removed = if ended.failed { 0 } else { self.remove_rows(caller, name, is_gone).await? };
        for _ in 0..TRIES {
            let (object, mut spec) = self.find(caller, name, Consistency::Linearizable).await?;
            let now = self.desk.env.clock.wall().0.div_euclid(1_000_000);
            let before = spec.collected.take();
            // A repeat of the last message changes nothing.
            if before.as_ref().is_some_and(|before| ended.job.is_some_and(|job| before.job == job.to_string())) {
                return Ok(removed);
            }
            spec.collected = Some(collected(before, ended, now));
            let expect = Expect::Revision(object.revision);
            match self.put(caller, (&object.key, (*object.labels).clone()), &spec, expect).await {
                Ok(()) => return Ok(removed),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Overloaded)
    }

    /// Refuses a base that is not there, or that nothing is collected for. The answer is what its sources are.
    pub async fn sources(&self, caller: &Caller, name: &str) -> Result<Vec<String>, Error> {
        let (_, spec) = self.find(caller, name, Consistency::Linearizable).await?;
        match spec.sources.is_empty() && spec.collected.is_none() {
            true => Err(Error::Malformed(format!(
                "the base \"{name}\" has no sources; name some: atlasctl rag create {name} --from SOURCE --replace"
            ))),
            false => Ok(spec.sources),
        }
    }

    async fn remove_rows(
        &self,
        caller: &Caller,
        name: &str,
        is_meant: impl Fn(&Row) -> bool + Send,
    ) -> Result<u64, Error> {
        let Ok(key) = key(caller, name) else { return Err(unknown(name)) };
        let _turn = self.turns.take(&key).await;
        for _ in 0..TRIES {
            let (object, mut spec) = self.find(caller, name, Consistency::Linearizable).await?;
            let contents = self.contents(&spec).await?;
            contents.check(name)?;
            let removed: Vec<String> =
                contents.live(&spec).filter(|row| is_meant(row)).map(|row| row.id.to_string()).collect();
            if removed.is_empty() {
                return Ok(0);
            }
            let count = removed.len() as u64;
            spec.removed.extend(removed);
            self.compact(&mut spec, &contents).await?;
            let expect = Expect::Revision(object.revision);
            match self.put(caller, (&object.key, (*object.labels).clone()), &spec, expect).await {
                Ok(()) => return Ok(count),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Overloaded)
    }
}

impl KeptRange {
    /// Whether a name is in the range, and was not seen.
    fn lacks(&self, name: &str) -> bool {
        let is_after = self.after.as_deref().is_none_or(|after| name > after);
        let is_until = self.until.as_deref().is_none_or(|until| name <= until);
        is_after && is_until && !self.seen.contains(name)
    }
}

/// What a request for the sources of a base is answered with.
pub fn collecting(job: JobId) -> BaseCollecting {
    BaseCollecting { job: job.to_string() }
}

fn source_of(row: &Row) -> Option<&str> {
    row.metadata.get(COLLECTED_FROM).and_then(Value::as_str)
}

fn collected(before: Option<BaseCollection>, ended: &CollectedBase, now: i64) -> BaseCollection {
    let before = before.unwrap_or_default();
    BaseCollection {
        at: now,
        job: ended.job.map_or(before.job, |job| job.to_string()),
        documents: if ended.failed { before.documents } else { ended.documents },
        errors: kept_errors(&ended.errors),
        of: digest(&ended.sources),
        failures: if ended.failed { before.failures.saturating_add(1) } else { 0 },
    }
}

/// The first errors, as far as the object of a base has room for them.
fn kept_errors(errors: &[String]) -> Vec<String> {
    let bounded = |text: &String| text.chars().filter(|c| !c.is_control()).take(ERROR_CHARS_MAX).collect::<String>();
    let mut bytes = 0;
    let has_room = |text: &String| {
        bytes += written_bytes(text);
        bytes <= ERRORS_BYTES_MAX
    };
    errors.iter().take(ERRORS_MAX).map(bounded).take_while(has_room).collect()
}

/// What is known of sources that were read. One that is named twice is read once.
fn digest(sources: &[String]) -> String {
    let mut seen = HashSet::new();
    let sources: Vec<&str> = sources.iter().map(String::as_str).filter(|source| seen.insert(*source)).collect();
    digest_of(sources.join("\n").as_bytes()).hex().chars().take(32).collect()
}

/// When the sources of a base are to be read, Unix seconds; none for never. Sources that changed are read at once, others as the base says, and
/// after a failure a while later, each time longer.
pub fn collection_due(spec: &BaseSpec) -> Option<i64> {
    let Some(collected) = &spec.collected else { return (!spec.sources.is_empty()).then_some(0) };
    if collected.of != digest(&spec.sources) {
        return Some(0);
    }
    let (first, longest) = AGAIN;
    let interval = i64::try_from(spec.refresh_minutes).unwrap_or(i64::MAX).saturating_mul(60);
    let pause = match collected.failures {
        0 if interval == 0 || spec.sources.is_empty() => return None,
        0 => interval,
        failures => first.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(longest),
    };
    Some(collected.at.saturating_add(pause))
}

/// What a job that reads the sources of a base is known by: a repeat before it has ended is the same job.
pub fn collection_key(uid: u64, spec: &BaseSpec) -> String {
    let last = spec.collected.as_ref().map_or("", |collected| collected.job.as_str());
    format!("collect-{}", digest_of(format!("{uid} {last} {}", digest(&spec.sources)).as_bytes()).hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(sources: &[&str], refresh_minutes: u64, collected: Option<BaseCollection>) -> BaseSpec {
        let sources = sources.iter().map(|source| (*source).to_owned()).collect();
        BaseSpec { sources, refresh_minutes, collected, ..BaseSpec::default() }
    }

    #[test]
    fn sources_are_due_when_they_change_and_after_the_interval() {
        let of = |sources: &[&str], failures| {
            let sources: Vec<String> = sources.iter().map(|source| (*source).to_owned()).collect();
            Some(BaseCollection { at: 1_000, of: digest(&sources), failures, ..BaseCollection::default() })
        };
        assert_eq!(collection_due(&spec(&[], 5, None)), None);
        assert_eq!(collection_due(&spec(&["a"], 0, None)), Some(0));
        assert_eq!(collection_due(&spec(&["a"], 0, of(&["a"], 0))), None);
        assert_eq!(collection_due(&spec(&["a"], 5, of(&["a"], 0))), Some(1_300));
        assert_eq!(collection_due(&spec(&["a", "a"], 0, of(&["a"], 0))), None, "it was read");
        assert_eq!(collection_due(&spec(&["a", "b"], 5, of(&["a"], 0))), Some(0));
        assert_eq!(collection_due(&spec(&[], 5, of(&["a"], 0))), Some(0), "what came from the source goes");
        assert_eq!(collection_due(&spec(&[], 5, of(&[], 0))), None);
        assert_eq!(collection_due(&spec(&["a"], 0, of(&["a"], 1))), Some(1_060));
        assert_eq!(collection_due(&spec(&["a"], 0, of(&["a"], 3))), Some(1_240));
        assert_eq!(collection_due(&spec(&["a"], 0, of(&["a"], u64::MAX))), Some(4_600));
    }

    #[test]
    fn a_job_is_known_by_what_was_read_before() {
        let collected = |job: &str| Some(BaseCollection { job: job.to_owned(), ..BaseCollection::default() });
        let key = collection_key(1, &spec(&["a"], 0, None));
        assert_eq!(key, collection_key(1, &spec(&["a"], 9, None)));
        for other in [spec(&["b"], 0, None), spec(&["a"], 0, collected("job-1")), spec(&["a"], 0, collected("job-2"))] {
            assert_ne!(key, collection_key(1, &other));
        }
        assert_ne!(key, collection_key(2, &spec(&["a"], 0, None)));
    }

    #[test]
    fn a_range_of_names_lacks_what_was_not_seen() {
        let range = |after: Option<&str>, until: Option<&str>| KeptRange {
            after: after.map(str::to_owned),
            until: until.map(str::to_owned),
            seen: ["b".to_owned(), "d".to_owned()].into(),
        };
        let lacks = |range: &KeptRange| {
            ["a", "b", "c", "d", "e"].into_iter().filter(|name| range.lacks(name)).collect::<String>()
        };
        assert_eq!(lacks(&range(None, None)), "ace");
        assert_eq!(lacks(&range(None, Some("c"))), "ac");
        assert_eq!(lacks(&range(Some("c"), None)), "e");
    }

    #[test]
    fn a_failure_keeps_what_is_known_and_errors_have_a_bound() {
        let ended = |failed| CollectedBase {
            job: Some(JobId(7)),
            sources: vec!["a".to_owned()],
            documents: 3,
            errors: vec!["x".repeat(1_000); 30],
            failed,
        };
        let first = collected(None, &ended(false), 10);
        assert_eq!((first.documents, first.failures, first.errors.len()), (3, 0, 8));
        assert_eq!(first.errors.first().map(String::len), Some(ERROR_CHARS_MAX));
        let second = collected(Some(first), &CollectedBase { documents: 0, ..ended(true) }, 20);
        assert_eq!((second.documents, second.failures, second.at), (3, 1, 20));
        let third = collected(Some(second), &CollectedBase { job: None, ..ended(true) }, 30);
        assert_eq!((third.job, third.failures), (JobId(7).to_string(), 2));
        let short = CollectedBase { errors: vec!["x".to_owned(); 30], ..ended(false) };
        assert_eq!(collected(None, &short, 10).errors.len(), ERRORS_MAX);
    }
}
