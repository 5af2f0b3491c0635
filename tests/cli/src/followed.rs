//! A command that goes on, such as a followed log. A test waits for a line that it prints, never for a time.

use std::fs::File;
use std::process::{Child, Command, ExitStatus};

use atlas_cluster_tests::{LONG, eventually};
use tempfile::TempDir;

/// A command in a shell of its own; it is killed if the test ends before it.
pub(crate) struct Followed {
    pub(crate) line: String,
    child: Child,
    /// Where its stdout and stderr are written.
    printed: TempDir,
    /// Lines of stdout that were waited for.
    seen: usize,
}

impl Followed {
    pub(crate) fn start(mut shell: Command, line: &str) -> Self {
        let printed = tempfile::tempdir().expect("a folder");
        let file = |name: &str| File::create(printed.path().join(name)).expect("a file");
        let child = shell.stdout(file("stdout")).stderr(file("stderr")).spawn().expect("a shell starts");
        Self { line: line.to_owned(), child, printed, seen: 0 }
    }

    /// Waits for one more line on stdout that contains `text`, behind those that were waited for before.
    pub(crate) fn prints(&mut self, text: &str) {
        let seen = self.seen;
        let next = || {
            let printed = self.text("stdout");
            let whole = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
            whole.lines().enumerate().skip(seen).find(|(_, line)| line.contains(text)).map(|(at, _)| at + 1)
        };
        self.seen = eventually(&format!("\"{}\" prints \"{text}\"", self.line), LONG, next);
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().expect("kill starts");
        assert!(sent.success(), "\"{}\" has ended already", self.line);
    }

    /// Waits for its end; returns its stdout, its stderr and how it ended.
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
        // One that has ended cannot be killed, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
