//! Measures the time without answers when the leader of three dies, and whether a fully loaded leader is mistaken for
//! dead.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use atlas_cluster_tests::chaos::{Layout, Rig};
use atlas_env::Env;
use futures::future::join_all;
use serde_json::json;

use crate::figures::Row;
use crate::http::{Connection, request};

/// How often the leader is killed.
const KILLS: usize = 12;

/// The number of clients that send requests continuously.
const CLIENTS: usize = 4;

/// The time limit for an answer of a running controller.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// How long after a kill a gap is searched for.
const LOOKED_FOR: Duration = Duration::from_secs(5);

/// How long the leader is fully loaded.
const LOADED: Duration = Duration::from_secs(10);

/// The number of clients that produce the full load.
const LOAD: usize = 256;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir_in(".")?;
    let mut rig = start(folder.path())?;
    let elections = elections_under_load(env, &rig)?;
    let mut gaps = Vec::with_capacity(KILLS);
    for _ in 0..KILLS {
        gaps.push(gap(env, &mut rig)?);
    }
    gaps.sort_unstable();
    let row = |name, gap: Duration, limit: f64| {
        Row::amount(name, gap.as_secs_f64() * 1e3, "ms").value_against(&format!("{limit} ms"), limit)
    };
    Ok(vec![
        row("failover_gap_p50", gaps[KILLS / 2], 300.0),
        row("failover_gap_max", gaps[KILLS - 1], 600.0),
        Row::amount("false_elections", elections as f64, "in 10 s"),
    ])
}

/// Three controllers without workers on the loopback network.
pub(crate) fn start(folder: &std::path::Path) -> Result<Rig> {
    let layout = Layout { controllers: 3, workers: 0, queue_max: 10_000_000, ..Layout::SMALL };
    std::fs::create_dir_all(folder)?;
    Rig::on_loopback(&layout, &std::fs::canonicalize(folder)?).map_err(|error| anyhow!(error))
}

/// Kills the leader and waits until it is back. Returns the longest time between two answers.
fn gap(env: &Env, rig: &mut Rig) -> Result<Duration> {
    let leader = rig.leader().context("no leader")?;
    let asking = Asking::start(env, rig.addresses())?;
    std::thread::sleep(Duration::from_millis(500));
    let killed_at = env.clock.monotonic();
    rig.kill(leader);
    std::thread::sleep(LOOKED_FOR);
    let answered = asking.end()?;
    rig.start_again(leader).map_err(|error| anyhow!(error))?;
    let before = answered.iter().rev().find(|at| **at <= killed_at).copied().context("nobody was answered before")?;
    let after = answered.iter().filter(|at| **at > killed_at);
    let mut last = before;
    let mut longest = Duration::ZERO;
    for at in after {
        longest = longest.max(*at - last);
        last = *at;
    }
    ensure!(
        (killed_at + LOOKED_FOR).saturating_sub(last) < LOOKED_FOR / 2,
        "nobody was answered for long after the kill"
    );
    Ok(longest)
}

/// Counts changes of the term while the leader is fully loaded.
fn elections_under_load(env: &Env, rig: &Rig) -> Result<u64> {
    let term = |rig: &Rig| rig.get(0, "/api/cluster").and_then(|status| status["term"].as_u64()).context("no term");
    let before = term(rig)?;
    let leader = rig.addresses()[rig.leader().context("no leader")?];
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let until = env.clock.monotonic() + LOADED;
    let one = || async {
        let mut connection = Connection::open(leader).await?;
        while env.clock.monotonic() < until {
            connection.send(&submit()).await?;
        }
        anyhow::Ok(())
    };
    client.block_on(async { join_all((0..LOAD).map(|_| one())).await.into_iter().collect::<Result<()>>() })?;
    Ok(term(rig)? - before)
}

/// A job that waits, because there is no worker. Only its recording is measured.
pub(crate) fn submit() -> Vec<u8> {
    request("POST", "/api/jobs", json!({"agent": "again", "input": {"ms": 1}}).to_string().as_bytes())
}

/// Clients that record the times of their answers. Each client tries the controllers until one answers.
struct Asking {
    stop: Arc<AtomicBool>,
    answered: Arc<Mutex<Vec<Duration>>>,
    thread: JoinHandle<Result<()>>,
}

impl Asking {
    fn start(env: &Env, controllers: Vec<SocketAddr>) -> Result<Self> {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<Duration>>>::default());
        let (env, told, noted) = (env.clone(), Arc::clone(&stop), Arc::clone(&answered));
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let one = |number: usize| ask(&env, &controllers, number, &told, &noted);
            runtime.block_on(join_all((0..CLIENTS).map(one)));
            Ok(())
        };
        let thread = std::thread::Builder::new().name("clients".to_owned()).spawn(work)?;
        Ok(Self { stop, answered, thread })
    }

    /// Stops the clients and returns the times of all answers in order.
    fn end(self) -> Result<Vec<Duration>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the clients panicked"))??;
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        answered.sort_unstable();
        Ok(answered)
    }
}

async fn ask(env: &Env, controllers: &[SocketAddr], number: usize, stop: &AtomicBool, answered: &Mutex<Vec<Duration>>) {
    let submit = submit();
    let mut which = number;
    while !stop.load(Ordering::Relaxed) {
        which += 1;
        let Ok(mut connection) = Connection::open(controllers[which % controllers.len()]).await else {
            env.clock.sleep(Duration::from_millis(5)).await;
            continue;
        };
        while !stop.load(Ordering::Relaxed) {
            let sent = tokio::select! {
                sent = connection.send(&submit) => sent.is_ok(),
                () = env.clock.sleep(ANSWER_MAX) => false,
            };
            if !sent {
                break;
            }
            answered.lock().unwrap_or_else(PoisonError::into_inner).push(env.clock.monotonic());
        }
    }
}
