//! `atlasctl dev` as a process of a test, on free ports.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::process::Process;
use crate::program::program;

/// A running development cluster.
#[derive(Debug)]
pub struct Dev {
    process: Process,
    server: String,
}

impl Dev {
    /// Starts `atlasctl dev --port 0 ARGUMENTS` in `folder` and waits until it is ready.
    pub fn start<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::start_with(folder, arguments, [])
    }

    /// Like [`Self::start`], with variables in its environment.
    pub fn start_with<'e, A: AsRef<OsStr>>(
        folder: &Path,
        arguments: impl IntoIterator<Item = A>,
        environment: impl IntoIterator<Item = (&'e str, &'e str)>,
    ) -> Self {
        let mut command = Command::new(program("atlasctl"));
        command.args(["dev", "--port", "0", "--node", "laptop"]).args(arguments).current_dir(folder);
        // Clusters that keep their data make a key of secrets in the user's folder.
        command.env("XDG_CONFIG_HOME", folder.join(".config"));
        // A killed cluster cannot remove its folders: they go with that of the test.
        let temporary = folder.join(".temporary");
        std::fs::create_dir_all(&temporary).expect("a folder");
        command.env("TMPDIR", temporary);
        // What a machine offers for sandboxes is a label of its node.
        command.env("ATLAS_SANDBOX", "off").env("ATLAS_CONTAINER_ENGINE", "no-engine").envs(environment);
        let mut process = Process::start(&mut command);
        let server = process.says("atlasctl dev is ready", |text| {
            let api = text.lines().find_map(|line| line.trim().strip_prefix("API ")?.split_whitespace().next());
            api.filter(|_| text.contains("Ready in")).map(|api| api.trim_end_matches("/api").to_owned())
        });
        Self { process, server }
    }

    /// The address of its HTTP API, without a path.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The output on stderr so far.
    pub fn text(&self) -> String {
        self.process.text()
    }

    /// `kill -9`.
    pub fn kill(self) {
        self.process.kill();
    }

    /// Ctrl-C; returns the exit code.
    pub fn interrupt(self) -> Option<i32> {
        self.process.end(Signal::SIGINT)
    }

    /// Ctrl-C; returns the exit code and the whole output on stderr.
    pub fn interrupt_with_words(self) -> (Option<i32>, String) {
        self.process.end_with_words(Signal::SIGINT)
    }
}
