//! When a resource is tried again.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// The pause after so many failures in a row: twice as long each time, five minutes at most.
pub(crate) fn pause(failures: u32) -> Duration {
    let factor = 1_u32 << failures.saturating_sub(1).min(16);
    FIRST.saturating_mul(factor).min(LONGEST)
}

#[test]
fn pauses_grow_up_to_a_bound() {
    let seconds: Vec<u64> = [0, 1, 2, 3, 9, 10, 100, u32::MAX].map(|failures| pause(failures).as_secs()).to_vec();
    assert_eq!(seconds, [1, 1, 2, 4, 256, 300, 300, 300]);
}
