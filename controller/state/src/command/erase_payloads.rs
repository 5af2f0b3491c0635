//! Erases what was sent to and made by ended jobs. Histories do the same when they see the event.

use std::sync::Arc;

use atlas_objects::MemorySpec;
use atlas_types::{ErasePayloads, Event, Job, JobId, JobStatus, Object, ObjectKind, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &ErasePayloads, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let namespace = change.origin.namespace.clone();
    match command.job {
        Some(id) => {
            // A job that is not here is in the histories, or nowhere.
            if let Ok(job) = change.own_job(id).cloned() {
                check_ended(&job)?;
                erase(change, &job);
            }
            erase_shared(change, Some(id));
        }
        None => {
            let jobs: Vec<Arc<Job>> = change.state.jobs(&namespace, None, None).cloned().collect();
            jobs.iter().try_for_each(|job| check_ended(job))?;
            check_no_run(change)?;
            erase_shared(change, None);
            forget(change, &jobs);
            drop_runs(change);
        }
    }
    change.emit(Event::Erased { namespace, job: command.job });
    Ok(Outcome::Done)
}

fn check_ended(job: &Job) -> Result<(), Rejection> {
    if job.status.is_terminal() { Ok(()) } else { Err(Rejection::WrongStatus { status: job.status }) }
}

fn erase(change: &mut Change<'_>, job: &Job) {
    drop_questions(change, job.id);
    change.store(job.without_payloads());
}

/// Drops all ended jobs of the namespace from the state without asking the histories, which drop them too.
fn forget(change: &mut Change<'_>, jobs: &[Arc<Job>]) {
    jobs.iter().for_each(|job| drop_questions(change, job.id));
    let (state, namespace) = (&mut *change.state, &change.origin.namespace);
    let is_own = |id: JobId| state.jobs.get(id).is_some_and(|job| job.namespace == *namespace);
    let events: Vec<_> = state.ended.iter().filter(|(_, id)| is_own(**id)).map(|(event, _)| *event).collect();
    for event in events {
        state.ended.remove(&event);
    }
    for job in jobs {
        let old = state.jobs.remove(job.id);
        state.index.job(old.as_deref(), None);
    }
}

/// A run can wait without a job, for instance for the time of a retry.
fn check_no_run(change: &Change<'_>) -> Result<(), Rejection> {
    let namespace = &change.origin.namespace;
    let live = change.state.runs.values().any(|run| run.namespace == *namespace && !run.status.is_terminal());
    if live { Err(Rejection::WrongStatus { status: JobStatus::Running }) } else { Ok(()) }
}

/// Erases what one job, or all jobs of the namespace, wrote into memory and knowledge. What people wrote stays.
fn erase_shared(change: &mut Change<'_>, job: Option<JobId>) {
    let namespace = change.origin.namespace.clone();
    let is_meant = |object: &Object| object.writer().is_some_and(|writer| job.is_none_or(|job| job == writer));
    let mut found: Vec<Arc<Object>> = Vec::new();
    for kind in atlas_objects::KINDS.into_iter().filter(|kind| kind.is_for_agents()) {
        let Ok(kind) = ObjectKind::new(kind.name()) else { continue };
        found.extend(change.state.objects(&namespace, &kind, None).filter(|object| is_meant(object)).cloned());
    }
    for object in found {
        match blank(&object) {
            Some(spec) => change.put_object(Object {
                revision: change.state.event_seq.next(),
                labels: Arc::default(),
                spec,
                updated: change.at,
                by: change.origin.principal.clone(),
                ..(*object).clone()
            }),
            None => change.remove_object(&object.key),
        }
    }
}

/// What is left of an entry that replaced the text of a memory: an empty one, so that the replaced text does not come back.
fn blank(object: &Object) -> Option<Arc<[u8]>> {
    let is_memory = object.key.kind.as_str() == "memory";
    let replaces = is_memory && MemorySpec::read(&object.spec).is_ok_and(|spec| spec.replaces);
    replaces.then(|| br#"{"replaces":true,"text":""}"#.as_slice().into())
}

fn drop_questions(change: &mut Change<'_>, job: JobId) {
    let questions: Vec<_> = change.state.questions_of(job).map(|question| question.id).collect();
    for question in questions {
        change.set_question(question, None);
    }
}

fn drop_runs(change: &mut Change<'_>) {
    let namespace = &change.origin.namespace;
    let ended = change.state.runs.values().filter(|run| run.namespace == *namespace);
    let ended: Vec<_> = ended.map(|run| run.id).collect();
    for id in ended {
        let old = change.state.runs.remove(&id);
        change.state.index.run(old.as_deref(), None);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn what_ended_loses_its_payloads_and_what_lives_is_refused() {
        check(
            "agent a; node n1; job j1; job j2 -- erase j1; grant j1 n1; fail j1; erase j1; show j1; erase; erase j9",
            expect![[r#"
                ! the job is Pending
                j1 Granted pending→running on n1 token 1 attempt 1
                j1 Ended running→failed Agent: boom
                j1 erased
                j1: failed attempt 1
                ! the job is Pending
                a job erased
            "#]],
        );
    }

    #[test]
    fn a_namespace_loses_all_of_its_own() {
        check(
            "agent a; agent a ns=other; job j1; job j2; job j3 ns=other; cancel j1; cancel j2 --
            erase ns=other; erase; show j1; show j2; show j3; erase j1 ns=other",
            expect![[r#"
                ! the job is Pending
                namespace default erased
                j1: gone
                j2: gone
                j3: pending Queued attempt 0
                j1 erased
            "#]],
        );
    }

    const WRITTEN: &str = r#"level 6; agent a; job j1; job j2; cancel j1; cancel j2;
        put memory namespace@1 {"text":"by_hand"};
        put memory namespace@2 {"text":"a"} labels=atlas.job:job-0000000000000001;
        put memory namespace@3 {"replaces":true,"text":"b"} labels=atlas.job:job-0000000000000001;
        put knowledge k {"content":"c","domain":"d"} labels=atlas.job:job-0000000000000002;
        put namespace t {} labels=atlas.job:job-0000000000000001"#;

    #[test]
    fn what_a_job_wrote_into_memory_and_knowledge_is_erased() {
        check(
            &format!("{WRITTEN} -- erase j1"),
            expect![[r#"
            memory namespace@2 deleted
            memory namespace@3 uid 8 revision 12 {"replaces":true,"text":""}
            j1 erased
        "#]],
        );
    }

    #[test]
    fn what_people_wrote_stays() {
        check(
            &format!("{WRITTEN} -- erase"),
            expect![[r#"
            knowledge k deleted
            memory namespace@2 deleted
            memory namespace@3 uid 8 revision 13 {"replaces":true,"text":""}
            namespace default erased
        "#]],
        );
    }
}
