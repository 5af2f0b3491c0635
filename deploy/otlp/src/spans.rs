//! The spans of a job and of a run of a chain, from their records. Pure.
//!
//! A job has a span from its submission to its end, with one for its wait in the queue, one for its last attempt, and below that its
//! warm-up, its execution, the recorded steps and the check of its output. Of steps only the duration is recorded: their spans follow
//! one another from the beginning of the execution.
//!
//! Ids of spans follow from the id of the job, so a span that is sent twice is the same span, and a job can name the span of its
//! parent without asking.

use atlas_types::{FailureKind, Job, JobId, PayloadBody, Run, Step, StepKind, Timestamp, TraceContext};
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde_json::Value;

use crate::value::{count, flag, share, word};

/// The spans of one job, as numbers from which their ids follow.
const WHOLE: u64 = 0x0107_0001;
const QUEUE: u64 = 0x0107_0002;
const ATTEMPT: u64 = 0x0107_0003;
const WARM_UP: u64 = 0x0107_0004;
const EXECUTE: u64 = 0x0107_0005;
const CHECK: u64 = 0x0107_0006;
const RUN: u64 = 0x0107_0007;
const STEP: u64 = 0x0108_0000;

/// The most spans of steps of one job; the oldest are left out.
const STEPS_MAX: usize = 256;

fn span_id(id: JobId, part: u64) -> Vec<u8> {
    id.derive(part).0.max(1).to_be_bytes().to_vec()
}

/// The trace of what began with `first`, if its caller gave none.
fn own_trace(first: JobId) -> u128 {
    u128::from(first.derive(WHOLE ^ 0xFF).0) << 64 | u128::from(first.0.max(1))
}

/// The trace of a job.
fn trace_of(job: &Job) -> u128 {
    match (job.trace, job.step, job.spawned) {
        (Some(context), ..) => context.trace_id,
        (None, Some(step), _) => own_trace(JobId(step.run.0)),
        (None, None, Some(spawned)) => own_trace(spawned.by),
        (None, None, None) => own_trace(job.first()),
    }
}

/// The span above a job's: that of its run, of its parent's execution, or of its caller.
fn parent_of(job: &Job) -> Vec<u8> {
    match (job.step, job.spawned, job.trace) {
        (Some(step), ..) => span_id(JobId(step.run.0), RUN),
        // Below the first generation, the trace of the oldest ancestor is not known here; a link names the parent.
        (None, Some(spawned), trace) if trace.is_some() || spawned.depth <= 1 => span_id(spawned.by, EXECUTE),
        (None, Some(_), _) => Vec::new(),
        (None, None, Some(context)) => caller(context),
        (None, None, None) => Vec::new(),
    }
}

fn caller(context: TraceContext) -> Vec<u8> {
    context.span_id.to_be_bytes().to_vec()
}

/// What decides whether a trace is sent: its id, and what the caller decided.
pub(crate) fn sampled_by(spans: &[Span], trace: Option<TraceContext>) -> Option<(u128, Option<bool>)> {
    let id = spans.first()?.trace_id.as_slice().try_into().ok()?;
    Some((u128::from_be_bytes(id), trace.map(|context| context.flags & 1 == 1)))
}

/// Makes the spans of one job.
struct Maker<'j> {
    job: &'j Job,
    trace_id: Vec<u8>,
    spans: Vec<Span>,
}

impl Maker<'_> {
    fn add(&mut self, part: u64, parent: Vec<u8>, name: String, (start, end): (u64, u64)) -> &mut Span {
        let span = Span {
            trace_id: self.trace_id.clone(),
            span_id: span_id(self.job.id, part),
            parent_span_id: parent,
            name,
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: start,
            end_time_unix_nano: end.max(start),
            ..Span::default()
        };
        self.spans.push(span);
        // It was pushed just now.
        let last = self.spans.len() - 1;
        &mut self.spans[last]
    }
}

/// The spans of a job that has ended. The first is that of the whole job.
pub fn job_spans(job: &Job) -> Vec<Span> {
    let trace_id = trace_of(job).to_be_bytes().to_vec();
    let mut maker = Maker { job, trace_id: trace_id.clone(), spans: Vec::new() };
    let (created, completed) = (nanos(job.created_at), nanos(job.completed_at));
    let whole = maker.add(WHOLE, parent_of(job), format!("job {}", job.agent), (created, completed));
    whole.kind = SpanKind::Consumer.into();
    whole.attributes = about(job);
    whole.status = status(job);
    whole.links = links(job, &trace_id);
    let of_whole = span_id(job.id, WHOLE);
    let has_run = job.started_at != Timestamp::NOT_YET && job.attempt.0 > 0;
    let started = if has_run { nanos(job.started_at) } else { completed };
    maker.add(QUEUE, of_whole.clone(), "queue".to_owned(), (created, started));
    if has_run {
        attempt(&mut maker, of_whole, (started, completed));
    }
    maker.spans
}

/// The last attempt, and what happened in it.
fn attempt(maker: &mut Maker<'_>, of_whole: Vec<u8>, (started, completed): (u64, u64)) {
    let job = maker.job;
    let attempt = maker.add(ATTEMPT, of_whole, format!("attempt {}", job.attempt), (started, completed));
    attempt.attributes = vec![count("atlas.job.attempt", job.attempt.0.into()), flag("atlas.slot.warm", job.warm)];
    attempt.attributes.extend(job.node.as_ref().map(|node| word("atlas.node.id", node.as_str())));
    attempt.status = status(job);
    let of_attempt = span_id(job.id, ATTEMPT);
    let warm_until = started.saturating_add(job.warmup.0.saturating_mul(1_000)).min(completed);
    if !job.warm && job.warmup.0 > 0 {
        maker.add(WARM_UP, of_attempt.clone(), "warm-up".to_owned(), (started, warm_until));
    }
    if job.execution.0 == 0 {
        return;
    }
    let begun = if job.warm { started } else { warm_until };
    let ended = begun.saturating_add(job.execution.0.saturating_mul(1_000)).min(completed);
    let execute = maker.add(EXECUTE, of_attempt.clone(), format!("execute {}", job.agent), (begun, ended));
    execute.attributes =
        vec![word("gen_ai.operation.name", "invoke_agent"), word("gen_ai.agent.name", job.agent.as_str())];
    steps(maker, begun);
    let invalid = job.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::OutputInvalid);
    if job.output.is_some() || invalid {
        let check = maker.add(CHECK, of_attempt, "output check".to_owned(), (ended, ended));
        if invalid {
            check.status = status(job);
        }
    }
}

fn steps(maker: &mut Maker<'_>, begun: u64) {
    let Some(journal) = maker.job.journal.clone() else { return };
    let copied = maker.job.fork.as_ref().map_or(0, |fork| fork.steps);
    let numbered = (journal.first()..).zip(&journal.steps).filter(|(number, _)| *number >= copied);
    let shown = |step: &Step| !matches!(step.kind, StepKind::Start | StepKind::Intent);
    let numbered: Vec<_> = numbered.filter(|(_, step)| shown(step)).collect();
    let of_execution = span_id(maker.job.id, EXECUTE);
    let mut at = begun;
    for (number, step) in &numbered[numbered.len().saturating_sub(STEPS_MAX)..] {
        let end = at.saturating_add(step.usage.duration.0.saturating_mul(1_000));
        let (name, kind, attributes) = told(step);
        let span = maker.add(STEP + number, of_execution.clone(), name, (at, end));
        span.kind = kind.into();
        span.attributes = attributes;
        span.attributes.push(count("atlas.step.number", *number));
        at = end;
    }
}

/// The name, kind and attributes of a step, by the conventions for generative AI. Contents are left out.
fn told(step: &Step) -> (String, SpanKind, Vec<opentelemetry_proto::tonic::common::v1::KeyValue>) {
    match step.kind {
        StepKind::Model => {
            let answer = answer(step);
            let model = answer.get("model").and_then(Value::as_str).unwrap_or_default();
            let mut attributes = vec![
                word("gen_ai.operation.name", "chat"),
                count("gen_ai.usage.input_tokens", step.usage.tokens_input),
                count("gen_ai.usage.output_tokens", step.usage.tokens_output),
                share("atlas.llm.cost_usd", step.usage.cost_nanodollars as f64 / 1e9),
            ];
            if !model.is_empty() {
                attributes.push(word("gen_ai.response.model", model));
            }
            (format!("chat {model}").trim_end().to_owned(), SpanKind::Client, attributes)
        }
        StepKind::Tools => {
            ("execute_tool".to_owned(), SpanKind::Internal, vec![word("gen_ai.operation.name", "execute_tool")])
        }
        kind => (kind.as_str().to_owned(), SpanKind::Internal, Vec::new()),
    }
}

fn answer(step: &Step) -> Value {
    let PayloadBody::Inline(bytes) = &step.outcome.body else { return Value::Null };
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn about(job: &Job) -> Vec<opentelemetry_proto::tonic::common::v1::KeyValue> {
    let mut attributes = vec![
        word("atlas.job.id", &job.id.to_string()),
        word("atlas.namespace", job.namespace.as_str()),
        word("atlas.agent.name", job.agent.as_str()),
        word("atlas.job.status", job.status.as_str()),
        word("atlas.job.door", job.door.as_str()),
        count("atlas.job.retry_count", job.retry_count.into()),
    ];
    attributes.extend(job.pin.as_ref().map(|pin| word("atlas.agent.version", &pin.version.to_string())));
    attributes.extend(job.failure.as_ref().map(|failure| word("error.type", failure.kind.as_str())));
    attributes.extend(job.step.map(|step| word("atlas.run.id", &step.run.to_string())));
    attributes.extend(job.step.map(|step| count("atlas.run.step", step.index.into())));
    let usage = job.journal.as_ref().map(|journal| journal.usage()).unwrap_or_default();
    if usage.tokens_input + usage.tokens_output > 0 {
        attributes.push(count("gen_ai.usage.input_tokens", usage.tokens_input));
        attributes.push(count("gen_ai.usage.output_tokens", usage.tokens_output));
        attributes.push(share("atlas.llm.cost_usd", usage.cost_nanodollars as f64 / 1e9));
    }
    attributes
}

/// Failed jobs have the status of an error. Its message is the kind of failure, because texts of errors can repeat contents.
fn status(job: &Job) -> Option<Status> {
    let failure = job.failure.as_ref()?;
    Some(Status { message: failure.kind.as_str().to_owned(), code: StatusCode::Error.into() })
}

/// Links to the parent that spawned the job, and to the first job of its family.
fn links(job: &Job, trace_id: &[u8]) -> Vec<Link> {
    let spawned = job.spawned.map(|spawned| (spawned.by, EXECUTE, "parent"));
    let original = job.original.map(|first| (first, WHOLE, "original"));
    let link = |(id, part, role): (JobId, u64, &str)| Link {
        trace_id: trace_id.to_vec(),
        span_id: span_id(id, part),
        attributes: vec![word("atlas.link", role), word("atlas.job.id", &id.to_string())],
        ..Link::default()
    };
    spawned.into_iter().chain(original).map(link).collect()
}

/// The span of a run of a chain that has ended. The jobs of its steps are below it.
pub fn run_spans(run: &Run) -> Vec<Span> {
    let id = JobId(run.id.0);
    let trace_id = run.trace.map_or_else(|| own_trace(id), |context| context.trace_id);
    let error = run.error();
    let (start, end) = (nanos(run.created_at), nanos(run.completed_at));
    vec![Span {
        trace_id: trace_id.to_be_bytes().to_vec(),
        span_id: span_id(id, RUN),
        parent_span_id: run.trace.map(caller).unwrap_or_default(),
        name: format!("chain {}", run.chain),
        kind: SpanKind::Consumer.into(),
        start_time_unix_nano: start,
        end_time_unix_nano: end.max(start),
        attributes: vec![
            word("atlas.run.id", &run.id.to_string()),
            word("atlas.namespace", run.namespace.as_str()),
            word("atlas.chain.name", &run.chain),
            word("atlas.run.status", run.status.as_str()),
            count("atlas.run.steps", run.steps.len() as u64),
        ],
        status: (!error.is_empty()).then(|| Status { message: String::new(), code: StatusCode::Error.into() }),
        ..Span::default()
    }]
}

/// A time in nanoseconds since 1970.
fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0).saturating_mul(1_000)
}
