//! Many jobs through an outage of their provider: they park, hold nothing, and all complete after it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use serde_json::{Value, json};

use crate::Dev;
use crate::api::Api;
use crate::patience::{LONG, eventually, eventually_async};

/// Jobs of each agent.
const JOBS: usize = 20;

const AGENTS: [(&str, &str, &str); 2] = [
    (
        "thinker",
        "agent.yaml",
        "agent:\n  name: thinker\n  version: 1.0.0\n  provider: { type: llm, output_format: text }\n",
    ),
    (
        "flow",
        "graph.yaml",
        r#"
name: flow
start: a
nodes:
  a: {type: llm, prompt: first, next: b}
  b: {type: llm, prompt: second, state_updates: {said: "{{output}}"}, next: e}
  e: {type: end, output: "{{said}}"}
"#,
    ),
];

fn package(folder: &Path, name: &str, file: &str, text: &str) -> Vec<u8> {
    let agent = folder.join(name);
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join(file), text).expect("a file");
    if file != "agent.yaml" {
        let contract = format!("agent:\n  name: {name}\n  version: 1.0.0\n  provider: {{ type: graph }}\n");
        fs::write(agent.join("agent.yaml"), contract).expect("a contract");
    }
    pack(&agent).expect("a package").bytes
}

/// Whether a request is the first call of its job.
fn is_first(request: &Value) -> bool {
    let messages = request["messages"].as_array().expect("messages");
    let text = messages[0].to_string();
    text.contains("first") || (!text.contains("second") && messages.len() == 1)
}

/// The parked jobs, with what they wait for.
async fn parked(api: &Api) -> BTreeMap<String, String> {
    let listed = api.get("/api/jobs?status=pending&limit=1000&view=full").await;
    let listed = listed.as_array().or_else(|| listed["jobs"].as_array()).expect("jobs").clone();
    let text = |job: &Value, member: &str| job[member].as_str().unwrap_or_default().to_owned();
    let parked = listed.iter().filter(|job| job["reason"] == "parked");
    parked.map(|job| (text(job, "id"), text(job, "waiting_for"))).collect()
}

#[tokio::test]
async fn jobs_park_while_their_provider_is_down_and_complete_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    // The second call of each job gets no answer: the server dies meanwhile.
    let server = Server::start(|request: &Value, _: usize| match is_first(request) {
        true if request.to_string().contains("first") => Reply::text("one"),
        true => Reply::call("c", "unknown", &json!({})),
        false => Reply::Never,
    });
    let server = server.expect("a server");
    let address = server.address();
    let base_url = server.base_url();
    let variables = [("ANTHROPIC_BASE_URL", base_url.as_str()), ("ANTHROPIC_API_KEY", "key")];
    let dev = Dev::start_with(folder.path(), ["--data-dir", "data"], variables);
    let api = Api::new(dev.server());
    let mut ids = Vec::new();
    for (name, file, text) in AGENTS {
        api.register(package(folder.path(), name, file, text)).await;
        for number in 0..JOBS {
            let input = if name == "flow" { json!({"message": "go"}) } else { json!({"job": number}) };
            ids.push(api.submit(name, input).await);
        }
    }
    eventually("each job waits for its second answer", LONG, || {
        (server.requests().iter().filter(|request| !is_first(request)).count() == ids.len()).then_some(())
    });
    drop(server);
    // Each of them asks the provider again now and then, so they are not all parked at the same time.
    let seen = RefCell::new(BTreeMap::new());
    eventually_async("each job parks", async || {
        let parked = parked(&api).await;
        let mut seen = seen.borrow_mut();
        seen.extend(parked);
        let (parked, all) = (ids.iter().filter(|id| seen.contains_key(*id)).count(), ids.len());
        if parked == all { Ok(()) } else { Err(format!("{parked} of {all} have parked")) }
    })
    .await;
    for sentence in seen.into_inner().values() {
        assert!(sentence.starts_with("parked: waits for the model \"claude-sonnet-4-20250514\" until "), "{sentence}");
        assert!(sentence.contains("127.0.0.1"), "{sentence}");
    }
    let cancelled = ids.pop().expect("a job");
    api.post(&format!("/api/jobs/{cancelled}/cancel"), json!({})).await;
    assert_eq!(api.job(&cancelled).await["status"], "cancelled");
    let server = Server::start_on(address, |_, _| Reply::text("two")).expect("the address of the first server");
    for id in &ids {
        let job = api.wait(id).await;
        assert_eq!(job["status"], "completed", "{job}");
        assert!(job["output_data"].to_string().contains("two"), "{job}");
    }
    assert!(!server.requests().iter().any(is_first), "no answered call is made again");
    assert_eq!(dev.interrupt(), Some(0));
}
