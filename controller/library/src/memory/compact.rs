//! Compaction: one entry takes the place of all before the newest ones. Nothing that is appended meanwhile is lost, because the summary has
//! the place of the last entry for which it stands.

use atlas_api::types::SummaryOf;
use atlas_desk::{Caller, Consistency, Error};
use atlas_objects::MemorySpec;
use atlas_types::{Expect, JobId};

use super::{Entry, KIND, MemoryScope, REMOVED_AT_ONCE, REPLACED_MAX, entries, live, text_of};
use crate::{Library, WriteKey, WritingJob, write};

impl Library {
    /// Replaces the oldest entries of a memory by a summary of them, which is not empty and not longer. Refused with
    /// [`Error::MemoryChanged`] if they are not the oldest ones any more. A repeat changes nothing.
    pub async fn compact_memory(
        &self,
        caller: &Caller,
        scope: &MemoryScope,
        text: &str,
        of: &SummaryOf,
    ) -> Result<(), Error> {
        if let Some(store) = self.memory_store(caller, scope)? {
            let place = &store.place().name;
            return Err(Error::Malformed(format!(
                "the memory in {place} is kept outside of the cluster, which knows no entries of it; replace it: atlasctl memory set"
            )));
        }
        let text = text.trim();
        let state = self.desk.state(Consistency::Linearizable).await?;
        let writer = match &of.job {
            Some(job) => {
                let id: JobId = job.parse().map_err(|_| Error::UnknownJob)?;
                let job = self.desk.job_in(caller, &state, id).await?;
                Some(WritingJob { agent: job.agent.to_string(), job: id })
            }
            None => None,
        };
        let key = WriteKey::of_summary(&of.last);
        let found = entries(&state, &caller.namespace, scope)?;
        if found.iter().any(|entry| entry.key == key.digits() && entry.spec.text == text) {
            return Ok(());
        }
        let start = live(&found);
        let (replaced, last) = named(&found[start..], of).ok_or(Error::MemoryChanged)?;
        check(text, replaced)?;
        let spec = MemorySpec {
            text: text.to_owned(),
            replaces: true,
            through: Some(last.place()),
            agent: writer.as_ref().map(|job| job.agent.clone()),
            job: writer.as_ref().map(|job| job.job.to_string()),
        };
        let object = write::key(caller, KIND, &MemorySpec::name(&scope.to_string(), &key.digits()))?;
        // Of two summaries of the same entries, one is written.
        match write::put(&self.desk, caller, &object, &spec, Expect::Absent, "the summary", writer.as_ref()).await {
            Err(Error::ObjectChanged { .. }) => return Err(Error::MemoryChanged),
            answer => answer?,
        }
        let gone = (start + replaced.len()).saturating_sub(REPLACED_MAX).min(REMOVED_AT_ONCE);
        write::delete_all(&self.desk, caller, found.iter().take(gone).map(|entry| &entry.object.key)).await
    }
}

/// The entries for which a summary stands, and the last of them, if they are still the oldest ones of the text. Entries never change, and
/// new ones are the last: with the same ends and the same number they are the same.
fn named<'e>(live: &'e [Entry], of: &SummaryOf) -> Option<(&'e [Entry], &'e Entry)> {
    let replaced = live.get(..usize::try_from(of.entries).ok()?)?;
    let (first, last) = (replaced.first()?, replaced.last()?);
    (first.key == of.first && last.key == of.last).then_some((replaced, last))
}

fn check(text: &str, replaced: &[Entry]) -> Result<(), Error> {
    let before = text_of(replaced).len();
    match text.len() {
        0 => Err(Error::Malformed("the summary is empty".to_owned())),
        bytes if bytes > before => {
            Err(Error::Malformed(format!("the summary has {bytes} bytes, and what it would replace has only {before}")))
        }
        _ => Ok(()),
    }
}
