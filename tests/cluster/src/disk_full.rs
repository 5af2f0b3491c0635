//! A controller on a disk that is filled and freed again (B.38).
//!
//! The test mounts a file system of a fixed size. Without the right to mount, it is skipped, and its twin on a
//! simulated disk covers the case (`atlas-raft`, `tests::faults`).

use std::fs;
use std::path::Path;

use atlas_package::pack;
use serde_json::json;

use crate::api::Api;
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;
use crate::small::Small;
use crate::{Agent, write_agent};

const QUICK: Agent<'static> =
    Agent { name: "quick", version: "1.0.0", contract: "", script: "cat >/dev/null; printf '{\"done\": true}'" };

const GATED: Agent<'static> = Agent {
    name: "gated",
    version: "1.0.0",
    contract: "",
    script: r#"gate=$(sed -n 's/.*"gate": *"\([^"]*\)".*/\1/p')
while [ ! -e "$gate" ]; do sleep 0.05; done
printf '{"passed": true}'"#,
};

async fn room(api: &Api, wanted: &str) {
    eventually_async("the controller sees its disk", async || {
        let cluster = api.get("/api/cluster").await;
        if cluster["disk"]["room"] == wanted { Ok(()) } else { Err(cluster["disk"].to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_refuses_new_work_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(small) = Small::mount(folder.path().join("small"), 64) else { return };
    for agent in [&QUICK, &GATED] {
        write_agent(folder.path(), agent);
    }
    let options = ["--disk-reserve", "8MiB", "--disk-ballast", "4MiB"];
    let controller = Controller::start_with(&small.0, &options);
    let api = Api::new(&controller.http.to_string());
    for agent in ["quick", "gated"] {
        api.register(pack(&folder.path().join(agent)).expect("a package").bytes).await;
    }
    let worker = worker(folder.path(), &controller);
    let mut acknowledged = Vec::new();
    for _ in 0..5 {
        let id = api.submit("quick", json!({})).await;
        api.wait(&id).await;
        acknowledged.push(id);
    }
    let gate = folder.path().join("gate");
    let running = api.submit("gated", json!({"gate": gate})).await;

    // The free space is less than the reserve, but enough for the log, so running jobs can end.
    small.fill(2 << 20);
    room(&api, "short").await;
    let (status, code, body) = api.try_post("/api/jobs", json!({"agent": "quick", "input": {}})).await;
    assert_eq!((status, code.as_str()), (507, "E4009"), "{body}");
    fs::write(&gate, "").expect("opened");
    let job = api.wait(&running).await;
    assert_eq!(job["status"], "completed", "{job}");
    acknowledged.push(running);

    // No space is left, and the ballast is used up as well; reads still work.
    small.fill(0);
    room(&api, "none").await;
    for id in &acknowledged {
        assert_eq!(api.job(id).await["status"], "completed");
    }
    let (status, code, body) = api.try_post("/api/jobs", json!({"agent": "quick", "input": {}})).await;
    assert_eq!((status, code.as_str()), (507, "E4009"), "{body}");

    small.free();
    room(&api, "ample").await;
    let id = api.submit("quick", json!({})).await;
    assert_eq!(api.wait(&id).await["status"], "completed");
    acknowledged.push(id);
    assert!(ballast(&small.0) > 0, "the ballast is set aside again");
    let controller = controller.kill_and_restart(&small.0);
    let api = Api::new(&controller.http.to_string());
    for id in &acknowledged {
        assert_eq!(api.job(id).await["status"], "completed", "{id}");
    }
    drop((worker, controller));
}

/// The length of the ballast.
fn ballast(folder: &Path) -> u64 {
    fs::metadata(folder.join("controller/raft/log/ballast")).map_or(0, |found| found.len())
}
