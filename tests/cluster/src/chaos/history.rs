//! Converts the journal to histories of jobs, for the linearizability checker.

use std::collections::BTreeMap;

use atlas_linearizability as lin;
use atlas_linearizability::{Job, JobInput, JobOutput, Keyed, Operation};

use super::check::Evidence;
use super::journal::{Answer, Call, Entry, Outcome, Status};

/// Checks the calls on every key; returns the number of keys that were too hard to decide. An error describes a history
/// that is not linearizable.
pub(crate) fn check(evidence: &Evidence) -> Result<usize, String> {
    lin::check_keys(&Job { retention: false }, &histories(evidence))
}

fn histories(evidence: &Evidence) -> Keyed<String, Job> {
    let keys = keys(evidence);
    let mut histories = Keyed::default();
    for entry in &evidence.entries {
        let (key, input) = match &entry.call {
            Call::Submit { key, .. } => (Some(key), JobInput::Submit),
            // A stale read is not linearizable; it only promises that its client never reads an earlier state.
            Call::Read { stale: true, .. } => continue,
            Call::Read { job, .. } | Call::Wait { job } => (keys.get(job), JobInput::Read),
            Call::Cancel { job } => (keys.get(job), JobInput::Cancel),
        };
        if let Some((key, operation)) = key.zip(operation(entry, input)) {
            histories.push(key.clone(), operation);
        }
    }
    histories
}

/// The keys of jobs, from the surveys and from acknowledgements.
fn keys(evidence: &Evidence) -> BTreeMap<String, String> {
    let told = evidence.surveys.iter().flat_map(|survey| &survey.jobs).filter_map(|(id, job)| {
        let key = job["request_id"].as_str()?;
        Some((id.clone(), key.to_owned()))
    });
    let acknowledged = evidence.entries.iter().filter_map(|entry| match (&entry.call, &entry.outcome) {
        (Call::Submit { key, .. }, Outcome::Done(Answer::Job(id))) => Some((id.clone(), key.clone())),
        _ => None,
    });
    told.chain(acknowledged).collect()
}

/// The operation of a call; none if it had no effect and no answer.
fn operation(entry: &Entry, input: JobInput) -> Option<Operation<JobInput, JobOutput>> {
    let (client, called) = (entry.client as u64, entry.begun.as_micros() as u64);
    let output = match &entry.outcome {
        Outcome::Unknown(_) if input == JobInput::Read => return None,
        Outcome::Unknown(_) => return Some(Operation::unknown(client, called, input)),
        Outcome::Refused(refusal) if refusal.status == 404 && input != JobInput::Submit => JobOutput::Absent,
        Outcome::Refused(_) => return None,
        Outcome::Done(Answer::Job(id)) => JobOutput::Submitted(number(id)),
        Outcome::Done(Answer::Seen(seen)) => JobOutput::Found(status(seen.status)),
        Outcome::Done(Answer::Cancelled(taken)) => JobOutput::Cancelled(*taken),
    };
    Some(Operation::answered(client, called, input, entry.ended.as_micros() as u64, output))
}

/// The number in a job id, which is `job-` and 16 hexadecimal digits.
fn number(id: &str) -> u64 {
    let digits = id.strip_prefix("job-").unwrap_or(id);
    u64::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("no id of a job: {id:?}"))
}

fn status(status: Status) -> lin::Status {
    match status {
        Status::Pending => lin::Status::Pending,
        Status::Running => lin::Status::Running,
        Status::Completed => lin::Status::Completed,
        Status::Failed => lin::Status::Failed,
        Status::Cancelled => lin::Status::Cancelled,
    }
}
