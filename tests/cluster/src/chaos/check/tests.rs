//! Each check gets evidence that it must refuse, and all checks get evidence that they must accept.

use serde_json::json;

use super::*;
use crate::chaos::effects::Deeds;
use crate::chaos::journal::Refusal;

const AT: [Duration; 5] = [
    Duration::from_secs(0),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(3),
    Duration::from_secs(4),
];

fn entry(from: usize, call: Call, outcome: Outcome<Answer>) -> Entry {
    Entry { client: 0, controller: 0, begun: AT[from], ended: AT[from + 1], call, outcome }
}

fn submit(id: &str) -> Entry {
    let call = Call::Submit { key: "k".to_owned(), agent: "again" };
    entry(0, call, Outcome::Done(Answer::Job(id.to_owned())))
}

fn reading(from: usize, outcome: Outcome<Answer>) -> Entry {
    entry(from, Call::Read { job: "job-0a".to_owned(), stale: false }, outcome)
}

fn saw(status: Status, attempt: u64) -> Outcome<Answer> {
    Outcome::Done(Answer::Seen(Seen { status, attempt, digest: None }))
}

fn job() -> Value {
    json!({
        "id": "job-0a", "agent_name": "again", "status": "completed", "attempt": 2, "request_id": "k",
        "output_data": {"job": "job-0a", "attempt": 2},
    })
}

fn change(seq: u64, old: &str, new: &str, attempt: u64) -> Change {
    let [job, old, new] = ["job-0a", old, new].map(str::to_owned);
    Change { seq, job, change: String::new(), old, new, attempt }
}

fn survey(name: &str) -> Survey {
    let events = vec![
        change(1, "pending", "pending", 0),
        change(2, "pending", "running", 1),
        change(4, "running", "pending", 1),
        change(5, "pending", "running", 2),
        change(9, "running", "completed", 2),
    ];
    Survey { name: name.to_owned(), jobs: BTreeMap::from([("job-0a".to_owned(), job())]), events }
}

/// A job that lost its first attempt and completed in its second.
fn good() -> Evidence {
    let deeds = Deeds { attempts: BTreeMap::from([(1, (1, false)), (2, (1, true))]), overlaps: Vec::new() };
    Evidence {
        entries: vec![submit("job-0a"), reading(1, saw(Status::Running, 1)), reading(2, saw(Status::Pending, 1))],
        deeds: BTreeMap::from([("job-0a".to_owned(), deeds)]),
        surveys: vec![survey("c1"), survey("c2")],
    }
}

/// The rules that are broken after a change to good evidence.
fn broken(spoil: impl FnOnce(&mut Evidence)) -> Vec<&'static str> {
    let mut evidence = good();
    spoil(&mut evidence);
    let mut rules: Vec<_> = check(&evidence).into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

fn at_both(evidence: &mut Evidence, spoil: impl Fn(&mut Survey)) {
    evidence.surveys.iter_mut().for_each(spoil);
}

#[test]
fn good_evidence_passes() {
    assert_eq!(check(&good()), []);
}

#[test]
fn a_lost_job_is_found() {
    let rules = broken(|evidence| {
        at_both(evidence, |survey| survey.jobs.clear());
        at_both(evidence, |survey| survey.events.clear());
        evidence.deeds.clear();
    });
    assert_eq!(rules, ["B.1"]);
}

#[test]
fn a_reader_that_misses_an_acknowledged_job_is_found() {
    let missed = || Outcome::Refused(Refusal { status: 404, code: "E3001".to_owned() });
    assert_eq!(broken(|evidence| evidence.entries.push(reading(3, missed()))), ["B.1", "linearizable"]);
    assert_eq!(broken(|evidence| evidence.entries.push(reading(0, missed()))), [""; 0]);
}

#[test]
fn two_jobs_of_one_key_are_found() {
    let rules = broken(|evidence| evidence.entries.push(submit("job-0c")));
    assert_eq!(rules, ["B.1", "B.2", "linearizable"]);
    let other = |survey: &mut Survey| {
        survey.jobs.insert("job-0b".to_owned(), json!({"request_id": "k", "status": "failed", "attempt": 0}));
        let told = Change { job: "job-0b".to_owned(), ..change(10, "pending", "failed", 0) };
        survey.events.push(told);
    };
    assert_eq!(broken(|evidence| at_both(evidence, other)), ["B.2"]);
}

#[test]
fn a_job_that_nobody_submitted_is_found() {
    let foreign = |survey: &mut Survey| {
        if let Some(job) = survey.jobs.get_mut("job-0a") {
            job["request_id"] = json!("nobody's");
        }
    };
    assert_eq!(broken(|evidence| at_both(evidence, foreign)), ["B.3"]);
}

#[test]
fn reads_that_go_back_are_found() {
    assert_eq!(broken(|evidence| evidence.entries.push(reading(3, saw(Status::Running, 1)))), ["B.29"]);
    // The read overlaps a read that saw a later state, so either may have been first.
    assert_eq!(broken(|evidence| evidence.entries.push(reading(2, saw(Status::Running, 1)))), [""; 0]);
}

#[test]
fn an_end_that_changes_is_found() {
    let ended = |digest| Outcome::Done(Answer::Seen(Seen { status: Status::Failed, attempt: 2, digest: Some(digest) }));
    assert_eq!(broken(|evidence| evidence.entries.push(reading(3, ended(1)))), ["B.4"]);
    let true_end = digest(&job());
    assert_eq!(broken(|evidence| evidence.entries.push(reading(3, ended(true_end)))), [""; 0]);
}

#[test]
fn a_cancel_that_did_not_win_is_found() {
    let cancel = entry(1, Call::Cancel { job: "job-0a".to_owned() }, Outcome::Done(Answer::Cancelled(true)));
    assert_eq!(broken(|evidence| evidence.entries.push(cancel)), ["B.9"]);
}

#[test]
fn controllers_that_differ_are_found() {
    assert_eq!(broken(|evidence| drop(evidence.surveys[1].events.pop())), ["B.32"]);
    let differ = |evidence: &mut Evidence| {
        if let Some(job) = evidence.surveys[1].jobs.get_mut("job-0a") {
            job["error"] = json!("another");
        }
    };
    assert_eq!(broken(differ), ["B.40"]);
}

#[test]
fn a_job_that_does_not_end_is_found_unless_a_person_must_decide() {
    let left = |reason: &'static str| {
        move |survey: &mut Survey| {
            if let Some(job) = survey.jobs.get_mut("job-0a") {
                job["status"] = json!("pending");
                job["reason"] = json!(reason);
            }
            survey.events.pop();
            survey.events.pop();
            survey.events.push(change(5, "pending", "pending", 2));
        }
    };
    assert_eq!(broken(|evidence| at_both(evidence, left("queued"))), ["B.6"]);
    assert_eq!(broken(|evidence| at_both(evidence, left("in_doubt"))), [""; 0]);
}

#[test]
fn a_result_of_another_attempt_is_found() {
    let other = |survey: &mut Survey| {
        if let Some(job) = survey.jobs.get_mut("job-0a") {
            job["output_data"]["attempt"] = json!(1);
        }
    };
    assert_eq!(broken(|evidence| at_both(evidence, other)), ["B.8"]);
    let unended = |evidence: &mut Evidence| {
        if let Some(deeds) = evidence.deeds.get_mut("job-0a") {
            deeds.attempts.insert(2, (1, false));
        }
    };
    assert_eq!(broken(unended), ["B.8"]);
}

#[test]
fn an_attempt_that_nobody_granted_is_found() {
    let unseen = |evidence: &mut Evidence| {
        if let Some(deeds) = evidence.deeds.get_mut("job-0a") {
            deeds.attempts.insert(3, (1, true));
        }
    };
    assert_eq!(broken(unseen), ["B.16"]);
}

#[test]
fn events_that_skip_or_go_on_after_the_end_are_found() {
    assert_eq!(broken(|evidence| at_both(evidence, |survey| drop(survey.events.remove(2)))), ["B.5"]);
    let after = |survey: &mut Survey| survey.events.push(change(11, "completed", "completed", 2));
    assert_eq!(broken(|evidence| at_both(evidence, after)), ["B.5"]);
    let twice = |survey: &mut Survey| survey.events[4].seq = 5;
    assert_eq!(broken(|evidence| at_both(evidence, twice)), ["B.32"]);
}

#[test]
fn double_starts_and_overlaps_are_found() {
    let spoil = |change: fn(&mut Deeds)| move |evidence: &mut Evidence| evidence.deeds.values_mut().for_each(change);
    let twice = |deeds: &mut Deeds| {
        deeds.attempts.insert(1, (2, false));
    };
    assert_eq!(broken(spoil(twice)), ["B.15"]);
    let overlap = |deeds: &mut Deeds| deeds.overlaps.push((1, 2));
    assert_eq!(broken(spoil(overlap)), ["B.18"]);
    let once = |survey: &mut Survey| {
        if let Some(job) = survey.jobs.get_mut("job-0a") {
            job["agent_name"] = json!("once");
        }
    };
    assert_eq!(broken(|evidence| at_both(evidence, once)), ["B.7"]);
}
