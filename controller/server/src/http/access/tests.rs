//! What tokens and roles can do, at real doors.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use atlas_access::{ROOT, Right, built_in, token};
use atlas_api::operations;
use atlas_env::Env;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::{Auth, Controller, Options};

mod issuers;
mod matrix;
mod owners;
mod readers;
mod rows;

/// The time limit for every answer, even on a busy machine.
const SOON: Duration = Duration::from_secs(60);

struct Cluster {
    controller: Controller,
    root: String,
    _dir: tempfile::TempDir,
}

/// The head of an answer, and as much of its body as came with it.
struct Heard {
    status: u16,
    code: String,
    text: String,
}

impl Heard {
    fn body(&self) -> Value {
        // MCP answers come in one chunk, and some as an event.
        let mut lines = self.text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let body = lines.find(|line| line.starts_with('{')).expect("a body");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Cluster {
    async fn start(auth: bool) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let root = token(ROOT, [1, 2, 3, 4]);
        let controller = Self::controller(dir.path(), &root, auth).await;
        Self { controller, root, _dir: dir }
    }

    async fn controller(dir: &Path, root: &str, auth: bool) -> Controller {
        let file = dir.join("root.token");
        fs::write(&file, root).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
        let mut options = Options::new(dir.join("data"));
        options.compatible.listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        options.http.set_port(0);
        options.grpc.set_port(0);
        (options.auth, options.root_token_file) = (if auth { Auth::Tokens } else { Auth::Off }, Some(file));
        Controller::start(options, Env::system()).await.expect("starts")
    }

    async fn ask(&self, method: &str, path: &str, token: Option<&str>, body: &Value) -> Heard {
        ask_at(self.controller.http_addr(), method, path, token, &[], body).await
    }

    /// Asks the compatible MCP server, as a client that has just connected. Whoever cannot connect gets that answer.
    async fn ask_compatible(&self, token: Option<&str>, method: &str, params: &Value) -> Heard {
        let address = self.controller.compatible_addr().expect("it listens");
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        }});
        let opened = ask_at(address, "POST", "/mcp", token, &[], &hello).await;
        let session = opened.text.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).map(str::to_owned);
        let Some(session) = session else { return opened };
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        ask_at(address, "POST", "/mcp", token, &[("mcp-session-id", &session)], &call).await
    }

    /// Asks `/mcp`, as a client that knows tasks and can be asked.
    async fn ask_mcp(&self, token: Option<&str>, namespace: &str, method: &str, mut params: Value) -> Heard {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}
            },
        });
        let name = ["name", "taskId", "uri"].iter().find_map(|member| params[*member].as_str()).unwrap_or_default();
        let name = name.to_owned();
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let path = format!("/mcp?namespace={namespace}");
        ask_at(self.controller.http_addr(), "POST", &path, token, &headers, &call).await
    }

    /// Calls a method of an MCP server on the HTTP port.
    async fn call(&self, path: &str, token: &str, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        ask_at(self.controller.http_addr(), "POST", path, Some(token), &headers, &call).await.body()
    }
}

/// Sends a request and returns what came first. A stream is left.
async fn ask_at(
    address: SocketAddr,
    method: &str,
    path: &str,
    token: Option<&str>,
    headers: &[(&str, &str)],
    body: &Value,
) -> Heard {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    send_at(address, method, path, token, headers, body.as_bytes()).await
}

async fn send_at(
    address: SocketAddr,
    method: &str,
    path: &str,
    token: Option<&str>,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Heard {
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/problem+json, application/json, text/event-stream\r\n{authorization}{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let request = [request.as_bytes(), body].concat();
    let heard = async {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        stream.write_all(&request).await.expect("sends");
        let mut text = Vec::new();
        let is_json = |text: &[u8]| String::from_utf8_lossy(text).contains("json; charset");
        let has_head = |text: &[u8]| text.windows(4).any(|part| part == b"\r\n\r\n");
        // What a GET streams does not end: its head is enough.
        while method != "GET" || !has_head(&text) || is_json(&text) {
            let mut part = [0; 4_096];
            match stream.read(&mut part).await.expect("answers") {
                0 => break,
                length => text.extend_from_slice(&part[..length]),
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    let text = tokio::time::timeout(SOON, heard).await.expect("answers soon");
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let code = text.lines().find_map(|line| line.strip_prefix("atlas-error-code: ")).unwrap_or_default().to_owned();
    Heard { status, code, text }
}

impl Cluster {
    /// Makes a token of a new principal with this name, which is granted nothing.
    async fn token_of(&self, name: &str) -> String {
        let made = self.ask("POST", "/api/auth/tokens", Some(&self.root), &json!({"name": name})).await;
        assert_eq!(made.status, 201, "{}", made.text);
        made.body()["token"].as_str().expect("a token").to_owned()
    }

    /// A token of root's that has expired.
    async fn expired(&self) -> String {
        let body = json!({"name": "brief", "valid_for_s": 1});
        let made = self.ask("POST", "/api/auth/tokens", Some(&self.root), &body).await;
        let brief = made.body()["token"].as_str().expect("a token").to_owned();
        let expired = async {
            while self.ask("GET", "/api/auth/whoami", Some(&brief), &Value::Null).await.code != "E2106" {
                Env::system().clock.sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(SOON, expired).await.expect("it expires");
        brief
    }

    /// Makes a token of a new principal with this name, and grants it a role.
    async fn principal(&self, name: &str, role: &str, namespace: Option<&str>) -> String {
        let token = self.token_of(name).await;
        let grant = match namespace {
            Some(namespace) => json!({"role": role, "namespace": namespace}),
            None => json!({"role": role}),
        };
        let path = format!("/api/objects/binding/{name}");
        let bound = self.ask("PUT", &path, Some(&self.root), &json!({"spec": {"grants": [grant]}})).await;
        assert_eq!(bound.status, 200, "{}", bound.text);
        token
    }
}

#[tokio::test]
async fn a_token_ends_when_it_is_revoked_or_expires() {
    let cluster = Cluster::start(true).await;
    let whoami = async |token: &str| cluster.ask("GET", "/api/auth/whoami", Some(token), &Value::Null).await;
    let token = cluster.principal("ci", "viewer", Some("a")).await;
    let heard = whoami(&token).await;
    let rights: Vec<&str> = built_in("viewer").expect("a role").iter().map(Right::as_str).collect();
    let expected = json!({
        "principal": "ci", "authenticated": true, "grants": [{"namespace": "a", "rights": rights}],
    });
    assert_eq!(heard.body(), expected);
    // Another secret under the same name, and a name that differs in one letter.
    let (head, tail) = token.split_at(token.len() - 1);
    let other = if tail == "0" { format!("{head}1") } else { format!("{head}0") };
    assert_eq!(whoami(&other).await.code, "E2106");
    assert_eq!(whoami(&token.replace("atl_ci_", "atl_cj_")).await.code, "E2106");
    // Its hash is shown to nobody, and the object is shown to those who manage access.
    let path = "/api/objects/token/ci";
    assert_eq!(cluster.ask("GET", path, Some(&token), &Value::Null).await.code, "E2107");
    let shown = cluster.ask("GET", path, Some(&cluster.root), &Value::Null).await;
    let mut spec = shown.body()["spec"].take();
    let ends = spec["expires_ms"].take().as_u64().expect("it ends by itself");
    let day = 86_400_000;
    let now = u64::try_from(Env::system().clock.wall().0 / 1_000).expect("after 1970");
    assert!((now + 89 * day..=now + 90 * day).contains(&ends), "{ends}");
    assert_eq!(spec, json!({"principal": "ci", "expires_ms": null}));
    let lasting = json!({"name": "lasting", "valid_for_s": null});
    let lasting = cluster.ask("POST", "/api/auth/tokens", Some(&cluster.root), &lasting).await;
    assert_eq!(lasting.body()["object"]["spec"], json!({"principal": "lasting"}));
    // A second token of the same name is refused.
    let again = cluster.ask("POST", "/api/auth/tokens", Some(&cluster.root), &json!({"name": "ci"})).await;
    assert_eq!(again.code, "E1116", "{}", again.text);
    assert_eq!(cluster.ask("DELETE", path, Some(&cluster.root), &Value::Null).await.status, 200);
    assert_eq!(whoami(&token).await.code, "E2106");

    cluster.expired().await;
    cluster.controller.shutdown().await;
}

#[tokio::test]
async fn hostile_requests_for_tokens_make_none() {
    let cluster = Cluster::start(true).await;
    for body in [
        json!({}),
        json!({"name": ""}),
        json!({"name": "root"}),
        json!({"name": "a_b"}),
        json!({"name": "a/b"}),
        json!({"name": "x".repeat(64)}),
        json!({"name": "a", "principal": "../b"}),
        json!({"name": "a", "valid_for_s": 0}),
        json!({"name": "a", "valid_for_s": u64::MAX}),
        json!({"name": "a", "description": "x".repeat(2_000)}),
        json!({"name": "a", "sha256": "00"}),
    ] {
        let heard = cluster.ask("POST", "/api/auth/tokens", Some(&cluster.root), &body).await;
        assert_eq!(heard.status, 400, "{body}: {}", heard.text);
    }
    // Nobody chooses the hash of a token.
    let spec = json!({"spec": {"principal": "ann", "sha256": "0".repeat(64)}});
    let heard = cluster.ask("PUT", "/api/objects/token/mine", Some(&cluster.root), &spec).await;
    assert_eq!(heard.code, "E1118", "{}", heard.text);
    let listed = cluster.ask("GET", "/api/objects/token", Some(&cluster.root), &Value::Null).await;
    assert_eq!(listed.body()["objects"], json!([]));
    cluster.controller.shutdown().await;
}

#[tokio::test]
async fn roles_of_a_cluster_are_granted_and_stay_while_they_are_used() {
    let cluster = Cluster::start(true).await;
    let role = json!({"spec": {"rights": ["jobs.read"]}});
    assert_eq!(cluster.ask("PUT", "/api/objects/role/auditor", Some(&cluster.root), &role).await.status, 200);
    let ann = cluster.principal("ann", "auditor", None).await;
    assert_eq!(cluster.ask("GET", "/api/jobs", Some(&ann), &Value::Null).await.status, 200);
    assert_eq!(cluster.ask("GET", "/api/agents", Some(&ann), &Value::Null).await.code, "E2107");
    let removed = cluster.ask("DELETE", "/api/objects/role/auditor", Some(&cluster.root), &Value::Null).await;
    assert_eq!(removed.code, "E1119", "{}", removed.text);
    // A role that is not there cannot be granted.
    let grant = json!({"spec": {"grants": [{"role": "nobody"}]}});
    let heard = cluster.ask("PUT", "/api/objects/binding/ann", Some(&cluster.root), &grant).await;
    assert_eq!(heard.code, "E1118", "{}", heard.text);
    // What configures the cluster needs the right in the cluster.
    let operator = cluster.principal("bob", "operator", Some("default")).await;
    let limits = json!({"spec": {"jobs_pending_max": 1}});
    assert_eq!(cluster.ask("PUT", "/api/objects/namespace/a", Some(&operator), &limits).await.code, "E2107");
    cluster.controller.shutdown().await;
}

#[tokio::test]
async fn without_authentication_everybody_may_do_everything() {
    let cluster = Cluster::start(false).await;
    let heard = cluster.ask("GET", "/api/auth/whoami", Some("anything"), &Value::Null).await;
    assert_eq!(
        (heard.body()["principal"].as_str(), heard.body()["authenticated"].as_bool()),
        (Some("local"), Some(false))
    );
    assert_eq!(cluster.ask("GET", "/api/jobs", None, &Value::Null).await.status, 200);
    cluster.controller.shutdown().await;
}

/// What everything in the namespace `b` contains, and nothing else.
const MARK: &str = "zebra7";

/// Things in the namespace `b`, by what their paths begin with.
struct Things(Vec<(&'static str, String)>);

impl Things {
    async fn make(cluster: &Cluster) -> Self {
        let root = Some(cluster.root.as_str());
        let dir = tempfile::tempdir().expect("a folder");
        let contract = format!("name: only-in-b\nversion: 1.0.0\ndescription: {MARK}\n");
        fs::write(dir.path().join("agent.yaml"), contract).expect("a file");
        fs::write(dir.path().join("agent.py"), "").expect("a file");
        let package = atlas_package::pack(dir.path()).expect("packs");
        let address = cluster.controller.http_addr();
        let made = send_at(address, "POST", "/api/agents?namespace=b", root, &[], &package.bytes).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let webhook = json!({"labels": {"m": MARK}, "spec": {"url": "http://127.0.0.1:9/", "events": ["node"]}});
        let made = cluster.ask("PUT", "/api/objects/webhook/hook-of-b?namespace=b", root, &webhook).await;
        assert_eq!(made.status, 200, "{}", made.text);
        let id = async |path: &str, body: Value| {
            let made = cluster.ask("POST", &format!("{path}?namespace=b"), root, &body).await;
            assert_eq!(made.status, 201, "{path}: {}", made.text);
            made.body()["id"].as_str().expect("an id").to_owned()
        };
        let job = id("/api/jobs", json!({"agent": "only-in-b", "input": {"m": MARK}})).await;
        let chain = json!({"name": MARK, "steps": [{"agent": "only-in-b"}]});
        let run = id("/api/chains", json!({"chain": chain, "input": {"m": MARK}})).await;
        let trigger = json!({"name": MARK, "trigger_type": "webhook", "agent_name": "only-in-b"});
        let trigger = id("/api/triggers", trigger).await;
        let things = Self(vec![
            ("/api/jobs/", job.clone()),
            ("/api/chains/", run),
            ("/api/agents/", "only-in-b".to_owned()),
            ("/api/objects/", "hook-of-b".to_owned()),
            ("/api/triggers/", trigger.clone()),
            ("/api/hooks/", trigger),
            ("/api/traces/", job),
        ]);
        let ready = async {
            while things.seen(cluster).await["jobs"].as_array().is_none_or(|jobs| jobs.len() < 2) {
                Env::system().clock.sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, ready).await.expect("the step of the chain has a job");
        things
    }

    /// A path of the table with the names of these things.
    fn path(&self, path: &str) -> String {
        let thing = self.0.iter().find(|(begins, _)| path.starts_with(begins)).map_or("nothing", |(_, name)| name);
        let part = |part: &str| match part {
            "{kind}" => "webhook".to_owned(),
            "{version}" => "1.0.0".to_owned(),
            part if part.starts_with('{') => thing.to_owned(),
            part => part.to_owned(),
        };
        path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// All of them as they are, without what changes by itself.
    async fn seen(&self, cluster: &Cluster) -> Value {
        let get = async |path: &str| {
            let heard = cluster.ask("GET", &format!("{path}?namespace=b"), Some(&cluster.root), &Value::Null).await;
            assert_eq!(heard.status, 200, "{}", heard.text);
            let body = heard.text.split_once("\r\n\r\n").map(|(_, body)| body).expect("a body");
            serde_json::from_str::<Value>(body).unwrap_or_else(|error| panic!("{error}: {}", heard.text))
        };
        let hook = get("/api/objects/webhook/hook-of-b").await;
        let run = get(&self.path("/api/chains/{id}")).await;
        json!({
            "jobs": get("/api/jobs").await,
            "agents": get("/api/agents").await,
            "triggers": get("/api/triggers").await,
            "hook": [hook["metadata"], hook["spec"]],
            "run": run["status"],
        })
    }
}

#[tokio::test]
async fn no_operation_reaches_into_another_namespace() {
    let cluster = Cluster::start(true).await;
    let things = Things::make(&cluster).await;
    let before = things.seen(&cluster).await;
    assert!(before.to_string().contains(MARK), "{before}");
    let eve = cluster.principal("eve", "admin", Some("a")).await;
    let mut wrong = Vec::new();
    let mut asked = 0;
    for operation in operations().filter(|operation| operation.in_namespace) {
        let path = things.path(operation.path);
        // Somebody who may do everything in one namespace asks for another. What is public asks for no right.
        if operation.right != Right::Public {
            let heard =
                cluster.ask(operation.verb.as_str(), &format!("{path}?namespace=b"), Some(&eve), &Value::Null).await;
            if heard.code != "E2107" || heard.text.contains(MARK) {
                wrong.push(format!("{} in b gives {} {}", operation.id.name(), heard.status, heard.code));
            }
        }
        // The names of one namespace mean nothing in another, whoever asks.
        for token in [&eve, &cluster.root] {
            let heard =
                cluster.ask(operation.verb.as_str(), &format!("{path}?namespace=a"), Some(token), &Value::Null).await;
            let names = operation.path.contains("{id}") || operation.path.contains("{name}");
            let found = (200..300).contains(&heard.status) && names;
            // Whether a job was cancelled is an answer of Atlas for Python, also about one that does not exist.
            let denied = heard.text.contains(r#""cancelled": false"#) || heard.text.contains(r#""cancelled":false"#);
            if found && !denied || heard.text.contains(MARK) {
                wrong.push(format!("{} in a gives {} {}", operation.id.name(), heard.status, heard.text));
            }
        }
        asked += 1;
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(asked > 50, "{asked} operations");
    assert_eq!(things.seen(&cluster).await, before, "something in b was changed from a");
    cluster.controller.shutdown().await;
}

#[tokio::test]
async fn decisions_are_recorded_and_read_with_a_right_of_their_own() {
    let cluster = Cluster::start(true).await;
    let viewer = cluster.principal("ann", "viewer", None).await;
    let role = json!({"spec": {"rights": ["audit.read"]}});
    assert_eq!(cluster.ask("PUT", "/api/objects/role/auditor", Some(&cluster.root), &role).await.status, 200);
    let auditor = cluster.principal("eve", "auditor", None).await;
    let policy = json!({"spec": {"rules": [{"name": "r", "on": ["submit"], "when": "true", "effect": "deny"}]}});
    assert_eq!(cluster.ask("PUT", "/api/objects/policy/p", Some(&cluster.root), &policy).await.status, 200);
    for (method, path, token) in [
        ("POST", "/api/jobs", Some(viewer.as_str())),
        ("DELETE", "/api/objects/webhook/w", Some(viewer.as_str())),
        ("GET", "/api/nodes", None),
        ("GET", "/api/nodes", Some("atl_ann_wrong")),
        ("GET", "/api/audit", Some(viewer.as_str())),
    ] {
        let heard = cluster.ask(method, path, token, &Value::Null).await;
        assert!([401, 403].contains(&heard.status), "{method} {path}: {}", heard.text);
    }
    cluster.controller.service().audit().settled().await;
    let read = async |query: &str| {
        let heard = cluster.ask("GET", &format!("/api/audit?limit=1000{query}"), Some(&auditor), &Value::Null).await;
        assert_eq!(heard.status, 200, "{}", heard.text);
        let page = heard.body();
        assert_eq!((&page["more"], &page["missing"]), (&json!(false), &json!([])), "{page}");
        let records = page["records"].as_array().expect("records").clone();
        records
            .into_iter()
            .map(|found| serde_json::from_str::<Value>(found["line"].as_str().expect("a text")).expect("JSON"))
            .collect::<Vec<_>>()
    };
    let told = |records: &[Value]| {
        let told = |record: &Value| {
            let text = |member: &str| record[member].as_str().unwrap_or_default().to_owned();
            format!("{} {} {} {} {}", text("decision"), text("principal"), text("verb"), text("object"), text("code"))
        };
        records.iter().map(told).collect::<Vec<_>>()
    };
    let expected = [
        "allow root putObject token/ann ",
        "allow root putObject binding/ann ",
        "allow root putObject role/auditor ",
        "allow root putObject token/eve ",
        "allow root putObject binding/eve ",
        "allow root putObject policy/p ",
        "deny ann submitJob /api/jobs E2107",
        "deny ann deleteObject /api/objects/webhook/w E2107",
        "deny anonymous listNodes /api/nodes E2106",
        "deny anonymous listNodes /api/nodes E2106",
        "deny ann readAudit /api/audit E2107",
    ];
    assert_eq!(told(&read("").await), expected);
    assert_eq!(read("&principal=ann&decision=deny").await.len(), 3);
    assert_eq!(read("&object=token/").await.len(), 2);
    assert_eq!(read("&cursor=1:9").await.len(), 2);
    assert_eq!(read("&cursor=end").await.len(), 0);
    assert_eq!(read("&member=1&decision=deny").await.len(), 5);
    assert_eq!(read("&until=1").await.len(), 0);
    for query in ["since=soon", "decision=maybe", "cursor=1:-1", "cursor=a", "after=1", "color=red", "limit=many"] {
        let heard = cluster.ask("GET", &format!("/api/audit?{query}"), Some(&auditor), &Value::Null).await;
        assert_eq!((heard.status, heard.code.as_str()), (400, "E1104"), "{query}: {}", heard.text);
    }
    let heard = cluster.ask("GET", "/api/audit?member=c9", Some(&auditor), &Value::Null).await;
    assert_eq!((heard.status, heard.code.as_str()), (404, "E6001"), "{}", heard.text);
    cluster.controller.shutdown().await;
}
