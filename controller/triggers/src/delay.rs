//! By how much a firing is delayed, so that many triggers do not fire at one moment.

use crate::{Definition, Kind};

impl Definition {
    /// When the trigger with the number `trigger` fires for the time `tick`: at the time itself, or with `jitter_seconds` up to so much
    /// later, and always before its next time. A delay changes when a time fires, and never whether it does: all plans are made of times.
    pub fn fires_at(&self, trigger: u64, tick: f64) -> f64 {
        let most = f64::from(self.rules.jitter_seconds);
        if most == 0.0 || tick <= 0.0 {
            return tick;
        }
        let until_next = match self.kind {
            Kind::Cron { .. } => match self.following(tick) {
                next if next > tick => next - tick,
                _ => most,
            },
            Kind::Interval { seconds } => seconds,
            Kind::OneShot { .. } | Kind::Webhook => most,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most an hour of milliseconds")]
        let milliseconds = (most.min(until_next) * 1e3) as u64;
        #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and the delay is only drawn from it")]
        let drawn = mixed(trigger, (tick * 1e6) as i64);
        #[expect(clippy::cast_precision_loss, reason = "at most an hour of milliseconds")]
        let delay = drawn.checked_rem(milliseconds).unwrap_or(0) as f64 / 1e3;
        tick + delay
    }
}

/// A number that is always the same for a trigger and a time, and unlike that of others (SplitMix64).
fn mixed(trigger: u64, tick: i64) -> u64 {
    let mut mixed = trigger.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(tick.cast_unsigned());
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn hourly(jitter: u32) -> Definition {
        let document =
            json!({"trigger_type": "cron", "agent_name": "a", "cron_expr": "0 * * * *", "jitter_seconds": jitter});
        Definition::parse(&document).expect("a definition")
    }

    #[test]
    fn delays_are_spread_and_always_the_same() {
        let of = |trigger: u64| hourly(30).fires_at(trigger, 7_200.0) - 7_200.0;
        let delays: Vec<f64> = (0..1_000).map(of).collect();
        assert!(delays.iter().all(|delay| (0.0..30.0).contains(delay)));
        assert!(delays.iter().any(|delay| *delay > 20.0) && delays.iter().any(|delay| *delay < 10.0));
        assert_eq!(of(7).to_bits(), of(7).to_bits());
        assert_eq!(hourly(0).fires_at(7, 7_200.0).to_bits(), 7_200.0_f64.to_bits());
    }

    proptest! {
        #[test]
        fn no_delay_passes_the_next_time(trigger in any::<u64>(), minute in 1_u32..40_000_000, every in 1_u8..60, jitter in 0_u32..3_601) {
            let cron = json!({
                "trigger_type": "cron", "agent_name": "a", "cron_expr": format!("*/{every} * * * *"), "jitter_seconds": jitter,
            });
            let cron = Definition::parse(&cron).expect("a definition");
            let tick = cron.following(f64::from(minute) * 60.0);
            let fires = cron.fires_at(trigger, tick);
            prop_assert!(tick <= fires && fires < cron.following(tick) && fires <= tick + f64::from(jitter));
        }

        #[test]
        fn a_delay_is_shorter_than_an_interval(trigger in any::<u64>(), tick in 1.0_f64..4e9, every in 0.1_f64..100.0) {
            let interval = json!({
                "trigger_type": "interval", "agent_name": "a", "interval_seconds": every, "jitter_seconds": 3_600,
            });
            let interval = Definition::parse(&interval).expect("a definition");
            let fires = interval.fires_at(trigger, tick);
            prop_assert!(tick <= fires && fires < tick + every);
        }
    }
}
