//! A shell session whose transcript is a page.

use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};

use atlas_cluster_tests::program;

use crate::followed::Followed;
use crate::mask::mask;

/// Runs command lines in a folder against one server and writes down what a person would see.
pub(crate) struct Session<'a> {
    folder: &'a Path,
    server: Option<&'a str>,
    page: String,
}

impl<'a> Session<'a> {
    pub(crate) fn new(title: &str, folder: &'a Path, server: Option<&'a str>) -> Self {
        Self { folder, server, page: format!("# {title}\n") }
    }

    /// Goes on with a page against another server.
    pub(crate) fn continued(page: String, folder: &'a Path, server: Option<&'a str>) -> Self {
        Self { folder, server, page }
    }

    /// Adds what a program that goes on running has told so far.
    pub(crate) fn told(&mut self, line: &str, stderr: &str) {
        self.page += &format!("\n$ {line}\n");
        for line in stderr.lines() {
            self.page += format!("stderr  {line}").trim_end();
            self.page.push('\n');
        }
    }

    /// Runs one line that is not a part of the page; returns its stdout.
    pub(crate) fn quiet(&mut self, line: &str) -> String {
        String::from_utf8(self.output(line).stdout).expect("UTF-8")
    }

    /// Runs one line in a shell and adds it to the page; returns its stdout unmasked.
    pub(crate) fn run(&mut self, line: &str) -> String {
        let output = self.output(line);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        self.add(line, &stdout, &stderr, output.status);
        stdout
    }

    /// Starts one command that goes on. It is not a part of the page before its end.
    pub(crate) fn follow(&self, line: &str) -> Followed {
        // In the place of the shell, so that it is the one that gets signals.
        Followed::start(self.shell("sh", &["-c", &format!("exec {line}")]), line)
    }

    /// Presses Ctrl-C and adds the command to the page.
    pub(crate) fn interrupt(&mut self, mut followed: Followed) {
        followed.interrupt();
        let line = format!("{}  # until Ctrl-C", followed.line);
        let (stdout, stderr, status) = followed.end();
        self.add(&line, &stdout, &stderr, status);
    }

    /// Waits for the end of a command that ends on its own, and adds it to the page.
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
        // A line that hangs fails its test instead of the whole run.
        self.shell("timeout", &["120", "sh", "-c", line]).output().expect("a shell starts")
    }

    fn shell(&self, start: &str, arguments: &[&str]) -> Command {
        let programs = program("atlasctl").parent().expect("a folder").to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new(start);
        shell.args(arguments).current_dir(self.folder).stdin(Stdio::null());
        shell.env("PATH", format!("{}:{path}", programs.display())).env("NO_COLOR", "1").env_remove("ATLAS_SERVER");
        shell.env("ATLAS_CONFIG", self.folder.join("no-config.toml")).env_remove("ATLAS_CONTEXT");
        if let Some(server) = self.server {
            shell.env("ATLAS_SERVER", server);
        }
        shell
    }
}
