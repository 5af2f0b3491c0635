//! The spans of a job and of a run of a chain, from their records. Pure.
//!
//! A job has a span from its submission to its end, with one for its wait in the queue, one for its last attempt, and below that its
//! warm-up, its execution, the recorded steps and the check of its output. Of steps only the duration is recorded: their spans follow
//! one another from the beginning of the execution.
//!
//! Ids of spans follow from the id of the job, so a span that is sent twice is the same span, and a job can name the span of its
//! parent without asking.

use std::time::{Duration, SystemTime};

use atlas_types::{FailureKind, Job, JobId, PayloadBody, Run, Step, StepKind, Timestamp, TraceContext};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use serde_json::Value;

use crate::value::{count, flag, scope, share, word};

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

fn span_id(id: JobId, part: u64) -> SpanId {
    SpanId::from(id.derive(part).0.max(1))
}

fn context(trace_id: TraceId, span_id: SpanId) -> SpanContext {
    SpanContext::new(trace_id, span_id, TraceFlags::SAMPLED, false, TraceState::NONE)
}

/// The trace of what began with `first`, if its caller gave none.
fn own_trace(first: JobId) -> TraceId {
    TraceId::from(u128::from(first.derive(WHOLE ^ 0xFF).0) << 64 | u128::from(first.0.max(1)))
}

/// The trace of a job.
fn trace_of(job: &Job) -> TraceId {
    match (job.trace, job.step, job.spawned) {
        (Some(context), ..) => TraceId::from(context.trace_id),
        (None, Some(step), _) => own_trace(JobId(step.run.0)),
        (None, None, Some(spawned)) => own_trace(spawned.by),
        (None, None, None) => own_trace(job.first()),
    }
}

/// The span above a job's: that of its run, of its parent's execution, or of its caller.
fn parent_of(job: &Job) -> SpanId {
    match (job.step, job.spawned, job.trace) {
        (Some(step), ..) => span_id(JobId(step.run.0), RUN),
        // Below the first generation, the trace of the oldest ancestor is not known here; a link names the parent.
        (None, Some(spawned), trace) if trace.is_some() || spawned.depth <= 1 => span_id(spawned.by, EXECUTE),
        (None, Some(_), _) => SpanId::INVALID,
        (None, None, Some(context)) => caller(context),
        (None, None, None) => SpanId::INVALID,
    }
}

fn caller(context: TraceContext) -> SpanId {
    SpanId::from(context.span_id)
}

/// The trace context of what a job does, for its agent: that of its execution in the trace of its caller. None if its caller gave no
/// trace, because whether its own is sent is decided when it ends.
pub fn execution(job: &Job) -> Option<TraceContext> {
    let span_id = u64::from_be_bytes(span_id(job.id, EXECUTE).to_bytes());
    job.trace.map(|caller| TraceContext { span_id, ..caller })
}

/// What decides whether a trace is sent: its id, and what the caller decided.
pub(crate) fn sampled_by(spans: &[SpanData], trace: Option<TraceContext>) -> Option<(u128, Option<bool>)> {
    let id = spans.first()?.span_context.trace_id();
    Some((u128::from_be_bytes(id.to_bytes()), trace.map(|context| context.flags & 1 == 1)))
}

/// Makes the spans of one job.
struct Maker<'j> {
    job: &'j Job,
    trace_id: TraceId,
    spans: Vec<SpanData>,
}

impl Maker<'_> {
    fn add(&mut self, part: u64, parent: SpanId, name: String, times: (u64, u64)) -> &mut SpanData {
        self.spans.push(span(context(self.trace_id, span_id(self.job.id, part)), parent, name, times));
        // It was pushed just now.
        let last = self.spans.len() - 1;
        &mut self.spans[last]
    }
}

/// A span without attributes. Times are in nanoseconds since 1970.
fn span(span_context: SpanContext, parent: SpanId, name: String, (start, end): (u64, u64)) -> SpanData {
    let time = |nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
    SpanData {
        span_context,
        parent_span_id: parent,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: name.into(),
        start_time: time(start),
        end_time: time(end.max(start)),
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: scope(),
    }
}

/// The spans of a job that has ended. The first is that of the whole job.
pub fn job_spans(job: &Job) -> Vec<SpanData> {
    let trace_id = trace_of(job);
    let mut maker = Maker { job, trace_id, spans: Vec::new() };
    let (created, completed) = (nanos(job.created_at), nanos(job.completed_at));
    let whole = maker.add(WHOLE, parent_of(job), format!("job {}", job.agent), (created, completed));
    whole.span_kind = SpanKind::Consumer;
    whole.attributes = about(job);
    whole.status = status(job);
    whole.links.links = links(job, trace_id);
    let of_whole = span_id(job.id, WHOLE);
    let has_run = job.started_at != Timestamp::NOT_YET && job.attempt.0 > 0;
    let started = if has_run { nanos(job.started_at) } else { completed };
    maker.add(QUEUE, of_whole, "queue".to_owned(), (created, started));
    if has_run {
        attempt(&mut maker, of_whole, (started, completed));
    }
    maker.spans
}

/// The last attempt, and what happened in it.
fn attempt(maker: &mut Maker<'_>, of_whole: SpanId, (started, completed): (u64, u64)) {
    let job = maker.job;
    let attempt = maker.add(ATTEMPT, of_whole, format!("attempt {}", job.attempt), (started, completed));
    attempt.attributes = vec![count("atlas.job.attempt", job.attempt.0.into()), flag("atlas.slot.warm", job.warm)];
    attempt.attributes.extend(job.node.as_ref().map(|node| word("atlas.node.id", node.as_str())));
    attempt.status = status(job);
    let of_attempt = span_id(job.id, ATTEMPT);
    let warm_until = started.saturating_add(job.warmup.0.saturating_mul(1_000)).min(completed);
    if !job.warm && job.warmup.0 > 0 {
        maker.add(WARM_UP, of_attempt, "warm-up".to_owned(), (started, warm_until));
    }
    if job.execution.0 == 0 {
        return;
    }
    let begun = if job.warm { started } else { warm_until };
    let ended = begun.saturating_add(job.execution.0.saturating_mul(1_000)).min(completed);
    let execute = maker.add(EXECUTE, of_attempt, format!("execute {}", job.agent), (begun, ended));
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
        let span = maker.add(STEP + number, of_execution, name, (at, end));
        span.span_kind = kind;
        span.attributes = attributes;
        span.attributes.push(count("atlas.step.number", *number));
        at = end;
    }
}

/// The name, kind and attributes of a step, by the conventions for generative AI. Contents are left out.
fn told(step: &Step) -> (String, SpanKind, Vec<KeyValue>) {
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

fn about(job: &Job) -> Vec<KeyValue> {
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
fn status(job: &Job) -> Status {
    job.failure.as_ref().map_or(Status::Unset, |failure| Status::error(failure.kind.as_str()))
}

/// Links to the parent that spawned the job, and to the first job of its family.
fn links(job: &Job, trace_id: TraceId) -> Vec<Link> {
    let spawned = job.spawned.map(|spawned| (spawned.by, EXECUTE, "parent"));
    let original = job.original.map(|first| (first, WHOLE, "original"));
    let link = |(id, part, role): (JobId, u64, &str)| {
        let attributes = vec![word("atlas.link", role), word("atlas.job.id", &id.to_string())];
        Link::new(context(trace_id, span_id(id, part)), attributes, 0)
    };
    spawned.into_iter().chain(original).map(link).collect()
}

/// The span of a run of a chain that has ended. The jobs of its steps are below it.
pub fn run_spans(run: &Run) -> Vec<SpanData> {
    let id = JobId(run.id.0);
    let trace_id = run.trace.map_or_else(|| own_trace(id), |context| TraceId::from(context.trace_id));
    let parent = run.trace.map_or(SpanId::INVALID, caller);
    let times = (nanos(run.created_at), nanos(run.completed_at));
    let mut whole = span(context(trace_id, span_id(id, RUN)), parent, format!("chain {}", run.chain), times);
    whole.span_kind = SpanKind::Consumer;
    whole.attributes = vec![
        word("atlas.run.id", &run.id.to_string()),
        word("atlas.namespace", run.namespace.as_str()),
        word("atlas.chain.name", &run.chain),
        word("atlas.run.status", run.status.as_str()),
        count("atlas.run.steps", run.steps.len() as u64),
    ];
    if !run.error().is_empty() {
        whole.status = Status::error("");
    }
    vec![whole]
}

/// A time in nanoseconds since 1970.
fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0).saturating_mul(1_000)
}
