//! Records of the history as rows. Pure.
//!
//! PostgreSQL refuses NUL characters in texts and some numbers of JSON. Agents choose texts and metadata, so whatever the database
//! would refuse is replaced here: one job must never stop the export.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use atlas_history::{HistoryError, Part};
use atlas_types::{Event, EventSeq, Job, PayloadBody, Run, RunChange, Step, StepKind, Timestamp};
use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::partition;
use crate::table::{CallRow, Calls, JobRow, Jobs, RunRow, Runs};

/// The most bytes of an error, and of the words of a job.
const TEXT_BYTES_MAX: usize = 8 << 10;
/// The most bytes of labels or metadata; larger ones are left out.
const JSON_BYTES_MAX: usize = 64 << 10;
/// The last time that is exported as it is: the end of the year 9998, so that each month has a next one.
const TIME_MAX: i64 = 253_370_764_799_000_000;

/// The rows of a part of the history.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Everything up to this event is in these rows.
    pub(crate) through: EventSeq,
    pub(crate) jobs: Jobs,
    pub(crate) calls: Calls,
    pub(crate) runs: Runs,
    /// Erasures: the event, the namespace and the job; none for all jobs that ended before.
    pub(crate) erased: Vec<(i64, String, Option<String>)>,
    /// The first days of the months that the rows belong to.
    pub(crate) months: BTreeSet<Date>,
}

impl Rows {
    pub(crate) fn of(part: &Part) -> Result<Self, HistoryError> {
        let mut rows = Self { through: part.reached, ..Self::default() };
        for record in &part.records {
            if let Some(job) = record.ended()? {
                rows.job(record.seq, &job);
            } else if let Some(event) = record.beside_jobs()? {
                match event.event {
                    Some(Event::Run { change: RunChange::Ended, run }) => rows.run(record.seq, &run),
                    Some(Event::Erased { namespace, job }) => {
                        let job = job.map(|job| job.to_string());
                        rows.erased.push((whole(record.seq.0), text(namespace.as_str()), job));
                    }
                    _ => {}
                }
            }
        }
        Ok(rows)
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len() + self.calls.len() + self.runs.len() + self.erased.len()
    }

    fn job(&mut self, seq: EventSeq, job: &Job) {
        let completed_at = time(job.completed_at);
        self.months.insert(partition::month_of(completed_at));
        for (number, step) in calls(job) {
            let StepFigures { duration_us, tokens_input, tokens_output, cost_nanodollars } = figures(step);
            self.calls.push(CallRow {
                event_seq: whole(seq.0),
                completed_at,
                number: whole(number),
                job: job.id.to_string(),
                namespace: text(job.namespace.as_str()),
                agent: text(job.agent.as_str()),
                model: model(step).map(|model| text(&model)),
                duration_us,
                tokens_input,
                tokens_output,
                cost_nanodollars,
            });
        }
        self.jobs.push(job_row(seq, completed_at, job));
    }

    fn run(&mut self, seq: EventSeq, run: &Run) {
        let completed_at = time(run.completed_at);
        self.months.insert(partition::month_of(completed_at));
        self.runs.push(RunRow {
            event_seq: whole(seq.0),
            completed_at,
            id: run.id.to_string(),
            namespace: text(run.namespace.as_str()),
            chain: text(&run.chain),
            status: run.status.as_str(),
            error: Some(run.error()).filter(|error| !error.is_empty()).map(|error| text(&error)),
            steps: whole(run.steps.len() as u64),
            total_steps: i64::from(run.total_steps),
            created_at: time(run.created_at),
            principal: text(run.principal.as_str()),
            door: run.door.as_str(),
        });
    }
}

fn job_row(seq: EventSeq, completed_at: SystemTime, job: &Job) -> JobRow {
    let mut metadata: Map<String, Value> = match job.metadata.len() {
        0..=JSON_BYTES_MAX => serde_json::from_slice(&job.metadata).unwrap_or_default(),
        _ => Map::new(),
    };
    let usage = job.journal.as_ref().map(|journal| journal.usage()).unwrap_or_default();
    // Agents in Python report their calls here, and so do those whose calls are recorded.
    let count = |name: &str| metadata.get(name).and_then(Value::as_u64);
    let tokens_input = count("_trace_input_tokens").unwrap_or(usage.tokens_input);
    let tokens_output = count("_trace_output_tokens").unwrap_or(usage.tokens_output);
    let model = metadata.get("_trace_model").and_then(Value::as_str).filter(|model| !model.is_empty()).map(text);
    // As in traces.
    let table = atlas_model::compatible_cost(model.as_deref().unwrap_or_default(), tokens_input, tokens_output).0;
    let cost = if table > 0 { table } else { usage.cost_nanodollars };
    metadata.retain(|name, _| !name.starts_with('_'));
    let error = job.failure.as_ref().map(|failure| text(&failure.error));
    let labels = job.labels.iter().map(|(name, value)| (name.clone(), Value::String(value.clone())));
    let labels = clean(Value::Object(labels.collect()));
    let mut words = format!("{} {}", job.agent.as_str(), error.as_deref().unwrap_or_default());
    job.labels.values().for_each(|value| words.extend([" ", value]));
    JobRow {
        event_seq: whole(seq.0),
        completed_at,
        id: job.id.to_string(),
        namespace: text(job.namespace.as_str()),
        agent: text(job.agent.as_str()),
        version: job.pin.as_ref().map(|pin| pin.version.to_string()),
        status: job.status.as_str(),
        failure_kind: job.failure.as_ref().map(|failure| failure.kind.as_str()),
        error,
        priority: job.priority,
        queue_seq: whole(job.queue_seq),
        created_at: time(job.created_at),
        started_at: Some(job.started_at).filter(|at| *at != Timestamp::NOT_YET).map(time),
        warmup_us: whole(job.warmup.0),
        execution_us: whole(job.execution.0),
        warm: job.warm,
        attempts: i64::from(job.attempt.0),
        retry_count: i64::from(job.retry_count),
        original: job.original.map(|id| id.to_string()),
        parent: job.spawned.map(|spawned| spawned.by.to_string()),
        run: job.step.map(|step| step.run.to_string()),
        step_index: job.step.map(|step| i64::from(step.index)),
        node: job.node.as_ref().map(|node| text(node.as_str())),
        principal: text(job.principal.as_str()),
        door: job.door.as_str(),
        model,
        tokens_input: whole(tokens_input),
        tokens_output: whole(tokens_output),
        cost_nanodollars: whole(cost),
        labels,
        metadata: clean(Value::Object(metadata)),
        words: text(&words),
    }
}

/// The model calls that a job made itself and whose steps are not in artifacts. Steps that it began with are another job's.
fn calls(job: &Job) -> impl Iterator<Item = (u64, &Step)> {
    let copied = job.fork.as_ref().map_or(0, |fork| fork.steps);
    let journal = job.journal.iter();
    let steps = journal.flat_map(|journal| (journal.first()..).zip(journal.steps.iter().map(|step| &**step)));
    steps.filter(move |(number, step)| step.kind == StepKind::Model && *number >= copied)
}

struct StepFigures {
    duration_us: i64,
    tokens_input: i64,
    tokens_output: i64,
    cost_nanodollars: i64,
}

fn figures(step: &Step) -> StepFigures {
    StepFigures {
        duration_us: whole(step.usage.duration.0),
        tokens_input: whole(step.usage.tokens_input),
        tokens_output: whole(step.usage.tokens_output),
        cost_nanodollars: whole(step.usage.cost_nanodollars),
    }
}

/// The model that answered; none if the answer is in an artifact.
fn model(step: &Step) -> Option<String> {
    let PayloadBody::Inline(bytes) = &step.outcome.body else { return None };
    let answer: Value = serde_json::from_slice(bytes).ok()?;
    Some(answer.get("model")?.as_str()?.to_owned())
}

/// A number as a column: the largest one stands for all that are larger.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A time between 1970 and 9998.
fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(at.0.clamp(0, TIME_MAX).unsigned_abs())
}

/// A text without the character that PostgreSQL refuses, and not too long.
fn text(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace('\0', "\u{fffd}")
}

/// JSON without what PostgreSQL refuses.
fn clean(value: Value) -> Value {
    match value {
        Value::String(string) => Value::String(string.replace('\0', "\u{fffd}")),
        Value::Array(items) => items.into_iter().map(clean).collect(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name.replace('\0', "\u{fffd}"), clean(value)));
            Value::Object(members.collect())
        }
        other => other,
    }
}
