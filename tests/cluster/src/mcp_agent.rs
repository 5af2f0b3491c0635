//! The MCP server of an agent on a real controller: messages, conversations, health and the registry document.

use std::fs;
use std::path::Path;

use atlas_llm_server::{Reply, Server};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::api::Api;
use crate::mcp::Wire;
use crate::pair::{Controller, worker_command};
use crate::process::Process;

const CHAT: &str = "agent:
  name: small_talk
  version: 1.2.0
  description: Talks.
  provider: { type: llm, output_format: text, system_prompt: Talk., messages: said }
  input: { schema: { type: object, properties: { said: { type: array } }, required: [said] } }
";

const ECHO: &str = r#"agent:
  name: echo
  version: 1.0.0
  title: The echo
  provider: { type: exec, command: [sed, -E, 's/.*"q":"([^"]*)".*/{"answer":"\1"}/'] }
  input: { schema: { type: object, properties: { q: { type: string } }, required: [q] } }
"#;

const PAIR: &str = "agent:
  name: pair
  version: 1.0.0
  provider: { type: exec, command: [cat] }
  requires: { agents: [nobody] }
  input: { schema: { type: object, properties: { a: { type: string }, b: { type: string } }, required: [a, b] } }
";

/// A model that says how many messages it got, and what the last one was.
fn model() -> Server {
    let answer = |request: &Value, _: usize| {
        let messages = request["messages"].as_array().expect("messages");
        let last = &messages.last().expect("a message")["content"];
        let last = last.as_str().map_or_else(|| last[0]["text"].as_str().unwrap_or_default().to_owned(), str::to_owned);
        Reply::text(&format!("{} of {}", last, messages.len()))
    };
    Server::start(answer).expect("a server")
}

async fn register(api: &Api, folder: &Path, contract: &str) {
    let dir = tempfile::tempdir_in(folder).expect("a folder");
    fs::write(dir.path().join("agent.yaml"), contract).expect("a contract");
    api.register(atlas_package::pack(dir.path()).expect("a package").bytes).await;
}

/// The text of a result.
fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("a text: {answer}"))
}

#[tokio::test]
async fn agents_answer_messages_and_remember_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = model();
    let controller = Controller::start_with(folder.path(), &["--mcp-agent-listen", "echo=127.0.0.1:0"]);
    let api = Api::new(&controller.http.to_string());
    for contract in [CHAT, ECHO, PAIR] {
        register(&api, folder.path(), contract).await;
    }
    let wire = |path: &str| Wire::at(&format!("http://{}{path}", controller.http));

    // An agent that nobody can run is in error; one that does not exist is not served.
    let chat = wire("/agents/small_talk/mcp");
    let (one, other) = (chat.open().await, chat.open().await);
    let health = chat.call(&one, "get_health", json!({})).await["result"]["structuredContent"].clone();
    assert_eq!((&health["status"], &health["message"]), (&json!("error"), &json!("no worker is ready")), "{health}");
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(wire("/agents/nobody/mcp").post(&[], &ping).await.status, StatusCode::NOT_FOUND);

    let mut command = worker_command(folder.path(), &controller);
    command.env("ANTHROPIC_BASE_URL", model.base_url()).env("ANTHROPIC_API_KEY", "key");
    let _worker = Process::start(&mut command);

    // Each MCP session has a conversation of its own, unless the client names one.
    let send = |text: &str| json!({ "message": text });
    let named = |text: &str| json!({ "message": text, "conversation_id": "trip" });
    assert_eq!(said(&chat.call(&one, "send_message", send("a")).await), "a of 1");
    assert_eq!(said(&chat.call(&one, "send_message", send("b")).await), "b of 3");
    assert_eq!(said(&chat.call(&other, "small_talk", send("c")).await), "c of 1", "the agent's name is an alias");
    let (first, second) =
        tokio::join!(chat.call(&one, "send_message", named("x")), chat.call(&other, "send_message", named("y")));
    let mut lengths = [said(&first)[1..].to_owned(), said(&second)[1..].to_owned()];
    lengths.sort();
    assert_eq!(lengths, [" of 1", " of 3"], "turns of one conversation run one after the other");
    let foreign = wire("/agents/echo/mcp");
    let session = foreign.open().await;
    let refused = foreign.call(&session, "send_message", named("z")).await;
    assert!(said(&refused).contains("is with small_talk, not echo"), "{refused}");
    let prompt = chat.ask(&one, "prompts/get", json!({ "name": "small_talk_history" })).await;
    let texts: Vec<&str> = prompt["result"]["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter_map(|message| message["content"]["text"].as_str())
        .collect();
    assert_eq!(texts, ["a", "a of 1", "b", "b of 3"]);

    // Conversations are read and deleted over HTTP.
    let all = api.get("/api/conversations").await;
    let turns: Vec<u64> = all.as_array().expect("a list").iter().filter_map(|one| one["turns"].as_u64()).collect();
    assert_eq!(turns.iter().sum::<u64>(), 5, "{all}");
    let trip = api.get("/api/conversations/trip").await;
    assert_eq!((&trip["scope"], trip["messages"].as_array().map(Vec::len)), (&json!("named"), Some(4)), "{trip}");
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = format!("http://{}/api/conversations/trip", controller.http);
    assert_eq!(client.delete(&url).send().await.expect("an answer").status(), StatusCode::OK);
    assert_eq!(client.get(&url).send().await.expect("an answer").status(), StatusCode::NOT_FOUND);

    // An agent with one text takes messages, and no images; one with two texts takes none.
    assert_eq!(said(&foreign.call(&session, "send_message", send("hello")).await), "hello");
    let picture = json!({ "message": "x", "images": [{ "data": "AA==", "mime_type": "image/png" }] });
    let blind = foreign.call(&session, "send_message", picture).await;
    assert_eq!(
        (&blind["result"]["isError"], said(&blind)),
        (&json!(true), "echo takes no images: its input has no member for them")
    );
    let pair = wire("/agents/pair/mcp");
    let session = pair.open().await;
    let refused = pair.call(&session, "send_message", send("x")).await;
    assert!(said(&refused).starts_with("pair takes no messages: its input needs a, b."), "{refused}");
    let health = pair.call(&session, "get_health", json!({})).await["result"]["structuredContent"].clone();
    assert_eq!((&health["status"], &health["message"]), (&json!("error"), &json!("Unreachable: nobody")), "{health}");

    // The registry document names all of them, and the port of the one that has its own.
    let document = api.get("/.well-known/mcp/server.json").await;
    let servers = document["servers"].as_array().expect("servers");
    let server = |name: &str| {
        let found = servers.iter().find(|entry| entry["server"]["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is in {document}"))["server"].clone()
    };
    let talk = server("local.atlas/small-talk");
    let address = format!("http://{}/agents/small_talk/mcp", controller.http);
    assert_eq!(talk["remotes"], json!([{ "type": "streamable-http", "url": address }]));
    assert_eq!((&talk["title"], &talk["version"]), (&json!("Small_Talk"), &json!("1.2.0")));
    let echo = server("local.atlas/echo");
    assert_eq!(echo["title"], "The echo");
    let alone = Wire::at(echo["remotes"][0]["url"].as_str().expect("an address"));
    let session = alone.open().await;
    assert_eq!(said(&alone.call(&session, "send_message", send("alone")).await), "alone");
    let metrics = client.get(format!("http://{}/metrics", controller.http)).send().await.expect("an answer");
    let metrics = metrics.text().await.expect("a text");
    for line in [
        r#"atlas_send_message_total{agent="echo",outcome="ok"} 2"#,
        r#"atlas_agent_health_status{agent="pair"} 0.0"#,
        r#"atlas_agent_info{agent="echo",port="#,
    ] {
        assert!(metrics.contains(line), "{line} is in\n{metrics}");
    }
}
