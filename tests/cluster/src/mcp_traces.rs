//! A call goes through two clusters to an MCP server: the trace goes with it, and so does its cancellation.

use std::fs;
use std::path::Path;

use atlas_llm_server::downstream::Downstream;
use atlas_package::pack;
use serde_json::{Value, json};

use crate::api::Api;
use crate::mcp::Wire;
use crate::mcp_doors::compatible;
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const OTHER_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Registers agents of the provider `mcp`, each with what it calls at a server.
async fn prepare(api: &Api, folder: &Path, url: &str, agents: &[(&str, &str)]) {
    let spec = json!({ "transport": "http", "url": url });
    let (status, _, answer) = api.try_put("/api/objects/mcp-server/next", json!({ "spec": spec })).await;
    assert_eq!(status, 200, "{answer}");
    for (name, calls) in agents {
        let dir = folder.join("agents").join(name);
        fs::create_dir_all(&dir).expect("a folder");
        let contract = format!(
            "agent:\n  name: {name}\n  version: 1.0.0\n  provider: {{ type: mcp, server: next, {calls} }}\n  input: {{ schema: {{ type: object }} }}\n"
        );
        fs::write(dir.join("agent.yaml"), contract).expect("a contract");
        api.register(pack(&dir).expect("a package").bytes).await;
    }
}

#[tokio::test]
async fn traces_and_cancellations_go_through_peers_to_servers() {
    let (near_folder, far_folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let behind = Downstream::start().expect("a server");
    let far = Controller::start_with(far_folder.path(), &["--mcp-compatible-listen", "127.0.0.1:0"]);
    let near = Controller::start(near_folder.path());
    let _workers = [worker(far_folder.path(), &far), worker(near_folder.path(), &near)];
    let (far_api, near_api) = (Api::new(&far.http.to_string()), Api::new(&near.http.to_string()));
    prepare(&far_api, far_folder.path(), &behind.url(), &[("tell", "tool: tell"), ("hold", "tool: hold")]).await;
    let peer = format!("http://{}/mcp", compatible(&far));
    prepare(&near_api, near_folder.path(), &peer, &[("far-tell", "agent: tell"), ("far-hold", "agent: hold")]).await;

    // A pin makes the tool of a server one of the gateway, under the agent's name.
    let (status, _, answer) = far_api.try_put("/api/objects/pin/tell", json!({ "spec": {} })).await;
    assert_eq!(status, 200, "{answer}");
    let at_far = Wire::new(&far);
    let session = at_far.open().await;
    let listed = at_far.ask(&session, "tools/list", json!({})).await;
    assert!(listed["result"]["tools"].as_array().is_some_and(|all| all.iter().any(|tool| tool["name"] == "tell")));
    let answer = at_far.call(&session, "tell", json!({})).await;
    assert_eq!((behind.of("tools/call").len(), answer.to_string().contains("told")), (1, true), "{answer}");

    let wire = Wire::new(&near);
    let session = wire.open().await;
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let headers =
        [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25"), ("traceparent", &parent)];
    let call = |id: u64, agent: &str, meta: Value| {
        let params = json!({ "name": "agent_run", "arguments": { "agent": agent, "input": {} }, "_meta": meta });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    // The trace of the message goes before that of the request, unless it is none.
    let of_message = json!({ "traceparent": format!("00-{OTHER_TRACE}-00f067aa0ba902b7-01") });
    let none = json!({ "traceparent": format!("00-{OTHER_TRACE}-01") });
    let traces = [(json!({}), TRACE), (of_message.clone(), OTHER_TRACE), (none, TRACE)];
    for (number, (meta, trace)) in traces.into_iter().enumerate() {
        let answer = wire.post(&headers, &call(10 + number as u64, "far-tell", meta)).await;
        assert!(answer.text.contains("told"), "{}", answer.text);
        let told = behind.of("tools/call").remove(1 + number);
        assert_eq!(told.traceparent.split('-').nth(1), Some(trace), "{told:?}");
        assert_eq!(told.body["params"]["_meta"]["traceparent"], json!(told.traceparent), "{told:?}");
    }
    // So it does at the compatible server.
    let direct = Wire::at(&peer);
    let in_session = [("mcp-session-id", direct.open().await)];
    let in_session = in_session.each_ref().map(|(name, value)| (*name, value.as_str()));
    let params =
        json!({ "name": "atlas.exec.run", "arguments": { "agent": "tell", "input": {} }, "_meta": of_message });
    let answer =
        direct.post(&in_session, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    assert!(answer.text.contains("told"), "{}", answer.text);
    let told = behind.of("tools/call").remove(4);
    assert_eq!(told.traceparent.split('-').nth(1), Some(OTHER_TRACE), "{told:?}");

    // Who cancels the call cancels the job here, the call of the peer, its job, and the call of the server.
    let cancel = async {
        eventually_async("the server is called", async || {
            let calls = behind.of("tools/call").len();
            if calls == 6 { Ok(()) } else { Err(format!("{calls} calls")) }
        })
        .await;
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
        assert!(wire.post(&headers, &cancelled).await.status.is_success());
    };
    let call = call(2, "far-hold", json!({}));
    let (_, ()) = tokio::join!(wire.post(&headers, &call), cancel);
    eventually_async("the call of the server is cancelled", async || {
        let cancelled = behind.of("notifications/cancelled");
        if cancelled.is_empty() { Err(format!("{:?}", behind.noted())) } else { Ok(()) }
    })
    .await;
    for api in [&near_api, &far_api] {
        let has_ended = async || {
            let jobs: Value = api.get("/api/jobs?limit=10").await;
            if jobs[0]["status"] == "cancelled" { Ok(()) } else { Err(jobs.to_string()) }
        };
        eventually_async("the job is cancelled", has_ended).await;
    }
}
