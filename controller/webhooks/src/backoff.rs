//! Pauses between attempts.

use std::time::Duration;

/// The pause after the first failure, without jitter.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX: Duration = Duration::from_secs(300);

/// The pause after `failures` failures in a row: it doubles up to a bound, and a random part of up to a half is taken off, so
/// that receivers that failed together are not asked again together.
pub(crate) fn pause(failures: u32, random: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let whole = FIRST.saturating_mul(1 << doublings).min(MAX);
    let half = whole / 2;
    let part = u64::try_from(half.as_micros()).unwrap_or(u64::MAX);
    half + Duration::from_micros(random % (part + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let longest = |failures| (0..5_000).map(|random| pause(failures, random * 100_003)).max().unwrap_or_default();
        let seconds: Vec<u64> = (1..=12).map(|failures| longest(failures).as_millis().div_ceil(1_000) as u64).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    }

    proptest! {
        #[test]
        fn a_pause_is_between_half_and_all_of_its_bound(failures: u32, random: u64) {
            let found = pause(failures, random);
            let whole = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX);
            prop_assert!(found >= whole / 2 && found <= whole, "{found:?} of {whole:?}");
        }
    }
}
