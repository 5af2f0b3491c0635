//! A shell session that records a transcript page.

use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};

use atlas_cluster_tests::program;

use crate::followed::Followed;
use crate::mask::mask;

/// Runs command lines in a folder against one server and records what a user would see.
pub(crate) struct Session<'a> {
    folder: &'a Path,
    server: Option<&'a str>,
    page: String,
}

impl<'a> Session<'a> {
    pub(crate) fn new(title: &str, folder: &'a Path, server: Option<&'a str>) -> Self {
        Self { folder, server, page: format!("# {title}\n") }
    }

    /// Continues a page with another server.
    pub(crate) fn continued(page: String, folder: &'a Path, server: Option<&'a str>) -> Self {
        Self { folder, server, page }
    }

    /// Adds the stderr so far of a program that keeps running.
    pub(crate) fn told(&mut self, line: &str, stderr: &str) {
        self.page += &format!("\n$ {line}\n");
        for line in stderr.lines() {
            self.page += format!("stderr  {line}").trim_end();
            self.page.push('\n');
        }
    }

    /// Runs a line without adding it to the page; returns its stdout.
    pub(crate) fn quiet(&mut self, line: &str) -> String {
        String::from_utf8(self.output(line).stdout).expect("UTF-8")
    }

    /// Runs a line in a shell and adds it to the page; returns its unmasked stdout.
    pub(crate) fn run(&mut self, line: &str) -> String {
        let output = self.output(line);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        self.add(line, &stdout, &stderr, output.status);
        stdout
    }

    /// Starts a command that keeps running; it is added to the page when it ends.
    pub(crate) fn follow(&self, line: &str) -> Followed {
        // `exec` replaces the shell with the command, so that the command receives the signals.
        Followed::start(self.shell("sh", &["-c", &format!("exec {line}")]), line)
    }

    /// Sends SIGINT, like Ctrl-C, and adds the command to the page.
    pub(crate) fn interrupt(&mut self, mut followed: Followed) {
        followed.interrupt();
        let line = format!("{}  # until Ctrl-C", followed.line);
        let (stdout, stderr, status) = followed.end();
        self.add(&line, &stdout, &stderr, status);
    }

    /// Waits until a command ends by itself, and adds it to the page.
    pub(crate) fn ends(&mut self, followed: Followed) {
        let line = followed.line.clone();
        let (stdout, stderr, status) = followed.end();
        self.add(&line, &stdout, &stderr, status);
    }

    fn add(&mut self, line: &str, stdout: &str, stderr: &str, status: ExitStatus) {
        self.page += &format!("\n$ {}\n", mask(line));
        for (name, stream) in [("stderr", stderr), ("stdout", stdout)] {
            for line in mask(stream).lines() {
                self.page += format!("{name}  {line}").trim_end();
                self.page.push('\n');
            }
        }
        self.page += &format!("exit    {}\n", status.code().expect("not killed"));
    }

    /// The page so far.
    pub(crate) fn page(self) -> String {
        self.page
    }

    fn output(&self, line: &str) -> Output {
        // The timeout makes a hanging line fail its test instead of blocking the whole run.
        self.shell("timeout", &["120", "sh", "-c", line]).output().expect("a shell starts")
    }

    fn shell(&self, start: &str, arguments: &[&str]) -> Command {
        let programs = program("atlasctl").parent().expect("a folder").to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new(start);
        shell.args(arguments).current_dir(self.folder).stdin(Stdio::null());
        shell.env("PATH", format!("{}:{path}", programs.display())).env("NO_COLOR", "1").env_remove("ATLAS_SERVER");
        // What a machine offers for sandboxes is a label of its node.
        shell.env("ATLAS_SANDBOX", "off");
        shell.env("ATLAS_CONFIG", self.folder.join("no-config.toml")).env_remove("ATLAS_CONTEXT");
        if let Some(server) = self.server {
            shell.env("ATLAS_SERVER", server);
        }
        shell
    }
}
