//! A machine for tests: virtual time, numbers that do not vary, and a network in memory.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Clock, Entropy, Env};
use atlas_types::Timestamp;

use crate::network::Memory;

/// The time at which tests begin: 2026-11-23 18:00:00 UTC.
pub(crate) const BEGIN: i64 = 1_795_456_800;

struct Virtual(tokio::time::Instant);

impl Clock for Virtual {
    fn wall(&self) -> Timestamp {
        Timestamp(BEGIN * 1_000_000 + i64::try_from(self.monotonic().as_micros()).expect("a short test"))
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(wait(duration))
    }
}

/// Waits in virtual time.
#[expect(clippy::disallowed_methods, reason = "this is the clock of the tests; its time is virtual")]
pub(crate) async fn wait(duration: Duration) {
    tokio::time::sleep(duration).await;
}

struct Zero;

impl Entropy for Zero {
    fn u64(&self) -> u64 {
        0
    }
}

/// Runs a test in virtual time.
pub(crate) fn run<F: Future>(test: impl FnOnce(Env, Arc<Memory>) -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let network = Arc::new(Memory::default());
        let clock = Arc::new(Virtual(tokio::time::Instant::now()));
        let env = Env { clock, entropy: Arc::new(Zero), net: Arc::clone(&network) as _, ..Env::system() };
        test(env, network).await
    })
}
