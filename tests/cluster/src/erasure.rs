//! What was sent to a job is erased at every controller, also at one that is away meanwhile and gets a snapshot or the log.

use std::path::Path;
use std::time::Duration;

use atlas_package::pack;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::{Member, get, token, voters};
use crate::patience::eventually_async;
use crate::trio::{NAMES, worker};
use crate::{Agent, write_agent};

/// Returns its input, and says it in its log.
const ECHO: Agent<'static> = Agent { name: "echo", version: "1.0.0", contract: "", script: "tee /dev/stderr" };
/// Never ends by itself.
const SLOW: Agent<'static> = Agent { name: "slow", version: "1.0.0", contract: "", script: "exec sleep 600" };
const NAME: &str = "Ann Example of 12 Any Street";

async fn start(folder: &Path) -> [Member; 3] {
    let first = Member::first(folder, NAMES[0]);
    for agent in [&ECHO, &SLOW] {
        write_agent(folder, agent);
        Api::new(&first.http.to_string()).register(pack(&folder.join(agent.name)).expect("a package").bytes).await;
    }
    let second = Member::joining(folder, NAMES[1], &first, &token(&first).await);
    let third = Member::joining(folder, NAMES[2], &first, &token(&first).await);
    voters(&third, &NAMES).await;
    [first, second, third]
}

async fn post(member: &Member, path: &str) -> (u16, Value) {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let answer = client.post(format!("http://{}{path}", member.http)).json(&json!({})).send().await.expect("an answer");
    let status = answer.status().as_u16();
    (status, answer.json().await.expect("JSON"))
}

/// How often the history of a member contains the name.
fn found(folder: &Path, member: &Member) -> usize {
    let files = ["history.sqlite", "history.sqlite-wal"].map(|file| folder.join(member.name).join(file));
    let bytes = files.iter().flat_map(|file| std::fs::read(file).unwrap_or_default()).collect::<Vec<u8>>();
    bytes.windows(NAME.len()).filter(|found| *found == NAME.as_bytes()).count()
}

/// What a member tells of all that happened since it began: what comes within the pause after the first bytes.
async fn told(member: &Member) -> String {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let events = client.get(format!("http://{}/api/events?view=full", member.http));
    let events = events.header("accept", "text/event-stream").header("last-event-id", "0");
    let mut answer = events.send().await.expect("an answer");
    let mut told = Vec::new();
    while let Ok(Ok(Some(bytes))) = tokio::time::timeout(Duration::from_millis(500), answer.chunk()).await {
        told.extend_from_slice(&bytes);
    }
    String::from_utf8_lossy(&told).into_owned()
}

async fn check_gone(folder: &Path, members: &[Member; 3], id: &str) {
    for member in members {
        eventually_async("it is erased there", async || {
            let job = get(member, &format!("/api/jobs/{id}?view=full")).await?;
            let is_erased = job["input_data"] == json!({}) && job["output_data"] == json!({});
            let left = found(folder, member) + told(member).await.matches(NAME).count();
            if is_erased && job["labels"]["atlas.erased"] == json!("true") && left == 0 {
                Ok(())
            } else {
                Err(format!("{}: {left} left, {job}", member.name))
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sent_to_a_job_is_erased_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = start(folder.path()).await;
    let _worker = worker(folder.path(), "w1", &[&members[0], &members[1], &members[2]]);
    let api = Api::new(&members[1].http.to_string());
    let id = api.submit("echo", json!({"name": NAME})).await;
    assert_eq!(api.wait(&id).await["status"], json!("completed"));
    for member in &members {
        eventually_async("its history has it", async || {
            if found(folder.path(), member) > 0 { Ok(()) } else { Err(member.name.to_owned()) }
        })
        .await;
    }
    // Streams of all events share what they send, so what is told now is kept for those that ask the same.
    for member in &members {
        eventually_async("its events have it", async || {
            if told(member).await.contains(NAME) { Ok(()) } else { Err(member.name.to_owned()) }
        })
        .await;
    }
    let slow = api.submit("slow", json!({})).await;
    let (status, refusal) = post(&members[0], &format!("/api/jobs/{slow}/erase")).await;
    assert_eq!(status, 409, "{refusal}");
    assert_eq!(post(&members[0], "/api/jobs/job-00000000000000ff/erase").await.0, 404);

    members[2].kill();
    assert_eq!(post(&members[1], &format!("/api/jobs/{id}/erase")).await, (200, json!({"erased": true})));
    members[2].restart();
    check_gone(folder.path(), &members, &id).await;

    let (status, refusal) = post(&members[0], "/api/jobs:erase").await;
    assert_eq!(status, 409, "{refusal}");
    assert_eq!(post(&members[0], &format!("/api/jobs/{slow}/cancel")).await.0, 200);
    api.wait(&slow).await;
    // Erasing all because one was named would be the loss of all.
    let (_, code, refusal) = api.try_post("/api/jobs:erase", json!({"ids": [id]})).await;
    assert_eq!(code, "E1104", "{refusal}");
    assert_eq!(post(&members[0], "/api/jobs:erase").await, (200, json!({"erased": true})));
    for member in &members {
        eventually_async("no job is listed", async || {
            let jobs = get(member, "/api/jobs").await?;
            if jobs == json!([]) { Ok(()) } else { Err(format!("{jobs}")) }
        })
        .await;
    }
}
