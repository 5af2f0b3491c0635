//! The switch between the hosts: a loop that forwards frames from device to device and applies the faults of the links.
//!
//! All random decisions come from a seed, but the order of frames from different senders depends on the machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use atlas_env::Env;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::rng::Rng;

/// The faults of one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// No frame arrives.
    pub cut: bool,
    /// Lost frames per thousand.
    pub loss: u64,
    /// Duplicated frames per thousand.
    pub duplication: u64,
    /// Delay of each frame.
    pub delay: Duration,
    /// Maximum random additional delay of each frame.
    pub jitter: Duration,
}

/// Maximum frame size; the devices have the usual MTU, plus a header.
const FRAME_BYTES: usize = 1 << 11;

/// Maximum number of delayed frames; further frames are lost, as in a real queue.
const WAITING_MAX: usize = 10_000;

/// A running switch.
#[derive(Debug)]
pub(super) struct Switch {
    links: Arc<Mutex<Vec<Vec<Link>>>>,
    /// The loop ends when this end of the pipe is closed.
    _stop: std::io::PipeWriter,
}

impl Switch {
    /// Starts a switch between the devices; a device's index is the number of its host.
    pub(super) fn start(ports: Vec<File>, seed: u64) -> Self {
        let links = Arc::new(Mutex::new(vec![vec![Link::default(); ports.len()]; ports.len()]));
        let (stopped, stop) = std::io::pipe().expect("a pipe");
        let carrier = Carrier {
            ports,
            links: Arc::clone(&links),
            rng: Rng::new(seed),
            waiting: BinaryHeap::new(),
            sent: 0,
            env: Env::system(),
        };
        let run = move || carrier.run(&stopped);
        thread::Builder::new().name("switch".to_owned()).spawn(run).expect("a thread");
        Self { links, _stop: stop }
    }

    pub(super) fn set(&self, from: usize, to: usize, link: Link) {
        lock(&self.links)[from][to] = link;
    }

    pub(super) fn heal(&self) {
        lock(&self.links).iter_mut().flatten().for_each(|link| *link = Link::default());
    }
}

fn lock(links: &Mutex<Vec<Vec<Link>>>) -> MutexGuard<'_, Vec<Vec<Link>>> {
    links.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A delayed frame: due time, sequence number, sender, receiver and bytes.
type Waiting = Reverse<(Duration, u64, usize, usize, Vec<u8>)>;

/// The state of the loop.
struct Carrier {
    ports: Vec<File>,
    links: Arc<Mutex<Vec<Vec<Link>>>>,
    rng: Rng,
    waiting: BinaryHeap<Waiting>,
    sent: u64,
    env: Env,
}

impl Carrier {
    fn run(mut self, stopped: &impl AsFd) {
        let mut frame = [0; FRAME_BYTES];
        loop {
            let ready = {
                let fds = self.ports.iter().map(AsFd::as_fd).chain([stopped.as_fd()]);
                let mut polled: Vec<PollFd<'_>> =
                    fds.map(|fd: BorrowedFd<'_>| PollFd::new(fd, PollFlags::POLLIN)).collect();
                if poll(&mut polled, self.timeout()).is_err_and(|error| error != nix::errno::Errno::EINTR) {
                    return;
                }
                polled.iter().map(|fd| fd.any() == Some(true)).collect::<Vec<_>>()
            };
            if ready.last() == Some(&true) {
                return;
            }
            for from in (0..self.ports.len()).filter(|&from| ready[from]) {
                // The number of frames per turn is limited, so that one sender cannot block the others.
                for _ in 0..64 {
                    let Ok(length) = (&self.ports[from]).read(&mut frame) else { break };
                    self.carry(from, &frame[..length]);
                }
            }
            self.deliver_due();
        }
    }

    fn timeout(&self) -> PollTimeout {
        let Some(Reverse((due, ..))) = self.waiting.peek() else { return PollTimeout::NONE };
        let left = due.saturating_sub(self.env.clock.monotonic());
        // Rounded up, because a loop that wakes too early has to wake again.
        PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
    }

    /// Applies the link's faults to a frame and forwards it.
    fn carry(&mut self, from: usize, frame: &[u8]) {
        // Hardware addresses of hosts differ only in their last byte. Broadcasts are not needed.
        let Some([2, 0, 0, 0, 0, number]) = frame.first_chunk() else { return };
        let Some(to) = usize::from(*number).checked_sub(1) else { return };
        if to >= self.ports.len() || to == from {
            return;
        }
        let link = lock(&self.links)[from][to];
        if link.cut || self.rng.chance(link.loss) {
            return;
        }
        let copies = if self.rng.chance(link.duplication) { 2 } else { 1 };
        for _ in 0..copies {
            if link.delay.is_zero() && link.jitter.is_zero() {
                self.write(to, frame);
            } else if self.waiting.len() < WAITING_MAX {
                let jitter = link.jitter.as_micros() as u64;
                let extra = Duration::from_micros(self.rng.below(jitter + 1));
                let due = self.env.clock.monotonic() + link.delay + extra;
                self.sent += 1;
                self.waiting.push(Reverse((due, self.sent, from, to, frame.to_vec())));
            }
        }
    }

    fn deliver_due(&mut self) {
        let now = self.env.clock.monotonic();
        while self.waiting.peek().is_some_and(|Reverse((due, ..))| *due <= now) {
            let Some(Reverse((_, _, from, to, frame))) = self.waiting.pop() else { return };
            // A link that was cut in the meantime loses its delayed frames.
            if !lock(&self.links)[from][to].cut {
                self.write(to, &frame);
            }
        }
    }

    fn write(&self, to: usize, frame: &[u8]) {
        // The frame is lost if the queue of the device is full or its host is gone.
        let _ = (&self.ports[to]).write(frame);
    }
}
