//! Tests timestamps of entries when the leader's wall clock is wrong.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};

use atlas_env::{Clock, SystemClock};
use atlas_types::Timestamp;

use super::*;

const MONTH_MICROS: i64 = 31 * 24 * 3_600 * 1_000_000;

/// The system clocks, with a wall clock that can be set.
struct Settable {
    machine: SystemClock,
    ahead_micros: AtomicI64,
}

impl Clock for Settable {
    fn wall(&self) -> Timestamp {
        Timestamp(self.machine.wall().0 + self.ahead_micros.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.machine.monotonic()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.machine.sleep(duration)
    }
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_does_not_reach_the_log() {
    let (dir, disk) = (tempfile::tempdir().expect("temporary directory"), SimDisk::default());
    let clock = Arc::new(Settable { machine: SystemClock::new(), ahead_micros: AtomicI64::new(0) });
    let env = Env { clock: clock.clone(), ..Env::system() };
    let (handle, service) = soon(start_on(Box::new(disk.driver()), options(dir.path()), env)).await.expect("starts");
    leads(&handle).await;
    let apart = |handle: &Handle| clock.machine.wall().0 - handle.applied().at().0;
    soon(handle.propose(vec![set(1)])).await.expect("applied");
    assert!((0..5_000_000).contains(&apart(&handle)), "{}", apart(&handle));

    // Entries are proposed before the next clock check and after it.
    clock.ahead_micros.store(MONTH_MICROS, Ordering::Relaxed);
    for number in 2..5 {
        soon(handle.propose(vec![set(number)])).await.expect("applied");
        assert!(apart(&handle).abs() < 5_000_000, "entry {number}: {}", apart(&handle));
        let mut doubt = handle.clock_doubt();
        soon(doubt.wait_for(Option::is_some)).await.expect("lives");
    }
    // The wall clock is right again, so later entries have the right time.
    clock.ahead_micros.store(0, Ordering::Relaxed);
    soon(handle.propose(vec![set(5)])).await.expect("applied");
    assert!(apart(&handle).abs() < 5_000_000, "{}", apart(&handle));
    soon(service.shutdown()).await;
}
