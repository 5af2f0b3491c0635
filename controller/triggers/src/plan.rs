//! What becomes of a trigger whose time has come, by its rules.

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
    /// What happens at `now` for the time `tick`, which has come. `busy` says whether the last job has not ended.
    pub fn due(&self, tick: f64, now: f64, busy: bool) -> Due {
        match self.rules.overlap {
            Overlap::Queue if busy => return Due::Wait,
            Overlap::Cancel if busy => return Due::Cancel,
            Overlap::Skip if busy => return Due::Skip { next: self.after(now), missed: 0 },
            Overlap::Allow | Overlap::Queue | Overlap::Skip | Overlap::Cancel => {}
        }
        // What happens once is never too late.
        if matches!(self.kind, Kind::OneShot { .. }) {
            return Due::Fire { next: 0.0, missed: 0 };
        }
        let next = self.after(now);
        match self.rules.catch_up {
            0 if now - tick > LATE => Due::Skip { next, missed: self.passed(tick, now).count },
            0 | 1 => Due::Fire { next, missed: self.passed(tick, now).count },
            most => {
                let Passed { count, latest } = self.passed(tick, now);
                match count.checked_sub(u64::from(most)) {
                    None => Due::Fire { next: latest.front().copied().unwrap_or(next), missed: 0 },
                    // The earliest of the times that are made up for.
                    Some(missed) => {
                        let first = latest.len().checked_sub(most as usize).and_then(|first| latest.get(first));
                        Due::Skip { next: first.copied().unwrap_or(next), missed }
                    }
                }
            }
        }
    }

    /// The next time after `now`; an interval begins with a firing.
    fn after(&self, now: f64) -> f64 {
        self.next_fire(now, now)
    }

    /// The times after `tick` up to `now`.
    fn passed(&self, tick: f64, now: f64) -> Passed {
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
            let next = self.next_fire(start, start);
            if next <= start || next > now {
                break;
            }
            passed.push(next);
            start = next;
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

/// By how many seconds the firing for a time is delayed: less than `jitter`, always the same for this trigger and time.
pub fn jitter(trigger: u64, tick: i64, jitter: u32) -> u32 {
    if jitter == 0 {
        return 0;
    }
    // SplitMix64.
    let mut mixed = trigger.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(tick.cast_unsigned());
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    u32::try_from((mixed ^ (mixed >> 31)) % u64::from(jitter)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn trigger(members: Value) -> Definition {
        let mut document = json!({"trigger_type": "cron", "agent_name": "a", "cron_expr": "* * * * *"});
        document.as_object_mut().expect("members").extend(members.as_object().cloned().unwrap_or_default());
        Definition::parse(&document).expect("a definition")
    }

    #[test]
    fn missed_times_are_one_firing_by_default() {
        let every = trigger(json!({}));
        assert_eq!(every.due(600.0, 605.0, true), Due::Fire { next: 660.0, missed: 0 });
        assert_eq!(every.due(600.0, 905.0, false), Due::Fire { next: 960.0, missed: 5 });
    }

    #[test]
    fn overlap_decides_while_the_last_job_runs() {
        let [skip, queue, cancel] = ["skip", "queue", "cancel"].map(|overlap| trigger(json!({ "overlap": overlap })));
        assert_eq!(skip.due(600.0, 605.0, true), Due::Skip { next: 660.0, missed: 0 });
        assert_eq!(skip.due(600.0, 605.0, false), Due::Fire { next: 660.0, missed: 0 });
        assert_eq!(queue.due(600.0, 605.0, true), Due::Wait);
        assert_eq!(queue.due(600.0, 605.0, false), Due::Fire { next: 660.0, missed: 0 });
        assert_eq!(cancel.due(600.0, 605.0, true), Due::Cancel);
        assert_eq!(cancel.due(600.0, 605.0, false), Due::Fire { next: 660.0, missed: 0 });
    }

    /// All firings from a time on, when nothing happens between them.
    fn firings(trigger: &Definition, tick: f64, now: f64) -> (Vec<f64>, u64) {
        let (mut tick, mut fired, mut left_out) = (tick, Vec::new(), 0);
        while tick > 0.0 && tick <= now {
            match trigger.due(tick, now, false) {
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
        assert_eq!(once.due(5.0, 1e9, false), Due::Fire { next: 0.0, missed: 0 });
    }

    #[test]
    fn jitter_is_bounded_and_always_the_same() {
        let delays: Vec<u32> = (0..1_000).map(|tick| jitter(7, tick * 60, 30)).collect();
        assert!(delays.iter().all(|delay| *delay < 30) && delays.iter().any(|delay| *delay > 20));
        assert_eq!(jitter(7, 60, 30), jitter(7, 60, 30));
        assert_eq!(jitter(7, 60, 0), 0);
    }
}
