//! Measurements of whole processes: how long `atlasctl dev` takes to be ready, and how much memory idle programs use.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;

use crate::figures::Row;

/// The number of starts of one row.
const STARTS: usize = 10;

/// The time until memory that was needed only for the start has been released.
const IDLE: Duration = Duration::from_secs(3);

/// Measures the time from the start of the process to "Ready" with an empty data folder.
pub(crate) fn start(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let mut latencies = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let begun = env.clock.monotonic();
        let dev = Running::dev()?;
        latencies.push(env.clock.monotonic() - begun);
        drop(dev);
    }
    latencies.sort_unstable();
    let median = latencies[STARTS / 2].as_secs_f64() * 1000.0;
    Ok(vec![Row::amount("start_dev", median, "ms").value_against("60 ms", 60.0)])
}

/// Measures the resident memory of idle programs: all in one process, and a controller with a connected worker.
pub(crate) fn memory(_env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let dev = Running::dev()?;
    std::thread::sleep(IDLE);
    let dev_mib = resident_mib(&dev)?;
    drop(dev);
    let folder = tempfile::tempdir_in(".")?;
    let (http, workers) = (free_address()?, free_address()?);
    let controller = Running::start(
        Command::new(program("atlas-controller")?).arg("--data-dir").arg(folder.path().join("controller")).args([
            "--http-listen",
            &http,
            "--worker-listen",
            &workers,
            "--peer-listen",
            "127.0.0.1:0",
        ]),
        |line| line.contains("controller started"),
    )?;
    let worker = Running::start(
        Command::new(program("atlas-worker")?)
            .arg("--data-dir")
            .arg(folder.path().join("worker"))
            .args(["--controller", &workers]),
        |line| line.contains("session open"),
    )?;
    std::thread::sleep(IDLE);
    let row = |name, mib, limit: f64| Row::amount(name, mib, "MiB").value_against(&format!("{limit} MiB"), limit);
    Ok(vec![
        row("memory_dev", dev_mib, 28.0),
        row("memory_controller", resident_mib(&controller)?, 20.0),
        row("memory_worker", resident_mib(&worker)?, 8.0),
    ])
}

/// An address of this machine on which no program listens.
pub(crate) fn free_address() -> Result<String> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// A running program, killed when dropped.
pub(crate) struct Running {
    child: Child,
    /// Kept open: a program whose log output is not read behaves differently.
    stderr: Option<BufReader<ChildStderr>>,
}

impl Running {
    fn dev() -> Result<Self> {
        let mut command = Command::new(program("atlasctl")?);
        command.args(["dev", "--ephemeral", "--port", "0", "--agents", "./no-agents"]);
        Self::start(&mut command, |line| line.starts_with("Ready"))
    }

    /// Starts a program and waits until it reports that it is ready.
    pub(crate) fn start(command: &mut Command, is_ready: impl Fn(&str) -> bool) -> Result<Self> {
        let name = command.get_program().display().to_string();
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut running = Self { child: child.with_context(|| format!("{name} starts"))?, stderr: None };
        let mut stderr = BufReader::new(running.child.stderr.take().context("piped")?);
        let ready = stderr.by_ref().lines().map_while(Result::ok).any(|line| is_ready(&line));
        ensure!(ready, "{name} ended before it was ready");
        running.stderr = Some(stderr);
        Ok(running)
    }

    /// Reads the log output from now on: a program that says more than a pipe holds would stand still.
    pub(crate) fn drain(&mut self, env: &Env) {
        if let Some(mut stderr) = self.stderr.take() {
            env.spawn_blocking("read log", move || std::io::copy(&mut stderr, &mut std::io::sink()));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended on its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program in the same directory as this one. `cargo xtask bench` builds them all.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.is_file(), "{} is missing: cargo build --release --workspace --bins", path.display());
    Ok(path)
}

pub(crate) fn resident_mib(running: &Running) -> Result<f64> {
    resident_mib_of(running.child.id())
}

/// The memory of a process that is in RAM.
pub(crate) fn resident_mib_of(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib / 1024.0)
}

/// The bytes of all files below a folder whose names begin with a text.
pub(crate) fn bytes_below(folder: &Path, prefix: &str) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            bytes += bytes_below(&entry.path(), prefix)?;
        } else if entry.file_name().to_string_lossy().starts_with(prefix) {
            bytes += metadata.len();
        }
    }
    Ok(bytes)
}
