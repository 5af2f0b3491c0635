//! Memory and knowledge that `atlas serve` keeps in files and at servers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use atlas_env::Env;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use crate::api::Api;
use crate::program::program;
use crate::remotes::Serve;
use crate::{Agent, write_agent};

/// Says what it finds in the memory, and writes a line and an entry in the domain of its input.
const SCRIBE: Agent<'static> = Agent {
    name: "scribe",
    version: "1.0.0",
    contract: "  requires: {memory: true, knowledge: {read_domains: [notes], write_domains: ['*']}}\n",
    script: r#"doc=$(cat); part() { printf '%s' "$doc" | sed "s/.*\"$1\": *$2.*/\\1/"; }; n=$(part number '\([0-9]*\)'); d=$(part into '"\([a-z]*\)"'); m=$(part memory '"\([^"]*\)"'); k=$(part knowledge '\(\[.*\]\)'); printf '{"seen": "%s", "known": %s, "_memory_append": "line %s", "_knowledge_store": {"content": "note %s %s", "domain": "%s", "tags": ["t"]}}' "$m" "$k" "$n" "$d" "$n" "$d""#,
};

const TOKEN: &str = "geheim";

struct Running {
    api: Api,
    serve: Serve,
}

fn start(folder: &Path, options: &[&str]) -> Running {
    let agents = folder.join("agents");
    std::fs::create_dir_all(&agents).expect("a folder");
    write_agent(&agents, &SCRIBE);
    let serve = Serve::with_agents(&agents, folder, options);
    Running { api: Api::new(serve.address("Atlas serving on")), serve }
}

impl Running {
    async fn scribe(&self, number: u32, domain: &str) -> Value {
        let job = self.api.submit("scribe", json!({"number": number, "into": domain, "text": "note"})).await;
        self.api.wait(&job).await
    }

    /// Two jobs write, and the second one sees what the first one wrote; so does everybody else. Returns the id of the entry that is left.
    async fn check(&self) -> String {
        let first = self.scribe(1, "notes").await;
        assert_eq!((&first["status"], &first["output_data"]["seen"]), (&json!("completed"), &json!("")), "{first}");
        let second = self.scribe(2, "notes").await;
        assert_eq!(second["output_data"]["seen"], "line 1\n", "{second}");
        assert_eq!(second["output_data"]["known"][0]["content"], "note notes 1", "{second}");
        assert_eq!(self.api.get("/api/memory").await["text"], "line 1\nline 2\n");
        let found = self.api.get("/api/knowledge/search?q=NOTE&domain=notes").await;
        let found = found.as_array().expect("a list");
        let id = |number: u32| {
            let content = format!("note notes {number}");
            let entry = found.iter().find(|entry| entry["content"] == *content);
            entry.and_then(|entry| entry["id"].as_str()).expect("an entry").to_owned()
        };
        let (first, second) = (id(1), id(2));
        assert_eq!(found.len(), 2);
        assert_eq!(self.api.get("/api/knowledge/domains").await, json!([{"domain": "notes", "entries": 2}]));
        assert_eq!(self.atlasctl(&["memory", "append", "by hand"]).0, Some(0));
        assert_eq!(self.atlasctl(&["memory", "show"]), (Some(0), "line 1\nline 2\nby hand\n".to_owned()));
        assert_eq!(self.atlasctl(&["knowledge", "update", &first, "changed"]).0, Some(0));
        assert_eq!(self.api.get(&format!("/api/knowledge/entries/{first}")).await["content"], "changed");
        assert_eq!(self.atlasctl(&["knowledge", "delete", &first]).0, Some(0));
        assert_eq!(self.atlasctl(&["knowledge", "get", &first]).0, Some(6));
        let names = self.atlasctl(&["knowledge", "list", "-o", "name"]);
        assert_eq!(names, (Some(0), format!("knowledge/{second}\n")));
        assert_eq!(
            self.api.get("/api/knowledge/search?q=&domain=..%2F..").await,
            json!([]),
            "no domain leads elsewhere"
        );
        second
    }

    fn atlasctl(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = std::process::Command::new(program("atlasctl"));
        command.args(["--server", self.serve.address("Atlas serving on")]).args(arguments);
        let output = command.env("HOME", "/nonexistent").output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_keep_memory_and_knowledge() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (memory, knowledge, policy) = (path("deep/memory.txt"), path("knowledge"), path("policy.yaml"));
    std::fs::write(&policy, "protected_domains: [law]\n").expect("written");
    let options =
        ["--memory", memory.as_str(), "--knowledge", knowledge.as_str(), "--knowledge-policy", policy.as_str()];
    let running = start(folder.path(), &options);
    let left = running.check().await;
    let denied = running.scribe(3, "law").await;
    assert_eq!(denied["status"], "failed");
    assert!(denied["error"].as_str().is_some_and(|why| why.contains("not allowed to write to knowledge domain 'law'")));
    let said = running.atlasctl(&["knowledge", "acl", "--agent", "scribe", "--domain", "law", "--to", "write"]);
    let expected = "scribe cannot write law: it is protected, and the contract says * without naming it\n";
    assert_eq!(said, (Some(5), expected.to_owned()));
    assert_eq!(running.atlasctl(&["knowledge", "acl", "--agent", "scribe", "--domain", "notes"]).0, Some(0));
    assert!(folder.path().join(format!("knowledge/notes/{left}.md")).is_file());
    // A link leads nowhere.
    let outside = path("outside");
    std::fs::create_dir(&outside).expect("a folder");
    std::fs::write(folder.path().join("outside/x.md"), "secret").expect("written");
    std::os::unix::fs::symlink(&outside, folder.path().join("knowledge/link")).expect("a link");
    assert_eq!(running.api.get("/api/knowledge/search?q=secret").await, json!([]));
    assert_eq!(running.atlasctl(&["knowledge", "add", "x", "--domain", "link", "--id", "y"]).0, Some(3));
    assert!(!folder.path().join("outside/y.md").exists());
    drop(running);
    let again = start(folder.path(), &options);
    assert_eq!(again.api.get(&format!("/api/knowledge/entries/{left}")).await["content"], "note notes 2");
    assert!(std::fs::read_to_string(&memory).expect("a file").starts_with("line 1\nline 2\nby hand\n"));
}

/// What servers keep and were sent.
#[derive(Default)]
struct Kept {
    memory: String,
    entries: BTreeMap<String, Value>,
    keys: Vec<String>,
    /// Methods of MCP.
    methods: Vec<String>,
    /// Requests at the address to which another one redirects.
    strays: usize,
}

type Shared = Arc<Mutex<Kept>>;

/// A server of memory and knowledge that insists on the protocol.
async fn server() -> (String, Shared) {
    let kept = Shared::default();
    let router = Router::new().fallback(answer).with_state(kept.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    Env::system().spawn("stores", async move { axum::serve(listener, router).await });
    (address, kept)
}

async fn answer(
    State(kept): State<Shared>,
    Query(query): Query<BTreeMap<String, String>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut kept = kept.lock().expect("no panic");
    let authorized = headers.get("authorization").is_some_and(|value| value == &format!("Bearer {TOKEN}"));
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let parts: Vec<&str> = uri.path().trim_matches('/').split('/').collect();
    if parts[0] == "stray" {
        kept.strays += 1;
        return StatusCode::OK.into_response();
    }
    if !authorized {
        return (StatusCode::UNAUTHORIZED, "Bearer geheim is wanted").into_response();
    }
    if method != Method::GET && parts[0] != "mcp" {
        kept.keys.push(headers.get("idempotency-key").map(|key| format!("{key:?}")).unwrap_or_default());
    }
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["memory"]) => kept.memory.clone().into_response(),
        ("POST", ["memory"]) => {
            let content = body["content"].as_str().expect("a text");
            match body["action"].as_str() {
                Some("write") => kept.memory = content.to_owned(),
                Some("append") => kept.memory += &format!("{content}\n"),
                _ => return StatusCode::BAD_REQUEST.into_response(),
            }
            StatusCode::NO_CONTENT.into_response()
        }
        (_, ["moved"]) => (StatusCode::TEMPORARY_REDIRECT, [("location", "/stray")]).into_response(),
        ("GET", ["kb", "search"]) => axum::Json(found(&kept, &query)).into_response(),
        ("GET", ["kb", "entries"]) => axum::Json(listed(&kept, &query)).into_response(),
        ("POST", ["kb", "entries"]) => axum::Json(create(&mut kept, body)).into_response(),
        ("GET", ["kb", "entries", id]) => match kept.entries.get(*id) {
            Some(entry) => axum::Json(entry).into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        ("PATCH", ["kb", "entries", id]) => axum::Json(update(&mut kept, id, &body)).into_response(),
        ("DELETE", ["kb", "entries", id]) => {
            if kept.entries.remove(*id).is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND }.into_response()
        }
        ("POST", ["mcp"]) => rpc(&mut kept, &headers, &body),
        ("GET", ["bad", ..]) => axum::Json(json!([{"id": "../x", "content": "x", "domain": "notes"}])).into_response(),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

fn found(kept: &Kept, query: &BTreeMap<String, String>) -> Value {
    let text = query.get("q").or_else(|| query.get("query")).map(|text| text.to_lowercase()).unwrap_or_default();
    let domain = query.get("domain");
    let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(10);
    let is_found = |entry: &&Value| {
        entry["content"].as_str().is_some_and(|content| content.to_lowercase().contains(&text))
            && domain.is_none_or(|domain| entry["domain"] == **domain)
    };
    kept.entries.values().filter(is_found).take(limit).cloned().collect()
}

fn listed(kept: &Kept, query: &BTreeMap<String, String>) -> Value {
    let number = |name: &str| query.get(name).and_then(|number| number.parse().ok()).unwrap_or(0);
    kept.entries.values().skip(number("offset")).take(number("limit")).cloned().collect()
}

fn create(kept: &mut Kept, entry: Value) -> Value {
    let id = entry["id"].as_str().expect("an id").to_owned();
    kept.entries.insert(id, entry.clone());
    entry
}

fn update(kept: &mut Kept, id: &str, change: &Value) -> Value {
    let entry = kept.entries.get_mut(id).expect("an entry");
    for (name, value) in change.as_object().expect("members").iter().filter(|(name, _)| *name != "entry_id") {
        entry[name] = value.clone();
    }
    entry.clone()
}

/// A server over MCP that answers by events and keeps a session.
fn rpc(kept: &mut Kept, headers: &HeaderMap, body: &Value) -> Response {
    let method = body["method"].as_str().expect("a method").to_owned();
    kept.methods.push(method.clone());
    let session = headers.get("mcp-session-id");
    let result = match method.as_str() {
        "initialize" => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "kb", "version": "1"}})
        }
        // It forgets its first session.
        _ if session.is_none_or(|session| session == "s1" && kept.methods.len() > 4) => {
            return StatusCode::NOT_FOUND.into_response();
        }
        "notifications/initialized" => return StatusCode::ACCEPTED.into_response(),
        "tools/call" => {
            let arguments = &body["params"]["arguments"];
            let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
            let query: BTreeMap<String, String> = arguments
                .as_object()
                .expect("members")
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
                .collect();
            let result = match body["params"]["name"].as_str().expect("a tool") {
                "knowledge_search" => found(kept, &query),
                "knowledge_list" => listed(kept, &query),
                "knowledge_get" => kept.entries.get(&text("entry_id")).cloned().unwrap_or_default(),
                "knowledge_create" => create(kept, arguments["entry"].clone()),
                "knowledge_update" => update(kept, &text("entry_id"), arguments),
                "knowledge_delete" => json!(kept.entries.remove(&text("entry_id")).is_some()),
                other => panic!("no tool {other}"),
            };
            json!({"content": [{"type": "text", "text": result.to_string()}]})
        }
        other => panic!("no method {other}"),
    };
    let message = json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
    let events =
        format!(": hello\n\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}}\n\ndata: {message}\n\n");
    let session = format!("s{}", kept.methods.iter().filter(|method| *method == "initialize").count());
    ([("content-type", "text/event-stream".to_owned()), ("mcp-session-id", session)], events).into_response()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_keeps_memory_and_knowledge() {
    let (address, kept) = server().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (memory, knowledge) = (format!("{address}/memory"), format!("{address}/kb/"));
    let options = [
        "--memory-url",
        memory.as_str(),
        "--memory-auth",
        TOKEN,
        "--knowledge-url",
        knowledge.as_str(),
        "--knowledge-auth",
        TOKEN,
    ];
    start(folder.path(), &options).check().await;
    let kept = kept.lock().expect("no panic");
    assert_eq!(kept.memory, "line 1\nline 2\nby hand\n");
    assert!(kept.keys.iter().all(|key| key.len() == 34), "each change has a key: {:?}", kept.keys);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_mcp_keeps_knowledge() {
    let (address, kept) = server().await;
    let folder = tempfile::tempdir().expect("a folder");
    let knowledge = format!("{address}/mcp");
    start(folder.path(), &["--knowledge-mcp-url", &knowledge, "--knowledge-auth", TOKEN]).check().await;
    let begun = kept.lock().expect("no panic").methods.iter().filter(|method| *method == "initialize").count();
    assert_eq!(begun, 2, "a session that the server forgot begins anew");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_answer_badly_are_errors_that_show_no_token() {
    let (address, kept) = server().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (memory, moved, bad) = (format!("{address}/memory"), format!("{address}/moved"), format!("{address}/bad"));
    let check = async |options: &[&str], expected: &str| {
        let running = start(folder.path(), options);
        let append = json!({"content": "x", "action": "append"});
        let (_, code, body) = running.api.try_post("/api/memory", append).await;
        let text = body.to_string();
        assert_eq!(code, "E4014", "{text}");
        assert!(text.contains(expected) && !text.contains(TOKEN), "{text}");
        let job = running.scribe(1, "notes").await;
        assert_eq!(job["status"], "failed", "{job}");
        assert!(job["error"].as_str().is_some_and(|why| why.contains(expected) && !why.contains(TOKEN)), "{job}");
    };
    check(&["--memory-url", &memory], "it answered 401").await;
    check(&["--memory-url", &memory, "--memory-auth", "wrong"], "it answered 401").await;
    check(&["--memory-url", &moved, "--memory-auth", TOKEN], "it answered 307, and redirects are not followed").await;
    assert_eq!(kept.lock().expect("no panic").strays, 0, "the token stays where it belongs");
    check(&["--memory-url", "http://127.0.0.1:9/"], "the store at 127.0.0.1:9 failed").await;
    let running = start(folder.path(), &["--knowledge-url", &bad, "--knowledge-auth", TOKEN]);
    assert_eq!(running.api.get("/api/knowledge/search?q=x").await, json!([]), "what is no entry is left out");
}
