//! A program of a test: a thread reads its stderr, and dropping it kills the program.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::patience::{LONG, eventually};

/// A running program.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Process {
    /// Starts a program without stdin and stdout.
    pub fn start(command: &mut Command) -> Self {
        command.env("NO_COLOR", "1").env_remove("ATLAS_SERVER").env_remove("ATLAS_LOG");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let read = move || {
            for line in stderr.lines().map_while(Result::ok) {
                sink.lock().expect("not poisoned").push(line);
            }
        };
        let reader = thread::Builder::new().name("stderr".to_owned()).spawn(read).expect("a thread");
        Self { child, lines, reader: Some(reader) }
    }

    /// Waits until `find` returns a value for the program's stderr.
    #[track_caller]
    pub fn says<T>(&mut self, what: &str, mut find: impl FnMut(&str) -> Option<T>) -> T {
        eventually(what, LONG, || {
            // The end of the program counts only after its last line has been read.
            let ended = self.child.try_wait().expect("waitable").filter(|_| self.is_read());
            let text = self.text();
            let found = find(&text);
            assert!(found.is_some() || ended.is_none(), "{what}: it ended with {ended:?}:\n{text}");
            found
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The output on stderr so far.
    pub fn text(&self) -> String {
        self.lines.lock().expect("not poisoned").iter().map(|line| format!("{line}\n")).collect()
    }

    /// `kill -9`: no destructor runs, nothing is flushed.
    pub fn kill(mut self) {
        self.child.kill().expect("killable");
        self.child.wait().expect("waitable");
    }

    /// Sends a signal that ends the program; returns the exit code.
    pub fn end(mut self, signal: Signal) -> Option<i32> {
        self.signal(signal);
        eventually("it ends after a signal", LONG, || self.child.try_wait().expect("waitable")).code()
    }

    /// Like [`Self::end`]; also returns the whole stderr of the program and its children.
    pub fn end_with_words(mut self, signal: Signal) -> (Option<i32>, String) {
        self.signal(signal);
        let status = eventually("it ends after a signal", LONG, || self.child.try_wait().expect("waitable"));
        eventually("its children end as well", LONG, || self.is_read().then_some(()));
        (status.code(), self.text())
    }

    /// Whether the stderr of the program and its children was read to its end.
    pub fn is_read(&self) -> bool {
        self.reader.as_ref().is_none_or(|reader| reader.is_finished())
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"));
        kill(pid, signal).expect("signalled");
    }

    /// None while the program runs; otherwise its exit code, which is none if a signal ended it.
    pub fn ended(&mut self) -> Option<Option<i32>> {
        self.child.try_wait().expect("waitable").map(|status| status.code())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
