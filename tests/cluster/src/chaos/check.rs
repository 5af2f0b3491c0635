//! The checks: compare the records of clients, the records of children and the state of the controllers.
//!
//! Each finding names the broken promise. The checks only read the evidence. Each check has a test with evidence that
//! violates it, because a check that never failed is not trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::effects::Deeds;
use super::history;
use super::journal::{Answer, Call, Entry, Outcome, Seen, Status};
use super::survey::{Change, Survey};
use super::workload::{KINDS, digest, seen};

/// All records that are compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    pub(crate) entries: Vec<Entry>,
    pub(crate) deeds: BTreeMap<String, Deeds>,
    pub(crate) surveys: Vec<Survey>,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The broken promise, by its id in docs/internals/promises.md.
    pub(crate) rule: &'static str,
    pub(crate) text: String,
}

/// Runs all checks; returns their findings.
pub(crate) fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut found = Vec::new();
    acknowledged_jobs_exist(evidence, &mut found);
    a_key_has_one_job(evidence, &mut found);
    reads_go_forward(evidence, &mut found);
    cancels_win(evidence, &mut found);
    controllers_agree(evidence, &mut found);
    if let Some(survey) = evidence.surveys.first() {
        everything_ended(survey, &mut found);
        results_belong_to_one_attempt(survey, &evidence.deeds, &mut found);
        nothing_ran_unseen(survey, &evidence.deeds, &mut found);
        events_tell_everything(survey, &mut found);
    }
    attempts_started_as_often_as_they_may(evidence, &mut found);
    if let Err(text) = history::check(evidence) {
        report(&mut found, "linearizable", text);
    }
    found
}

fn report(found: &mut Vec<Violation>, rule: &'static str, text: String) {
    found.push(Violation { rule, text });
}

/// The acknowledged jobs, with the calls that submitted them.
fn acknowledged(entries: &[Entry]) -> impl Iterator<Item = (&str, &str, &Entry)> {
    entries.iter().filter_map(|entry| match (&entry.call, &entry.outcome) {
        (Call::Submit { key, .. }, Outcome::Done(Answer::Job(id))) => Some((key.as_str(), id.as_str(), entry)),
        _ => None,
    })
}

/// B.1: every acknowledged job exists at every controller at the end, and for every read that begins after the
/// acknowledgement.
fn acknowledged_jobs_exist(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut since: BTreeMap<&str, Duration> = BTreeMap::new();
    for (_, id, entry) in acknowledged(&evidence.entries) {
        let first = since.entry(id).or_insert(entry.ended);
        *first = (*first).min(entry.ended);
    }
    for survey in &evidence.surveys {
        for id in since.keys().filter(|id| !survey.jobs.contains_key(**id)) {
            report(found, "B.1", format!("{id} was acknowledged, and {} does not have it", survey.name));
        }
    }
    for entry in &evidence.entries {
        let job = match &entry.call {
            Call::Read { job, stale: false } | Call::Wait { job } | Call::Cancel { job } => job,
            _ => continue,
        };
        let missed = matches!(&entry.outcome, Outcome::Refused(refusal) if refusal.status == 404);
        if missed && since.get(job.as_str()).is_some_and(|since| *since <= entry.begun) {
            let text =
                format!("{job} was acknowledged, and controller {} did not find it: {entry:?}", entry.controller);
            report(found, "B.1", text);
        }
    }
}

/// B.2 and B.3: each key has one job, even if its submission was repeated.
fn a_key_has_one_job(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut jobs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, id, _) in acknowledged(&evidence.entries) {
        jobs.entry(key).or_default().insert(id);
    }
    for survey in &evidence.surveys {
        for (id, job) in &survey.jobs {
            let key = job["request_id"].as_str().unwrap_or_default();
            jobs.entry(key).or_default().insert(id);
        }
    }
    let submitted: BTreeSet<&str> = evidence
        .entries
        .iter()
        .filter_map(|entry| match &entry.call {
            Call::Submit { key, .. } => Some(key.as_str()),
            _ => None,
        })
        .collect();
    for (key, ids) in jobs {
        if ids.len() > 1 {
            report(found, "B.2", format!("the key \"{key}\" has {} jobs: {ids:?}", ids.len()));
        }
        if !submitted.contains(key) {
            report(found, "B.3", format!("nobody submitted \"{key}\", and there is a job of it: {ids:?}"));
        }
    }
}

/// B.4, B.29 and B.30: a read that begins after the end of another read shows no earlier state, and the result of an
/// ended job does not change.
fn reads_go_forward(evidence: &Evidence, found: &mut Vec<Violation>) {
    let mut reads: BTreeMap<&str, Vec<(&Entry, &Seen, bool)>> = BTreeMap::new();
    for entry in &evidence.entries {
        let Outcome::Done(Answer::Seen(seen)) = &entry.outcome else { continue };
        let (job, stale) = match &entry.call {
            Call::Read { job, stale } => (job, *stale),
            Call::Wait { job } => (job, false),
            _ => continue,
        };
        reads.entry(job).or_default().push((entry, seen, stale));
    }
    for (job, mut reads) in reads {
        reads.sort_by_key(|(entry, ..)| entry.begun);
        // The ranks of the reads, sorted by the time of their end; `furthest` is the maximum over the reads that have
        // ended.
        let mut by_end: Vec<(Duration, u64)> =
            reads.iter().map(|(entry, seen, _)| (entry.ended, seen.rank())).collect();
        by_end.sort_unstable();
        let (mut next, mut furthest) = (0, 0);
        for (entry, seen, stale) in &reads {
            while next < by_end.len() && by_end[next].0 <= entry.begun {
                furthest = furthest.max(by_end[next].1);
                next += 1;
            }
            if !stale && seen.rank() < furthest {
                let text = format!("{job} was {seen:?} for {entry:?}, after a read had shown a later state");
                report(found, "B.29", text);
            }
        }
        let ends: BTreeSet<u64> = reads.iter().filter_map(|(_, seen, _)| seen.digest).collect();
        let told = evidence.surveys.first().and_then(|survey| survey.jobs.get(job)).map(digest);
        if ends.len() > 1 || ends.iter().any(|end| told.is_some_and(|told| told != *end)) {
            report(found, "B.4", format!("the end of {job} was read in {} forms, and is told as {told:?}", ends.len()));
        }
    }
}

/// B.9: after an accepted cancel, the job is cancelled.
fn cancels_win(evidence: &Evidence, found: &mut Vec<Violation>) {
    for entry in &evidence.entries {
        let (Call::Cancel { job }, Outcome::Done(Answer::Cancelled(true))) = (&entry.call, &entry.outcome) else {
            continue;
        };
        for survey in &evidence.surveys {
            let status = survey.jobs.get(job).and_then(seen).map(|seen| seen.status);
            if status.is_some_and(|status| status != Status::Cancelled) {
                let text = format!("the cancel of {job} was taken, and at {} it is {status:?}", survey.name);
                report(found, "B.9", text);
            }
        }
    }
}

/// B.40 as clients see it: all controllers have the same jobs and events.
fn controllers_agree(evidence: &Evidence, found: &mut Vec<Violation>) {
    let Some((first, others)) = evidence.surveys.split_first() else { return };
    for other in others {
        let ids: BTreeSet<&String> = first.jobs.keys().chain(other.jobs.keys()).collect();
        for id in ids {
            let (here, there) = (first.jobs.get(id), other.jobs.get(id));
            if here != there {
                let text = format!("{id} differs between {} and {}: {here:?} {there:?}", first.name, other.name);
                report(found, "B.40", text);
            }
        }
        let (here, there) = (&first.events, &other.events);
        if here != there {
            let differ = here.iter().zip(there).find(|(here, there)| here != there);
            let text = format!(
                "{} tells {} events and {} tells {}; they differ first at {differ:?}",
                first.name,
                here.len(),
                other.name,
                there.len()
            );
            report(found, "B.32", text);
        }
    }
}

/// Liveness: after all faults are healed, every job ends, except those in doubt.
fn everything_ended(survey: &Survey, found: &mut Vec<Violation>) {
    for (id, job) in &survey.jobs {
        let ended = seen(job).is_some_and(|seen| seen.status.is_terminal());
        if !ended && job["reason"] != "in_doubt" {
            report(found, "B.6", format!("{id} has not ended though everything was healed: {job}"));
        }
    }
}

/// B.8: the output comes from the attempt that the job names, and that attempt ran to its end.
fn results_belong_to_one_attempt(survey: &Survey, deeds: &BTreeMap<String, Deeds>, found: &mut Vec<Violation>) {
    for (id, job) in survey.jobs.iter().filter(|(_, job)| job["status"] == "completed") {
        let (output, attempt) = (&job["output_data"], job["attempt"].as_u64().unwrap_or(0));
        if output["job"] != id.as_str() || output["attempt"].as_u64() != Some(attempt) {
            report(found, "B.8", format!("{id} completed in attempt {attempt} with another output: {job}"));
        }
        if deeds.get(id).and_then(|deeds| deeds.attempts.get(&attempt)) != Some(&(1, true)) {
            let text = format!("{id} completed in attempt {attempt}, which its child did not: {:?}", deeds.get(id));
            report(found, "B.8", text);
        }
    }
}

/// B.16: every child ran for a job and an attempt that the controllers know.
fn nothing_ran_unseen(survey: &Survey, deeds: &BTreeMap<String, Deeds>, found: &mut Vec<Violation>) {
    for (id, deeds) in deeds {
        let known = survey.jobs.get(id).and_then(|job| job["attempt"].as_u64());
        let latest = deeds.attempts.keys().next_back().copied().unwrap_or(0);
        if known.is_none_or(|known| known < latest) {
            report(found, "B.16", format!("attempt {latest} of {id} ran, and the controllers know of {known:?}"));
        }
    }
}

/// B.5 and B.32: event numbers grow, and each change of a job starts from the status of the previous change.
fn events_tell_everything(survey: &Survey, found: &mut Vec<Violation>) {
    let mut last: BTreeMap<&str, &Change> = BTreeMap::new();
    let mut seq = 0;
    for change in &survey.events {
        if change.seq <= seq {
            report(found, "B.32", format!("event {} came after {seq}", change.seq));
        }
        seq = change.seq;
        let before = last.insert(&change.job, change);
        let follows = before.is_none_or(|before| before.new == change.old && before.attempt <= change.attempt);
        let final_already = before.is_some_and(|before| is_terminal(&before.new));
        if !follows || final_already {
            report(found, "B.5", format!("{change:?} does not follow {before:?}"));
        }
    }
    for (id, job) in &survey.jobs {
        let told = last.get(id.as_str()).map(|change| change.new.as_str());
        if told != job["status"].as_str() {
            report(found, "B.32", format!("the events of {id} end with {told:?}, and it is {}", status_of(job)));
        }
    }
}

fn is_terminal(status: &str) -> bool {
    Status::parse(status).is_some_and(Status::is_terminal)
}

fn status_of(job: &Value) -> &str {
    job["status"].as_str().unwrap_or_default()
}

/// B.7, B.15 and B.18: a job with `effects: once` starts once, no attempt starts twice, and no two attempts of a job
/// run at the same time.
fn attempts_started_as_often_as_they_may(evidence: &Evidence, found: &mut Vec<Violation>) {
    let agents = evidence.surveys.first().map(|survey| &survey.jobs);
    for (id, deeds) in &evidence.deeds {
        for (attempt, _) in deeds.attempts.iter().filter(|(_, (starts, _))| *starts > 1) {
            report(found, "B.15", format!("attempt {attempt} of {id} started more than once: {deeds:?}"));
        }
        let agent = agents.and_then(|jobs| jobs.get(id)).and_then(|job| job["agent_name"].as_str());
        let kind = KINDS.iter().find(|kind| Some(kind.name) == agent);
        if kind.is_some_and(|kind| deeds.starts() > kind.starts_max) {
            report(found, "B.7", format!("{id} of agent {agent:?} started {} times: {deeds:?}", deeds.starts()));
        }
        if !deeds.overlaps.is_empty() {
            report(found, "B.18", format!("attempts of {id} lived at the same time: {:?}", deeds.overlaps));
        }
    }
}

#[cfg(test)]
mod tests;
