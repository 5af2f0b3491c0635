//! `atlas-controller` and `atlas-worker` as two processes of a test, which can be killed separately.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::process::Process;
use crate::program::program;

/// A controller process that keeps its ports across restarts.
#[derive(Debug)]
pub(crate) struct Controller {
    process: Process,
    pub(crate) http: SocketAddr,
    pub(crate) workers: SocketAddr,
}

impl Controller {
    /// Starts a controller on free ports with its data under `folder`.
    #[cfg(test)]
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    /// Like `start`, with additional options.
    pub(crate) fn start_with(folder: &Path, options: &[&str]) -> Self {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start_at(folder, free, free, options)
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What it logged so far.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.process.text()
    }

    /// Sends SIGTERM and waits until the process ends; returns the exit code.
    pub(crate) fn end(self) -> Option<i32> {
        self.process.end(nix::sys::signal::Signal::SIGTERM)
    }

    /// `kill -9`.
    #[cfg(test)]
    pub(crate) fn kill(self) {
        self.process.kill();
    }

    /// `kill -9`, and a restart with the same data and ports.
    #[cfg(test)]
    pub(crate) fn kill_and_restart(self, folder: &Path) -> Self {
        let (http, workers) = (self.http, self.workers);
        self.process.kill();
        Self::start_at(folder, http, workers, &[])
    }

    fn start_at(folder: &Path, http: SocketAddr, workers: SocketAddr, options: &[&str]) -> Self {
        let mut command = Command::new(program("atlas-controller"));
        command.arg("--data-dir").arg(folder.join("controller")).args(["--log", "info"]);
        command.args(["--http-listen", &http.to_string(), "--worker-listen", &workers.to_string()]);
        command.args(["--peer-listen", "127.0.0.1:0"]).args(options);
        let mut process = Process::start(&mut command);
        let (http, workers) = process.says("the controller has started", |text| {
            let line = text.lines().find(|line| line.contains("controller started"))?;
            let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
            Some((field("http=")?, field("workers=")?))
        });
        Self { process, http, workers }
    }
}

/// Starts a worker with its data under `folder`.
#[cfg(test)]
pub(crate) fn worker(folder: &Path, controller: &Controller) -> Process {
    worker_with(folder, controller, &[])
}

/// Starts a worker with additional options.
pub(crate) fn worker_with(folder: &Path, controller: &Controller, options: &[&str]) -> Process {
    Process::start(worker_command(folder, controller).args(options))
}

/// How one is started.
pub(crate) fn worker_command(folder: &Path, controller: &Controller) -> Command {
    let mut command = Command::new(program("atlas-worker"));
    command.args(["--node", "w1", "--controller", &controller.workers.to_string()]);
    command.arg("--data-dir").arg(folder.join("worker"));
    command
}
