//! Statements about triggers.

use atlas_objects::TriggerStatus;
use atlas_types::{EventSeq, FireTrigger, FiredBy, ObjectName, Observation, Timestamp, TriggerStart};

use super::{object_key, start_run, submit};
use crate::tests::script::{Run, Words};

/// `plan NAME TIME` sets the next time of a trigger, with `unfired=yes` from a status that was read before it fired.
pub(super) fn plan(run: &Run, words: &Words<'_>) -> Observation {
    let key = object_key("trigger", words.word(1));
    let found = run.state.object(&key).expect("a trigger");
    let mut status = if words.text("unfired").is_some() { TriggerStatus::default() } else { TriggerStatus::of(found) };
    status.armed = true;
    (status.planned_revision, status.next_fire) = (found.revision.0, words.word(2).parse().expect("a time"));
    let (uid, revision) = (found.uid, found.revision);
    Observation { key, uid, revision, status: status.document().expect("a status").into() }
}

/// `fire NAME JOB` fires a trigger as it is, for a job of the agent `a`, or with `chain=` for a run; `none` skips.
pub(super) fn fire(run: &Run, words: &Words<'_>) -> FireTrigger {
    let found = run.state.object(&object_key("trigger", words.word(1)));
    let started = Some(words.word(2)).filter(|name| *name != "none");
    FireTrigger {
        name: ObjectName::new(words.word(1)).expect("a name"),
        uid: found.map_or(EventSeq(0), |found| found.uid),
        revision: EventSeq(words.or("revision", found.map_or(0, |found| found.revision.0))),
        by: match words.text("by") {
            Some("request") => FiredBy::Request,
            Some("backfill") => FiredBy::Backfill,
            _ => FiredBy::Schedule,
        },
        tick: Timestamp(words.or("tick", 0)),
        next: Timestamp(words.or("next", 0)),
        missed: words.or("missed", 0),
        start: started.map(|name| match words.text("chain") {
            Some(_) => TriggerStart::Run(Box::new(start_run(words, name))),
            None => TriggerStart::Job(Box::new(submit(run.job_id(name), words))),
        }),
    }
}
