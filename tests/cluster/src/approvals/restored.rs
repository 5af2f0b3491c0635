//! A job that waits for an approval in a backup waits in the cluster that is made of it, and runs there once.

use std::fs;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::members::{Member, ask, becomes, get, submit_to};
use crate::program::program;
use crate::trio::{register, worker};

#[tokio::test]
async fn a_backup_keeps_what_waits_for_an_approval() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let runs = folder.join("runs");
    let script = format!("cat >> {0}; echo >> {0}; echo '{{}}'", runs.display());
    let first = Member::first(folder, "c1");
    register(&first, folder, &Agent { name: "mail", version: "1.0.0", contract: "", script: &script }).await;
    let rule = |name: &str, when: &str, seconds: u64| {
        json!({
            "name": name, "on": ["submit"], "when": when, "effect": "ask",
            "ask": { "self": true, "timeout_seconds": seconds }
        })
    };
    let rules = json!([rule("soon", "has(input.soon)", 4), rule("mails", "true", 3_600)]);
    ask(&first, Method::PUT, "/api/objects/policy/base", json!({ "spec": { "rules": rules } }))
        .await
        .expect("a policy");
    let mut jobs = Vec::new();
    for input in [json!({ "to": "approved" }), json!({ "to": "rejected" }), json!({ "to": "late", "soon": true })] {
        jobs.push(submit_to(&first, "mail", input).await);
    }
    let questions = async |member: &Member| {
        let open = get(member, "/api/questions").await.expect("questions");
        let told = |question: &Value| ["id", "job", "prompt", "approval"].map(|name| question[name].clone());
        open.as_array().expect("a list").iter().map(told).collect::<Vec<_>>()
    };
    let asked = questions(&first).await;
    assert_eq!(asked.len(), 3, "{asked:?}");

    let (server, data) = (format!("http://{}", first.http), folder.join("r1").display().to_string());
    for arguments in [&["save", "atlas.tar", "--server", &server], &["restore", "atlas.tar", "--data-dir", &data]] {
        let mut command = Command::new(program("atlasctl"));
        let output = command.args(["operator", "snapshot"]).args(arguments).current_dir(folder).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // What the old cluster does from now on is not in the new one.
    drop(first);
    let restored = Member::first(folder, "r1");
    assert_eq!(questions(&restored).await[..2], asked[..2]);
    let _worker = worker(folder, "w1", &[&restored]);
    for job in &jobs[..2] {
        becomes(&restored, job, "pending", "approval").await;
    }
    // Its time goes on as well.
    becomes(&restored, &jobs[2], "failed", "").await;
    assert!(!runs.exists(), "{:?}", fs::read_to_string(&runs));
    for (question, text) in asked.iter().zip(["approve", "reject"]) {
        let path = format!("/api/questions/{}/answer", question[0].as_str().expect("an id"));
        ask(&restored, Method::POST, &path, json!({ "text": text })).await.expect("answered");
    }
    becomes(&restored, &jobs[0], "completed", "").await;
    becomes(&restored, &jobs[1], "failed", "").await;
    let ran = fs::read_to_string(&runs).expect("it ran");
    let inputs: Vec<Value> =
        ran.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["input"].clone()).collect();
    assert_eq!(inputs, [json!({ "to": "approved" })], "only the approved job ran, and once");
}
