//! The MCP server that is compatible with Atlas for Python: over HTTP, in a cluster with the skill `reverse`, and as `atlas mcp`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use crate::bench::Bench;
use crate::cluster::Cluster;
use crate::http::{Answer, Http};
use crate::matcher::{Captures, fill_all};
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, members, text};
use crate::setup::{Setup, only};

/// What rows may say about the server and the requests.
const KNOWN: [&str; 15] = [
    "accept",
    "agents",
    "arguments",
    "auth_token",
    "body",
    "calls",
    "headers",
    "initialize",
    "method",
    "path",
    "request",
    "content_type",
    "session",
    "skills",
    "tool",
];

/// A remote instance as text.
pub(super) fn remote_spec(row: &Row) -> Judged {
    let found = match atlas_mcp_spec::Remote::parse(row.text("spec")) {
        Ok(remote) => json!({
            "ok": true, "name": remote.name, "url": remote.url, "token": remote.token,
            "transport": remote.transport, "timeout": remote.timeout,
        }),
        Err(error) => json!({ "ok": false, "error": error }),
    };
    compare(&row.expect, &found, &Captures::new())
}

const ACCEPT: &str = "application/json, text/event-stream";
const VERSION: &str = "2025-03-26";

/// The server of a row.
struct Server {
    cluster: Cluster,
    http: Http,
    token: Option<String>,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(row: &Row, bench: &Bench) -> Result<Self, Stop> {
        only(&row.input, &KNOWN)?;
        let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
        let mut setup = Setup::new();
        setup.controller.extend(["--mcp-compatible-listen".to_owned(), "127.0.0.1:0".to_owned()]);
        let token = row.input.get("auth_token").and_then(Value::as_str).map(str::to_owned);
        if let Some(token) = &token {
            setup.controller.push(format!("--mcp-compatible-token={token}"));
        }
        let own = crate::agents::of_row(&without_skills(&row.input), &folder.path().join("agents"), bench.mocks())?;
        let cluster = Cluster::start(bench.programs()?, &setup, folder.path())?;
        cluster.register(bench.bundled()?.iter().chain(&own))?;
        let wanted: Vec<&str> = match row.input.get("skills") {
            Some(skills) => skills.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
            None => vec!["reverse"],
        };
        for skill in wanted {
            let dir = bench.workplace()?.path().join("skills").join(skill);
            let package = atlas_package::pack_skill(&dir).map_err(|_| Stop::skip(format!("the skill {skill}")))?;
            cluster.deploy_skill(package.bytes)?;
        }
        let http = cluster.mcp()?;
        Ok(Self { cluster, http, token, _folder: folder })
    }

    /// Sends a message as a client that has the token.
    fn post(&self, message: &Value, session: Option<&str>) -> Result<Answer, Stop> {
        let mut headers = Headers::default();
        headers.set("accept", ACCEPT);
        headers.set("content-type", "application/json");
        if let Some(token) = &self.token {
            headers.set("authorization", &format!("Bearer {token}"));
        }
        session.into_iter().for_each(|session| headers.set("mcp-session-id", session));
        self.http.send("POST", "/mcp", &headers.0, Some(message.to_string().into_bytes()))
    }

    /// Opens a session.
    fn session(&self) -> Result<String, Stop> {
        let answer = self.post(&initialize(), None)?;
        let session = answer.session.ok_or_else(|| Stop::fail("no session was opened"))?;
        self.post(&initialized(), Some(&session))?;
        Ok(session)
    }

    /// Calls a tool; the answer.
    fn call(&self, session: &str, tool: &str, arguments: &Value) -> Result<Answer, Stop> {
        let params = json!({ "name": tool, "arguments": arguments });
        self.post(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }), Some(session))
    }
}

/// The row's input without its list of skills, which for agents means something else.
fn without_skills(input: &Value) -> Value {
    let mut input = input.clone();
    input.as_object_mut().map(|members| members.remove("skills"));
    input
}

fn initialize() -> Value {
    let params =
        json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": { "name": "rows", "version": "0" } });
    json!({ "jsonrpc": "2.0", "id": "rows", "method": "initialize", "params": params })
}

fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

/// Headers by name; a later one replaces an earlier one.
#[derive(Default)]
struct Headers(Vec<(String, String)>);

impl Headers {
    fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.0.push((name.to_owned(), value.to_owned()));
    }
}

/// One request over HTTP, as the row gives it.
pub(super) fn request(row: &Row, bench: &Bench) -> Judged {
    let server = Server::start(row, bench)?;
    let member = |name: &str| row.input.get(name).filter(|value| !value.is_null());
    let message = member("request").or_else(|| member("body"));
    let mut headers = Headers::default();
    if row.kind == "rpc" {
        headers.set("accept", ACCEPT);
        headers.set("content-type", "application/json");
        let opens = message.is_some_and(|message| message["method"] == "initialize");
        match member("session") {
            Some(Value::String(session)) => headers.set("mcp-session-id", session),
            Some(Value::Bool(false)) => {}
            _ if opens || member("initialize") == Some(&json!(false)) => {}
            _ => headers.set("mcp-session-id", &server.session()?),
        }
    }
    for (name, header) in [("accept", "accept"), ("content_type", "content-type")] {
        member(name).and_then(Value::as_str).into_iter().for_each(|value| headers.set(header, value));
    }
    for (name, value) in member("headers").into_iter().flat_map(members) {
        headers.set(name, value.as_str().unwrap_or_default());
    }
    let method = member("method").and_then(Value::as_str).unwrap_or("POST");
    let path = member("path").and_then(Value::as_str).unwrap_or("/mcp");
    let body = message.map(|message| message.as_str().map_or_else(|| message.to_string(), str::to_owned).into_bytes());
    let answer = server.http.send(method, path, &headers.0, body)?;
    let mut shown = Map::new();
    for name in row.expect.as_object().into_iter().flat_map(Map::keys) {
        let value = match name.as_str() {
            "status" => json!(answer.status),
            "json" => answer.json().unwrap_or_default(),
            "text" => json!(String::from_utf8_lossy(&answer.body)),
            "session_header" => json!(answer.session.is_some()),
            "content_type" => json!(answer.content_type),
            other => return Err(Stop::skip(format!("answers of which \"{other}\" is expected"))),
        };
        shown.insert(name.clone(), value);
    }
    compare(&row.expect, &Value::Object(shown), &Captures::new())
}

/// One tool call.
pub(super) fn call(row: &Row, bench: &Bench) -> Judged {
    examples(&row.expect, bench)?;
    let server = Server::start(row, bench)?;
    let nothing = json!({});
    let arguments = row.input.get("arguments").unwrap_or(&nothing);
    let answer = server.call(&server.session()?, row.text("tool"), arguments)?;
    let shown = result(&row.expect, answer.status, &answer.json().unwrap_or_default()["result"])?;
    compare(&row.expect, &shown, &Captures::new())
}

/// Skips a row whose answer names an example agent that Atlas does not bundle.
fn examples(expected: &Value, bench: &Bench) -> Judged {
    let agents = expected.pointer("/text_json/agents").and_then(Value::as_array);
    for agent in agents.into_iter().flatten() {
        crate::agents::known_example(text(agent, "name"), bench.bundled()?)?;
    }
    Ok(())
}

/// The expected members of a result.
fn result(expected: &Value, status: u16, result: &Value) -> Result<Value, Stop> {
    let content = &result["content"][0];
    let mut shown = Map::new();
    for name in expected.as_object().into_iter().flat_map(Map::keys) {
        let value = match name.as_str() {
            "status" => json!(status),
            "isError" => result["isError"].clone(),
            "content_type" => content["type"].clone(),
            "text" => content["text"].clone(),
            "text_json" => parsed(content)?,
            other => return Err(Stop::skip(format!("results of which \"{other}\" is expected"))),
        };
        shown.insert(name.clone(), value);
    }
    Ok(Value::Object(shown))
}

fn parsed(content: &Value) -> Result<Value, Stop> {
    let text = content["text"].as_str().unwrap_or_default();
    serde_json::from_str(text).map_err(|_| Stop::fail(format!("a result that is no JSON: {text:?}")))
}

/// Several calls in one session; members of earlier results are known to later ones.
pub(super) fn sequence(row: &Row, bench: &Bench) -> Judged {
    let server = Server::start(row, bench)?;
    let session = server.session()?;
    let mut captures = Captures::new();
    for (index, call) in items(&row.input, "calls").enumerate() {
        let arguments = fill_all(&call[1], &captures);
        let answer = server.call(&session, call[0].as_str().unwrap_or_default(), &arguments)?;
        let result = parsed(&answer.json().unwrap_or_default()["result"]["content"][0])?;
        if let Some(job) = result.get("job_id").and_then(Value::as_str) {
            // Rows expect the end of a job that was submitted.
            server.cluster.http.wait(job)?;
        }
        captures.extend(members(&result).map(|(name, value)| (name.clone(), value.clone())));
        let expected = row.expect.get(index).unwrap_or(&Value::Null);
        if !expected.is_null() {
            compare(expected, &result, &captures).map_err(|stop| match stop {
                Stop::Fail(difference) => Stop::Fail(format!("call {index}: {difference}")),
                skip @ Stop::Skip(_) => skip,
            })?;
        }
    }
    Ok(())
}

/// What an instance lists that knows another one, with the skill `reverse`, as `lab`.
pub(super) fn federation(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &["on_b", "prefix"])?;
    if row.text("on_b") != "GET /api/skills" {
        return Err(Stop::skip(format!("the request {:?}", row.text("on_b"))));
    }
    let remote = Server::start(&Row { input: json!({}), ..row.clone() }, bench)?;
    let folder = tempfile::tempdir().map_err(|error| Stop::system("make a folder", error))?;
    let own = Cluster::start(bench.programs()?, &Setup::new(), folder.path())?;
    let mut command = Command::new(&bench.programs()?.atlasctl);
    command.args(["--server", &format!("http://{}", own.address()), "peer", "add"]);
    command.arg(format!("lab={}", remote.http.url("/mcp"))).stdin(Stdio::null());
    let output = command.output().map_err(|error| Stop::system("run the program", error))?;
    if !output.status.success() {
        return Err(Stop::fail(format!("peer add: {}", String::from_utf8_lossy(&output.stderr))));
    }
    let listed = own.http.get("/api/skills")?;
    let names = listed.as_array().into_iter().flatten().filter_map(|skill| skill["name"].as_str());
    let mut names: Vec<&str> = names.filter(|name| name.starts_with(row.text("prefix"))).collect();
    names.sort_unstable();
    compare(&row.expect, &json!({ "names": names }), &Captures::new())
}

/// One request to `atlas mcp` over standard input and output.
pub(super) fn stdio(row: &Row, bench: &Bench) -> Judged {
    only(&row.input, &["request"])?;
    let mut command = Command::new(&bench.programs()?.atlas);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"ATLAS_")) {
        command.env_remove(name);
    }
    command.arg("mcp").current_dir(bench.workplace()?.path());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|error| Stop::system("start the program", error))?;
    let request = &row.input["request"];
    if let Some(mut stdin) = child.stdin.take() {
        for message in [&initialize(), &initialized(), request] {
            writeln!(stdin, "{message}").map_err(|error| Stop::system("write to the program", error))?;
        }
    }
    // Standard input is closed: the program answers what it was sent, and ends.
    let output = child.wait_with_output().map_err(|error| Stop::system("run the program", error))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let messages: Result<Vec<Value>, _> = stdout.lines().map(serde_json::from_str).collect();
    let messages = messages.map_err(|error| Stop::fail(format!("stdout has something else than messages: {error}")))?;
    let answer = messages.into_iter().find(|message| message["id"] == request["id"]);
    let answer = answer.ok_or_else(|| Stop::fail("no answer"))?;
    let shown = match row.expect.get("json") {
        Some(_) => json!({ "json": answer }),
        None => result(&row.expect, 200, &answer["result"])?,
    };
    compare(&row.expect, &shown, &Captures::new())
}
