//! Packages that change under a job: it keeps the one with which it began, in all its attempts.

use std::fs;

use serde_json::json;

use super::{HEADER, Job, Rig, write};
use crate::api::Api;
use crate::dev::Dev;
use crate::patience::eventually_async;

const OLD: &str = r#"
    async def execute(self, input_data):
        folder = input_data["folder"]
        way = "old"
        await self.context.step("first", note, folder, "first")
        await self.context.step("gate", gate, folder, "open")
        return {"way": way, "last": await self.context.step("last", note, folder, "last")}
"#;

/// The same after a change before the first step.
fn new() -> String {
    let check = "        if await self.context.version(\"fix-2\"):\n            way = await self.context.step(\"check\", note, folder, \"new\")\n";
    OLD.replace(
        "        await self.context.step(\"first\"",
        &format!("{check}        await self.context.step(\"first\""),
    )
}

#[tokio::test]
async fn a_job_keeps_its_version_and_a_fork_of_it_keeps_the_old_way() {
    let mut rig = Rig::start();
    rig.deploy("order", "1.0.0", "", OLD).await;
    let before = rig.submit("order").await;
    before.until_line("waits for open", 1);
    rig.deploy("order", "1.1.0", "", &new()).await;
    rig.kill_worker();
    rig.start_worker();
    before.until_line("waits for open", 2);
    let after = rig.submit("order").await;
    after.until_line("waits for open", 1);
    before.open("open");
    after.open("open");
    let ended = rig.api.wait(&before.id).await;
    let old = (&json!({"way": "old", "last": "last"}), &json!("1.0.0"));
    assert_eq!((&ended["output_data"], &ended["agent_version"]), old, "{ended}");
    assert!(ended["attempt"].as_u64() >= Some(2), "{ended}");
    let ended = rig.api.wait(&after.id).await;
    let new = (&json!({"way": "new", "last": "last"}), &json!("1.1.0"));
    assert_eq!((&ended["output_data"], &ended["agent_version"]), new, "{ended}");
    assert_eq!((before.count("first"), before.count("new"), after.count("new")), (1, 0, 1));

    // Its record goes on beyond the changed line, so the fork does not pass it the new way.
    let fork = rig.api.post(&format!("/api/jobs/{}/fork", before.id), json!({"steps": 3, "version": "1.1.0"})).await;
    let ended = rig.api.wait(fork["id"].as_str().expect("an id")).await;
    let forked = (&json!({"way": "old", "last": "last"}), &json!("1.1.0"));
    assert_eq!((&ended["output_data"], &ended["agent_version"]), forked, "{ended}");
    assert_eq!((before.count("first"), before.count("new"), before.count("last")), (1, 0, 2));
    // One that begins before it does.
    let fork = rig.api.post(&format!("/api/jobs/{}/fork", before.id), json!({"steps": 1, "version": "1.1.0"})).await;
    let ended = rig.api.wait(fork["id"].as_str().expect("an id")).await;
    assert_eq!(ended["output_data"]["way"], "new", "{ended}");
}

#[tokio::test]
async fn a_job_keeps_its_package_when_another_one_replaces_it_under_the_same_version() {
    let mut rig = Rig::start();
    rig.deploy("order", "1.0.0", "", OLD).await;
    let before = rig.submit("order").await;
    before.until_line("waits for open", 1);
    let digest = rig.api.job(&before.id).await["digest"].clone();
    rig.deploy("order", "1.0.0", "", &new()).await;
    rig.kill_worker();
    rig.start_worker();
    before.until_line("waits for open", 2);
    before.open("open");
    let ended = rig.api.wait(&before.id).await;
    assert_eq!((&ended["output_data"]["way"], &ended["digest"]), (&json!("old"), &digest), "{ended}");
    let after = rig.submit("order").await;
    after.open("open");
    let ended = rig.api.wait(&after.id).await;
    assert_eq!(ended["output_data"]["way"], "new", "{ended}");
    assert_ne!(ended["digest"], digest);
}

/// Waits for people, so its job parks and needs no process.
const ASKS: &str = r#"
    async def execute(self, input_data):
        await self.context.step("first", note, input_data["folder"], "first")
        answer = await self.context.ask("Go on?")
        return {"answer": answer, "way": "old"}
"#;

#[tokio::test]
async fn a_parked_job_keeps_its_package_when_its_folder_changes_under_dev() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = folder.path().join("agents/asks");
    write(&agent, "asks", "1.0.0", "", ASKS);
    let dev = Dev::start(folder.path(), ["--ephemeral", "--agents", "./agents"]);
    let api = Api::new(dev.server());
    let own = tempfile::tempdir_in(folder.path()).expect("a folder").keep();
    let asked = json!({"agent": "asks", "input": {"folder": own}, "questions": "wait"});
    let id = api.post("/api/jobs", asked.clone()).await["id"].as_str().expect("an id").to_owned();
    let before = Job { id, folder: own };
    let parked = eventually_async("the job is parked", async || {
        let job = api.job(&before.id).await;
        if job["reason"] == "parked" { Ok(job) } else { Err(job.to_string()) }
    })
    .await;
    let digest = parked["digest"].clone();
    fs::write(agent.join("agent.py"), format!("{}{}", HEADER.trim_start(), ASKS.replace("\"old\"", "\"new\"")))
        .expect("written");
    // The change is there once a job has it.
    let after = eventually_async("the changed package is deployed", async || {
        let id = api.post("/api/jobs", asked.clone()).await["id"].as_str().expect("an id").to_owned();
        let job = eventually_async("it runs", async || {
            let job = api.job(&id).await;
            if job["needs_answer"][0].is_string() { Ok(job) } else { Err(job.to_string()) }
        })
        .await;
        if job["digest"] == digest { Err(job.to_string()) } else { Ok(job) }
    })
    .await;
    for (job, way) in [(&parked, "old"), (&after, "new")] {
        let question = job["needs_answer"][0].as_str().expect("a question");
        api.post(&format!("/api/questions/{question}/answer"), json!({"text": "yes"})).await;
        let ended = api.wait(job["id"].as_str().expect("an id")).await;
        assert_eq!(ended["output_data"], json!({"answer": "yes", "way": way}), "{ended}");
    }
    let ended = api.job(&before.id).await;
    assert_eq!(ended["digest"], digest, "{ended}");
}
