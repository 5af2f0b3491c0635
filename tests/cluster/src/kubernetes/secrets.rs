//! A pod that makes a secret: the part of the API server of Kubernetes that has secrets, and the account of the pod.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::program::program;

/// The token of the pod's account.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.e30.";
const PATH: &str = "/api/v1/namespaces/atlas/secrets";

#[derive(Clone, Default)]
struct Server {
    secrets: Arc<Mutex<BTreeMap<String, Value>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

/// The API server, and the folder with the account of a pod in the namespace `atlas`.
pub(crate) struct Secrets {
    address: SocketAddr,
    server: Server,
    account: tempfile::TempDir,
    _runtime: Runtime,
}

impl Secrets {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = Server::default();
        let router = Router::new().fallback(answer).with_state(server.clone());
        runtime.spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        let account = tempfile::tempdir().expect("a folder");
        for (name, text) in [("token", TOKEN), ("namespace", "atlas"), ("ca.crt", "of no use without TLS")] {
            std::fs::write(account.path().join(name), text).expect("a file");
        }
        Self { address, server, account, _runtime: runtime }
    }

    /// Runs `atlasctl` as a container with these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(program("atlasctl"));
        command.args(arguments).arg("--account").arg(self.account()).arg("--api-server");
        command.arg(format!("http://{}", self.address)).env("HOME", self.account.path()).env("NO_COLOR", "1");
        command.env_remove("XDG_CONFIG_HOME").output().expect("it starts")
    }

    fn account(&self) -> PathBuf {
        self.account.path().to_owned()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        self.server.secrets.lock().expect("not poisoned").get(name).cloned()
    }

    fn put(&self, name: &str, data: &Value) {
        let secret = json!({ "kind": "Secret", "metadata": { "name": name }, "data": data });
        self.server.secrets.lock().expect("not poisoned").insert(name.to_owned(), secret);
    }

    /// What was asked since the last time: verbs of roles, and names.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.server.asked.lock().expect("not poisoned"))
    }
}

/// Writes the files of a projected volume of a pod to a folder.
pub(crate) fn mount(volume: &Value, secret: &Value, folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let sources = volume["projected"]["sources"].as_array().expect("sources");
    for item in sources.iter().flat_map(|source| source["secret"]["items"].as_array().expect("items")) {
        let text = |name: &str| item[name].as_str().expect("text");
        let data = secret["data"][text("key")].as_str().expect("data");
        let path = folder.join(text("path"));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, STANDARD.decode(data).expect("base64")).expect("a file");
        // A number with a zero in front is an octal one for Kubernetes, and text for our reader of YAML.
        let digits = volume["projected"]["defaultMode"].as_str().unwrap_or("0644");
        let mode = std::fs::Permissions::from_mode(u32::from_str_radix(digits, 8).expect("a mode"));
        std::fs::set_permissions(&path, mode).expect("a mode");
    }
}

async fn answer(State(server): State<Server>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let status = |code: StatusCode, reason: &str| {
        let text = json!({ "kind": "Status", "status": "Failure", "reason": reason, "message": reason, "code": code.as_u16() });
        (code, Json(text)).into_response()
    };
    if headers.get("authorization").is_none_or(|shown| shown != format!("Bearer {TOKEN}").as_str()) {
        return status(StatusCode::UNAUTHORIZED, "Unauthorized");
    }
    let mut secrets = server.secrets.lock().expect("not poisoned");
    let mut asked = server.asked.lock().expect("not poisoned");
    match (method, uri.path().strip_prefix(PATH)) {
        (Method::GET, Some(name)) if name.starts_with('/') => {
            let name = name.trim_start_matches('/');
            asked.push(format!("get {name}"));
            let found = secrets.get(name).filter(|secret| secret["hidden"] != true);
            found.map_or_else(
                || status(StatusCode::NOT_FOUND, "NotFound"),
                |secret| Json(secret.clone()).into_response(),
            )
        }
        (Method::POST, Some("")) => {
            let secret: Value = serde_json::from_slice(&body).expect("JSON");
            let name = secret["metadata"]["name"].as_str().expect("a name").to_owned();
            asked.push(format!("create {name}"));
            assert_eq!((&secret["apiVersion"], &secret["kind"]), (&json!("v1"), &json!("Secret")));
            match secrets.get_mut(&name) {
                Some(other) if name == "forbidden" => {
                    drop(other.take());
                    status(StatusCode::FORBIDDEN, "Forbidden")
                }
                Some(other) => {
                    // It was made in between.
                    other["hidden"] = json!(false);
                    status(StatusCode::CONFLICT, "AlreadyExists")
                }
                None => {
                    secrets.insert(name, secret.clone());
                    (StatusCode::CREATED, Json(secret)).into_response()
                }
            }
        }
        _ => status(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_secret_of_a_cluster_is_made_once() {
    let api = Secrets::start();
    let verb = ["operator", "secret", "atlas-auth", "--create"];
    let made = api.run(&verb);
    assert!(made.status.success() && text(&made).contains("was created"), "{}", text(&made));
    assert_eq!(api.asked(), ["get atlas-auth", "create atlas-auth"]);
    let secret = api.get("atlas-auth").expect("a secret");
    let keys: Vec<&String> = secret["data"].as_object().expect("data").keys().collect();
    assert_eq!(keys, ["root.token", "secrets.key", "group.token", "ca.pem", "ca.key"]);
    assert!(!text(&made).contains("atl_root_"), "no key is printed");
    let again = api.run(&verb);
    assert!(again.status.success() && text(&again).contains("exists already"), "{}", text(&again));
    assert_eq!(api.asked(), ["get atlas-auth"]);
    assert_eq!(api.get("atlas-auth"), Some(secret.clone()), "it is the same");

    // One that was made in between is no failure, and stays.
    let mut hidden = secret["data"].clone();
    hidden["root.token"] = json!("b3RoZXI=");
    api.put("raced", &hidden);
    api.server.secrets.lock().expect("not poisoned").get_mut("raced").expect("it")["hidden"] = json!(true);
    let raced = api.run(&["operator", "secret", "raced", "--create"]);
    assert!(raced.status.success(), "{}", text(&raced));
    assert_eq!(api.asked(), ["get raced", "create raced", "get raced"]);
    assert_eq!(api.get("raced").expect("it")["data"], hidden);
}

#[test]
fn a_secret_without_a_key_and_an_account_without_rights_are_refused() {
    let api = Secrets::start();
    let old = json!({ "root.token": "YQ==", "secrets.key": "Yg==" });
    api.put("old", &old);
    let refused = api.run(&["operator", "secret", "old", "--create"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("has no group.token, ca.pem, ca.key; it is not changed"), "{}", text(&refused));
    assert_eq!(api.get("old").expect("it")["data"], old);
    let plain = api.run(&["operator", "secret", "old", "--create", "--tls", "off"]);
    assert!(plain.status.success(), "{}", text(&plain));
    let other = api.run(&["operator", "secret", "new", "--create", "--tls", "cert-manager"]);
    assert!(other.status.success() && api.get("new").expect("it")["data"]["ca.key"].is_null(), "{}", text(&other));

    api.put("forbidden", &old);
    api.server.secrets.lock().expect("not poisoned").get_mut("forbidden").expect("it")["hidden"] = json!(true);
    let refused = api.run(&["operator", "secret", "forbidden", "--create"]);
    assert!(!refused.status.success() && text(&refused).contains("403 Forbidden"), "{}", text(&refused));
    assert!(text(&refused).contains("needs the rights to create secrets"), "{}", text(&refused));
    std::fs::write(api.account().join("token"), "another").expect("a file");
    let refused = api.run(&["operator", "secret", "atlas-auth", "--create"]);
    assert!(!refused.status.success() && text(&refused).contains("401 Unauthorized"), "{}", text(&refused));
}
