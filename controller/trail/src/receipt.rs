//! Receipts of jobs ([ADR 56](../../../docs/adr/0056-receipts.md)): what the replicated state and the journal say about a job that has
//! ended, as a chain of entries. Only replicated data is in it, so every controller makes the same one.

use std::sync::Arc;

use atlas_artifacts::digest_of;
use atlas_audit::Receipt;
use atlas_desk::{Attempted, Caller, Consistency, Desk, Error};
use atlas_format::decode_steps;
use atlas_state::State;
use atlas_types::{
    Answered, Digest, Evidence, Granted, Job, JobId, Journal, Payload, PayloadBody, PolicyRef, Step, Timestamp,
};
use serde_json::{Value, json};

/// The form of receipts.
const FORM: u64 = 1;
/// Most steps that a receipt lists one by one. Older ones are named by the artifacts that hold them.
const STEPS_MAX: u64 = 8_192;

/// The receipt of a job that has ended. Where an audit is kept, a record in it says which one was given to whom.
pub async fn receipt(desk: &Desk, caller: &Caller, id: JobId, consistency: Consistency) -> Result<Receipt, Error> {
    let state = desk.state(consistency).await?;
    let job = desk.job_in(caller, &state, id).await?;
    if !job.status.is_terminal() {
        return Err(Error::WrongStatus { status: job.status });
    }
    let receipt = receipt_of(desk, &state, &job).await?;
    let object = format!("job/{id} receipt {}", receipt.head());
    // A read is answered whether or not it can be recorded.
    let _ = desk.audit.done(caller, Attempted { verb: "getReceipt", object: &object }).await;
    Ok(receipt)
}

async fn receipt_of(desk: &Desk, state: &State, job: &Job) -> Result<Receipt, Error> {
    let mut receipt = Receipt::default();
    let mut add = |kind: &str, about: Value| {
        let Value::Object(about) = about else { return };
        receipt.add(kind, about.into_iter().filter(|(_, value)| !value.is_null()).collect());
    };
    add(
        "job",
        json!({
            "receipt": FORM,
            "cluster": format!("{:032x}", desk.handle.cluster_id()),
            "job": job.id.to_string(),
            "namespace": job.namespace.as_str(),
        }),
    );
    add("submission", submission(job));
    add("agent", agent(state, job));
    let evidence = job.evidence.as_deref().cloned().unwrap_or_default();
    let Evidence { policies, grants, answers } = &evidence;
    policies.iter().for_each(|found| add("policy", policy(found)));
    if let Some(route) = &job.route {
        add(
            "route",
            json!({
                "action": route.action.as_str(),
                "decider": route.decider.as_str(),
                "selection": route.generation.0,
                "rule": route.rule.as_deref(),
                "asked_agent": route.asked.as_str(),
                "asked_package": route.asked_pin.as_ref().map(|pin| pin.digest.to_string()),
            }),
        );
    }
    grants.iter().for_each(|found| add("attempt", granted(found)));
    answers.iter().for_each(|found| add("question", answered(found)));
    let journal = state.journal(job.id).or(job.journal.as_ref()).cloned().unwrap_or_default();
    for (kind, about) in journal_entries(desk, &journal).await? {
        add(kind, about);
    }
    add("end", end(job, &journal));
    Ok(receipt)
}

/// The steps of a journal, or the artifacts that hold the oldest of them if there are too many.
async fn journal_entries(desk: &Desk, journal: &Journal) -> Result<Vec<(&'static str, Value)>, Error> {
    let (mut entries, mut from) = (Vec::new(), 0);
    for fold in &journal.folds {
        if journal.next() - from > STEPS_MAX {
            let (digest, bytes) = content(&fold.artifact);
            entries.push((
                "steps",
                json!({ "from": from, "upto": fold.upto, "artifact": digest.to_string(), "bytes": bytes }),
            ));
        } else {
            let folded = decode_steps(&desk.bytes(&fold.artifact).await?);
            let folded = folded.map_err(|error| Error::internal("read folded steps", &error))?;
            entries.extend((from..fold.upto).zip(&folded).map(step));
        }
        from = fold.upto;
    }
    entries.extend((from..).zip(&journal.steps).map(step));
    Ok(entries)
}

fn submission(job: &Job) -> Value {
    let (input, bytes) = content(&job.input);
    json!({
        "principal": job.principal.as_str(),
        "on_behalf_of": job.spawned.map(|spawned| spawned.by.to_string()),
        "run": job.step.map(|step| step.run.to_string()),
        "door": job.door.as_str(),
        "request_id": job.request_id.as_ref().map(|id| id.as_str()),
        "at_us": job.created_at.0,
        "log": job.submitted_seq.0,
        "priority": job.priority,
        "retry_of": job.original.map(|id| id.to_string()),
        "retry_count": job.retry_count,
        "forked_from": job.fork.as_ref().map(|fork| fork.from.to_string()),
        "fork_steps": job.fork.as_ref().map(|fork| fork.steps),
        "budget_nanodollars": job.budget_nanodollars,
        "input": input.to_string(),
        "input_bytes": bytes,
    })
}

/// The contract is in the package, whose digest names both; the digest of the contract is there as long as the version is registered.
fn agent(state: &State, job: &Job) -> Value {
    let pin = job.pin.as_ref();
    let version = pin.and_then(|pin| state.agent(&job.namespace, &job.agent, pin.version));
    let version = version.filter(|version| pin.is_some_and(|pin| pin.digest == version.digest));
    json!({
        "name": job.agent.as_str(),
        "version": pin.map(|pin| pin.version.to_string()),
        "package": pin.map(|pin| pin.digest.to_string()),
        "contract": version.map(|version| content(&version.contract).0.to_string()),
    })
}

fn policy(policy: &PolicyRef) -> Value {
    json!({ "name": policy.name.as_str(), "revision": policy.revision.0, "spec": policy.digest.to_string() })
}

fn granted(granted: &Granted) -> Value {
    json!({ "attempt": granted.attempt.0, "node": granted.node.as_str(), "at_us": granted.at.0 })
}

fn answered(answered: &Answered) -> Value {
    json!({
        "question": answered.question.to_string(),
        "step": answered.step,
        "how": answered.how.as_str(),
        "by": answered.by.as_ref().map(|by| by.as_str()),
        "at_us": answered.at.0,
    })
}

fn step((number, step): (u64, &Arc<Step>)) -> (&'static str, Value) {
    let (outcome, bytes) = content(&step.outcome);
    let about = json!({
        "step": number,
        "what": step.kind.as_str(),
        "asked": step.key.to_string(),
        "outcome": outcome.to_string(),
        "outcome_bytes": bytes,
        "duration_us": step.usage.duration.0,
        "tokens_input": step.usage.tokens_input,
        "tokens_output": step.usage.tokens_output,
        "cost_nanodollars": step.usage.cost_nanodollars,
    });
    ("step", about)
}

fn end(job: &Job, journal: &Journal) -> Value {
    let usage = journal.usage();
    let (output, log) = (job.output.as_ref().map(content), job.stream.as_deref().map(content));
    let started = Some(job.started_at).filter(|at| *at != Timestamp::NOT_YET);
    json!({
        "status": job.status.as_str(),
        "failure": job.failure.as_ref().map(|failure| failure.kind.as_str()),
        "error": job.failure.as_ref().map(|failure| digest_of(failure.error.as_bytes()).to_string()),
        "output": output.map(|(digest, _)| digest.to_string()),
        "output_bytes": output.map(|(_, bytes)| bytes),
        "output_log": log.map(|(digest, _)| digest.to_string()),
        "attempts": job.attempt.0,
        "parked": job.parks,
        "node": job.node.as_ref().map(|node| node.as_str()),
        "started_at_us": started.map(|at| at.0),
        "ended_at_us": job.completed_at.0,
        "execution_us": job.execution.0,
        "steps": journal.next(),
        "tokens_input": usage.tokens_input,
        "tokens_output": usage.tokens_output,
        "cost_nanodollars": usage.cost_nanodollars,
    })
}

/// The SHA-256 of a payload, and its size.
fn content(payload: &Payload) -> (Digest, u64) {
    match &payload.body {
        PayloadBody::Inline(bytes) => (digest_of(bytes), bytes.len() as u64),
        PayloadBody::Artifact { digest, size_bytes } => (*digest, *size_bytes),
    }
}
