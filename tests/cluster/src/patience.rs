//! Waiting for a condition with a deadline: on the level, never on the edge, and never by a fixed sleep.

use std::time::Duration;

use atlas_env::Env;

/// Longer than anything here takes on a loaded machine; a test that reaches it has failed.
pub const LONG: Duration = Duration::from_secs(60);

/// Asks `probe` again and again until it has an answer; panics with what was waited for when the time is up.
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

/// The same for a probe that must wait for its answer; what it saw last is told when the time is up.
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
