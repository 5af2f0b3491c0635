//! `atlasctl dev` as a process of a test: started on free ports, killed at the end.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::patience::{LONG, eventually};
use crate::program::program;

/// A running development cluster.
#[derive(Debug)]
pub struct Dev {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    server: String,
}

impl Dev {
    /// Starts `atlasctl dev --port 0 ARGUMENTS` in `folder` and waits until it says that it is ready.
    pub fn start<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(program("atlasctl"));
        command.args(["dev", "--port", "0", "--node", "laptop"]).args(arguments).current_dir(folder);
        command.env("NO_COLOR", "1").env_remove("ATLAS_SERVER").stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("atlasctl starts");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let sink = Arc::clone(&lines);
        // Reads for as long as the process lives, so that it never blocks on a full pipe.
        thread::Builder::new()
            .name("dev stderr".to_owned())
            .spawn(move || {
                for line in stderr.lines().map_while(Result::ok) {
                    sink.lock().expect("not poisoned").push(line);
                }
            })
            .expect("a thread");
        let mut dev = Self { child, lines, server: String::new() };
        dev.server = eventually("atlasctl dev is ready", LONG, || {
            let ended = dev.child.try_wait().expect("waitable");
            let text = dev.text();
            assert!(ended.is_none(), "atlasctl dev ended with {ended:?}:\n{text}");
            let ready = text.contains("Ready in");
            let api = text.lines().find_map(|line| line.trim().strip_prefix("API ")?.split_whitespace().next());
            api.filter(|_| ready).map(|api| api.trim_end_matches("/api").to_owned())
        });
        dev
    }

    /// The address of its HTTP API, without a path.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What it wrote to stderr so far.
    pub fn text(&self) -> String {
        self.lines.lock().expect("not poisoned").iter().map(|line| format!("{line}\n")).collect()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`: no destructor runs, nothing is flushed.
    pub fn kill(mut self) {
        self.child.kill().expect("killable");
        self.child.wait().expect("waitable");
    }

    /// Ctrl-C; returns the exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("signalled");
        eventually("atlasctl dev ends after Ctrl-C", LONG, || self.child.try_wait().expect("waitable")).code()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
