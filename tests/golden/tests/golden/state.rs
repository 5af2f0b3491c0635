//! Entries, outcomes, jobs and snapshots.

use atlas_format::{
    decode_entry, decode_job, decode_outcomes, decode_snapshot, decode_steps, encode_entry, encode_job,
    encode_outcomes, encode_snapshot, encode_steps,
};
use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{AgentName, Job, JobId, Namespace, Origin, Parked, Payload, Request};

use crate::files::{Golden, check, text};
use crate::samples;

#[test]
fn entries_read_and_write_as_ever() {
    let golden = |(name, command)| {
        let entry = samples::entry(Request { origin: samples::origin(), command });
        Golden { name, bytes: encode_entry(&entry), read: |bytes| text(decode_entry(bytes).expect("an entry")) }
    };
    let goldens: Vec<_> = samples::commands().into_iter().map(golden).collect();
    check("entries", &goldens);
}

#[test]
fn outcomes_read_and_write_as_ever() {
    let bytes = encode_outcomes(&samples::outcomes());
    let read = |bytes: &[u8]| text(decode_outcomes(bytes).expect("outcomes"));
    check("outcomes", &[Golden { name: "outcomes", bytes, read }]);
}

#[test]
fn jobs_read_and_write_as_ever() {
    let read = |bytes: &[u8]| text(decode_job(bytes).expect("a job"));
    let golden = |(name, job): &(&'static str, Job)| Golden { name, bytes: encode_job(job), read };
    check("jobs", &named_jobs().iter().map(golden).collect::<Vec<_>>());
}

/// What a program does not write, no sample shows.
#[test]
fn every_field_of_a_job_is_set_in_a_sample() {
    let other = Namespace::new("other").expect("a name");
    let agent = AgentName::new("other").expect("a name");
    let plain = fields(&Job::new(JobId(0), agent, Payload::inline(b"0"), &Origin::duty(other)));
    let samples: Vec<_> = named_jobs().iter().map(|(_, job)| fields(job)).collect();
    let unset = plain.iter().filter(|(name, value)| samples.iter().all(|sample| sample.get(*name) == Some(*value)));
    assert_eq!(unset.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [""; 0]);
}

/// The fields of a job as debuggers see them.
fn fields(job: &Job) -> BTreeMap<String, String> {
    let shown = format!("{job:#?}");
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in shown.lines() {
        // Lines of its own fields, not of those below.
        let own = line.strip_prefix("    ").filter(|line| !line.starts_with([' ', ')', '}', ']']));
        if let Some((name, value)) = own.and_then(|line| line.split_once(": ")) {
            last = name.to_owned();
            fields.insert(last.clone(), value.to_owned());
        } else if let Some(value) = fields.get_mut(&last) {
            value.push_str(line);
        }
    }
    fields
}

fn named_jobs() -> Vec<(&'static str, Job)> {
    let parked = samples::parked_job();
    let waits = Parked { token: samples::TOKEN, ..samples::parked() };
    let parked_lease = Job { parked: Some(Arc::new(waits)), ..parked.clone() };
    let jobs = samples::jobs()
        .into_iter()
        .chain([parked, parked_lease, samples::carried_job(), samples::step_job(), samples::job_with_evidence()])
        .chain([samples::job_with_approvals(), samples::job_with_wishes()]);
    let names = ["failed", "running", "parked", "parked_lease", "carried", "step", "evidence", "approvals", "wishes"];
    names.into_iter().zip(jobs).collect()
}

#[test]
fn snapshots_read_and_write_as_ever() {
    let mut bytes = Vec::new();
    encode_snapshot(&samples::image(), &mut bytes).expect("a vector takes everything");
    let read = |bytes: &[u8]| text(decode_snapshot(bytes).expect("a snapshot"));
    let mut journals = Vec::new();
    encode_snapshot(&samples::image_with_journals(), &mut journals).expect("a vector takes everything");
    let journals = Golden { name: "snapshot_journals", bytes: journals, read };
    let mut envelopes = Vec::new();
    encode_snapshot(&samples::image_with_envelopes(), &mut envelopes).expect("a vector takes everything");
    let envelopes = Golden { name: "snapshot_envelopes", bytes: envelopes, read };
    let mut inboxes = Vec::new();
    encode_snapshot(&samples::image_with_inboxes(), &mut inboxes).expect("a vector takes everything");
    let inboxes = Golden { name: "snapshot_inboxes", bytes: inboxes, read };
    let mut objects = Vec::new();
    encode_snapshot(&samples::image_with_objects(), &mut objects).expect("a vector takes everything");
    let objects = Golden { name: "snapshot_objects", bytes: objects, read };
    let mut runs = Vec::new();
    encode_snapshot(&samples::image_with_runs(), &mut runs).expect("a vector takes everything");
    let runs = Golden { name: "snapshot_runs", bytes: runs, read };
    let mut branches = Vec::new();
    encode_snapshot(&samples::image_with_branches(), &mut branches).expect("a vector takes everything");
    let branches = Golden { name: "snapshot_branches", bytes: branches, read };
    let mut buckets = Vec::new();
    encode_snapshot(&samples::image_with_buckets(), &mut buckets).expect("a vector takes everything");
    let buckets = Golden { name: "snapshot_buckets", bytes: buckets, read };
    let mut shares = Vec::new();
    encode_snapshot(&samples::image_with_shares(), &mut shares).expect("a vector takes everything");
    let shares = Golden { name: "snapshot_shares", bytes: shares, read };
    let mut circuits = Vec::new();
    encode_snapshot(&samples::image_with_circuits(), &mut circuits).expect("a vector takes everything");
    let circuits = Golden { name: "snapshot_circuits", bytes: circuits, read };
    let mut revisions = Vec::new();
    encode_snapshot(&samples::image_with_revisions(), &mut revisions).expect("a vector takes everything");
    let revisions = Golden { name: "snapshot_revisions", bytes: revisions, read };
    let mut questions = Vec::new();
    encode_snapshot(&samples::image_with_questions(), &mut questions).expect("a vector takes everything");
    let questions = Golden { name: "snapshot_questions", bytes: questions, read };
    let mut approvals = Vec::new();
    encode_snapshot(&samples::image_with_approvals(), &mut approvals).expect("a vector takes everything");
    let approvals = Golden { name: "snapshot_approvals", bytes: approvals, read };
    let first = Golden { name: "snapshot", bytes, read };
    let all = [
        first, journals, envelopes, inboxes, questions, objects, runs, branches, buckets, shares, circuits, revisions,
        approvals,
    ];
    check("snapshots", &all);
}

#[test]
fn folded_steps_read_and_write_as_ever() {
    let read = |bytes: &[u8]| text(decode_steps(bytes).expect("steps"));
    check("steps", &[Golden { name: "steps", bytes: encode_steps(&samples::journal().steps), read }]);
}
