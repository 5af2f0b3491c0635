//! Real programs under a mixed load for some time: every job ends as expected, and memory and open files stop
//! growing.
//!
//! The load consists of the bundled agents with their tests, cancels, delays, followed events, large payloads and
//! refused requests.

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

/// Small limits on the data that a controller keeps, so that they are reached early in the run and only a leak can grow
/// afterwards.
const CONTROLLER: [&str; 4] = ["--idempotency-keys-max", "1000", "--snapshot-log", "1MiB"];

/// More concurrency permits than cores, so that the slots of different agents take turns.
const WORKER: [&str; 2] = ["--places", "4"];

/// Number of samples in a run; at most one per second is taken.
const SAMPLES: u32 = 180;

/// Options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Duration of the load.
    pub lasts: Duration,
    /// Number of clients, each with one job at a time.
    pub clients: usize,
    /// The seed of the load.
    pub seed: u64,
    /// The folder for the data of the programs.
    pub folder: PathBuf,
    /// Set to true to end the load early.
    pub stop: Arc<AtomicBool>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Report {
    /// Number of jobs that ended as expected.
    pub jobs: u64,
    /// Unexpected results, one line each.
    pub wrong: Vec<String>,
    pub controller: Growth,
    pub worker: Growth,
}

impl Report {
    /// Whether all jobs ended as expected and nothing grows.
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

/// Starts a controller and a worker, runs the load and samples both processes.
///
/// # Errors
/// If the run is not possible: a package cannot be created, or a program ended.
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

    /// The run is too short to check growth.
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
