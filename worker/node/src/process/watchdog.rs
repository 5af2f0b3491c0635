//! The lease watchdog: sends the end of the leases to the supervisors, which kill processes even if the worker is
//! stopped (SIGSTOP, a debugger, a machine that swaps).
//!
//! The worker stops attempts by its own clock; this is the second line of defence, a little later and still before the
//! lease ends. Supervisors get an instant of `CLOCK_BOOTTIME`, which all processes of a machine share and which
//! continues during sleep, so it does not matter when they read it. Every renewal is sent to every tree, including idle
//! ones, so that nothing needs to be sent when a job begins. A worker without a session keeps its idle programs: it
//! removes their end, because no attempt runs in them.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::Clock;
use nix::time::{ClockId, clock_gettime};

/// Starts a message to a supervisor. Eight bytes follow: the time in nanoseconds since boot at which the tree is
/// killed, or 0 for never.
pub(super) const UNTIL: u8 = b'u';

/// The end of the leases, as all trees of a worker know it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeaseWatchdog {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The end of the leases since boot. None while there is no session.
    until: Option<Duration>,
    trees: BTreeMap<u64, Held>,
    next: u64,
}

#[derive(Debug)]
struct Held {
    control: Arc<UnixStream>,
    /// True while an attempt runs in it.
    busy: bool,
}

impl LeaseWatchdog {
    /// Sets the end of all leases to `end` by `clock`.
    pub(crate) fn extend(&self, end: Duration, clock: &dyn Clock) {
        // The boot clock is read first: if the worker is stopped between the two reads, the computed end is too early
        // and not too late.
        let Ok(boot) = clock_gettime(ClockId::CLOCK_BOOTTIME) else { return };
        let until = Duration::from(boot) + end.saturating_sub(clock.monotonic());
        let mut shared = self.lock();
        shared.until = Some(until);
        shared.trees.values().for_each(|held| held.tell(Some(until)));
    }

    /// Handles the end of the session. Running attempts keep their end.
    pub(crate) fn lift(&self) {
        let mut shared = self.lock();
        shared.until = None;
        shared.trees.values().filter(|held| !held.busy).for_each(|held| held.tell(None));
    }

    /// Registers a new tree that is busy with an attempt. Also returns its first end for the supervisor's command line.
    pub(super) fn hold(&self, control: Arc<UnixStream>) -> (Hold, u64) {
        let mut shared = self.lock();
        let number = shared.next;
        shared.next += 1;
        shared.trees.insert(number, Held { control, busy: true });
        (Hold { watchdog: self.clone(), number }, nanoseconds(shared.until))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Every change is complete while the lock is held, so a panic elsewhere cannot corrupt the data.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn tell(&self, until: Option<Duration>) {
        let mut word = [UNTIL; 9];
        word[1..].copy_from_slice(&nanoseconds(until).to_be_bytes());
        // Such a short message is written completely or not at all. A supervisor that does not read keeps its last end,
        // or has ended with its tree.
        let _ = (&*self.control).write(&word);
    }
}

/// A tree's registration with the watchdog. Dropping it removes the registration.
#[derive(Debug)]
pub(super) struct Hold {
    watchdog: LeaseWatchdog,
    number: u64,
}

impl Hold {
    /// Sets whether an attempt runs in the tree.
    pub(super) fn set_busy(&self, busy: bool) {
        let mut shared = self.watchdog.lock();
        let without_session = shared.until.is_none();
        let Some(held) = shared.trees.get_mut(&self.number) else { return };
        held.busy = busy;
        if !busy && without_session {
            held.tell(None);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.watchdog.lock().trees.remove(&self.number);
    }
}

fn nanoseconds(until: Option<Duration>) -> u64 {
    until.map_or(0, |until| u64::try_from(until.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use atlas_env::Env;

    use super::*;

    /// For each end that a supervisor received: true for a time, false for none.
    fn told(supervisor: &mut UnixStream) -> Vec<bool> {
        let mut words = Vec::new();
        supervisor.set_nonblocking(true).expect("settable");
        // Reading stops after the messages that have arrived.
        let _ = supervisor.read_to_end(&mut words);
        words.chunks(9).map(|word| word[1..] != [0; 8]).collect()
    }

    #[test]
    fn idle_trees_are_let_go_without_a_session_and_busy_ones_when_they_are_done() {
        let clock = Env::system().clock;
        let watchdog = LeaseWatchdog::default();
        let pair = || UnixStream::pair().expect("a pair");
        let ((ours, mut busy_supervisor), (other, mut idle_supervisor)) = (pair(), pair());
        let (busy, first) = watchdog.hold(Arc::new(ours));
        let (idle, _) = watchdog.hold(Arc::new(other));
        assert_eq!(first, 0);
        idle.set_busy(false);
        watchdog.extend(clock.monotonic() + Duration::from_secs(1), &*clock);
        watchdog.lift();
        assert_eq!((told(&mut busy_supervisor), told(&mut idle_supervisor)), (vec![true], vec![false, true, false]));
        busy.set_busy(false);
        assert_eq!(told(&mut busy_supervisor), [false]);
        drop(idle);
        watchdog.extend(clock.monotonic() + Duration::from_secs(1), &*clock);
        assert_eq!((told(&mut busy_supervisor), told(&mut idle_supervisor)), (vec![true], vec![]));
    }
}
