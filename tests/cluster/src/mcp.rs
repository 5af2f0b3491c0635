//! The MCP gateway of real controllers: by hand, message by message, and with clients that are not ours.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker};
use crate::program::program;

/// Names the Python that has the official SDK.
const PYTHON: &str = "ATLAS_TEST_MCP_PYTHON";

/// A client without knowledge of the protocol.
pub(crate) struct Wire {
    http: reqwest::Client,
    url: String,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) session: Option<String>,
    /// The messages, of a stream or of a document.
    pub(crate) messages: Vec<Value>,
    pub(crate) text: String,
}

impl Wire {
    pub(crate) fn new(controller: &Controller) -> Self {
        Self::at(&format!("http://{}/mcp", controller.http))
    }

    /// A client of the server at this address.
    pub(crate) fn at(url: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().expect("a client");
        Self { http, url: url.to_owned() }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let accept = "application/json, text/event-stream";
        let mut request = self.http.request(method, &self.url).header("accept", accept);
        request = request.header("content-type", "application/json").body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.expect("an answer");
        let session = answer.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let (status, text) = (answer.status(), answer.text().await.expect("a body"));
        let mut messages: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect();
        messages.extend(serde_json::from_str(&text).ok());
        Answer { status, session, messages, text }
    }

    pub(crate) async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.send(Method::POST, headers, message.to_string()).await
    }

    /// Opens a session; its id.
    pub(crate) async fn open(&self) -> String {
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
        let session = self.post(&[], &message).await.session.expect("a session");
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
        let ready = self.post(&headers, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert_eq!(ready.status, StatusCode::ACCEPTED);
        session
    }

    /// Calls a tool in a session; the result or the error.
    pub(crate) async fn call(&self, session: &str, tool: &str, arguments: Value) -> Value {
        self.ask(session, "tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Makes a request in a session; the result or the error.
    pub(crate) async fn ask(&self, session: &str, method: &str, params: Value) -> Value {
        let headers = [("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let answer = self.post(&headers, &message).await;
        let found = answer.messages.into_iter().find(|message| message["id"] == 7);
        found.unwrap_or_else(|| panic!("an answer to the request: {} {}", answer.status, answer.text))
    }

    /// The stream of a session, on which the server says what nobody asked for.
    pub(crate) async fn stream(&self, session: &str) -> reqwest::Response {
        let request = self.http.get(&self.url).header("accept", "text/event-stream").header("mcp-session-id", session);
        let stream = request.header("mcp-protocol-version", "2025-11-25").send().await.expect("an answer");
        assert!(stream.status().is_success(), "{}", stream.status());
        stream
    }

    /// The same stream, resumed after an event.
    pub(crate) async fn resumed(&self, session: &str, event: &str) -> reqwest::Response {
        let request = self.http.get(&self.url).header("accept", "text/event-stream").header("mcp-session-id", session);
        let request = request.header("mcp-protocol-version", "2025-11-25").header("last-event-id", event);
        request.send().await.expect("an answer")
    }

    /// A stream without a session, which waits for changes of the list of tools.
    pub(crate) async fn listen(&self) -> reqwest::Response {
        let params = newest(json!({ "notifications": { "toolsListChanged": true } }));
        let message = json!({ "jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": params });
        let request = self.http.post(&self.url).header("accept", "application/json, text/event-stream");
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "subscriptions/listen");
        let stream = request.header("content-type", "application/json").body(message.to_string()).send().await;
        let stream = stream.expect("an answer");
        assert!(stream.status().is_success(), "{}", stream.status());
        stream
    }

    /// A request without a session, of a client that knows tasks.
    pub(crate) async fn alone(&self, method: &str, name: Option<&str>, params: Value) -> Value {
        let params = newest(params);
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        let message = json!({ "jsonrpc": "2.0", "id": 8, "method": method, "params": params });
        let answer = self.post(&headers, &message).await;
        let found = answer.messages.into_iter().find(|message| message["id"] == 8);
        found.unwrap_or_else(|| panic!("an answer: {} {}", answer.status, answer.text))
    }
}

/// Parameters as clients of the newest version send them.
fn newest(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } }
    });
    params
}

/// Registers an agent that sleeps for as many seconds as its input says.
pub(crate) async fn register_sleeper(api: &Api, folder: &Path) {
    let agent = folder.join("sleeper");
    std::fs::create_dir(&agent).expect("a folder");
    let contract = "agent:
  name: sleeper
  version: 1.0.0
  provider: { type: exec, command: [sh, -c, 'sleep $(grep -o seconds.:[0-9.]* | tr -cd 0-9.); echo {}'] }
  input: { schema: { type: object } }
  output: { schema: { type: object } }
";
    std::fs::write(agent.join("agent.yaml"), contract).expect("written");
    api.register(atlas_package::pack(&agent).expect("a package").bytes).await;
}

pub(crate) async fn register_echo(api: &Api) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/bundled/exec-echo");
    api.register(atlas_package::pack(&folder).expect("a package").bytes).await;
}

#[tokio::test]
async fn what_is_malformed_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start_with(folder.path(), &["--mcp-sessions-max", "2"]);
    let wire = Wire::new(&controller);
    assert_eq!(wire.send(Method::POST, &[], "{").await.status, StatusCode::BAD_REQUEST);
    let unknown = [("mcp-session-id", "nobody"), ("mcp-protocol-version", "2025-11-25")];
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(wire.post(&unknown, &ping).await.status, StatusCode::NOT_FOUND);
    assert_eq!(wire.send(Method::GET, &[], "").await.status, StatusCode::BAD_REQUEST);
    let large = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "x": "y".repeat(2 << 20) } });
    assert_eq!(wire.post(&[], &large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let foreign = wire.post(&[("origin", "http://elsewhere.example")], &ping).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{}", foreign.text);
    // A session is ended by its client; a third one at a time is refused.
    let (first, second) = (wire.open().await, wire.open().await);
    let refused = wire.post(&[], &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} })).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.text);
    let ended = wire.send(Method::DELETE, &[("mcp-session-id", &first)], "").await;
    assert!(ended.status.is_success(), "{}", ended.status);
    wire.open().await;
    // Errors of tools are results; an unknown tool is an error of the protocol.
    let unknown = wire.call(&second, "agent_destroy", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let missing = wire.call(&second, "agent_run", json!({ "agent": "nobody" })).await;
    assert_eq!(missing["result"]["isError"], true, "{missing}");
    let misspelt = wire.call(&second, "agent_run", json!({ "agents": "nobody" })).await;
    assert!(misspelt.to_string().contains("unknown field"), "{misspelt}");
    // A pinned agent is a tool of its own.
    let api = Api::new(&controller.http.to_string());
    register_echo(&api).await;
    let pin = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = format!("http://{}/api/objects/pin/exec-echo", controller.http);
    let pinned = pin.put(url).body(r#"{"spec": {"version": "^1.0.0"}}"#).send().await.expect("an answer");
    assert!(pinned.status().is_success(), "{}", pinned.status());
    let tools = wire.ask(&second, "tools/list", json!({})).await;
    let last = tools["result"]["tools"].as_array().and_then(|tools| tools.last()).expect("tools");
    assert_eq!(
        (&last["name"], &last["inputSchema"]["required"]),
        (&json!("exec-echo"), &json!(["message"])),
        "{tools}"
    );
    let unfit = wire.call(&second, "exec-echo", json!({ "text": "x" })).await;
    assert!(unfit.to_string().contains("E1102"), "{unfit}");
    let foreign = wire.ask(&second, "tools/list", json!({ "cursor": "x" })).await;
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    let page = wire.ask(&second, "resources/read", json!({ "uri": "atlas://errors/E1102" })).await;
    assert!(page["result"]["contents"][0]["text"].as_str().is_some_and(|text| text.contains("E1102")), "{page}");
    let negative = wire.call(&second, "job_wait", json!({ "job_id": "job-1", "wait_seconds": -1 })).await;
    assert!(negative.to_string().contains("from 0 on"), "{negative}");
}

#[tokio::test]
async fn a_long_call_becomes_a_task_or_answers_with_its_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let _worker = worker(folder.path(), &controller);
    let (api, wire) = (Api::new(&controller.http.to_string()), Wire::new(&controller));
    register_sleeper(&api, folder.path()).await;
    let run = |seconds: f64| json!({ "agent": "sleeper", "input": { "seconds": seconds } });

    // A client that knows tasks gets one, which is the job.
    let arguments = json!({ "name": "agent_run", "arguments": run(4.0) });
    let task = wire.alone("tools/call", Some("agent_run"), arguments).await;
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    let id = task["result"]["taskId"].as_str().expect("an id").to_owned();
    assert_eq!(api.job(&id).await["door"], "mcp");
    let asked = json!({ "taskId": id });
    let working = wire.alone("tasks/get", Some(&id), asked.clone()).await;
    assert_eq!(working["result"]["status"], "working", "{working}");
    api.wait(&id).await;
    let done = wire.alone("tasks/get", Some(&id), asked.clone()).await;
    assert_eq!(done["result"]["status"], "completed", "{done}");
    assert_eq!(done["result"]["result"]["structuredContent"]["status"], "completed", "{done}");

    // Another client gets the id of the job, and waits for it.
    let session = wire.open().await;
    let mut brief = run(2.0);
    brief["wait_seconds"] = json!(0.2);
    let running = wire.call(&session, "agent_run", brief).await;
    let content = &running["result"]["structuredContent"];
    assert_eq!((&content["status"], &running["result"]["isError"]), (&json!("running"), &Value::Null), "{running}");
    let ended = wire.call(&session, "job_wait", json!({ "job_id": content["job_id"] })).await;
    assert_eq!(ended["result"]["structuredContent"]["status"], "completed", "{ended}");

    // A task is cancelled as its job.
    let task =
        wire.alone("tools/call", Some("agent_run"), json!({ "name": "agent_run", "arguments": run(600.0) })).await;
    let id = task["result"]["taskId"].as_str().expect("an id").to_owned();
    wire.alone("tasks/cancel", Some(&id), json!({ "taskId": id })).await;
    assert_eq!(api.wait(&id).await["status"], "cancelled");
    let gone = wire.alone("tasks/get", Some(&id), json!({ "taskId": id })).await;
    assert_eq!(gone["result"]["status"], "cancelled", "{gone}");
}

#[tokio::test]
async fn clients_of_the_official_sdk_run_agents() {
    let Some(python) = std::env::var_os(PYTHON) else {
        atlas_notice::skip(format_args!(
            "{PYTHON} does not name a Python with MCP clients; `cargo xtask test` installs it"
        ));
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let _worker = worker(folder.path(), &controller);
    register_echo(&Api::new(&controller.http.to_string())).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/client.py");
    let url = format!("http://{}/mcp", controller.http);
    let output = Command::new("timeout").arg("120").arg(python).arg(script).arg(url).arg(program("atlasctl")).output();
    let output = output.expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    expect_test::expect![[r#"
        {"way": "agent", "tools": ["send_message", "get_health"], "prompts": 0}
        {"way": "agent", "text": "hello", "progress": []}
        {"way": "agent", "health": "ok"}
        {"way": "session", "version": "2025-11-25"}
        {"way": "session", "tools": ["agents_search", "agent_describe", "agent_run", "job_get", "job_wait", "job_answer", "job_cancel", "chain_run", "docs_search", "search_documents"]}
        {"way": "session", "output": {"message": "hello"}, "progress": ["exec-echo: assigned", "exec-echo: queued"]}
        {"way": "session", "refused": true, "text": "error[E1102]: the input does not fit the contract of exec-echo 1.0.0\n  at /: \"message\" is required\ncall agent_describe with the agent exec-echo: it shows the schemas"}
        {"way": "fastmcp", "name": "exec-echo", "schema": ["properties", "required", "type"]}
        {"way": "stdio", "version": "2025-11-25"}
        {"way": "stdio", "tools": ["agents_search", "agent_describe", "agent_run", "job_get", "job_wait", "job_answer", "job_cancel", "chain_run", "docs_search", "search_documents"]}
        {"way": "stdio", "output": {"message": "hello"}, "progress": ["exec-echo: assigned", "exec-echo: queued"]}
        {"way": "stdio", "refused": true, "text": "error[E1102]: the input does not fit the contract of exec-echo 1.0.0\n  at /: \"message\" is required\ncall agent_describe with the agent exec-echo: it shows the schemas"}
    "#]].assert_eq(&said);
}
