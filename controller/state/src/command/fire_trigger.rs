//! A trigger fires: its job or run is started, its status says so, and it has its next time. One command does all of it, so that neither a
//! crash nor another leader loses or doubles a firing.

use std::sync::Arc;

use atlas_objects::{TriggerSpec, TriggerStatus};
use atlas_types::{FireTrigger, FiredBy, Object, ObjectKey, ObjectKind, Outcome, Rejection, TriggerStart};

use super::{start_run, submit_job};
use crate::change::Change;

pub(super) fn apply(command: &FireTrigger, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let kind = ObjectKind::new("trigger").map_err(|_| Rejection::UnknownObjectKind)?;
    let key = ObjectKey { namespace: change.origin.namespace.clone(), kind, name: command.name.clone() };
    let found = change.state.object(&key).filter(|found| found.uid == command.uid).cloned();
    let found = found.ok_or(Rejection::UnknownObject)?;
    // The start was made from this revision: another may be disabled, or start something else.
    if found.revision != command.revision {
        return Err(Rejection::ObjectChanged { revision: found.revision });
    }
    let mut status = TriggerStatus::of(&found);
    if command.by == FiredBy::Schedule {
        // Each planned time is fired once, and not before it has come by the clock of the entries.
        let planned = status.planned(found.revision).filter(|next| next.0 > 0);
        if planned != Some(command.tick) || command.tick > change.at {
            return Err(Rejection::NotDue);
        }
    }
    let outcome = match &command.start {
        Some(TriggerStart::Job(job)) => submit_job::apply(job, change)?,
        Some(TriggerStart::Run(run)) => start_run::apply(run, change)?,
        None => Outcome::Done,
    };

    status.fired(change.at, command.tick, command.by, command.start.as_ref().map(TriggerStart::id));
    status.missed = status.missed.saturating_add(command.missed);
    let spec = TriggerSpec::read(&found.spec);
    let is = |kind: &str| spec.as_ref().is_ok_and(|spec| spec.trigger_type == kind);
    match command.by {
        // Only its own time uses up a one-shot trigger.
        FiredBy::Schedule if is("one_shot") => {
            let shot = spec.as_ref().map(TriggerSpec::shot).unwrap_or_default();
            (status.spent, status.armed, status.next_fire) = (shot, false, 0);
        }
        FiredBy::Schedule => status.next_fire = command.next.0,
        // An interval counts from each firing. The command may have been made before one that was applied since, so the time never goes
        // back: it would fire twice.
        FiredBy::Request if is("interval") && status.armed => status.next_fire = status.next_fire.max(command.next.0),
        FiredBy::Request | FiredBy::Webhook | FiredBy::Backfill => {}
    }
    // A status that this program writes has room for all that it notes.
    if let Ok(status) = status.document() {
        change.store_object(&Arc::new(Object { status: status.into(), ..(*found).clone() }));
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const START: &str =
        r#"level 6; agent a; put trigger t {"agent_name":"a","interval_seconds":5,"trigger_type":"interval"}"#;
    const ONCE: &str = r#"level 6; agent a; put trigger t {"agent_name":"a","fire_at":1,"trigger_type":"one_shot"}"#;

    #[test]
    fn a_planned_time_fires_once() {
        check(
            &format!(
                "{START}; plan t 1500 -- fire t j1 tick=1500 next=9999000000; fire t j2 tick=1500 next=2000; trigger t; show j1; show j2"
            ),
            expect![[r#"
                j1 Submitted pending→pending Queued
                ! the job is not due yet
                t: fired 1 next 9999000000 last job-0000000000000001 missed 0
                j1: pending Queued attempt 0
                j2: gone
            "#]],
        );
    }

    #[test]
    fn a_chain_is_started_with_its_firing_or_not_at_all() {
        check(
            r#"level 6; agent a; put chain c {"name":"c","steps":[{"agent":"a"}]};
            put trigger t {"chain_name":"c","interval_seconds":5,"trigger_type":"interval"}; plan t 1500 --
            fire t r1 chain=none tick=1500; trigger t; fire t r1 chain=c tick=1500; fire t r2 chain=c tick=1500; trigger t; show r1; show r2"#,
            expect![[r#"
                ! no such object
                t: fired 0 next 1500 last  missed 0
                r1 started pending step -1
                ! the job is not due yet
                t: fired 1 next 0 last chain-0000000000000001 missed 0
                r1: pending ready version 1 of 1 steps []
                r2: gone
            "#]],
        );
    }

    #[test]
    fn no_time_fires_early_and_no_other_revision() {
        check(
            &format!(
                "{START}; plan t 99000000 -- fire t j1 tick=99000000; fire t j1 tick=1000; fire t j1 tick=99000000 revision=1;
                put trigger t {{\"agent_name\":\"a\",\"enabled\":false,\"trigger_type\":\"interval\"}}; fire t j1 tick=99000000;
                fire gone j1; delete-object trigger t; fire t j1"
            ),
            expect![[r#"
                ! the job is not due yet
                ! the job is not due yet
                ! the object is at revision 2, not at the expected one
                trigger t uid 2 revision 3 {"agent_name":"a","enabled":false,"trigger_type":"interval"}
                ! the job is not due yet
                ! no such object
                trigger t deleted
                ! no such object
            "#]],
        );
    }

    #[test]
    fn a_job_that_is_refused_leaves_the_trigger_as_it_was() {
        check(
            &format!(
                "{START}; plan t 1500; config active=0 -- fire t j1 tick=1500; trigger t; config; fire t j1 tick=1500; trigger t"
            ),
            expect![[r#"
                ! Queue is full (0 jobs). Wait for jobs to complete or increase max_size.
                t: fired 0 next 1500 last  missed 0
                configured
                j1 Submitted pending→pending Queued
                t: fired 1 next 0 last job-0000000000000001 missed 0
            "#]],
        );
    }

    #[test]
    fn a_one_shot_is_spent_by_its_time_alone() {
        check(
            &format!(
                "{ONCE}; plan t 1500 -- fire t j1 by=request; trigger t; fire t j2 tick=1500; trigger t; fire t j3 tick=1500"
            ),
            expect![[r#"
                j1 Submitted pending→pending Queued
                t: fired 1 next 1500 last job-0000000000000001 missed 0
                j2 Submitted pending→pending Queued
                t: fired 2 next 0 last job-0000000000000002 missed 0
                ! the job is not due yet
            "#]],
        );
    }

    #[test]
    fn a_person_takes_no_time_away_and_gives_none_back() {
        const CRON: &str =
            r#"level 6; agent a; put trigger t {"agent_name":"a","cron_expr":"daily","trigger_type":"cron"}"#;
        check(
            &format!(
                "{CRON}; plan t 1500 -- fire t j1 by=request tick=9 next=9000000; trigger t; fire t j2 tick=1500 next=2000; trigger t"
            ),
            expect![[r#"
                j1 Submitted pending→pending Queued
                t: fired 1 next 1500 last job-0000000000000001 missed 0
                j2 Submitted pending→pending Queued
                t: fired 2 next 2000 last job-0000000000000002 missed 0
            "#]],
        );
        // The command of the person was made before the time fired, and is applied after it.
        check(
            &format!(
                "{START}; plan t 1500 -- fire t j1 tick=1500 next=8000; fire t j2 by=request tick=1400 next=1500; trigger t"
            ),
            expect![[r#"
                j1 Submitted pending→pending Queued
                j2 Submitted pending→pending Queued
                t: fired 2 next 8000 last job-0000000000000002 missed 0
            "#]],
        );
        check(
            &format!("{START}; plan t 9000 -- fire t j1 by=request tick=1400 next=12000; trigger t"),
            expect![[r#"
                j1 Submitted pending→pending Queued
                t: fired 1 next 12000 last job-0000000000000001 missed 0
            "#]],
        );
    }

    #[test]
    fn a_skipped_time_and_a_backfill_change_only_what_they_say() {
        check(
            &format!(
                "{START}; plan t 1500 -- fire t none tick=1500 next=8000 missed=2; trigger t; fire t j1 by=backfill tick=3 next=5; trigger t"
            ),
            expect![[r#"
                t: fired 0 next 8000 last  missed 3
                j1 Submitted pending→pending Queued
                t: fired 1 next 8000 last job-0000000000000001 missed 3
            "#]],
        );
    }

    #[test]
    fn a_plan_from_an_older_status_takes_back_no_firing() {
        check(
            &format!(
                "{START} -- fire t j1 by=request tick=9; plan t 1500 unfired=yes; trigger t; fire t j2 tick=1500 next=8000;
                plan t 1500 unfired=yes; trigger t"
            ),
            expect![[r#"
                j1 Submitted pending→pending Queued
                t: fired 1 next 1500 last job-0000000000000001 missed 0
                j2 Submitted pending→pending Queued
                t: fired 2 next 8000 last job-0000000000000002 missed 0
            "#]],
        );
    }
}
