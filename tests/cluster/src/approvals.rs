//! Approvals with real programs: a policy asks, the leader dies, somebody approves, and the job runs once; others end with their code.

mod doors;
mod mcp;
mod restored;
mod rig;
mod spawned;

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::members::{Member, ask, becomes, get, submit_to};
use crate::patience::eventually_async;
use crate::trio::{leader, trio, worker};

/// The only question of a job.
async fn question(member: &Member, job: &str) -> String {
    let open = get(member, &format!("/api/questions?job={job}")).await.expect("questions");
    assert_eq!(open.as_array().map(Vec::len), Some(1), "{open}");
    open[0]["id"].as_str().expect("an id").to_owned()
}

async fn answer(member: &Member, question: &str, text: &str) -> Result<Value, String> {
    ask(member, Method::POST, &format!("/api/questions/{question}/answer"), json!({ "text": text })).await
}

/// Answers while there may be no leader. An answer whose outcome was lost has closed the question.
async fn answered(member: &Member, question: &str, text: &str) {
    eventually_async(&format!("{question} is answered"), async || match answer(member, question, text).await {
        Err(error) if !error.contains("E3041") => Err(error),
        _ => Ok(()),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_policy_asks_outlives_the_leader_and_an_approved_job_runs_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let runs = folder.join("runs");
    let script = format!("cat >> {0}; echo >> {0}; echo '{{}}'", runs.display());
    let agent = Agent { name: "mail", version: "1.0.0", contract: "", script: &script };
    let mut members = trio(folder, &[&agent]).await;
    let _worker = worker(folder, "w1", &members.each_ref());
    // Without authentication everybody is one principal.
    let rule = |name: &str, when: &str, seconds: u64| {
        json!({
            "name": name, "on": ["submit"], "when": when, "effect": "ask",
            "ask": { "self": true, "timeout_seconds": seconds }
        })
    };
    let rules = json!([rule("soon", "has(input.soon)", 6), rule("mails", "true", 3_600)]);
    let policy = json!({ "spec": { "rules": rules } });
    ask(&members[0], Method::PUT, "/api/objects/policy/base", policy).await.expect("a policy");

    let approved = submit_to(&members[0], "mail", json!({"to": "approved"})).await;
    let rejected = submit_to(&members[0], "mail", json!({"to": "rejected"})).await;
    for job in [&approved, &rejected] {
        becomes(&members[0], job, "pending", "approval").await;
    }
    let leads = leader(&members).await;
    let late = submit_to(&members[0], "mail", json!({"to": "late", "soon": true})).await;
    members[leads].kill();
    let member = &members[(leads + 1) % 3];
    for job in [&approved, &rejected] {
        becomes(member, job, "pending", "approval").await;
    }
    // The next leader has the timer of the question.
    becomes(member, &late, "failed", "").await;
    assert!(!runs.exists(), "{:?}", fs::read_to_string(&runs));

    let (yes, no) = (question(member, &approved).await, question(member, &rejected).await);
    answered(member, &no, "reject: not today").await;
    answered(member, &yes, "approve").await;
    becomes(member, &approved, "completed", "").await;
    becomes(member, &rejected, "failed", "").await;
    let again = answer(member, &yes, "reject").await.expect_err("it was answered");
    assert!(again.contains("E3041"), "{again}");

    // A member that was away learns the same.
    members[leads].restart();
    let error = async |job: &str| {
        let job = get(&members[leads], &format!("/api/jobs/{job}?view=full")).await.expect("a job");
        job["error"].as_str().unwrap_or_default().to_owned()
    };
    becomes(&members[leads], &approved, "completed", "").await;
    assert!(error(&rejected).await.starts_with("E2112: local rejected the job"), "{}", error(&rejected).await);
    assert!(error(&late).await.starts_with("E2113: nobody approved the job within 6 s"), "{}", error(&late).await);
    let ran = fs::read_to_string(&runs).expect("it ran");
    let inputs: Vec<Value> =
        ran.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["input"].clone()).collect();
    assert_eq!(inputs, [json!({"to": "approved"})], "only the approved job ran, and once");
    // Its receipt names who approved.
    let receipt = get(&members[leads], &format!("/api/jobs/{approved}/receipt")).await.expect("a receipt");
    assert!(receipt.to_string().contains(&yes), "{receipt}");
}
