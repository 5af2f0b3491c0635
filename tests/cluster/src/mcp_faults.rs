//! What goes wrong between clients of MCP and the gateway: wrong versions, sessions that are left, controllers that are lost.

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::Agent;
use crate::api::Api;
use crate::mcp::{Wire, register_sleeper};
use crate::pair::{Controller, worker};
use crate::trio::{self, leader, trio};

#[tokio::test]
async fn wrong_versions_and_methods_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let wire = Wire::new(&controller);
    let session = wire.open().await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    for headers in [
        // A version that nobody has heard of, one of another era, and a method that is not that of the message.
        vec![("mcp-session-id", session.as_str()), ("mcp-protocol-version", "1999-01-01")],
        vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call")],
        vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")],
    ] {
        let answer = wire.post(&headers, &list).await;
        assert!(answer.status.is_client_error(), "{headers:?}: {} {}", answer.status, answer.text);
    }
    for message in ["[]", "[1]", r#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#, r#"{"id": []}"#, "\u{0}"] {
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
        let answer = wire.send(Method::POST, &headers, message).await;
        assert!(answer.status.is_client_error(), "{message}: {} {}", answer.status, answer.text);
    }
    let answer = wire.ask(&session, "ping", json!({})).await;
    assert!(answer["result"].is_object(), "{answer}");
}

#[tokio::test]
async fn a_thousand_sessions_that_are_left_end_by_themselves() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--mcp-sessions-max", "1000", "--mcp-session-idle", "10s"];
    let controller = Controller::start_with(folder.path(), &options);
    let wire = Wire::new(&controller);
    let opened = stream::iter(0..1_000).map(|_| wire.open()).buffer_unordered(50);
    assert_eq!(opened.count().await, 1_000);
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
    let refused = wire.post(&[], &hello).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.text);
    // The newest version has no sessions, so it needs no room.
    let found = wire.alone("tools/list", None, json!({})).await;
    assert!(found["result"]["tools"].is_array(), "{found}");
    // Nobody says goodbye.
    let room = async { while !wire.post(&[], &hello).await.status.is_success() {} };
    tokio::time::timeout(Duration::from_secs(60), room).await.expect("the sessions end");
}

#[tokio::test]
async fn a_stream_cannot_be_resumed_after_a_restart_and_its_job_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let _worker = worker(folder.path(), &controller);
    let (api, wire) = (Api::new(&controller.http.to_string()), Wire::new(&controller));
    register_sleeper(&api, folder.path()).await;
    let session = wire.open().await;
    let run = json!({ "agent": "sleeper", "input": { "seconds": 3.0 }, "wait_seconds": 0.2 });
    let running = wire.call(&session, "agent_run", run).await;
    let job = running["result"]["structuredContent"]["job_id"].clone();
    let controller = controller.kill_and_restart(folder.path());
    let wire = Wire::new(&controller);
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
        ("last-event-id", "1/0"),
        ("accept", "text/event-stream"),
    ];
    // The protocol's word for: open a new session.
    assert_eq!(wire.send(Method::GET, &headers, "").await.status, StatusCode::NOT_FOUND);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(wire.post(&headers[..2], &ping).await.status, StatusCode::NOT_FOUND);
    let session = wire.open().await;
    let ended = wire.call(&session, "job_wait", json!({ "job_id": job })).await;
    assert_eq!(ended["result"]["structuredContent"]["status"], "completed", "{ended}");
}

const SLOW: Agent<'_> =
    Agent { name: "slow", version: "1.0.0", contract: "", script: "cat >/dev/null; sleep 0.2; echo '{}'" };

#[tokio::test]
async fn calls_are_answered_although_the_leader_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[&SLOW]).await;
    let leading = leader(&members).await;
    let (first, second) = ((leading + 1) % 3, (leading + 2) % 3);
    let _worker = trio::worker(folder.path(), "w1", &members.each_ref());
    let wires = [first, second].map(|place| Wire::at(&format!("http://{}/mcp", members[place].http)));
    let call = |number: usize| {
        let wire = &wires[number % 2];
        async move {
            let key = format!("call-{number}");
            let arguments = json!({ "agent": "slow", "input": {}, "idempotency_key": key });
            let asked = json!({ "name": "agent_run", "arguments": arguments });
            let answer = wire.alone("tools/call", Some("agent_run"), asked).await;
            match answer["result"]["taskId"].as_str() {
                None => answer["result"]["structuredContent"]["status"].clone(),
                Some(task) => ended(wire, task).await,
            }
        }
    };
    let calls = stream::iter(0..200).map(call).buffer_unordered(200).collect::<Vec<Value>>();
    let kill = async {
        let api = Api::new(&members[first].http.to_string());
        while api.get("/api/jobs?limit=20").await.as_array().map_or(0, Vec::len) < 20 {}
        members[leading].kill();
    };
    let (ends, ()) = tokio::join!(calls, kill);
    assert!(ends.iter().all(|end| end == "completed"), "{ends:?}");
}

/// How a task ends.
async fn ended(wire: &Wire, task: &str) -> Value {
    loop {
        let found = wire.alone("tasks/get", Some(task), json!({ "taskId": task })).await;
        match found["result"]["status"].as_str() {
            Some("working") => {}
            Some("completed") => return found["result"]["result"]["structuredContent"]["status"].clone(),
            _ => return found,
        }
    }
}
