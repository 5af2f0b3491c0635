//! Jobs that spawn jobs, with real programs: a worker with one concurrency permit, a killed controller, a cancel of all
//! jobs of a tree.

use std::fs;
use std::path::Path;

use atlas_package::pack;
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker_with};
use crate::patience::eventually_async;

/// Spawns itself to the depth in its input, then waits until the gate exists.
const NEST: &str = r#"
import asyncio
from pathlib import Path
from atlas.runtime.base import AgentBase

class Nest(AgentBase):
    async def execute(self, input_data):
        below = input_data["below"]
        if below:
            child = await self.context.spawn("nest", {**input_data, "below": below - 1})
            return {"child": child.data, "error": child.error}
        while not Path(input_data["gate"]).exists():
            await asyncio.sleep(0.02)
        return {"depth": self.context.depth}
"#;

struct Rig {
    folder: tempfile::TempDir,
    controller: Controller,
    api: Api,
    _worker: crate::process::Process,
}

impl Rig {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let controller = Controller::start(folder.path());
        let api = Api::new(&controller.http.to_string());
        let agent = folder.path().join("nest");
        fs::create_dir(&agent).expect("a folder");
        let contract = "agent: { name: nest, version: 1.0.0, requires: { spawn_agents: true } }";
        fs::write(agent.join("agent.yaml"), contract).expect("written");
        fs::write(agent.join("agent.py"), NEST).expect("written");
        api.register(pack(&agent).expect("a package").bytes).await;
        let worker = worker_with(folder.path(), &controller, &["--places", "1"]);
        Self { folder, controller, api, _worker: worker }
    }

    async fn submit(&self, below: u32, gate: &Path) -> String {
        self.api.submit("nest", json!({"below": below, "gate": gate})).await
    }

    async fn tree(&self, id: &str) -> Value {
        self.api.get(&format!("/api/jobs/{id}/tree")).await
    }

    /// The statuses of a chain of jobs, from the top.
    async fn chain(&self, id: &str) -> Vec<String> {
        let mut tree = self.tree(id).await;
        let mut statuses = Vec::new();
        while let Some(status) = tree["status"].as_str() {
            statuses.push(status.to_owned());
            tree = tree["children"].get_mut(0).map(Value::take).unwrap_or_default();
        }
        statuses
    }

    async fn until_chain(&self, id: &str, wanted: &[&str]) {
        let what = format!("the family of {id} is {wanted:?}");
        eventually_async(&what, async || {
            let chain = self.chain(id).await;
            if chain == wanted { Ok(()) } else { Err(format!("{chain:?}")) }
        })
        .await;
    }
}

#[tokio::test]
async fn families_share_one_place_one_after_the_other() {
    let rig = Rig::start().await;
    let gate = rig.folder.path().join("gate");
    let first = rig.submit(3, &gate).await;
    let second = rig.submit(2, &gate).await;
    rig.until_chain(&first, &["running"; 4]).await;
    // The permit of a waiting parent is used by its children only, so jobs of another tree stay pending.
    assert_eq!(rig.chain(&second).await, ["pending"]);
    let top = rig.api.get(&format!("/api/jobs/{first}?view=full")).await;
    assert_eq!(top["waiting_for"], "waiting for 1 spawned job");
    fs::write(&gate, "").expect("written");
    let ended = rig.api.wait(&first).await;
    assert_eq!(ended["output_data"]["child"]["child"]["child"], json!({"depth": 3}), "{ended}");
    assert_eq!(rig.chain(&first).await, ["completed"; 4]);
    let ended = rig.api.wait(&second).await;
    assert_eq!(ended["output_data"]["child"]["child"], json!({"depth": 2}), "{ended}");
}

#[tokio::test]
async fn a_controller_that_dies_costs_no_child_and_makes_none_twice() {
    let rig = Rig::start().await;
    let gate = rig.folder.path().join("gate");
    let id = rig.submit(1, &gate).await;
    rig.until_chain(&id, &["running"; 2]).await;
    let Rig { folder, controller, api, _worker } = rig;
    let controller = controller.kill_and_restart(folder.path());
    let rig = Rig { folder, controller, api, _worker };
    fs::write(&gate, "").expect("written");
    let ended = rig.api.wait(&id).await;
    assert_eq!(ended["output_data"], json!({"child": {"depth": 1}, "error": ""}), "{ended}");
    let tree = rig.tree(&id).await;
    assert_eq!(tree["children"].as_array().map(Vec::len), Some(1), "{tree}");
    assert_eq!(tree["attempt"], 1, "{tree}");
}

#[tokio::test]
async fn a_cancel_ends_the_whole_family() {
    let rig = Rig::start().await;
    let id = rig.submit(2, &rig.folder.path().join("never")).await;
    rig.until_chain(&id, &["running"; 3]).await;
    rig.api.post(&format!("/api/jobs/{id}/cancel"), json!({})).await;
    rig.until_chain(&id, &["cancelled"; 3]).await;
    // The permit is free again.
    let gate = rig.folder.path().join("gate");
    fs::write(&gate, "").expect("written");
    let next = rig.submit(0, &gate).await;
    assert_eq!(rig.api.wait(&next).await["status"], "completed");
}

#[tokio::test]
async fn a_job_for_later_waits_for_its_time() {
    let rig = Rig::start().await;
    let gate = rig.folder.path().join("gate");
    fs::write(&gate, "").expect("written");
    // The start time is computed from a time of the controller's clock.
    let first = rig.submit(0, &gate).await;
    let at = rig.api.wait(&first).await["completed_at"].as_f64().expect("it has ended") + 2.0;
    let body = json!({"agent": "nest", "input": {"below": 0, "gate": gate}, "at": at});
    let id = rig.api.post("/api/jobs", body).await["id"].as_str().expect("an id").to_owned();
    let job = rig.api.job(&id).await;
    assert_eq!((&job["status"], &job["reason"]), (&json!("pending"), &json!("delayed")), "{job}");
    let ended = rig.api.wait(&id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    let started = ended["started_at"].as_f64().expect("it ran");
    assert!((at..at + 10.0).contains(&started), "{started} is not soon after {at}");
}
