//! Waits for a condition with a deadline: polls the state instead of waiting for a change, and never sleeps for a fixed
//! time.

use std::time::Duration;

use atlas_env::Env;

/// Longer than any wait here takes on a loaded machine; a test that reaches this deadline has failed.
pub const LONG: Duration = Duration::from_secs(60);

/// Calls `probe` until it returns a value; panics with `what` at the deadline.
#[track_caller]
pub fn eventually<T>(what: &str, within: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let clock = Env::system().clock;
    let deadline = clock.monotonic() + within;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(clock.monotonic() < deadline, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Like [`eventually`], with an async probe; at the deadline, it panics with the probe's last error.
#[cfg(test)]
pub(crate) async fn eventually_async<T>(what: &str, probe: impl AsyncFn() -> Result<T, String>) -> T {
    let clock = Env::system().clock;
    let deadline = clock.monotonic() + LONG;
    loop {
        match probe().await {
            Ok(found) => return found,
            Err(last) => assert!(clock.monotonic() < deadline, "not within {LONG:?}: {what}: {last}"),
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
}
