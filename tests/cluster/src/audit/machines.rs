//! Workers and controllers that are turned away are in the audit of the controller that did it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::members::Member;
use crate::process::Process;
use crate::program::program;
use crate::{LONG, eventually};

/// A controller with TLS, and whoever talks to it.
struct Site {
    folder: tempfile::TempDir,
    controller: Member,
}

impl Site {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let made =
            Command::new(program("atlasctl")).args(["operator", "init"]).arg(folder.path().join("keys")).output();
        assert!(made.as_ref().is_ok_and(|made| made.status.success()), "{made:?}");
        let mut controller = Member::prepared(folder.path(), "c1");
        let key = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
        let (keys, root) = (key("keys"), key("keys/root.token"));
        let arguments = ["--tls-dir", &keys, "--auth", "tokens", "--root-token-file", &root];
        controller.runs_program(program("atlas-controller"), &arguments);
        controller.restart();
        Self { folder, controller }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn atlasctl(&self, arguments: &[&str]) -> Output {
        let token = fs::read_to_string(self.path().join("keys/root.token")).expect("a token");
        let mut command = Command::new(program("atlasctl"));
        command.env("NO_COLOR", "1").env("HOME", self.path()).current_dir(self.path());
        command.env("ATLAS_TOKEN", token.trim()).env("ATLAS_CA_FILE", "keys/ca.pem");
        let server = format!("https://127.0.0.1:{}", self.controller.http.port());
        command.args(["--server", &server]).args(arguments).output().expect("it runs")
    }

    fn does(&self, arguments: &[&str]) {
        let output = self.atlasctl(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// A worker with its data in a folder of its own.
    fn worker(&self, data: &str, arguments: &[&str]) -> Process {
        let mut worker = Command::new(program("atlas-worker"));
        worker.args(["--controller", &self.controller.workers.to_string(), "--data-dir"]).arg(self.path().join(data));
        Process::start(worker.current_dir(self.path()).args(arguments))
    }

    /// Waits until a denial is in the audit: principal, port, operation, claim and code.
    fn is_denied(&self, wanted: &str) {
        let mut found = Vec::new();
        eventually(wanted, LONG, || {
            let output = self.atlasctl(&["audit", "query", "--decision", "deny", "-o", "jsonl"]);
            assert!(output.status.success(), "{output:?}");
            let told = |line: &str| {
                let record: Value = serde_json::from_str(line).expect("JSON");
                let part = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
                ["member", "principal", "door", "verb", "object", "code"].map(part).join(" ")
            };
            found = String::from_utf8_lossy(&output.stdout).lines().map(told).collect();
            found.iter().any(|record| record == wanted).then_some(())
        });
    }
}

#[test]
fn machines_that_are_turned_away_are_recorded() {
    let site = Site::start();
    site.does(&["node", "token", "w1", "--to", "w1.token"]);
    let joins = ["--node", "w1", "--token-file", "w1.token"];
    let mut worker = site.worker("w1", &joins);
    worker.says("it joined", |text| text.contains("session open").then_some(()));

    // A used token, no certificate, and a controller with a token that nobody made.
    let mut thief = site.worker("thief", &joins);
    thief.says("it is refused", |text| text.contains("the join token is refused").then_some(()));
    site.is_denied("c1 anonymous worker enrollNode node/w1 E2102");
    let keys = site.path().join("keys");
    let keys = keys.to_str().expect("text");
    let (peers, token) = (site.controller.peers.to_string(), "join-00000000000000000000000000000001");
    let mut stranger = Member::begins(site.path(), "c9", &["--join", &peers, "--token", token, "--tls-dir", keys]);
    stranger.ends_by_itself();
    site.is_denied("c1 anonymous peer joinController controller/c9 E2102");

    // A node that was revoked loses its session, and gets no other.
    site.does(&["node", "revoke", "w1"]);
    site.is_denied("c1 node/w1 worker renewSession node/w1 E2108");
    site.is_denied("c1 node/w1 worker openSession node/w1 E2108");
}
