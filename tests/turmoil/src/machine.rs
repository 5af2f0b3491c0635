//! The machines under the programs: clock, random numbers, network and files of one simulated host.

mod clock;
mod files;
mod liar;
mod net;
mod real;

use std::sync::{Arc, Mutex, PoisonError};

use atlas_env::{Entropy, Env, Threads, Vitals};
use atlas_sim::Rng;

pub(crate) use clock::{Skew, now};

use clock::Clock;
pub(crate) use files::SimFiles;
pub(crate) use liar::{Liar, Lie};
pub(crate) use net::{Accepted, Net, Sockets};
pub(crate) use real::Simulated;

/// Random numbers determined by a seed.
struct Numbers(Mutex<Rng>);

impl Entropy for Numbers {
    fn u64(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// The environment of a program that starts now.
pub(crate) fn env(seed: u64, skew: Skew, files: SimFiles, sockets: Sockets) -> Env {
    Env {
        clock: Arc::new(Clock::new(skew)),
        entropy: Arc::new(Numbers(Mutex::new(Rng::new(seed)))),
        net: Arc::new(Net(sockets)),
        files: Arc::new(files),
        threads: Threads::None,
        vitals: Vitals::default(),
    }
}
