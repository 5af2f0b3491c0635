//! Credentials of callers on their way through agents: to the MCP servers and models that are marked, whichever controller gets the
//! request, with tokens and without. They are in no file and in no answer.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use atlas_llm_server::downstream::Downstream;
use atlas_package::pack;
use reqwest::Method;
use serde_json::{Value, json};

use crate::mcp::Wire;
use crate::pair::{Controller, worker};
use crate::trio::{leader, trio};

const TELLER: &str = "agent:
  name: teller
  version: 1.0.0
  provider: { type: mcp, server: marked, tool: tell }
  input: { schema: { type: object, properties: { q: { type: string } }, required: [q] } }
";

const TALKER: &str = "agent:
  name: talker
  version: 1.0.0
  model: { name: relay }
  provider: { type: llm, output_format: text, system_prompt: Talk., messages: said }
  requires: { mcp_servers: [marked, unmarked, own] }
  input: { schema: { type: object, properties: { said: { type: array } }, required: [said] } }
";

/// What stands behind the agents.
struct Behind {
    marked: Downstream,
    unmarked: Downstream,
    own: Downstream,
}

/// A client of one controller with an administrator's token, if there are tokens.
struct Client {
    http: reqwest::Client,
    server: String,
    token: Option<String>,
}

impl Client {
    fn new(server: &str, token: Option<&str>) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { http, server: server.to_owned(), token: token.map(str::to_owned) }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("http://{}{path}", self.server));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn put(&self, object: &str, spec: Value) {
        let path = format!("/api/objects/{object}");
        let answer = self.request(Method::PUT, &path).json(&json!({ "spec": spec })).send().await.expect("an answer");
        let status = answer.status();
        assert!(status.is_success(), "{object}: {status} {}", answer.text().await.unwrap_or_default());
    }

    /// Registers the agents, and what they name.
    async fn prepare(&self, folder: &Path) -> Behind {
        let start = || Downstream::start().expect("a server");
        let behind = Behind { marked: start(), unmarked: start(), own: start() };
        let server = |at: &Downstream| json!({ "transport": "http", "url": at.url() });
        let mut marked = server(&behind.marked);
        marked["forward_inbound_auth"] = true.into();
        self.put("mcp-server/marked", marked.clone()).await;
        self.put("mcp-server/unmarked", server(&behind.unmarked)).await;
        let mut own = server(&behind.own);
        own["forward_inbound_auth"] = true.into();
        own["headers"] = json!({ "Authorization": "Bearer ${PATH}" });
        self.put("mcp-server/own", own).await;
        let url = behind.marked.model_url();
        let model = json!({
            "provider": "openai", "name": "m", "base_url": url, "stream": false, "forward_inbound_auth": true,
            "capabilities": ["tools"],
        });
        self.put("model/relay", model).await;
        for (name, contract) in [("teller", TELLER), ("talker", TALKER)] {
            let agent = folder.join(name);
            fs::create_dir_all(&agent).expect("a folder");
            fs::write(agent.join("agent.yaml"), contract).expect("a contract");
            let package = pack(&agent).expect("a package").bytes;
            let sent = self.request(Method::POST, "/api/agents").body(package).send().await.expect("an answer");
            let status = sent.status();
            assert!(status.is_success(), "{name}: {status} {}", sent.text().await.unwrap_or_default());
        }
        behind
    }
}

/// Calls a tool with these headers; the result.
async fn call(controller: &str, path: &str, headers: &[(&str, &str)], tool: &str, arguments: Value) -> Value {
    let wire = Wire::at(&format!("http://{controller}{path}"));
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
    let session = wire.post(headers, &hello).await.session.expect("a session");
    let mut all = vec![("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    all.extend(headers);
    let params = json!({ "name": tool, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let answer = wire.post(&all, &message).await;
    let found = answer.messages.into_iter().find(|message| message["id"] == 7);
    let found = found.unwrap_or_else(|| panic!("an answer: {} {}", answer.status, answer.text));
    assert!(found["result"]["isError"] != true && found["result"].is_object(), "{found}");
    found
}

/// Calls both agents with a credential, which reaches whoever is marked.
async fn passes(controller: &str, behind: &Behind, headers: &[(&str, &str)], expected: &str) {
    let before = (behind.marked.of("tools/call").len(), behind.marked.of("model").len());
    let run = json!({ "agent": "teller", "input": { "q": "x" } });
    let mut answers = call(controller, "/mcp", headers, "agent_run", run).await.to_string();
    let message = json!({ "message": "hello" });
    for (agent, name) in [("teller", None), ("talker", None), ("talker", Some(expected.len().to_string()))] {
        let mut message = message.clone();
        if let Some(name) = name {
            message["conversation_id"] = format!("talk-{name}").into();
        }
        let path = format!("/agents/{agent}/mcp");
        answers += &call(controller, &path, headers, "send_message", message).await.to_string();
    }
    let credential = expected.strip_prefix("Bearer ").expect("a bearer");
    assert!(!answers.contains(credential), "{answers}");
    for (method, before, more) in [("tools/call", before.0, 4), ("model", before.1, 4)] {
        let noted = behind.marked.of(method);
        let got: Vec<&str> = noted[before..].iter().map(|noted| noted.authorization.as_str()).collect();
        assert_eq!(got, vec![expected; more], "{method}");
    }
    assert!(behind.unmarked.noted().iter().all(|noted| noted.authorization.is_empty()), "it has no mark");
    let shows_its_own = |noted: &atlas_llm_server::downstream::Noted| {
        noted.authorization.starts_with("Bearer ") && !noted.authorization.contains(credential)
    };
    assert!(!behind.own.noted().is_empty() && behind.own.noted().iter().all(shows_its_own), "its own header wins");
}

/// No file under a folder contains a text.
fn clean(folder: &Path, text: &str) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            clean(&path, text);
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            assert!(!bytes.windows(text.len()).any(|part| part == text.as_bytes()), "{}", path.display());
        }
    }
}

#[tokio::test]
async fn the_credential_of_a_caller_reaches_whoever_is_marked() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let _worker = worker(folder.path(), &controller);
    let http = controller.http.to_string();
    let client = Client::new(&http, None);
    let behind = client.prepare(folder.path()).await;
    passes(&http, &behind, &[("authorization", "Bearer c4n4ry-one")], "Bearer c4n4ry-one").await;
    let both = [("authorization", "Bearer own"), ("x-atlas-forward-authorization", "Bearer c4n4ry-two")];
    passes(&http, &behind, &both, "Bearer c4n4ry-two").await;
    // Without a credential nobody gets one.
    let before = behind.marked.of("tools/call").len();
    call(&http, "/agents/teller/mcp", &[], "send_message", json!({ "message": "hello" })).await;
    assert_eq!(behind.marked.of("tools/call")[before].authorization, "");
    clean(folder.path(), "c4n4ry");
    assert!(!controller.text().contains("c4n4ry"));
}

#[tokio::test]
async fn with_tokens_the_credential_is_in_a_header_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, root) = (folder.path().join("root.token"), format!("atl_root_{}", "2e".repeat(32)));
    fs::write(&file, &root).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("private");
    let file = file.display().to_string();
    let controller = Controller::start_with(folder.path(), &["--auth", "tokens", "--root-token-file", &file]);
    let _worker = worker(folder.path(), &controller);
    let http = controller.http.to_string();
    let behind = Client::new(&http, Some(&root)).prepare(folder.path()).await;
    let own = format!("Bearer {root}");
    let both = [("authorization", own.as_str()), ("x-atlas-forward-authorization", "Bearer c4n4ry-three")];
    passes(&http, &behind, &both, "Bearer c4n4ry-three").await;
    let before = behind.marked.of("tools/call").len();
    call(&http, "/agents/teller/mcp", &both[..1], "send_message", json!({ "message": "hello" })).await;
    assert_eq!(behind.marked.of("tools/call")[before].authorization, "", "the token of Atlas is for Atlas");
    clean(folder.path(), "c4n4ry");
}

#[tokio::test]
async fn a_follower_gives_the_credential_to_the_leader() {
    let folder = tempfile::tempdir().expect("a folder");
    let members = trio(folder.path(), &[]).await;
    let all: Vec<_> = members.iter().collect();
    let _worker = crate::trio::worker(folder.path(), "w1", &all);
    let leads = leader(&members).await;
    let behind = Client::new(&members[leads].http.to_string(), None).prepare(folder.path()).await;
    for (at, member) in members.iter().enumerate() {
        let credential = format!("Bearer c4n4ry-at-{at}-{}", "x".repeat(at));
        let headers = [("authorization", credential.as_str())];
        passes(&member.http.to_string(), &behind, &headers, &credential).await;
    }
    clean(folder.path(), "c4n4ry");
}
