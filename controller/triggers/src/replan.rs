//! The next time of a trigger that was made or changed.
//!
//! A change that has nothing to do with time leaves the next time as it is, even one that has come and has not fired yet. A change of
//! the schedule begins anew from the change, so nothing fires for a time that had passed before it. What an interval has waited counts:
//! one that is changed more often than it is long fires all the same. A trigger that is paused keeps its next time: when it is
//! resumed, what has passed meanwhile is up to the rule about times that passed.

use crate::{Definition, Kind, Zone};

/// What was planned before a change.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Before<'a> {
    /// The schedule, as [`Definition::schedule`] wrote it; empty if nothing was planned.
    pub schedule: &'a str,
    /// Whether the trigger was to fire.
    pub armed: bool,
    /// The time; 0 for none.
    pub next: f64,
}

impl Definition {
    /// All that decides about the times of the trigger, in one line: two definitions with the same line have the same times.
    pub fn schedule(&self) -> String {
        match &self.kind {
            Kind::Cron { cron } => {
                let zone = self.rules.time_zone.as_ref().map_or("UTC", Zone::name);
                format!("cron {} {zone}", cron.word())
            }
            Kind::Interval { seconds } => format!("{INTERVAL}{seconds}"),
            Kind::OneShot { at } => format!("one_shot {at}"),
            Kind::Webhook => "webhook".to_owned(),
        }
    }

    /// The next time after a change at `changed`, for a trigger that fires from then on if it is `armed`. 0 if there is none; a time
    /// that has passed has not fired yet.
    pub fn replan(&self, before: &Before<'_>, armed: bool, changed: f64) -> f64 {
        let first = self.next_fire(0.0, changed);
        if matches!(self.kind, Kind::OneShot { .. } | Kind::Webhook) {
            return first;
        }
        if before.schedule == self.schedule() {
            let pending = before.next > 0.0;
            return if pending {
                before.next
            } else if armed {
                first
            } else {
                0.0
            };
        }
        // A paused trigger with another schedule has missed nothing of it.
        if !armed {
            return 0.0;
        }
        match (&self.kind, before.schedule.strip_prefix(INTERVAL).and_then(|seconds| seconds.parse::<f64>().ok())) {
            (Kind::Interval { seconds }, Some(old)) if before.armed && before.next > 0.0 => {
                (before.next - old + seconds).max(changed)
            }
            _ => first,
        }
    }
}

/// How the schedule of an interval begins; its seconds follow.
const INTERVAL: &str = "interval ";

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn trigger(members: &Value) -> Definition {
        let mut document = json!({"agent_name": "a"});
        let all = document.as_object_mut().expect("members");
        all.extend(members.as_object().cloned().unwrap_or_default());
        Definition::parse(&document).expect("a definition")
    }

    fn cron(expression: &str) -> Value {
        json!({"trigger_type": "cron", "cron_expr": expression})
    }

    fn every(seconds: f64) -> Value {
        json!({"trigger_type": "interval", "interval_seconds": seconds})
    }

    /// The next times after each change of a trigger: the time of the change, the definition, and whether it is enabled.
    #[expect(clippy::needless_pass_by_value, reason = "the tests read better")]
    fn check(changes: &[(f64, Value, bool)], expected: Expect) {
        let mut before: (String, bool, f64) = (String::new(), false, 0.0);
        let mut told = Vec::new();
        for (at, members, enabled) in changes {
            let definition = trigger(members);
            let planned = Before { schedule: &before.0, armed: before.1, next: before.2 };
            let next = definition.replan(&planned, *enabled, *at);
            before = (definition.schedule(), *enabled && next > 0.0, next);
            told.push(format!("{at}: {}{next}", if before.1 { "" } else { "paused " }));
        }
        expected.assert_eq(&told.join(", "));
    }

    #[test]
    fn another_expression_fires_for_no_time_that_has_passed() {
        // 02:00 each day, then 01:00 each day, changed at noon.
        let noon = 43_200.0;
        check(
            &[(7_201.0, cron("0 2 * * *"), true), (noon, cron("0 1 * * *"), true)],
            expect!["7201: 93600, 43200: 90000"],
        );
        // Neither does one whose time is due at the moment of the change.
        check(&[(0.0, cron("0 2 * * *"), true), (7_200.1, cron("0 1 * * *"), true)], expect!["0: 7200, 7200.1: 90000"]);
        let rome = json!({"trigger_type": "cron", "cron_expr": "0 2 * * *", "time_zone": "Europe/Rome"});
        check(&[(7_201.0, cron("0 2 * * *"), true), (noon, rome, true)], expect!["7201: 93600, 43200: 90000"]);
    }

    #[test]
    fn a_change_of_something_else_keeps_the_time() {
        let other = json!({"trigger_type": "cron", "cron_expr": "00 2 */1 * *", "priority": 7, "jitter_seconds": 9, "name": "n"});
        // Also one that is due.
        check(&[(0.0, cron("0 2 * * *"), true), (7_200.1, other, true)], expect!["0: 7200, 7200.1: 7200"]);
        check(
            &[(0.0, every(10.0), true), (4.0, every(10.0), true), (9.0, every(10.0), true)],
            expect!["0: 10, 4: 10, 9: 10"],
        );
    }

    #[test]
    fn an_interval_that_is_changed_often_fires() {
        check(
            &[(0.0, every(10.0), true), (6.0, every(11.0), true), (9.0, every(10.0), true), (9.5, every(9.0), true)],
            expect!["0: 10, 6: 11, 9: 10, 9.5: 9.5"],
        );
        check(&[(0.0, every(3_600.0), true), (1_800.0, every(60.0), true)], expect!["0: 3600, 1800: 1800"]);
        check(&[(0.0, every(60.0), true), (59.0, every(3_600.0), true)], expect!["0: 60, 59: 3600"]);
        check(&[(0.0, cron("* * * * *"), true), (59.0, every(5.0), true)], expect!["0: 60, 59: 64"]);
    }

    #[test]
    fn a_pause_keeps_the_time_and_a_change_within_it_does_not() {
        let hourly = || cron("0 * * * *");
        check(
            &[(0.0, hourly(), true), (60.0, hourly(), false), (9_000.0, hourly(), true)],
            expect!["0: 3600, 60: paused 3600, 9000: 3600"],
        );
        check(
            &[
                (0.0, hourly(), true),
                (60.0, hourly(), false),
                (70.0, cron("*/30 * * * *"), false),
                (9_000.0, cron("*/30 * * * *"), true),
            ],
            expect!["0: 3600, 60: paused 3600, 70: paused 0, 9000: 10800"],
        );
        check(&[(0.0, hourly(), false), (9_000.0, hourly(), true)], expect!["0: paused 0, 9000: 10800"]);
        check(&[(0.0, every(10.0), false), (9_000.0, every(10.0), true)], expect!["0: paused 0, 9000: 9010"]);
        check(
            &[(0.0, every(10.0), true), (5.0, every(10.0), false), (6.0, every(5.0), true)],
            expect!["0: 10, 5: paused 10, 6: 11"],
        );
    }

    #[test]
    fn what_happens_once_or_on_a_call_has_no_plan() {
        let once = json!({"trigger_type": "one_shot", "fire_at": 5});
        check(&[(9.0, once.clone(), false), (10.0, once, true)], expect!["9: paused 5, 10: 5"]);
        check(&[(9.0, json!({"trigger_type": "webhook"}), true)], expect!["9: paused 0"]);
    }

    proptest! {
        /// However often an interval is changed, it is due within the longest of its lengths.
        #[test]
        fn no_interval_is_put_off_for_ever(edits in proptest::collection::vec((0.1_f64..5.0, 1.0_f64..20.0), 1..40)) {
            let first = trigger(&every(20.0));
            let (mut schedule, mut next, mut now) = (first.schedule(), first.replan(&Before::default(), true, 1.0), 1.0);
            for (wait, seconds) in edits {
                now += wait;
                if next <= now {
                    break;
                }
                let changed = trigger(&every(seconds));
                next = changed.replan(&Before { schedule: &schedule, armed: true, next }, true, now);
                schedule = changed.schedule();
                prop_assert!(next >= now && next <= 1.0 + 20.0 + 1e-6, "{next} at {now}");
            }
        }

        /// A change of the expression never leads to a time that had passed.
        #[test]
        fn no_expression_goes_back(at in 0.0_f64..4e9, next in 0.0_f64..4e9, minute in 0..60_u8, hour in 0..24_u8, armed: bool) {
            let changed = trigger(&cron(&format!("{minute} {hour} * * *")));
            let old = trigger(&cron("30 4 1 1 *")).schedule();
            let planned = changed.replan(&Before { schedule: &old, armed, next }, true, at);
            prop_assert!(planned > at);
        }
    }
}
