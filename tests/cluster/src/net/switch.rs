//! What joins the hosts: a loop that carries frames from device to device and breaks what it was told to break.
//!
//! Everything it draws comes from a seed. What it cannot promise is the order of frames of different senders: that is the machine's.

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

/// What happens to the frames of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// None arrives.
    pub cut: bool,
    /// So many in a thousand do not arrive.
    pub loss: u64,
    /// So many in a thousand arrive twice.
    pub duplication: u64,
    /// How long each takes.
    pub delay: Duration,
    /// How much longer it may take, drawn for each.
    pub jitter: Duration,
}

/// The longest frame: our devices have the usual size of a packet, and a header before it.
const FRAME_BYTES: usize = 1 << 11;

/// Frames that wait for their time; more are lost, as in a real queue.
const WAITING_MAX: usize = 10_000;

/// A running switch.
#[derive(Debug)]
pub(super) struct Switch {
    links: Arc<Mutex<Vec<Vec<Link>>>>,
    /// Its loop ends when this end of the pipe is closed.
    _stop: std::io::PipeWriter,
}

impl Switch {
    /// Joins the devices, each by the number of its host.
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

/// A frame that arrives later: when, a number that keeps the order, from where, to where, its bytes.
type Waiting = Reverse<(Duration, u64, usize, usize, Vec<u8>)>;

/// The loop's own.
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
                // Whatever is there, but not for ever: one sender must not hold up the others.
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
        // Rounded up: a loop that wakes too early only wakes again.
        PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
    }

    /// Decides about a frame and sends it on.
    fn carry(&mut self, from: usize, frame: &[u8]) {
        // Hosts' hardware addresses differ in their last byte only. There is nothing to broadcast.
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
            // A link that was cut meanwhile loses what was on its way.
            if !lock(&self.links)[from][to].cut {
                self.write(to, &frame);
            }
        }
    }

    fn write(&self, to: usize, frame: &[u8]) {
        // A device whose queue is full, or whose host is gone, loses the frame.
        let _ = (&self.ports[to]).write(frame);
    }
}
