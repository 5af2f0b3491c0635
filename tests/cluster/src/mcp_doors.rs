//! The doors of MCP servers: whose sessions are, which requests of browsers are refused, and what clients that are not strict may send.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::Api;
use crate::mcp::{Wire, register_echo, register_sleeper};
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;
use crate::{Agent, write_agent};

/// A request as it is written, and the status and the text of its answer. The connection is closed by the server.
fn raw(address: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let request = format!("{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("sent");
    let mut text = String::new();
    let mut buffer = [0; 4096];
    // A stream of events would not end: its first part is enough.
    while !text.contains("\r\n\r\n") {
        let read = stream.read(&mut buffer).expect("an answer");
        if read == 0 {
            break;
        }
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("a status: {text}")), text)
}

/// Fails at first, and then takes long.
const LATE: Agent<'static> = Agent {
    name: "late",
    version: "1.0.0",
    contract: "  retry: { max_retries: 1, backoff_base: 0 }\n  output: { schema: { type: object } }",
    script: r#"tried=$(sed -n 's/.*"tried": *"\([^"]*\)".*/\1/p')
if [ -e "$tried" ]; then sleep 600; printf '{}'; else touch "$tried"; exit 1; fi"#,
};

fn ping() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })
}

#[tokio::test]
async fn a_session_is_only_that_of_whoever_opened_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    register_echo(&Api::new(&controller.http.to_string())).await;
    let at = |path: &str| Wire::at(&format!("http://{}{path}", controller.http));
    let (own, foreign, other) = (at("/mcp?namespace=a"), at("/mcp?namespace=b"), at("/agents/exec-echo/mcp"));
    let session = own.open().await;
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    for wire in [&foreign, &other, &at("/mcp")] {
        assert_eq!(wire.post(&headers, &ping()).await.status, StatusCode::NOT_FOUND);
        let resumed = [headers[0], headers[1], ("last-event-id", "0/0")];
        assert_eq!(wire.send(Method::GET, &resumed, "").await.status, StatusCode::NOT_FOUND);
        assert_eq!(wire.send(Method::DELETE, &headers, "").await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(own.ask(&session, "ping", json!({})).await["result"], json!({}), "it is still open");
    assert!(own.send(Method::DELETE, &headers, "").await.status.is_success());
    assert_eq!(own.send(Method::DELETE, &headers, "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn requests_of_foreign_pages_are_refused_whatever_their_method() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let http = controller.http;
    register_echo(&Api::new(&http.to_string())).await;
    let session = Wire::new(&controller).open().await;
    let host = format!("Host: {http}");
    let stream = format!("Accept: text/event-stream\r\nMcp-Session-Id: {session}");
    for path in ["/mcp", "/agents/exec-echo/mcp"] {
        for method in ["GET", "DELETE", "POST"] {
            for origin in ["http://elsewhere.example", "null", "http://\u{e9}.example"] {
                let head = format!("{method} {path} HTTP/1.1\r\n{host}\r\nOrigin: {origin}\r\n{stream}");
                let (status, text) = raw(http, &head, "");
                assert_eq!(status, 403, "{method} {path} {origin}: {text}");
            }
        }
        let head =
            format!("GET {path} HTTP/1.1\r\n{host}\r\nOrigin: http://{http}\r\nOrigin: http://a.example\r\n{stream}");
        assert_eq!(raw(http, &head, "").0, 403, "several origins");
    }
    // A page of this server has the origin of the server.
    let head = format!("GET /mcp HTTP/1.1\r\n{host}\r\nOrigin: http://{http}\r\n{stream}");
    assert_eq!(raw(http, &head, "").0, 200);
    // The events are a stream as well; what a page cannot read costs nothing.
    let events =
        |origin: &str| format!("GET /api/events HTTP/1.1\r\n{host}\r\nOrigin: {origin}\r\nAccept: text/event-stream");
    assert_eq!(raw(http, &events("http://elsewhere.example"), "").0, 403);
    assert_eq!(raw(http, &events(&format!("http://{http}")), "").0, 200);
    // Several hosts are no host, wherever the request goes.
    for path in ["/mcp", "/agents/exec-echo/mcp", "/api/agents", "/api/events"] {
        for second in [http.to_string(), "elsewhere.example".to_owned()] {
            let (status, text) = raw(http, &format!("GET {path} HTTP/1.1\r\n{host}\r\nHost: {second}\r\n{stream}"), "");
            assert_eq!(status, 400, "{path} {second}: {text}");
        }
    }
}

#[tokio::test]
async fn clients_say_what_they_read_in_many_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    register_echo(&Api::new(&controller.http.to_string())).await;
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 5, "method": "initialize", "params": hello });
    let send = async |path: &str, accept: Option<&str>, content_type: Option<&str>, body: &str| {
        let mut request = client.post(format!("http://{}{path}", controller.http)).body(body.to_owned());
        request = request.header("content-type", content_type.unwrap_or("application/json"));
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        let answer = request.send().await.expect("an answer");
        let kind = answer.headers()["content-type"].to_str().unwrap_or_default().to_owned();
        (answer.status().as_u16(), kind, answer.text().await.expect("a text"))
    };
    let hello = hello.to_string();
    for path in ["/mcp", "/mcp/", "/agents/exec-echo/mcp", "/agents/exec-echo/mcp/"] {
        for accept in [None, Some("*/*"), Some("application/json"), Some("application/*;q=0.5, text/html")] {
            let (status, kind, text) = send(path, accept, None, &hello).await;
            assert_eq!((status, kind.as_str()), (200, "application/json"), "{path} {accept:?}: {text}");
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!((&answer["id"], answer["result"].is_object()), (&json!(5), true), "{answer}");
        }
        for accept in ["text/event-stream", "application/json, text/event-stream", "text/*"] {
            let (status, kind, text) = send(path, Some(accept), None, &hello).await;
            assert_eq!((status, kind.as_str()), (200, "text/event-stream"), "{path} {accept}: {text}");
        }
        let (status, _, text) = send(path, Some("text/html"), None, &hello).await;
        assert!(status == 406 && text.contains("application/json"), "{status} {text}");
        let (status, _, text) = send(path, None, Some("text/plain"), &hello).await;
        assert!(status == 415 && text.contains("application/json"), "{status} {text}");
        for (body, code) in [("{", -32700), ("[]", -32600), (r#"{"jsonrpc": "2.0"}"#, -32600)] {
            let (status, _, text) = send(path, None, None, body).await;
            let answer: Value = serde_json::from_str(&text).unwrap_or_default();
            assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{body}: {text}");
        }
    }
}

/// A client that only knows one document for an answer.
async fn document(client: &reqwest::Client, url: &str, session: &str, method: &str, params: Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let request = client.post(url).header("content-type", "application/json").header("mcp-session-id", session);
    let answer = request.body(message.to_string()).send().await.expect("an answer");
    let text = answer.text().await.expect("a text");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("a document: {text}"))
}

async fn register(api: &Api, folder: &Path, contract: &str) {
    let dir = tempfile::tempdir_in(folder).expect("a folder");
    std::fs::write(dir.path().join("agent.yaml"), contract).expect("a contract");
    api.register(atlas_package::pack(dir.path()).expect("a package").bytes).await;
}

/// What the official SDK for TypeScript asks of a tool, and what providers of models ask of its name.
fn assert_strict(tool: &Value) {
    let name = tool["name"].as_str().expect("a name");
    let is_legal = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    assert!((1..=64).contains(&name.len()) && name.chars().all(is_legal), "{tool}");
    for schema in ["inputSchema", "outputSchema"].iter().filter_map(|schema| tool.get(schema)) {
        assert_eq!(schema["type"], "object", "{tool}");
        let properties = schema.get("properties").map(|found| found.as_object().expect("an object"));
        assert!(properties.into_iter().flatten().all(|(_, property)| property.is_object()), "{tool}");
        let required = schema.get("required").map(|found| found.as_array().expect("a list"));
        assert!(required.into_iter().flatten().all(Value::is_string), "{tool}");
    }
}

#[tokio::test]
async fn pinned_agents_are_tools_for_strict_clients() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let _worker = worker(folder.path(), &controller);
    let api = Api::new(&controller.http.to_string());
    let long = "x".repeat(100);
    let contract = |name: &str, schema: &str| {
        let input = format!("  input: {{ schema: {schema} }}\n  output: {{ schema: {{}} }}\n");
        format!("agent:\n  name: {name:?}\n  version: 1.0.0\n  provider: {{ type: exec, command: [cat] }}\n{input}")
    };
    let agents = [
        ("a list", "{ type: array, items: { type: integer } }"),
        ("gr\u{fc}\u{df}e", "{ type: object, properties: { a: { type: object }, b: true }, required: [a] }"),
        (&long, "{ anyOf: [{ type: string }, { type: object }] }"),
        ("either", "{ type: [object, 'null'] }"),
        ("job_get", "{ type: object }"),
    ];
    for (name, schema) in agents {
        register(&api, folder.path(), &contract(name, schema)).await;
        let path = format!(
            "/api/objects/pin/{}",
            name.replace(' ', "%20").replace('\u{fc}', "%C3%BC").replace('\u{df}', "%C3%9F")
        );
        let (status, _, answer) = api.try_put(&path, json!({ "spec": {} })).await;
        assert!((200..300).contains(&status), "{name}: {status} {answer}");
    }
    let wire = Wire::new(&controller);
    let session = wire.open().await;
    let listed = wire.ask(&session, "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().expect("tools");
    tools.iter().for_each(assert_strict);
    let mut names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "names are unique: {names:?}");
    let named = |title: &str| {
        let found = tools.iter().find(|tool| tool["title"] == title || tool["name"] == title);
        found.and_then(|tool| tool["name"].as_str()).unwrap_or_else(|| panic!("{title} is in {listed}")).to_owned()
    };
    // An input that is no object is a member; its text is read where a list is due.
    let list = named("a list");
    for input in [json!([1, 2]), json!("[1, 2]")] {
        let called = wire.call(&session, &list, json!({ "input": input })).await;
        assert_eq!(called["result"]["structuredContent"]["output"]["input"], json!([1, 2]), "{called}");
    }
    let called = wire.call(&session, &named("gr\u{fc}\u{df}e"), json!({ "a": "{\"b\": 1.0}", "b": "{}" })).await;
    assert_eq!(
        called["result"]["structuredContent"]["output"]["input"].to_string(),
        r#"{"a":{"b":1.0},"b":"{}"}"#,
        "{called}"
    );
    let called = wire.call(&session, &named(&long), json!({ "input": "{}" })).await;
    assert_eq!(
        called["result"]["structuredContent"]["output"]["input"],
        json!("{}"),
        "a text stays where one is allowed: {called}"
    );
}

#[tokio::test]
async fn what_models_send_as_text_is_read_and_hints_name_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let _worker = worker(folder.path(), &controller);
    register_echo(&Api::new(&controller.http.to_string())).await;
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let session = Wire::new(&controller).open().await;
    let url = format!("http://{}/mcp", controller.http);
    let run = async |arguments: Value| {
        let params = json!({ "name": "agent_run", "arguments": arguments });
        document(&client, &url, &session, "tools/call", params).await["result"].clone()
    };
    let input = json!({ "message": "hello" });
    let arguments = json!({ "agent": "exec-echo", "input": input });
    let nested = json!({ "agent": "exec-echo", "input": input.to_string() });
    for arguments in [arguments.clone(), arguments.to_string().into(), nested.clone(), nested.to_string().into()] {
        let ran = run(arguments.clone()).await;
        assert_eq!(ran["structuredContent"]["output"], input, "{arguments}: {ran}");
    }
    for (arguments, tool) in [
        (json!({ "agent": "exec-echo", "input": { "text": "x" } }), "agent_describe"),
        (json!({ "agent": "nobody" }), "agents_search"),
    ] {
        let refused = run(arguments).await;
        let text = refused["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains(tool) && !text.contains("atlasctl"), "{text}");
    }
}

/// An agent whose model calls another one, and a tool that does not exist.
const BOSS: &str = "agent:
  name: boss
  version: 1.0.0
  requires: { spawn_agents: true, skills: [writer] }
  provider: { type: llm, output_format: text }
  input: { schema: { type: object, properties: { q: { type: string } }, required: [q] } }
";

const BOSS_SAYS: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: writer, arguments: {} }
    - { name: writer, arguments: { fail: 1 } }
- match: "*"
  text: done
"#;

const WRITER: &str = "agent:
  name: writer
  version: 1.0.0
  provider: { type: exec, command: [sh, -c, 'if grep -q fail; then exit 3; fi; echo {}'] }
  input: { schema: { type: object } }
  max_retries: 0
";

#[tokio::test]
async fn progress_of_messages_tells_steps_and_tools_to_their_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let _worker = worker(folder.path(), &controller);
    let api = Api::new(&controller.http.to_string());
    register(&api, folder.path(), WRITER).await;
    let dir = folder.path().join("boss");
    std::fs::create_dir(&dir).expect("a folder");
    std::fs::write(dir.join("agent.yaml"), BOSS).expect("written");
    std::fs::write(dir.join("mock.yaml"), BOSS_SAYS).expect("written");
    api.register(atlas_package::pack(&dir).expect("a package").bytes).await;
    let wire = Wire::at(&format!("http://{}/agents/boss/mcp", controller.http));
    let session = wire.open().await;
    let params = json!({ "name": "send_message", "arguments": { "message": "x" }, "_meta": { "progressToken": "p" } });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let answer = wire.post(&headers, &message).await;
    let told = answer.messages.iter().filter(|message| message["method"] == "notifications/progress");
    let told: Vec<String> = told
        .map(|message| {
            let params = &message["params"];
            let total = params.get("total").map_or(String::new(), |total| format!(" of {total}"));
            format!("{} {}{total}", params["progress"], params["message"].as_str().unwrap_or_default())
        })
        .collect();
    let wanted = [
        "1.0 boss step 1 (llm)",
        "2.0 agents/writer: started",
        "3.0 agents/writer: started",
        "4.0 agents/writer: completed of 1.0",
        "5.0 agents/writer: failed of 1.0",
        "6.0 boss step 2 (tool)",
        "7.0 boss step 3 (llm)",
    ];
    assert_eq!(told, wanted, "{}", answer.text);
}

/// The address of the compatible server of a controller, as it logs that.
pub(crate) fn compatible(controller: &Controller) -> SocketAddr {
    let text = controller.text();
    let line = text.lines().find(|line| line.contains("compatible MCP server started")).expect("a line");
    line.split_whitespace().find_map(|word| word.strip_prefix("address=")?.parse().ok()).expect("an address")
}

#[tokio::test]
async fn a_client_of_the_compatible_server_cancels_its_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start_with(folder.path(), &["--mcp-compatible-listen", "127.0.0.1:0"]);
    let port = compatible(&controller);
    let _worker = worker(folder.path(), &controller);
    let api = Api::new(&controller.http.to_string());
    register_sleeper(&api, folder.path()).await;
    let wire = Wire::at(&format!("http://{port}/mcp"));
    let (session, other) = (wire.open().await, wire.open().await);
    let headers = [("mcp-session-id", session.as_str())];
    let params = json!({ "name": "atlas.exec.run", "arguments": { "agent": "sleeper", "input": { "seconds": 600 } } });
    let call = json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params });
    let cancel = async {
        let running = async || {
            let jobs = api.get("/api/jobs?limit=10").await;
            match jobs.as_array().and_then(|jobs| jobs.first()) {
                Some(job) if job["status"] == "running" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        };
        eventually_async("the job runs", running).await;
        let cancelled =
            |id: &str| json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        // Neither another session nor another id cancels it.
        assert_eq!(wire.post(&[("mcp-session-id", &other)], &cancelled("c")).await.status, StatusCode::ACCEPTED);
        assert_eq!(wire.post(&headers, &cancelled("d")).await.status, StatusCode::ACCEPTED);
        running().await.expect("it still runs");
        assert_eq!(wire.post(&headers, &cancelled("c")).await.status, StatusCode::ACCEPTED);
    };
    let (answer, ()) = tokio::join!(wire.post(&headers, &call), cancel);
    assert!(answer.text.contains("cancelled"), "{}", answer.text);
    let jobs = api.get("/api/jobs?limit=10").await;
    assert_eq!(jobs[0]["status"], "cancelled", "{jobs}");
}

/// The client does not know that its job failed and runs again as another one.
#[tokio::test]
async fn a_client_cancels_the_retry_of_its_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start_with(folder.path(), &["--mcp-compatible-listen", "127.0.0.1:0"]);
    let port = compatible(&controller);
    let _worker = worker(folder.path(), &controller);
    let api = Api::new(&controller.http.to_string());
    write_agent(folder.path(), &LATE);
    api.register(atlas_package::pack(&folder.path().join(LATE.name)).expect("a package").bytes).await;
    let wire = Wire::at(&format!("http://{port}/mcp"));
    let session = wire.open().await;
    let headers = [("mcp-session-id", session.as_str())];
    let input = json!({ "tried": folder.path().join("tried") });
    let params = json!({ "name": "atlas.exec.run", "arguments": { "agent": "late", "input": input } });
    let call = json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params });
    let statuses = async || {
        let jobs = api.get("/api/jobs?limit=10").await;
        let mut statuses: Vec<String> =
            jobs.as_array().into_iter().flatten().map(|job| job["status"].to_string().replace('"', "")).collect();
        statuses.sort();
        statuses.join(" ")
    };
    let cancel = async {
        eventually_async("the retry runs", async || match statuses().await {
            both if both == "failed running" => Ok(()),
            other => Err(other),
        })
        .await;
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "c" } });
        assert_eq!(wire.post(&headers, &cancelled).await.status, StatusCode::ACCEPTED);
    };
    let (answer, ()) = tokio::join!(wire.post(&headers, &call), cancel);
    assert!(answer.text.contains("cancelled"), "{}", answer.text);
    assert_eq!(statuses().await, "cancelled failed");
}
