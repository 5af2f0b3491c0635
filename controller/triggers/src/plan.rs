//! What happens to a trigger whose time has come, by its rules.

use std::collections::VecDeque;

use crate::{Definition, Kind, Overlap};

/// A time that is later than this was missed: nobody led at that moment.
const LATE: f64 = 60.0;
/// Most times that are looked at to find the latest ones: those of a year of minutes.
const LOOK_MAX: usize = 366 * 24 * 60;
/// The latest times that are kept: the most that are made up for.
const KEPT_MAX: usize = 100;

/// What a trigger does about a time that has come. Times are seconds since 1970, 0 stands for never.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Due {
    /// It fires, and `missed` times up to the next are left out.
    Fire { next: f64, missed: u64 },
    /// It does not fire for this time, nor for `missed` times more.
    Skip { next: f64, missed: u64 },
    /// It waits until its last job has ended.
    Wait,
    /// Its last job is cancelled. It fires once that job has ended.
    Cancel,
}

impl Definition {
    /// What the trigger with the number `trigger` does at `now` about the time `tick`, for which it is to fire by then. `busy` says
    /// whether the last job has not ended.
    pub fn due(&self, trigger: u64, tick: f64, now: f64, busy: bool) -> Due {
        match self.rules.overlap {
            Overlap::Queue if busy => return Due::Wait,
            Overlap::Cancel if busy => return Due::Cancel,
            Overlap::Skip if busy => {
                let Passed { count, next, .. } = self.passed(trigger, tick, now);
                return Due::Skip { next, missed: count };
            }
            Overlap::Allow | Overlap::Queue | Overlap::Skip | Overlap::Cancel => {}
        }
        // What happens once is never too late.
        if matches!(self.kind, Kind::OneShot { .. }) {
            return Due::Fire { next: 0.0, missed: 0 };
        }
        let Passed { count, latest, next } = self.passed(trigger, tick, now);
        match self.rules.catch_up {
            0 if now - self.fires_at(trigger, tick) > LATE => Due::Skip { next, missed: count },
            0 | 1 => Due::Fire { next, missed: count },
            most => match count.checked_sub(u64::from(most)) {
                None => Due::Fire { next: latest.front().copied().unwrap_or(next), missed: 0 },
                // The earliest of the times that are made up for.
                Some(missed) => {
                    let first = latest.len().checked_sub(most as usize).and_then(|first| latest.get(first));
                    Due::Skip { next: first.copied().unwrap_or(next), missed }
                }
            },
        }
    }

    /// The time after a time.
    pub fn following(&self, tick: f64) -> f64 {
        self.next_fire(tick, tick)
    }

    /// The times after `tick` that should have fired by `now`, and the one after them.
    fn passed(&self, trigger: u64, tick: f64, now: f64) -> Passed {
        let mut passed = Passed::default();
        let mut start = tick;
        if let Kind::Interval { seconds } = self.kind {
            // All but the latest times are skipped in one step.
            let skipped = (((now - tick) / seconds).floor() - KEPT_MAX as f64).max(0.0);
            start += skipped * seconds;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count, and saturates")]
            let skipped = skipped as u64;
            passed.count = skipped;
        }
        for _ in 0..LOOK_MAX {
            passed.next = self.following(start);
            if passed.next <= start || self.fires_at(trigger, passed.next) > now {
                break;
            }
            passed.push(passed.next);
            start = passed.next;
        }
        match self.kind {
            // It counts from the firing to the next, without the delay of either.
            Kind::Interval { seconds } => passed.next = now - (self.fires_at(trigger, tick) - tick) + seconds,
            // There is no time after it, or far too many have passed.
            _ if passed.next <= start => passed.next = self.following(now),
            _ => {}
        }
        passed
    }
}

/// Times that have passed.
#[derive(Debug, Default)]
struct Passed {
    count: u64,
    /// The latest of them, ascending.
    latest: VecDeque<f64>,
    /// The one after them.
    next: f64,
}

impl Passed {
    fn push(&mut self, time: f64) {
        self.count += 1;
        self.latest.push_back(time);
        if self.latest.len() > KEPT_MAX {
            self.latest.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// The number of the trigger.
    const TRIGGER: u64 = 7;

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn trigger(members: Value) -> Definition {
        let mut document = json!({"trigger_type": "cron", "agent_name": "a", "cron_expr": "* * * * *"});
        document.as_object_mut().expect("members").extend(members.as_object().cloned().unwrap_or_default());
        Definition::parse(&document).expect("a definition")
    }

    #[test]
    fn missed_times_are_one_firing_by_default() {
        let every = trigger(json!({}));
        assert_eq!(every.due(TRIGGER, 600.0, 605.0, true), Due::Fire { next: 660.0, missed: 0 });
        assert_eq!(every.due(TRIGGER, 600.0, 905.0, false), Due::Fire { next: 960.0, missed: 5 });
    }

    #[test]
    fn overlap_decides_while_the_last_job_runs() {
        let [skip, queue, cancel] = ["skip", "queue", "cancel"].map(|overlap| trigger(json!({ "overlap": overlap })));
        assert_eq!(skip.due(TRIGGER, 600.0, 605.0, true), Due::Skip { next: 660.0, missed: 0 });
        assert_eq!(skip.due(TRIGGER, 600.0, 605.0, false), Due::Fire { next: 660.0, missed: 0 });
        assert_eq!(queue.due(TRIGGER, 600.0, 605.0, true), Due::Wait);
        assert_eq!(queue.due(TRIGGER, 600.0, 605.0, false), Due::Fire { next: 660.0, missed: 0 });
        assert_eq!(cancel.due(TRIGGER, 600.0, 605.0, true), Due::Cancel);
        assert_eq!(cancel.due(TRIGGER, 600.0, 605.0, false), Due::Fire { next: 660.0, missed: 0 });
    }

    /// All firings from a time on, when nothing happens between them.
    fn firings(trigger: &Definition, tick: f64, now: f64) -> (Vec<f64>, u64) {
        let (mut tick, mut fired, mut left_out) = (tick, Vec::new(), 0);
        while tick > 0.0 && tick <= now {
            match trigger.due(TRIGGER, tick, now, false) {
                Due::Fire { next, missed } => {
                    fired.push(tick);
                    (tick, left_out) = (next, left_out + missed);
                }
                Due::Skip { next, missed } => (tick, left_out) = (next, left_out + missed + 1),
                Due::Wait | Due::Cancel => break,
            }
        }
        (fired, left_out)
    }

    #[test]
    fn the_latest_missed_times_are_made_up_for() {
        let three = trigger(json!({"catch_up": 3}));
        assert_eq!(firings(&three, 600.0, 905.0), (vec![780.0, 840.0, 900.0], 3));
        assert_eq!(firings(&three, 600.0, 665.0), (vec![600.0, 660.0], 0));
        let none = trigger(json!({"catch_up": 0}));
        assert_eq!(firings(&none, 600.0, 905.0), (vec![], 6));
        assert_eq!(firings(&none, 600.0, 605.0), (vec![600.0], 0));
        let interval = trigger(json!({"trigger_type": "interval", "interval_seconds": 10, "catch_up": 2}));
        assert_eq!(firings(&interval, 600.0, 100_000_000.0).0.len(), 2);
        let hourly = trigger(json!({"cron_expr": "0 * * * *", "catch_up": 5}));
        assert_eq!(firings(&hourly, 3_600.0, 1e9).0.len(), 5);
    }

    #[test]
    fn what_happens_once_is_never_too_late() {
        let once = trigger(json!({"trigger_type": "one_shot", "fire_at": 5, "catch_up": 0}));
        assert_eq!(once.due(TRIGGER, 5.0, 1e9, false), Due::Fire { next: 0.0, missed: 0 });
    }

    /// Looks every quarter of a second, and fires what is to fire: the times, and when each fired.
    fn run(trigger: &Definition, tick: f64, until: f64) -> (Vec<f64>, Vec<f64>, u64) {
        let (mut tick, mut now, mut ticks, mut fired, mut left_out) = (tick, tick, Vec::new(), Vec::new(), 0);
        while now < until {
            if trigger.fires_at(TRIGGER, tick) <= now {
                let Due::Fire { next, missed } = trigger.due(TRIGGER, tick, now, false) else { panic!("it fires") };
                ticks.push(tick);
                fired.push(now);
                (tick, left_out) = (next, left_out + missed);
            }
            now += 0.25;
        }
        (ticks, fired, left_out)
    }

    #[test]
    fn a_delay_that_is_longer_than_the_period_loses_no_time() {
        for catch_up in [0, 1, 5] {
            let minutes = trigger(json!({"jitter_seconds": 300, "catch_up": catch_up}));
            let (ticks, fired, left_out) = run(&minutes, 600.0, 960.0);
            assert_eq!(ticks, [600.0, 660.0, 720.0, 780.0, 840.0, 900.0]);
            assert_eq!(left_out, 0);
            assert!(fired.windows(2).all(|two| two[0] < two[1]));
            assert!(fired.iter().any(|at| at % 60.0 > 20.0), "they are delayed: {fired:?}");
        }
    }

    #[test]
    fn the_delays_of_an_interval_do_not_add_up() {
        let interval = trigger(json!({"trigger_type": "interval", "interval_seconds": 10, "jitter_seconds": 3_600}));
        let (ticks, _, left_out) = run(&interval, 600.0, 1_600.0);
        assert!((97..=100).contains(&ticks.len()) && left_out == 0, "{}", ticks.len());
    }

    #[test]
    fn a_time_whose_delay_has_not_passed_is_not_missed() {
        let minutes = trigger(json!({"jitter_seconds": 59}));
        // One look comes so late that the next time has come, but not yet its firing.
        let late = (10..1_000).map(|minute| f64::from(minute) * 60.0).find(|tick| {
            minutes.fires_at(TRIGGER, *tick) - tick > 50.0 && minutes.fires_at(TRIGGER, tick + 60.0) - tick > 100.0
        });
        let tick = late.expect("such a time");
        assert_eq!(minutes.due(TRIGGER, tick, tick + 70.0, false), Due::Fire { next: tick + 60.0, missed: 0 });
    }

    #[test]
    fn times_that_are_skipped_are_counted() {
        let skip = trigger(json!({"overlap": "skip"}));
        assert_eq!(skip.due(TRIGGER, 600.0, 905.0, true), Due::Skip { next: 960.0, missed: 5 });
    }

    proptest! {
        /// Whatever the rules and however late a leader looks: each time fires once or is counted as left out, in order.
        #[test]
        fn each_time_fires_or_is_counted(
            trigger_number in any::<u64>(), catch_up in 0_u32..5, jitter in 0_u32..400, every in 1_u8..30,
            looks in proptest::collection::vec(1.0_f64..2_000.0, 1..40),
        ) {
            let cron = trigger(json!({"cron_expr": format!("*/{every} * * * *"), "catch_up": catch_up, "jitter_seconds": jitter}));
            let first = cron.following(6_000.0);
            let (mut tick, mut now, mut seen) = (first, first, 0);
            for wait in looks {
                now += wait;
                // All that is to fire by now.
                while cron.fires_at(trigger_number, tick) <= now {
                    let (next, missed) = match cron.due(trigger_number, tick, now, false) {
                        Due::Fire { next, missed } | Due::Skip { next, missed } => (next, missed),
                        Due::Wait | Due::Cancel => unreachable!("it allows overlap"),
                    };
                    prop_assert!(next > tick);
                    seen += 1 + missed;
                    tick = next;
                }
            }
            let (mut expected, mut at) = (0, first);
            while cron.fires_at(trigger_number, at) <= now {
                expected += 1;
                at = cron.following(at);
            }
            prop_assert_eq!(seen, expected);
            prop_assert_eq!(tick.to_bits(), at.to_bits());
        }
    }
}
