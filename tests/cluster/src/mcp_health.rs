//! `get_health` of agents whose servers and models answer, and of those whose do not.

use std::fs;
use std::path::Path;

use atlas_llm_server::downstream::Downstream;
use atlas_package::pack;
use serde_json::{Value, json};

use crate::api::Api;
use crate::mcp::Wire;
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;

/// Registers an agent with a model and a server, both of its name.
async fn prepare(api: &Api, folder: &Path, name: &str, (server, model): (&str, &str)) {
    let spec = json!({ "transport": "http", "url": server });
    let (status, _, answer) = api.try_put(&format!("/api/objects/mcp-server/{name}"), json!({ "spec": spec })).await;
    assert_eq!(status, 200, "{answer}");
    let spec = json!({ "provider": "openai", "name": "m", "base_url": model, "capabilities": ["tools"] });
    let (status, _, answer) = api.try_put(&format!("/api/objects/model/{name}"), json!({ "spec": spec })).await;
    assert_eq!(status, 200, "{answer}");
    let dir = folder.join("agents").join(name);
    fs::create_dir_all(&dir).expect("a folder");
    let contract = format!(
        "agent:\n  name: {name}\n  version: 1.0.0\n  model: {{ name: {name} }}\n  provider: {{ type: llm, system_prompt: Talk. }}\n  requires: {{ mcp_servers: [{name}] }}\n"
    );
    fs::write(dir.join("agent.yaml"), contract).expect("a contract");
    api.register(pack(&dir).expect("a package").bytes).await;
}

async fn health(controller: &Controller, agent: &str) -> Value {
    let wire = Wire::at(&format!("http://{}/agents/{agent}/mcp", controller.http));
    let session = wire.open().await;
    wire.call(&session, "get_health", json!({})).await["result"]["structuredContent"].clone()
}

#[tokio::test]
async fn health_says_what_does_not_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let behind = Downstream::start().expect("a server");
    let controller = Controller::start(folder.path());
    let _worker = worker(folder.path(), &controller);
    let api = Api::new(&controller.http.to_string());
    // Without a worker nobody can ask, and that is what health says.
    let nodes = format!("http://{}/api/nodes", controller.http);
    eventually_async("the worker is ready", async || {
        let nodes = reqwest::get(&nodes).await.map_err(|error| error.to_string())?;
        let nodes = nodes.text().await.map_err(|error| error.to_string())?;
        if nodes.contains(r#""ready""#) { Ok(()) } else { Err(nodes) }
    })
    .await;
    prepare(&api, folder.path(), "fine", (&behind.url(), &behind.model_url())).await;
    // Nobody listens there.
    prepare(&api, folder.path(), "lost", ("http://127.0.0.1:9/mcp", "http://127.0.0.1:9/v1")).await;

    let fine = health(&controller, "fine").await;
    assert_eq!((&fine["status"], &fine["message"]), (&json!("ok"), &Value::Null), "{fine}");
    let asked: Vec<String> = behind.noted().into_iter().map(|noted| noted.method).collect();
    assert!(asked.iter().any(|method| method == "initialize"), "{asked:?}");
    assert_eq!(asked.last().map(String::as_str), Some("DELETE"), "the session is ended: {asked:?}");

    let lost = health(&controller, "lost").await;
    let message = lost["message"].as_str().unwrap_or_default();
    assert_eq!(lost["status"], "degraded", "{lost}");
    assert!(message.starts_with("Unreachable: lost; LLM: openai: "), "{lost}");

    // An answer counts for some seconds, and for all callers.
    let before = behind.noted().len();
    let (one, other) = tokio::join!(health(&controller, "fine"), health(&controller, "fine"));
    assert_eq!((&one["status"], &other["status"]), (&json!("ok"), &json!("ok")));
    assert!(behind.of("initialize").len() <= 2 && behind.noted().len() <= before + 8, "{:?}", behind.noted());

    let metrics = reqwest::get(format!("http://{}/metrics", controller.http)).await.expect("an answer");
    let metrics = metrics.text().await.expect("a text");
    for line in [
        r#"atlas_downstream_up{agent="fine",server="fine"} 1"#,
        r#"atlas_downstream_up{agent="lost",server="lost"} 0"#,
        r#"atlas_agent_health_status{agent="lost"} 0.5"#,
    ] {
        assert!(metrics.contains(line), "{line} is missing");
    }
}
