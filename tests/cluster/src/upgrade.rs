//! The current program opens a data directory of an older one and works with it (B.43).

use std::fs::{self, File};
use std::path::Path;

use serde_json::json;

use crate::api::Api;
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;

/// Copies the recorded files to their places in a data directory.
fn lay_out(folder: &Path) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/data/level1");
    let log = folder.join("controller/raft/log");
    let artifacts = folder.join("controller/artifacts/d6");
    fs::create_dir_all(&log).expect("a folder");
    fs::create_dir_all(&artifacts).expect("a folder");
    let segment = log.join("log-0000000000000001.seg");
    fs::copy(data.join("log-0000000000000001.seg"), &segment).expect("copied");
    File::options().write(true).open(&segment).expect("there").set_len(1 << 20).expect("filled up");
    fs::copy(data.join("history.sqlite"), folder.join("controller/history.sqlite")).expect("copied");
    let package = artifacts.join("efefad7b4241152def98c76e24ee37d92ef214aed04033d8dc58f0c8885748");
    fs::copy(data.join("package"), package).expect("copied");
}

#[tokio::test]
async fn a_directory_of_level_1_opens_and_goes_on_at_the_level_of_this_program() {
    let folder = tempfile::tempdir().expect("a folder");
    lay_out(folder.path());
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    let completed = api.get("/api/jobs?status=completed").await;
    assert_eq!(completed.as_array().map(Vec::len), Some(5), "{completed}");
    let failed = api.get("/api/jobs?status=failed").await;
    assert_eq!(failed[0]["error"], "Process exited with code 3: unknown error", "{failed}");
    // Each is found by its id, which the history of the old program keeps in another way.
    for listed in completed.as_array().into_iter().chain(failed.as_array()).flatten() {
        let found = api.job(listed["id"].as_str().expect("an id")).await;
        assert_eq!((&found["id"], &found["status"]), (&listed["id"], &listed["status"]), "{found}");
    }
    assert_eq!(api.get("/api/agents").await[0]["name"], "echo");
    eventually_async("the level is raised", async || {
        let cluster = api.get("/api/cluster").await;
        if cluster["level"] == cluster["level_known"] { Ok(()) } else { Err(cluster.to_string()) }
    })
    .await;
    // The job that was running when the old program stopped runs again on a worker with the same name.
    let worker = worker(folder.path(), &controller);
    let job = api.wait("job-82e2024e1db47456").await;
    assert_eq!((&job["status"], &job["output_data"]), (&json!("completed"), &json!({"done": true})), "{job}");
    let id = api.submit("echo", json!({"n": 7})).await;
    assert_eq!(api.wait(&id).await["status"], "completed");
    let controller = controller.kill_and_restart(folder.path());
    let api = Api::new(&controller.http.to_string());
    assert_eq!(api.get("/api/jobs?status=completed").await.as_array().map(Vec::len), Some(7));
    drop((worker, controller));
}
