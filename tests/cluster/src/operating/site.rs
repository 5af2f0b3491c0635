//! The machines on which the commands of a page run: `c1` to `c3` at 10.0.0.1 to 10.0.0.3 as on the pages, `w1`, `w2`, and
//! a desk.
//!
//! Each machine has its own network, `/var/lib` and working folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sys::signal::Signal;

use super::page::{DESK, Line, Page};
use crate::chaos::{Needs, skipped_aloud};
use crate::net::Network;
use crate::process::Process;
use crate::{LONG, eventually, program};

/// The machines, in the order of their addresses.
const MACHINES: [&str; 6] = ["c1", "c2", "c3", "w1", DESK, "w2"];
/// The directory that every controller gets: the certificate and key of the cluster, and the root token.
pub(super) const KEYS: &str = "keys";
/// Longest duration of a command that ends by itself.
const PATIENCE_S: &str = "90";

pub(super) struct Site {
    // Dropped before the network, on whose hosts the programs run.
    running: BTreeMap<String, Process>,
    /// The command that last started a program on each machine.
    started: BTreeMap<String, String>,
    /// The variables that were exported at the desk.
    exported: BTreeMap<String, String>,
    network: Network,
    folder: tempfile::TempDir,
}

impl Site {
    /// Creates machines with empty disks; none, with a notice, if this machine does not support namespaces.
    pub(super) fn new() -> Option<Self> {
        if skipped_aloud(&[Needs::Namespaces]) {
            return None;
        }
        let network = Network::isolated(&MACHINES, 1).expect("namespaces");
        let folder = tempfile::tempdir().expect("a folder");
        for machine in MACHINES {
            let lib = folder.path().join(machine).join("lib");
            fs::create_dir_all(&lib).expect("a folder");
            let bind = move || mount(Some(&lib), "/var/lib", None::<&str>, MsFlags::MS_BIND, None::<&str>);
            network.host(machine).run(bind).expect("mounted");
        }
        Some(Self { running: BTreeMap::new(), started: BTreeMap::new(), exported: BTreeMap::new(), network, folder })
    }

    /// The cluster of the page on sizing: three controllers and a worker.
    pub(super) fn of_three() -> Option<Self> {
        let mut site = Self::new()?;
        let mut page = Page::open("sizing.md");
        site.run(&page.next("atlasctl operator init"));
        site.carry(KEYS, "c1");
        site.start(&page.next("atlas-controller"));
        site.run(&page.next("export ATLAS_TOKEN="));
        site.run(&page.next("export ATLAS_CA_FILE="));
        site.run(&page.next("export ATLAS_SERVER="));
        for machine in ["c2", "c3"] {
            site.join(&mut page, machine);
        }
        site.run(&page.next("export ATLAS_SERVER="));
        site.all_vote();
        site.run(&page.next("atlasctl cluster status"));
        site.run(&page.next("atlasctl node token"));
        site.carry("w1.token", "w1");
        site.start(&page.next("atlas-worker"));
        page.end();
        Some(site)
    }

    /// Joins a controller: creates a token, copies it to the machine and uses it.
    pub(super) fn join(&mut self, page: &mut Page, machine: &str) {
        self.run(&page.next("atlasctl cluster join-token"));
        self.carry("join.token", machine);
        self.carry(KEYS, machine);
        self.start(&page.next("atlas-controller"));
        self.run(&page.next("rm join.token"));
    }

    pub(super) fn home(&self, machine: &str) -> PathBuf {
        self.folder.path().join(machine)
    }

    /// The shell command for a line.
    fn command(&self, line: &Line, before: &[&str]) -> Command {
        let programs = program("atlasctl").parent().expect("a folder").to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(before.first().copied().unwrap_or("sh"));
        command.args(before.get(1..).unwrap_or_default());
        if !before.is_empty() {
            command.arg("sh");
        }
        command.args(["-c", &line.command]).current_dir(self.home(&line.machine));
        command.env("PATH", format!("{}:{path}", programs.display())).env("NO_COLOR", "1");
        command.env("HOME", self.home(&line.machine)).env_remove("XDG_CONFIG_HOME");
        for variable in ["ATLAS_CONFIG", "ATLAS_SERVER", "ATLAS_TOKEN", "ATLAS_CA_FILE"] {
            command.env_remove(variable);
        }
        if line.machine == DESK {
            command.envs(&self.exported);
        }
        command
    }

    fn output(&self, line: &Line) -> Output {
        let mut command = self.command(line, &["timeout", PATIENCE_S]);
        command.stdin(Stdio::null());
        self.network.host(&line.machine).run(move || command.output().expect("a shell starts"))
    }

    /// Runs a command that must succeed; returns its stdout.
    #[track_caller]
    pub(super) fn run(&mut self, line: &Line) -> String {
        self.run_to(line, 0)
    }

    /// Runs a command that must exit with this code; returns its stdout, and for a failure also its stderr.
    #[track_caller]
    pub(super) fn run_to(&mut self, line: &Line, code: i32) -> String {
        if let Some((name, value)) = line.command.strip_prefix("export ").and_then(|set| set.split_once('=')) {
            let echo = format!("echo {value}");
            let value = self.run(&Line { machine: line.machine.clone(), command: echo });
            self.exported.insert(name.to_owned(), value.trim().to_owned());
            return String::new();
        }
        let Output { status, stdout, stderr } = self.output(line);
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        let Line { machine, command } = line;
        assert_eq!(status.code(), Some(code), "{machine}$ {command}\n{stdout}{stderr}");
        if code == 0 { stdout.into_owned() } else { format!("{stdout}{stderr}") }
    }

    /// Runs a command that is not on a page and must exit with this code; returns what it says.
    #[track_caller]
    pub(super) fn refused(&mut self, machine: &str, command: &str, code: i32) -> String {
        self.run_to(&Line { machine: machine.to_owned(), command: command.to_owned() }, code)
    }

    /// Runs a command that is not on a page.
    #[track_caller]
    pub(super) fn typed(&mut self, machine: &str, command: &str) -> String {
        self.run(&Line { machine: machine.to_owned(), command: command.to_owned() })
    }

    /// Starts a program and waits until it serves.
    pub(super) fn start(&mut self, line: &Line) {
        let Line { machine, command } = line;
        let exec = Line { machine: machine.clone(), command: format!("exec {command}") };
        let mut process = self.network.host(machine).spawn(&self.command(&exec, &[]));
        let says = if command.contains("atlas-worker") { "session open" } else { "controller started" };
        process.says(command, |text| text.contains(says).then_some(()));
        assert!(self.running.insert(machine.clone(), process).is_none(), "{machine} runs something already");
        self.started.insert(machine.clone(), command.clone());
    }

    /// Runs a command that is not on a page while others run.
    pub(super) fn background(&self, machine: &str, command: &str) -> Process {
        let line = Line { machine: machine.to_owned(), command: command.to_owned() };
        self.network.host(machine).spawn(&self.command(&line, &[]))
    }

    /// Starts the last program of a machine again.
    pub(super) fn start_again(&mut self, machine: &str) {
        let command = self.started.get(machine).expect("it ran before").clone();
        self.start(&Line { machine: machine.to_owned(), command });
    }

    /// Stops the program of a machine in order.
    pub(super) fn stop(&mut self, machine: &str) {
        let process = self.running.remove(machine).expect("it runs");
        assert_eq!(process.end(Signal::SIGTERM), Some(0), "{machine}");
    }

    /// `kill -9` to the program of a machine.
    pub(super) fn kill(&mut self, machine: &str) {
        self.running.remove(machine).expect("it runs").kill();
    }

    /// What the program of a machine has said so far.
    pub(super) fn said(&self, machine: &str) -> String {
        self.running.get(machine).expect("it runs").text()
    }

    /// Kills the program of a machine and deletes its disk.
    pub(super) fn lose(&mut self, machine: &str) {
        self.kill(machine);
        let disk = self.home(machine).join("lib");
        for entry in fs::read_dir(disk).expect("a folder").flatten() {
            fs::remove_dir_all(entry.path()).expect("removed");
        }
    }

    /// Copies a file or a directory of files from the desk to a machine.
    pub(super) fn carry(&self, name: &str, machine: &str) {
        let (from, to) = (self.home(DESK).join(name), self.home(machine).join(name));
        if !from.is_dir() {
            fs::copy(from, to).expect("carried");
            return;
        }
        fs::create_dir_all(&to).expect("a folder");
        for entry in fs::read_dir(from).expect("a folder").flatten() {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("carried");
        }
    }

    /// Copies a directory of files from a machine to the desk, under the name of its last part.
    pub(super) fn carry_back(&self, name: &str, machine: &str) {
        let from = self.home(machine).join(name);
        let to = self.home(DESK).join(from.file_name().expect("a name"));
        fs::create_dir_all(&to).expect("a folder");
        for entry in fs::read_dir(from).expect("a folder").flatten() {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("carried");
        }
    }

    /// Waits until `atlasctl` at the desk sees three reachable voters.
    pub(super) fn all_vote(&mut self) {
        let asks = Line { machine: DESK.to_owned(), command: "atlasctl cluster status -o json".to_owned() };
        eventually("three voters answer", LONG, || {
            let status = String::from_utf8(self.output(&asks).stdout).ok()?;
            let status: serde_json::Value = serde_json::from_str(&status).ok()?;
            let quorum = &status["quorum"];
            (quorum["voters"] == 3 && quorum["reachable"] == 3 && status["changing"] == false).then_some(())
        });
    }
}
