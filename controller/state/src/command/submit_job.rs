//! Submits a job. What the door resolved is checked again; a job that the door found to be wrong is recorded and fails at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{
    ASK_BYTES_MAX, AgentName, AgentPin, AgentVersion, ApprovalAsk, ClusterTime, Evidence, Failure, JOB_APPROVALS_MAX,
    Job, JobId, Micros, Origin, Outcome, POLICIES_MAX, Payload, PolicyRef, Reason, Rejection, Run, RunSpec, SpawnedBy,
    StepOf, SubmitJob, Timestamp, Verdict, label_bytes,
};

use super::{check_bytes, check_labels, check_limit, check_namespace, check_size, route_job, spawn};
use crate::change::Change;
use crate::state::State;

/// A job that may be recorded, and the failure with which it ends at once.
pub(super) struct Checked {
    job: Job,
    failure: Option<Failure>,
    /// The approvals that it asks for first.
    asks: Vec<ApprovalAsk>,
}

pub(super) fn apply(command: &SubmitJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let checked = check(command, change, None)?;
    record(change, checked);
    Ok(Outcome::Submitted { job: command.id, repeated: false })
}

/// Checks the job of a step. Its version was pinned when the run began, and may be retired since.
pub(super) fn check_step(command: &SubmitJob, change: &Change<'_>, step: StepOf) -> Result<Checked, Rejection> {
    check(command, change, Some(step))
}

/// The job of a step acts for whoever started the run.
pub(super) fn of_run(checked: Checked, run: &Run) -> Checked {
    let Checked { job, failure, asks } = checked;
    let (principal, door, trace) = (run.principal.clone(), run.door, run.trace);
    Checked { job: Job { principal, door, trace, request_id: None, ..job }, failure, asks }
}

/// Records a job.
pub(super) fn record(change: &mut Change<'_>, checked: Checked) {
    let Checked { job, failure, asks } = checked;
    if waits_for_route(change.state, &job) {
        let job = route_job::new_route(change.state, job, failure, change.clock);
        change.submit(job);
        return;
    }
    let id = job.id;
    change.submit(job);
    if let Some(failure) = failure
        && let Ok(job) = change.job(id)
    {
        let job = (**job).clone();
        change.fail_without_run(job, failure);
    }
    ask(change, id, &asks);
}

/// Asks for the approvals of a job that was recorded.
pub(super) fn ask(change: &mut Change<'_>, id: JobId, asks: &[ApprovalAsk]) {
    if asks.is_empty() {
        return;
    }
    if let Some(job) = change.state.jobs.get(id).cloned() {
        change.ask_approvals(&job, asks);
    }
}

fn check(command: &SubmitJob, change: &Change<'_>, step: Option<StepOf>) -> Result<Checked, Rejection> {
    let context_bytes = command.context.as_ref().map_or(0, Payload::inline_bytes);
    let payload_bytes = command.input.inline_bytes();
    check_size(payload_bytes)?;
    check_size(context_bytes)?;
    check_size(command.metadata.len() as u64)?;
    check_labels(change.state, command.labels.iter())?;
    check_policies(command)?;
    let title_bytes = check_title(command)?;
    check_id(change, command.id)?;
    // A run was admitted with its steps: if these had to wait for room, carried jobs alone could fill the queue.
    if step.is_none() && !matches!(command.spawner, Some(SpawnedBy::Run { .. })) {
        check_queue(change, &command.input)?;
    }
    let asks = asks(&command.verdict)?;
    let asked_bytes: u64 = asks.iter().map(|ask| ask.ask.bytes()).sum();
    let bytes = payload_bytes + context_bytes + asked_bytes + title_bytes + command.metadata.len() as u64;
    check_room(change, bytes, &command.labels)?;
    let spawned = command.spawner.map(|spawner| spawn::permitted(change, spawner)).transpose()?;
    let (pin, version, failure) = match &command.verdict {
        Verdict::Accepted(pin) | Verdict::Asked { pin, .. } => {
            let version = pinned(change, &command.agent, pin, step.is_some()).ok_or(Rejection::StaleAgent)?;
            // A run takes no hardware for the jobs that it carries.
            if let Some(spawned) = spawned.filter(|_| !version.spec.carried) {
                spawn::check_hardware(change, spawned.by, &version.spec.demand)?;
            }
            (Some(pin.clone()), Some(version), None)
        }
        Verdict::Refused { pin, failure } => {
            let version = pin.as_ref().and_then(|pin| pinned(change, &command.agent, pin, false));
            (pin.clone(), version, Some(failure.clone()))
        }
    };

    let context = command.context.clone().filter(|_| step.is_some()).map(Box::new);
    let spec = version.map(|version| Arc::clone(&version.spec));
    let mut job = Job { spawned, step, context, ..new_job(command, change, pin, spec) };
    job.share(version.map(|version| &**version));
    if !asks.is_empty() {
        job = change.unapproved(job, asks, command.not_before);
    }
    Ok(Checked { job, failure, asks: asks.to_vec() })
}

/// The approvals that a verdict demands, which are few and small.
pub(super) fn asks(verdict: &Verdict) -> Result<&[ApprovalAsk], Rejection> {
    let Verdict::Asked { asks, .. } = verdict else { return Ok(&[]) };
    let too_large = |bytes| Err(Rejection::PayloadTooLarge { bytes });
    if asks.is_empty() || asks.len() > JOB_APPROVALS_MAX {
        // No door sends so many; their bytes, which are the same on every member.
        return too_large(asks.iter().map(|ask| ask.ask.bytes()).sum());
    }
    match asks.iter().map(|ask| ask.ask.bytes()).find(|bytes| *bytes > ASK_BYTES_MAX) {
        Some(bytes) => too_large(bytes),
        None => Ok(asks),
    }
}

/// Whether an orchestrator other than the default one decides on a new job first. One for later is decided on when its time has come.
fn waits_for_route(state: &State, job: &Job) -> bool {
    job.reason == Reason::Queued && state.needs_route(job)
}

/// Refuses a job whose id is taken.
pub(super) fn check_id(change: &Change<'_>, id: JobId) -> Result<(), Rejection> {
    if change.state.jobs.contains(id) { Err(Rejection::DuplicateJob { job: id }) } else { Ok(()) }
}

/// Refuses a job that the queue has no room for.
pub(super) fn check_queue(change: &Change<'_>, input: &Payload) -> Result<(), Rejection> {
    let state = &*change.state;
    if state.active() >= state.config.jobs_active_max {
        return Err(Rejection::QueueFull { active: state.active() });
    }
    let namespace = &change.origin.namespace;
    let Some(limits) = state.limits_of(namespace) else { return Ok(()) };
    check_namespace("pending jobs", state.pending_of(namespace), limits.jobs_pending_max)?;
    let bytes = state.input_bytes_of(namespace).saturating_add(input.bytes());
    match limits.jobs_bytes_max {
        Some(limit) if bytes > limit => Err(Rejection::NamespaceLimit { what: "bytes of inputs", limit }),
        _ => Ok(()),
    }
}

/// Refuses a job that the bounds of the state have no room for.
pub(super) fn check_room(change: &Change<'_>, bytes: u64, labels: &BTreeMap<String, String>) -> Result<(), Rejection> {
    check_limit("jobs", change.state.jobs_total(), change.state.config.jobs_total_max)?;
    check_bytes(change.state, bytes, label_bytes(labels))
}

/// The pinned version, while it is registered with that package, and in service or `retired` is allowed.
pub(super) fn pinned<'c>(
    change: &'c Change<'_>,
    agent: &AgentName,
    pin: &AgentPin,
    retired: bool,
) -> Option<&'c Arc<AgentVersion>> {
    let found = change.state.agent(&change.origin.namespace, agent, pin.version)?;
    (found.digest == pin.digest && (retired || !found.retired)).then_some(found)
}

/// A job for later waits for as long as there is left by the wall clock; how long that is the cluster's own clock measures.
fn reason(command: &SubmitJob, at: Timestamp, clock: ClusterTime) -> Reason {
    let left = command.not_before.map_or(0, |time| time.0.saturating_sub(at.0));
    match u64::try_from(left) {
        Ok(left @ 1..) => Reason::Delayed { until: clock.plus(Micros(left)) },
        _ => Reason::Queued,
    }
}

/// Doors send no more policies than a job keeps.
fn check_policies(command: &SubmitJob) -> Result<(), Rejection> {
    let count = command.policies.len();
    let bytes = (count * size_of::<PolicyRef>()) as u64;
    if count > POLICIES_MAX { Err(Rejection::PayloadTooLarge { bytes }) } else { Ok(()) }
}

/// Doors refuse longer titles. The bytes of a short one.
fn check_title(command: &SubmitJob) -> Result<u64, Rejection> {
    let Some(title) = &command.title else { return Ok(0) };
    let bytes = title.len() as u64;
    if title.chars().count() > SubmitJob::TITLE_MAX { Err(Rejection::PayloadTooLarge { bytes }) } else { Ok(bytes) }
}

/// What its receipt says from the beginning.
fn evidence(command: &SubmitJob) -> Option<Arc<Evidence>> {
    let policies = command.policies.clone();
    (!policies.is_empty()).then(|| Arc::new(Evidence { policies, ..Evidence::default() }))
}

pub(super) fn new_job(
    command: &SubmitJob,
    change: &Change<'_>,
    pin: Option<AgentPin>,
    spec: Option<Arc<RunSpec>>,
) -> Job {
    Job { pin, spec, ..submitted(command, change.origin, change.at, change.clock) }
}

/// A job as its submission makes it, without a version.
pub fn submitted(command: &SubmitJob, origin: &Origin, at: Timestamp, clock: ClusterTime) -> Job {
    // Each field by its name: one that is forgotten does not compile.
    let SubmitJob {
        id,
        agent,
        // They say whether and when it runs.
        verdict: _,
        spawner: _,
        not_before: _,
        // Only a step has it.
        context: _,
        input,
        priority,
        metadata,
        labels,
        execution_timeout,
        bearer,
        budget_nanodollars,
        questions,
        policies: _,
        waits_for_node,
        title,
    } = command;
    Job {
        reason: reason(command, at, clock),
        priority: *priority,
        created_at: at,
        queued_at: clock,
        metadata: Arc::clone(metadata),
        labels: Arc::clone(labels),
        execution_timeout: *execution_timeout,
        bearer: *bearer,
        budget_nanodollars: *budget_nanodollars,
        questions: questions.clone(),
        evidence: evidence(command),
        waits_for_node: *waits_for_node,
        title: title.clone(),
        ..Job::new(*id, agent.clone(), input.clone(), origin)
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::{
        ClusterTime, Command, LABEL_BYTES_MAX, LABELS_MAX, Namespace, Origin, Rejection, Request, SubmitJob, Timestamp,
    };
    use expect_test::expect;

    use crate::State;
    use crate::tests::check;

    #[test]
    fn a_title_is_kept_if_it_is_short() {
        let (origin, at, clock) = (Origin::duty(Namespace::default_namespace()), Timestamp(1), ClusterTime(1));
        let titled = |title: &str| SubmitJob { title: Some(title.into()), ..atlas_kit::job(1).submission() };
        let job = super::submitted(&titled("weekly report"), &origin, at, clock);
        assert_eq!(job.title.as_deref(), Some("weekly report"));
        assert_eq!(job.inline_bytes(), 2 + 2 + 13);
        assert_eq!(job.without_payloads().title, None);
        let command = Command::SubmitJob(titled(&"é".repeat(SubmitJob::TITLE_MAX + 1)));
        let (outcome, _) = State::new(1).apply(&Request { origin, command }, at, clock);
        assert_eq!(outcome, Err(Rejection::PayloadTooLarge { bytes: 402 }));
    }

    #[test]
    fn a_job_waits_in_the_queue() {
        check(
            "agent a -- job j1; show j1",
            expect![[r#"
            j1 Submitted pending→pending Queued
            j1: pending Queued attempt 0
        "#]],
        );
    }

    #[test]
    fn a_job_with_a_bearer_is_not_retried_by_itself() {
        check(
            "agent a retries=3; node n1; job j1 bearer=true; grant j1 n1 -- fail j1; retry j1 j2",
            expect![[r#"
            j1 Ended running→failed Agent: boom
            j2 Submitted pending→pending Queued
        "#]],
        );
    }

    #[test]
    fn a_job_that_the_door_found_wrong_fails_in_the_same_entry() {
        check(
            "agent a retries=1 -- job j1 refused=input; job j2 refused=unknown; show j1",
            expect![[r#"
            j1 Submitted pending→pending Queued
            j1 Granted pending→running without a lease
            j1 Ended running→failed Agent: boom
            j1'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
            j2 Submitted pending→pending Queued
            j2 Granted pending→running without a lease
            j2 Ended running→failed Agent: boom
            j1: failed attempt 0
        "#]],
        );
    }

    #[test]
    fn a_version_that_changed_meanwhile_is_refused() {
        check(
            "agent a -- job j1 agent=b; job j1 version=2.0.0; job j1 digest=2; job j1 ns=other; retire a; job j1",
            expect![[r#"
                ! the agent version is no longer registered with this package
                ! the agent version is no longer registered with this package
                ! the agent version is no longer registered with this package
                ! the agent version is no longer registered with this package
                agent a 1.0.0 retired
                ! the agent version is no longer registered with this package
            "#]],
        );
    }

    #[test]
    fn an_id_is_taken_once() {
        check(
            "agent a; job j1 -- job j1; cancel j1; job j1",
            expect![[r#"
            ! the id of j1 is taken
            j1 Ended pending→cancelled
            ! the id of j1 is taken
        "#]],
        );
    }

    #[test]
    fn a_full_queue_refuses_until_a_job_ends() {
        check(
            "agent a; config active=1; job j1 -- job j2; cancel j1; job j2",
            expect![[r#"
            ! Queue is full (1 jobs). Wait for jobs to complete or increase max_size.
            j1 Ended pending→cancelled
            j2 Submitted pending→pending Queued
        "#]],
        );
    }

    #[test]
    fn a_namespace_bounds_its_pending_jobs() {
        check(
            r#"level 6; agent a; agent a ns=t; node n1; put namespace t {"jobs_pending_max":1}; job j1 ns=t --
            job j2 ns=t; job j3; grant j1 n1; job j2 ns=t; cancel j2 ns=t; retry j2 j4 ns=t; retry j2 j5 ns=t;
            put namespace t {}; retry j2 j5 ns=t"#,
            expect![[r#"
                ! the namespace's limit of 1 for pending jobs is reached
                j3 Submitted pending→pending Queued
                j1 Granted pending→running on n1 token 1 attempt 1
                j2 Submitted pending→pending Queued
                j2 Ended pending→cancelled
                j4 Submitted pending→pending Queued
                ! the namespace's limit of 1 for pending jobs is reached
                namespace t uid 4 revision 11 {}
                j5 Submitted pending→pending Queued
            "#]],
        );
    }

    #[test]
    fn a_namespace_bounds_the_bytes_of_its_inputs() {
        check(
            r#"level 6; agent a ns=t; node n1; put namespace t {"jobs_bytes_max":10}; job j1 ns=t input="12345" --
            job j2 ns=t input="12"; job j3 ns=t input="1"; cancel j3 ns=t; grant j1 n1; retry j3 j5 ns=t; job j2 ns=t input="1";
            complete j1; job j2 ns=t input="12345""#,
            expect![[r#"
                ! the namespace's limit of 10 for bytes of inputs is reached
                j3 Submitted pending→pending Queued
                j3 Ended pending→cancelled
                j1 Granted pending→running on n1 token 1 attempt 1
                j5 Submitted pending→pending Queued
                ! the namespace's limit of 10 for bytes of inputs is reached
                j1 Ended running→completed
                j2 Submitted pending→pending Queued
            "#]],
        );
    }

    #[test]
    fn bounds_of_the_state_refuse_more() {
        check(
            "agent a; config total=1; job j1; cancel j1 -- job j2; ack m1; prune; job j2",
            expect![[r#"
            ! the cluster's limit of 1 for jobs is reached
            = pruned 1
            j2 Submitted pending→pending Queued
        "#]],
        );
        check(
            "agent a contract=2; config bytes=8; job j1 -- job j2; cancel j1; ack m1; prune; job j2",
            expect![[r#"
            ! the cluster's limit of 8 for payload bytes is reached
            j1 Ended pending→cancelled
            = pruned 1
            j2 Submitted pending→pending Queued
        "#]],
        );
    }

    #[test]
    fn a_payload_that_must_be_an_artifact_is_refused() {
        check(
            "agent a -- job j1 bytes=65537; job j1 metadata=65537; job j1 bytes=65536",
            expect![[r#"
            ! a payload of 65537 bytes is too large to be inline
            ! a payload of 65537 bytes is too large to be inline
            j1 Submitted pending→pending Queued
        "#]],
        );
    }

    #[test]
    fn labels_count_against_the_bytes_of_the_state() {
        let label = "x".repeat(1_000);
        let script = format!(
            "agent a words={label}; config bytes=3000 -- job j1 labels=k:{label}; job j2 labels=k:{label}; job j2; retry j1 j3;
            cancel j1; retry j1 j3"
        );
        check(
            &format!("level 5; {script}"),
            expect![[r#"
                j1 Submitted pending→pending Queued
                ! the cluster's limit of 3000 for payload bytes is reached
                j2 Submitted pending→pending Queued
                ! the job is Pending
                j1 Ended pending→cancelled
                ! the cluster's limit of 3000 for payload bytes is reached
            "#]],
        );
        check(
            &script,
            expect![[r#"
                j1 Submitted pending→pending Queued
                j2 Submitted pending→pending Queued
                ! the id of j2 is taken
                ! the job is Pending
                j1 Ended pending→cancelled
                j3 Submitted pending→pending Queued
            "#]],
        );
    }

    #[test]
    fn labels_are_bounded_in_number_and_size() {
        let labels = |count: usize| (0..count).map(|n| format!("k{n}:v")).collect::<Vec<_>>().join(",");
        let (most, more, long) = (labels(LABELS_MAX), labels(LABELS_MAX + 1), "x".repeat(LABEL_BYTES_MAX + 1));
        check(
            &format!(
                "level 5; agent a -- job j1 labels={most}; job j2 labels={more}; job j2 labels=k:{long}; job j2 labels={long}:k"
            ),
            expect![[r#"
                j1 Submitted pending→pending Queued
                ! the cluster's limit of 64 for labels is reached
                ! a payload of 1025 bytes is too large to be inline
                ! a payload of 1025 bytes is too large to be inline
            "#]],
        );
    }
}
