//! Readers of journals: the recorded steps of a job, in order.

use std::sync::Arc;

use atlas_desk::{Caller, Consistency, Error, json};
use atlas_format::decode_steps;
use atlas_types::{Job, JobId, PayloadBody, Step, StepKey, StepKind, StepUsage};
use bytes::Bytes;

use crate::Records;

/// Outcomes beyond so many bytes of a page are left out.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Which steps are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepQuery {
    /// Those after this number; all if there is none.
    pub after: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// Some steps of a journal.
#[derive(Debug, Default)]
pub struct Steps {
    /// The number of the first.
    first: u64,
    rows: Vec<Row>,
    /// Bytes of their outcomes.
    bytes: usize,
}

#[derive(Debug)]
struct Row {
    kind: StepKind,
    key: StepKey,
    usage: StepUsage,
    size_bytes: u64,
    /// None where the page has no room for it.
    outcome: Option<Bytes>,
}

impl Records {
    /// The recorded steps of a job, whether it runs, has ended, or is in the history only.
    pub async fn steps(
        &self,
        caller: &Caller,
        id: JobId,
        query: StepQuery,
        consistency: Consistency,
    ) -> Result<Steps, Error> {
        let state = self.desk.state(consistency).await?;
        let job: Arc<Job> = self.desk.job_in(caller, &state, id).await?;
        let journal = state.journal(id).or(job.journal.as_ref()).cloned().unwrap_or_default();
        let first = query.after.map_or(0, |after| after.saturating_add(1)).min(journal.next());
        let last = journal.next().min(first.saturating_add(query.limit.min(self.desk.limits.list_max) as u64));
        let mut page = Steps { first, ..Steps::default() };
        let mut from = 0;
        for fold in &journal.folds {
            // Folds are read as far as they hold some of the steps, one at a time.
            if fold.upto > first && from < last {
                let bytes = self.desk.bytes(&fold.artifact).await?;
                let folded = decode_steps(&bytes).map_err(|error| Error::internal("read folded steps", &error))?;
                self.add(&mut page, from, &folded, first..last).await?;
            }
            from = fold.upto;
        }
        self.add(&mut page, from, &journal.steps, first..last).await?;
        Ok(page)
    }

    /// Adds those of the steps from `from` on that are wanted.
    async fn add(
        &self,
        page: &mut Steps,
        from: u64,
        steps: &[Arc<Step>],
        wanted: std::ops::Range<u64>,
    ) -> Result<(), Error> {
        for (_, step) in (from..).zip(steps).filter(|(number, _)| wanted.contains(number)) {
            let size_bytes = match &step.outcome.body {
                PayloadBody::Inline(bytes) => bytes.len() as u64,
                PayloadBody::Artifact { size_bytes, .. } => *size_bytes,
            };
            let room = page.bytes < PAGE_BYTES_MAX;
            let outcome = if room { Some(self.desk.bytes(&step.outcome).await?) } else { None };
            page.bytes += outcome.as_ref().map_or(0, Bytes::len);
            page.rows.push(Row { kind: step.kind, key: step.key, usage: step.usage, size_bytes, outcome });
        }
        Ok(())
    }
}

impl Steps {
    /// Appends the steps as a JSON array.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (number, Row { kind, key, usage, size_bytes, outcome }) in (self.first..).zip(&self.rows) {
            if number > self.first {
                out.push(b',');
            }
            let (duration, cost) = (usage.duration.0 as f64 / 1e3, usage.cost_nanodollars as f64 / 1e9);
            let StepUsage { tokens_input, tokens_output, .. } = usage;
            let members = format!(
                "{{\"step\":{number},\"kind\":\"{}\",\"key\":\"{key}\",\"duration_ms\":{duration},\
                \"tokens_input\":{tokens_input},\"tokens_output\":{tokens_output},\"cost_usd\":{cost},\
                \"outcome_bytes\":{size_bytes},\"outcome\":",
                kind.as_str(),
            );
            out.extend_from_slice(members.as_bytes());
            match outcome {
                Some(text) => json::raw(out, text),
                None => out.extend_from_slice(b"null"),
            }
            out.push(b'}');
        }
        out.push(b']');
    }
}
