//! A controller with damaged files refuses to start, names the file and suggests a fix (B.37). `tests/damage.rs` of
//! atlas-raft tests every class of bytes in log and snapshot; this file tests the whole program.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::api::Api;
use crate::pair::Controller;
use crate::{LONG, eventually, program};

/// Flips one bit of a file.
fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("readable");
    bytes[at] ^= 0x10;
    fs::write(path, bytes).expect("written");
}

/// The end of the durable groups, from the mark: the maximum of its two slots.
fn durable_end(mark: &Path) -> usize {
    let bytes = fs::read(mark).expect("readable");
    let offset = |slot: usize| u64::from_le_bytes(bytes[slot + 44..slot + 52].try_into().expect("eight bytes"));
    usize::try_from(offset(0).max(offset(4096))).expect("small")
}

/// Starts a controller that must refuse to start; returns its stderr.
fn refused(folder: &Path) -> String {
    let mut command = Command::new(program("atlas-controller"));
    command.arg("--data-dir").arg(folder.join("controller")).args(["--http-listen", "127.0.0.1:0"]);
    command.args(["--worker-listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0"]);
    let mut process = crate::Process::start(&mut command);
    let code = eventually("it gives up", LONG, || process.ended());
    // The process can end before the reader thread has read its last line.
    eventually("what it said is read", LONG, || process.is_read().then_some(()));
    let text = process.text();
    assert_eq!(code, Some(1), "{text}");
    text
}

#[tokio::test]
async fn a_damaged_log_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    let (status, ..) = api.try_post("/api/jobs", json!({"agent": "nobody", "input": {}})).await;
    assert_eq!(status, 201);
    assert_eq!(controller.end(), Some(0));
    let segment = folder.path().join("controller/raft/log/log-0000000000000001.seg");
    flip(&segment, 4096 + 100);
    let told = refused(folder.path());
    assert!(told.contains("error[E0120]"), "{told}");
    assert!(told.contains("log-0000000000000001.seg"), "{told}");
    assert!(told.contains("join"), "it says what to do: {told}");
}

#[tokio::test]
async fn a_turned_bit_in_the_last_group_after_a_kill_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    let (status, ..) = api.try_post("/api/jobs", json!({"agent": "nobody", "input": {}})).await;
    assert_eq!(status, 201);
    controller.kill();
    let segment = folder.path().join("controller/raft/log/log-0000000000000001.seg");
    let end = durable_end(&folder.path().join("controller/raft/log/durable.mark"));
    let bytes = fs::read(&segment).expect("readable");
    let last = bytes[..end].iter().rposition(|&byte| byte != 0).expect("something is written");
    flip(&segment, last);
    let told = refused(folder.path());
    assert!(told.contains("error[E0120]"), "{told}");
    assert!(told.contains("\"log-0000000000000001.seg\" at byte "), "{told}");
    assert!(told.contains("atlasctl operator raft recover --drop-damaged-tail"), "{told}");
    flip(&segment, last);
    assert_eq!(Controller::start(folder.path()).end(), Some(0), "undamaged it starts after a kill");
}

#[tokio::test]
async fn a_damaged_history_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    assert_eq!(controller.end(), Some(0));
    let history = folder.path().join("controller/history.sqlite");
    for companion in ["history.sqlite-wal", "history.sqlite-shm"] {
        // The file may not exist after an orderly end.
        let _ = fs::remove_file(folder.path().join("controller").join(companion));
    }
    flip(&history, 3);
    let told = refused(folder.path());
    assert!(told.contains("error[E0120]") && told.contains("history.sqlite"), "{told}");
}
