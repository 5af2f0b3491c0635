//! A small API server of Kubernetes: lists, watches and patches of the operator's resources, its Lease and its events. It has no
//! admission, no validation and no roles; it notes each verb, so that the chart's roles can be compared with what is used.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use atlas_env::{Env, Task};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::store::{Key, Refusal, Store};

const GROUP: &str = "apis/atlas.dev/v1alpha1";
const LEASES: &str = "apis/coordination.k8s.io/v1";
const EVENTS: &str = "apis/events.k8s.io/v1";
/// The kinds of resources by plural.
const KINDS: [(&str, &str); 5] = [
    ("agents", "Agent"),
    ("atlasnamespaces", "AtlasNamespace"),
    ("chains", "Chain"),
    ("models", "Model"),
    ("triggers", "Trigger"),
];

#[derive(Clone)]
struct Server {
    store: Arc<Mutex<Store>>,
    /// Changes with every write, so that watches look again.
    news: Arc<watch::Sender<u64>>,
}

pub(super) struct ApiServer {
    pub(super) address: SocketAddr,
    server: Server,
    _serving: Task<()>,
}

/// What the operator may do in a namespace that it watches: group, resources and verbs. The chart grants this and nothing else.
pub(crate) const GRANTED: [(&str, &[&str], &[&str]); 3] = [
    ("atlas.dev", &["agents", "atlasnamespaces", "chains", "models", "triggers"], &["list", "watch", "patch"]),
    (
        "atlas.dev",
        &["agents/status", "atlasnamespaces/status", "chains/status", "models/status", "triggers/status"],
        &["patch"],
    ),
    ("events.k8s.io", &["events"], &["create", "patch"]),
];
/// What it may do in its own namespace besides.
pub(crate) const GRANTED_AT_HOME: [(&str, &[&str], &[&str]); 2] = [
    ("coordination.k8s.io", &["leases"], &["create"]),
    // Of the lease of its name alone.
    ("coordination.k8s.io", &["leases"], &["get", "update"]),
];

impl ApiServer {
    pub(super) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = Server { store: Arc::default(), news: Arc::new(watch::Sender::new(0)) };
        let router = Router::new().fallback(answer).with_state(server.clone());
        let _serving = Env::system().spawn("API server", async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self { address, server, _serving }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.server.store.lock().expect("not poisoned")
    }

    fn changed(&self) {
        self.server.news.send_modify(|news| *news += 1);
    }

    /// A resource such as `chains atlas/greet`.
    pub(super) fn get(&self, resource: &str) -> Option<Value> {
        self.store().get(&key(resource)).cloned()
    }

    pub(super) fn put(&self, resource: &str, spec: Value, annotations: Value) {
        let key = key(resource);
        let kind = KINDS.iter().find(|(plural, _)| *plural == key.0).expect("a kind").1;
        self.store().put(&key, kind, spec, annotations);
        self.changed();
    }

    pub(super) fn delete(&self, resource: &str) {
        self.store().delete(&key(resource));
        self.changed();
    }

    pub(super) fn compact(&self) {
        self.store().compact();
        self.changed();
    }

    /// Installs or removes the definition of a kind.
    pub(super) fn define(&self, plural: &str, is_there: bool) {
        let undefined = &mut self.store().undefined;
        if is_there {
            undefined.remove(plural)
        } else {
            undefined.insert(plural.to_owned())
        };
    }

    /// Who holds the lease.
    pub(super) fn holder(&self) -> String {
        let lease = self.get("leases atlas/atlas-operator").expect("a lease");
        lease["spec"]["holderIdentity"].as_str().expect("a holder").to_owned()
    }

    /// Gives the lease to somebody else.
    pub(super) fn take_lease(&self, holder: &str) {
        let key = key("leases atlas/atlas-operator");
        let mut store = self.store();
        let mut lease = store.get(&key).cloned().expect("a lease");
        lease["spec"]["holderIdentity"] = json!(holder);
        store.write(&key, lease);
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.store().events.clone()
    }

    /// The changes that were asked for, of paths that contain a text.
    pub(super) fn changes(&self, text: &str) -> Vec<String> {
        self.store().changes.iter().filter(|change| change.contains(text)).cloned().collect()
    }

    /// Fails if something was asked that no API server accepts, or that the operator's role does not allow.
    pub(super) fn checked(&self) {
        let store = self.store();
        assert_eq!(store.complaints, Vec::<String>::new());
        let unknown: Vec<&String> = store.used.iter().filter(|used| !is_granted(used)).collect();
        assert!(unknown.is_empty(), "the role does not grant {unknown:?}");
    }
}

/// Whether a role grants `GROUP RESOURCE VERB`.
fn is_granted(used: &str) -> bool {
    let rules = GRANTED.iter().chain(&GRANTED_AT_HOME);
    let mut each = rules.flat_map(|(group, resources, verbs)| {
        resources.iter().flat_map(move |resource| verbs.iter().map(move |verb| format!("{group} {resource} {verb}")))
    });
    each.any(|granted| granted == used)
}

fn key(resource: &str) -> Key {
    let (plural, rest) = resource.split_once(' ').expect("a plural");
    let (namespace, name) = rest.split_once('/').expect("a namespace");
    (plural.to_owned(), namespace.to_owned(), name.to_owned())
}

async fn answer(State(server): State<Server>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let path = uri.path().trim_start_matches('/').to_owned();
    let query = uri.query().unwrap_or_default().to_owned();
    let known = [GROUP, LEASES, EVENTS].into_iter().find_map(|group| Some((group, path.strip_prefix(group)?)));
    let Some((group, rest)) = known else { return server.complain(&method, &uri) };
    let parts: Vec<&str> = rest.trim_start_matches('/').split('/').collect();
    let ["namespaces", namespace, plural, name @ ..] = &parts[..] else { return server.complain(&method, &uri) };
    let is_watch = query.split('&').any(|pair| pair == "watch=true");
    let verb = match (&method, name, is_watch) {
        (&Method::GET, [], true) => "watch",
        (&Method::GET, [], false) => "list",
        (&Method::GET, [_], _) => "get",
        (&Method::POST, [], _) => "create",
        (&Method::PUT, [_], _) => "update",
        (&Method::PATCH, [_] | [_, "status"], _) => "patch",
        _ => return server.complain(&method, &uri),
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let format = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    server.note(group, plural, name, verb, &uri, &body);
    // Who changed a resource is known by this name, instead of one that the request gives.
    if !headers.get("user-agent").is_some_and(|name| name.as_bytes().starts_with(b"atlas-operator/")) {
        server.store.lock().expect("not poisoned").complaints.push(format!("{method} {uri} without a name"));
    }
    let key = |name: &str| ((*plural).to_owned(), (*namespace).to_owned(), name.to_owned());
    let mut store = server.store.lock().expect("not poisoned");
    if group == GROUP && store.undefined.contains(*plural) {
        // This answer is no document.
        return (StatusCode::NOT_FOUND, "404 page not found\n").into_response();
    }
    let answered = match (group, verb, name) {
        (GROUP, "list", []) => {
            let (items, version) = store.list(plural, namespace);
            let kind = KINDS.iter().find(|(known, _)| known == plural).map_or("", |(_, kind)| kind);
            let metadata = json!({"resourceVersion": version.to_string()});
            Ok(
                json!({"apiVersion": "atlas.dev/v1alpha1", "kind": format!("{kind}List"), "metadata": metadata, "items": items}),
            )
        }
        (GROUP, "watch", []) => {
            let from = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion=")?.parse().ok());
            drop(store);
            return server.watch(plural, namespace, from.unwrap_or(0));
        }
        (GROUP, "patch", [name]) if format.starts_with("application/json-patch+json") => store.patch(&key(name), &body),
        (GROUP, "patch", [name, "status"])
            if format.starts_with("application/apply-patch+yaml")
                && query.contains("fieldManager=atlas-operator")
                && query.contains("force=true") =>
        {
            store.apply_status(&key(name), &body)
        }
        (LEASES, "get", [name]) => store.get(&key(name)).cloned().ok_or((404, "NotFound")),
        (LEASES, "create", []) => {
            let key = key(body["metadata"]["name"].as_str().unwrap_or_default());
            if store.get(&key).is_some() { Err((409, "AlreadyExists")) } else { Ok(store.write(&key, body)) }
        }
        (LEASES, "update", [name]) => {
            let before = store.get(&key(name)).map(|lease| &lease["metadata"]["resourceVersion"]);
            if before == Some(&body["metadata"]["resourceVersion"]) {
                Ok(store.write(&key(name), body))
            } else {
                Err((409, "Conflict"))
            }
        }
        (EVENTS, "create", []) => {
            let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let event = format!("{} {} {}", text("/regarding/kind"), text("/regarding/name"), text("/reason"));
            store.events.push(event);
            Ok(body)
        }
        (EVENTS, "patch", [_]) => Ok(body),
        _ => {
            drop(store);
            return server.complain(&method, &uri);
        }
    };
    drop(store);
    server.news.send_modify(|news| *news += 1);
    match answered {
        Ok(value) => (StatusCode::OK, value.to_string()).into_response(),
        Err(refusal) => refused(refusal),
    }
}

fn refused((code, reason): Refusal) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": reason, "reason": reason,
        "code": code,
    });
    (StatusCode::from_u16(code).expect("a code"), status.to_string()).into_response()
}

impl Server {
    fn complain(&self, method: &Method, uri: &Uri) -> Response {
        self.store.lock().expect("not poisoned").complaints.push(format!("{method} {uri}"));
        refused((404, "NotFound"))
    }

    fn note(&self, group: &str, plural: &str, name: &[&str], verb: &str, uri: &Uri, body: &Value) {
        let mut store = self.store.lock().expect("not poisoned");
        let group = group.trim_start_matches("apis/").split('/').next().unwrap_or_default();
        let part = if name.last() == Some(&"status") { "/status" } else { "" };
        store.used.insert(format!("{group} {plural}{part} {verb}"));
        if !["get", "list", "watch"].contains(&verb) {
            store.changes.push(format!("{verb} {uri} {body}"));
        }
    }

    /// Tells what happens, line by line, until the reader leaves or the past is forgotten.
    fn watch(&self, plural: &str, namespace: &str, from: u64) -> Response {
        let (server, news) = (self.clone(), self.news.subscribe());
        let (plural, namespace) = (plural.to_owned(), namespace.to_owned());
        let lines = futures::stream::unfold(Some((from, news)), move |at| {
            let (server, plural, namespace) = (server.clone(), plural.clone(), namespace.clone());
            async move {
                let (mut from, mut news) = at?;
                loop {
                    news.borrow_and_update();
                    let happened = server.store.lock().expect("not poisoned").after(from, &plural, &namespace);
                    let Some((events, version)) = happened else {
                        let status = json!({
                            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                            "message": "too old resource version", "reason": "Expired", "code": 410,
                        });
                        let line = format!("{}\n", json!({"type": "ERROR", "object": status}));
                        return Some((Ok::<_, std::convert::Infallible>(line), None));
                    };
                    from = version;
                    if !events.is_empty() {
                        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
                        return Some((Ok(lines), Some((from, news))));
                    }
                    news.changed().await.ok()?;
                }
            }
        });
        Body::from_stream(lines).into_response()
    }
}
