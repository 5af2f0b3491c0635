//! A command that keeps running, such as a followed log. A test waits for a line of output, never for a fixed time.

use std::fs::File;
use std::process::{Child, Command, ExitStatus};

use atlas_cluster_tests::{LONG, eventually};
use tempfile::TempDir;

/// A command in its own shell, killed on drop.
pub(crate) struct Followed {
    pub(crate) line: String,
    child: Child,
    /// The folder for its stdout and stderr.
    printed: TempDir,
    /// Number of stdout lines up to the last one that a test has waited for.
    seen: usize,
}

impl Followed {
    pub(crate) fn start(mut shell: Command, line: &str) -> Self {
        let printed = tempfile::tempdir().expect("a folder");
        let file = |name: &str| File::create(printed.path().join(name)).expect("a file");
        let child = shell.stdout(file("stdout")).stderr(file("stderr")).spawn().expect("a shell starts");
        Self { line: line.to_owned(), child, printed, seen: 0 }
    }

    /// Waits for a line on stdout that contains `text`, after the line of the previous wait.
    pub(crate) fn prints(&mut self, text: &str) {
        let seen = self.seen;
        let next = || {
            let printed = self.text("stdout");
            let whole = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
            whole.lines().enumerate().skip(seen).find(|(_, line)| line.contains(text)).map(|(at, _)| at + 1)
        };
        self.seen = eventually(&format!("\"{}\" prints \"{text}\"", self.line), LONG, next);
    }

    /// Sends SIGINT, like Ctrl-C.
    pub(crate) fn interrupt(&mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().expect("kill starts");
        assert!(sent.success(), "\"{}\" has ended already", self.line);
    }

    /// Waits for the end of the command; returns its stdout, stderr and exit status.
    pub(crate) fn end(mut self) -> (String, String, ExitStatus) {
        let child = &mut self.child;
        let status =
            eventually(&format!("\"{}\" ends", self.line), LONG, || child.try_wait().expect("a child of ours"));
        (self.text("stdout"), self.text("stderr"), status)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.printed.path().join(name)).expect("UTF-8")
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        // The command may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
