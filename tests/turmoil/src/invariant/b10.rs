//! Timeouts run on cluster time, which is never faster than real time: no jump of a clock ends a limit or backoff early.

use super::{APART, Invariant};
use crate::oracle::Facts;
use crate::seen::Seen;

pub(crate) struct TimeoutsTakeTheirTime;

impl Invariant for TimeoutsTakeTheirTime {
    fn name(&self) -> &'static str {
        "B.10 timeouts take their time"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let Seen::Applied { batch, .. } = seen else { return Ok(()) };
        // Cluster time starts at zero with the first member and stands still without a leader. No entry is applied
        // before it is stamped.
        let most = facts.now + facts.now / APART;
        let clock = batch.state.clock();
        if u128::from(clock.0) <= most.as_micros() {
            return Ok(());
        }
        Err(format!("after {:?} the cluster's clock shows {} µs, at entry {}", facts.now, clock.0, batch.index))
    }
}
