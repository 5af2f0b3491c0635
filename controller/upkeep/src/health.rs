//! Periodic measurements of a controller: its disk, its clock, its last backup, its certificate, the time since its digest agreed with the others, and
//! idempotency keys that were dropped early.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::Desk;
use atlas_types::Timestamp;

/// The interval of the measurements.
const EVERY: Duration = Duration::from_secs(1);

/// Sets the gauges until the controller stops.
pub async fn watch(desk: Arc<Desk>) {
    let handle = &desk.handle;
    let (disk, doubt, agreement) = (handle.disk(), handle.clock_doubt(), handle.agreement());
    let mut panics = handle.task_panics();
    let mut forgotten = handle.applied().requests_forgotten_early();
    loop {
        let whole = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        desk.metrics.disk_free.set(whole(disk.borrow().free_bytes));
        let upkeep = handle.upkeep();
        let seconds = |time: Option<Timestamp>| time.map_or(0, |time| time.0 / 1_000_000);
        desk.metrics.backup_time.set(seconds(upkeep.backup_at));
        desk.metrics.certificate_due.set(seconds(upkeep.certificate_due));
        desk.metrics.clock_doubt_count.set(i64::from(doubt.borrow().is_some()));
        let panics_before = std::mem::replace(&mut panics, handle.task_panics());
        desk.metrics.leader_task_panics.inc_by(panics - panics_before);
        let agreed = agreement.borrow().seq.0;
        let state = handle.applied();
        desk.metrics.digest_lag.set(whole(state.seq().0.saturating_sub(agreed)));
        // A state that came as a snapshot may have a lower count.
        let before = std::mem::replace(&mut forgotten, state.requests_forgotten_early());
        desk.metrics.request_forgets.inc_by(forgotten.saturating_sub(before));
        desk.env.clock.sleep(EVERY).await;
    }
}
