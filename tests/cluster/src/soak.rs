//! Real programs under a mixed load that goes on for a while: every job ends as expected, and memory and open files
//! stop growing.
//!
//! The load consists of the bundled agents with their tests, and of cancels, delays, followed
//! events, large payloads, requests that are refused.

mod growth;
mod load;
mod sample;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;

pub use growth::Growth;

use crate::pair::{Controller, worker_with};
use crate::rng::Rng;
use load::{Load, Tally};
use sample::Sample;

/// Bounds of what a controller keeps that are reached soon, snapshots among them: it is what lies beyond that must not grow.
const CONTROLLER: [&str; 4] = ["--idempotency-keys-max", "1000", "--snapshot-log", "1MiB"];

/// More places than cores: slots of different agents take turns.
const WORKER: [&str; 2] = ["--places", "4"];

/// So many samples in a run, at most one a second.
const SAMPLES: u32 = 180;

/// How long, and how much.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long there is load.
    pub lasts: Duration,
    /// Clients, each with one job at a time.
    pub clients: usize,
    /// Says all chances of the load.
    pub seed: u64,
    /// Where the programs keep their data.
    pub folder: PathBuf,
    /// Ends the load early once it is true.
    pub stop: Arc<AtomicBool>,
}

/// What was seen.
#[derive(Debug)]
pub struct Report {
    /// Jobs that ended as they should.
    pub jobs: u64,
    /// What ended otherwise, a line each.
    pub wrong: Vec<String>,
    pub controller: Growth,
    pub worker: Growth,
}

impl Report {
    /// Whether everything ended as it should and nothing grows.
    pub fn is_good(&self) -> bool {
        self.wrong.is_empty() && self.jobs > 0 && self.controller.is_flat() && self.worker.is_flat()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, wrong, controller, worker } = self;
        write!(f, "{jobs} jobs, {} wrong; controller {controller}; worker {worker}", wrong.len())
    }
}

/// Starts a controller and a worker, loads them and watches them.
///
/// # Errors
/// If there is nothing to watch: a package that cannot be made, a program that ended.
pub async fn run(options: &Options) -> Result<Report> {
    let env = Env::system();
    let controller = Controller::start_with(&options.folder, &CONTROLLER);
    let worker = worker_with(&options.folder, &controller, &WORKER);
    let load = Arc::new(Load::prepare(controller.http, env.clone()).await?);
    let over = Arc::new(AtomicBool::new(false));
    let mut rng = Rng::new(options.seed);
    let clients: Vec<_> = (0..options.clients.max(1))
        .map(|_| {
            let (load, rng, over) = (Arc::clone(&load), rng.fork(), Arc::clone(&over));
            env.spawn("client", async move { load.client(rng, &over).await })
        })
        .collect();

    let until = env.clock.monotonic() + options.lasts;
    let pause = (options.lasts / SAMPLES).max(Duration::from_secs(1));
    let (mut of_controller, mut of_worker) = (Vec::new(), Vec::new());
    while env.clock.monotonic() < until && !options.stop.load(Ordering::Relaxed) {
        env.clock.sleep(pause.min(until.saturating_sub(env.clock.monotonic()))).await;
        of_controller.push(Sample::of(controller.pid()).context("the controller has ended")?);
        of_worker.push(Sample::of(worker.pid()).context("the worker has ended")?);
    }
    over.store(true, Ordering::Relaxed);
    let mut tally = Tally::default();
    for client in clients {
        let seen = client.join().await;
        tally.add(seen.ok().context("a client has ended early")?);
    }
    ensure!(controller.end() == Some(0), "the controller did not end in order");
    let (controller, worker) = (Growth::of(&of_controller), Growth::of(&of_worker));
    Ok(Report { jobs: tally.jobs, wrong: tally.wrong, controller, worker })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Too short to tell what grows.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_mixed_load_ends_as_it_should() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            lasts: Duration::from_secs(8),
            clients: 4,
            seed: 1,
            folder: folder.path().to_owned(),
            stop: Arc::default(),
        };
        let report = run(&options).await.expect("it runs");
        assert_eq!(report.wrong, Vec::<String>::new());
        assert!(report.jobs > 20, "{report}");
    }
}
