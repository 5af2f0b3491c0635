//! What policies leave agents, with real programs.

use std::net::TcpListener;
use std::path::Path;

use atlas_package::{PackFile, pack_files};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker};

/// A warm agent that says for each job whether it reaches a port of this machine.
fn agent(name: &str, permissions: &str, port: u16) -> Vec<u8> {
    let script = format!(
        "while read -r line; do if (: <> /dev/tcp/127.0.0.1/{port}) 2> /dev/null; then echo '{{\"output\": {{\"reached\": true}}}}'; \
         else echo '{{\"output\": {{\"reached\": false}}}}'; fi; done\n"
    );
    let contract = format!(
        "agent:\n  name: {name}\n  version: 1.0.0\n  provider: {{type: exec, mode: warm, command: [bash, run.sh]}}\n{permissions}"
    );
    let file =
        |path: &str, text: String| PackFile { path: path.to_owned(), bytes: text.into_bytes(), executable: false };
    pack_files(vec![file("agent.yaml", contract), file("run.sh", script)]).expect("a package").bytes
}

/// Whether the next job of an agent reaches the port, and how it was confined.
async fn reached(api: &Api, agent: &str) -> (Value, String) {
    let job = api.submit(agent, json!({})).await;
    let done = api.wait(&job).await;
    assert_eq!(done["status"], "completed", "{done}");
    (done["output_data"]["reached"].clone(), done["metadata"]["_sandbox"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_policy_takes_the_network_from_agents_that_run_already_and_from_later_ones() {
    if !Path::new("/bin/bash").exists() && !Path::new("/usr/bin/bash").exists() {
        atlas_notice::skip("no bash");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    api.register(agent("asks", "  permissions: {network: [outbound]}\n", port)).await;
    api.register(agent("silent", "", port)).await;
    let worker = worker(folder.path(), &controller);

    // Their programs stay warm.
    assert_eq!(reached(&api, "asks").await.0, true);
    assert_eq!(reached(&api, "silent").await, (true.into(), String::new()));

    let policy = json!({"spec": {"network": [], "max_memory_mb": 256}});
    let (status, _, said) = api.try_put("/api/objects/policy/offline", policy).await;
    assert!(status < 300, "{said}");
    for agent in ["asks", "silent"] {
        let (reached, confined) = reached(&api, agent).await;
        if confined.contains("not enforced: ") && confined.contains("network") && reached == true {
            atlas_notice::skip("this machine cannot keep a program from the network");
            return;
        }
        assert_eq!(reached, false, "{agent}: {confined}");
        assert!(confined.contains("no network"), "{agent}: {confined}");
    }
    let job = api.submit("asks", json!({})).await;
    let left = api.get(&format!("/api/jobs/{job}/policies")).await;
    assert_eq!(left["permissions"]["network"], json!([]), "{left}");
    assert_eq!(left["permissions"]["max_memory_mb"], 256, "{left}");
    api.wait(&job).await;

    // One that is deployed later.
    api.register(agent("later", "  permissions: {network: [outbound]}\n", port)).await;
    assert_eq!(reached(&api, "later").await.0, false);

    let (status, _, said) =
        api.try_put("/api/objects/policy/offline", json!({"spec": {"network": ["outbound"]}})).await;
    assert!(status < 300, "{said}");
    assert_eq!(reached(&api, "asks").await.0, true);
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}
