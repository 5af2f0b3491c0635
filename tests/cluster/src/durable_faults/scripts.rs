//! Programs without a host, which use `atlasctl step`.

use atlas_package::pack;
use serde_json::{Value, json};

use super::Rig;
use crate::program::program;
use crate::{Agent, write_agent};

/// The code with which `atlasctl step` ends that spawns a job of the agent with this body.
async fn code(rig: &Rig, timeout: &str, body: &str) -> Value {
    rig.deploy("child", "1.0.0", "", body).await;
    let step = format!("\"{}\" step --spawn child --input '{{}}' --timeout {timeout}", program("atlasctl").display());
    let script = format!("{step} >&2\nprintf '{{\"code\": %s}}' $?");
    let contract = "  durable: true\n  requires: { spawn_agents: true }";
    write_agent(rig.folder.path(), &Agent { name: "parent", version: "1.0.0", contract, script: &script });
    rig.api.register(pack(&rig.folder.path().join("parent")).expect("a package").bytes).await;
    let ended = rig.api.wait(&rig.api.submit("parent", json!({})).await).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    ended["output_data"]["code"].clone()
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_told_from_one_that_fails_with_the_same_words() {
    let rig = Rig::start();
    let child = |code: &str| format!("\n    async def execute(self, input_data):\n        {code}\n");
    assert_eq!(code(&rig, "1s", &child("await self.context.sleep(3600)")).await, 9);
    let same = child("raise ValueError('the job was not finished in 60 s, and is cancelled')");
    assert_eq!(code(&rig, "60s", &same).await, 10);
    assert_eq!(code(&rig, "60s", &child("return {'done': True}")).await, 0);
}
