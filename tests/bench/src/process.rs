//! What only whole processes show: how long `atlasctl dev` takes to be ready, and what idle programs hold in memory.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;

use crate::figures::Row;

/// Starts of one row.
const STARTS: usize = 10;

/// Until what was needed to start has been given back.
const IDLE: Duration = Duration::from_secs(3);

/// From the start of the process to "Ready", with an empty data folder.
pub(crate) fn start(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let mut latencies = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let begun = env.clock.monotonic();
        let dev = Dev::start()?;
        latencies.push(env.clock.monotonic() - begun);
        drop(dev);
    }
    latencies.sort_unstable();
    let median = latencies[STARTS / 2].as_secs_f64() * 1000.0;
    Ok(vec![Row::amount("start_dev", median, "ms").value_against("300 ms", 300.0)])
}

/// Resident memory of an idle `atlasctl dev`.
pub(crate) fn memory(_env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let dev = Dev::start()?;
    std::thread::sleep(IDLE);
    let resident = resident_mib(dev.0.id())?;
    Ok(vec![Row::amount("memory_dev", resident, "MiB").value_against("50 MiB", 50.0)])
}

/// A running `atlasctl dev`, killed when dropped.
struct Dev(Child);

impl Dev {
    fn start() -> Result<Self> {
        let mut command = Command::new(program("atlasctl")?);
        command.args(["dev", "--ephemeral", "--port", "0", "--agents", "./no-agents"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("atlasctl starts")?;
        let stderr = child.stderr.take().context("piped")?;
        let dev = Self(child);
        let ready = BufReader::new(stderr).lines().map_while(Result::ok).any(|line| line.starts_with("Ready"));
        ensure!(ready, "atlasctl dev ended before it was ready");
        Ok(dev)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program beside this one: `cargo xtask bench` builds them all.
fn program(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.is_file(), "{} is missing: cargo build --release --workspace --bins", path.display());
    Ok(path)
}

fn resident_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib / 1024.0)
}
