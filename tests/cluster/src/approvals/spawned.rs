//! Approvals of jobs that other jobs spawn: the parent waits, and learns how it ended.

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::Rig;
use crate::patience::eventually_async;

/// Spawns `mail` with its input, and says what came of it.
const PARENT: &str = r#"
from atlas.runtime.base import AgentBase

class Parent(AgentBase):
    async def execute(self, input_data):
        child = await self.context.spawn("mail", input_data)
        return {"child": child.data, "error": child.error, "success": child.success}
"#;

/// The child of a job, once it is there.
async fn child(rig: &Rig, parent: &str) -> String {
    eventually_async("it has a child", async || {
        let tree = rig.get(&format!("/api/jobs/{parent}/tree")).await;
        tree["children"][0]["id"].as_str().map(str::to_owned).ok_or_else(|| tree.to_string())
    })
    .await
}

#[tokio::test]
async fn a_parent_waits_for_the_approval_of_its_child() {
    let rig = Rig::start(false).await;
    let rights = ["agents.read", "jobs.read", "jobs.submit", "questions.answer"];
    let (ann, bob) = (rig.person("ann", &rights).await, rig.person("bob", &rights).await);
    let folder = rig.folder.path().join("parent");
    fs::create_dir(&folder).expect("a folder");
    let contract = "agent: { name: parent, version: 1.0.0, requires: { spawn_agents: true } }";
    fs::write(folder.join("agent.yaml"), contract).expect("written");
    fs::write(folder.join("agent.py"), PARENT).expect("written");
    rig.deploy("parent").await;
    let submit = async |to: &str| {
        let body = json!({ "agent": "parent", "input": { "to": to } });
        let (status, answer) = rig.ask(Method::POST, "/api/jobs", &ann, body).await;
        assert_eq!(status, 201, "{answer}");
        answer["id"].as_str().expect("an id").to_owned()
    };
    let ended = async |id: &str| {
        let ended = rig.get(&format!("/api/jobs/{id}/wait?timeout=60&view=full")).await;
        assert_eq!(ended["status"], "completed", "{ended}");
        ended["output_data"].clone()
    };

    let parent = submit("approved").await;
    let waits = child(&rig, &parent).await;
    rig.becomes(&waits, "pending", "approval").await;
    let shown = rig.job(&parent).await;
    assert_eq!((&shown["status"], &shown["waiting_for"]), (&json!("running"), &json!("waiting for 1 spawned job")));
    // The parent names the question of its child, which the principal of both may not answer.
    assert_eq!(shown["needs_approval"][0]["job"], json!(waits), "{shown}");
    assert_eq!(rig.answer(&ann, &parent, "approve").await.0, 403);
    assert_eq!(rig.runs(), [Value::Null; 0]);
    assert_eq!(rig.answer(&bob, &parent, "approve").await.0, 200);
    assert_eq!(ended(&parent).await, json!({ "child": { "sent": true }, "error": "", "success": true }));

    let parent = submit("rejected").await;
    rig.becomes(&child(&rig, &parent).await, "pending", "approval").await;
    assert_eq!(rig.answer(&bob, &parent, "reject: not to them").await.0, 200);
    let output = ended(&parent).await;
    let error = "E2112: bob rejected the job, which needs an approval by the rule \"mails\" of the policy \"base\": not to them";
    assert_eq!((&output["success"], &output["error"]), (&json!(false), &json!(error)), "{output}");

    // The end of the parent ends the child, and with it the question.
    let parent = submit("forsaken").await;
    let waits = child(&rig, &parent).await;
    rig.becomes(&waits, "pending", "approval").await;
    let (status, answer) = rig.ask(Method::POST, &format!("/api/jobs/{parent}/cancel"), &ann, json!({})).await;
    assert_eq!(status, 200, "{answer}");
    rig.becomes(&waits, "cancelled", "").await;
    assert_eq!(rig.get("/api/questions").await, json!([]));
    assert_eq!(rig.runs(), [json!({ "to": "approved" })]);
}
