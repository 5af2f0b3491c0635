//! Programs that hold secrets leave no core dumps, unless somebody asks for them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::patience::{LONG, eventually};
use crate::process::Process;
use crate::program::program;

const VARIABLE: &str = "ATLAS_CORE_DUMPS";

/// The soft limit for core dumps of a process.
fn limit(process: &str) -> String {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).expect("limits");
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).expect("a line");
    line.split_whitespace().nth(4).expect("a soft limit").to_owned()
}

/// The programs, each with a command that goes on for a while.
fn commands(folder: &Path) -> [Command; 3] {
    let command = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(program(name));
        command.args(arguments).current_dir(folder).env("XDG_CONFIG_HOME", folder.join(".config"));
        command
    };
    let any = "127.0.0.1:0";
    let listen = ["--http-listen", any, "--worker-listen", any, "--peer-listen", any, "--data-dir", "c"];
    [
        command("atlas-controller", &listen),
        command("atlas-worker", &["--node", "w1", "--controller", "127.0.0.1:9", "--data-dir", "w"]),
        command("atlasctl", &["dev", "--port", "0"]),
    ]
}

#[test]
fn programs_that_hold_secrets_leave_no_cores() {
    let folder = tempfile::tempdir().expect("a folder");
    for mut command in commands(folder.path()) {
        let process = Process::start(command.env_remove(VARIABLE));
        eventually("core dumps are off", LONG, || {
            ["0", "1"].contains(&limit(&process.pid().to_string()).as_str()).then_some(())
        });
        process.kill();
        let refused = command.env(VARIABLE, "1").output().expect("it ends");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(VARIABLE), "{said}");
    }
}

#[test]
fn core_dumps_can_be_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let [mut controller, ..] = commands(folder.path());
    let mut process = Process::start(controller.env(VARIABLE, "on"));
    process.says("it has started", |text| text.contains("controller started").then_some(()));
    assert_eq!(limit(&process.pid().to_string()), limit("self"));
    process.kill();
}
