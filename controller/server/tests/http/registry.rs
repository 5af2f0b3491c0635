//! The registry: search, versions, deprecation, and what the interface tells about itself.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::Server;

fn contract(name: &str, version: &str, capabilities: &str) -> String {
    format!("agent: {{name: {name}, version: {version}, description: 'Does {name}', capabilities: {capabilities}}}")
}

async fn three_versions() -> Server {
    let server = Server::start().await;
    server.register(&contract("greeter", "1.9.0", "[greet, Text]")).await;
    server.register(&contract("greeter", "1.10.0", "[greet]")).await;
    server.register(&contract("parser", "2.0.0", "[text]")).await;
    server
}

/// Names and versions of a list.
async fn found(server: &Server, query: &str) -> Vec<String> {
    let reply = server.get(&format!("/api/agents?{query}")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let text = |agent: &Value| {
        format!("{} {}", agent["name"].as_str().unwrap_or("?"), agent["version"].as_str().unwrap_or("?"))
    };
    reply.json().as_array().expect("a list").iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_searched() {
    let server = three_versions().await;
    assert_eq!(found(&server, "").await, ["greeter 1.9.0", "greeter 1.10.0", "parser 2.0.0"]);
    // Exactly the word: no folding of case, no part of it.
    assert_eq!(found(&server, "capability=text").await, ["parser 2.0.0"]);
    assert_eq!(found(&server, "capability=gree").await, [""; 0]);
    assert_eq!(found(&server, "capability=greet&all=false").await, ["greeter 1.10.0"]);
    assert_eq!(found(&server, "name=greeter").await, ["greeter 1.9.0", "greeter 1.10.0"]);
    assert_eq!(found(&server, "q=TEXT").await, ["greeter 1.9.0", "parser 2.0.0"]);
    assert_eq!(found(&server, "q=does+p").await, ["parser 2.0.0"]);
    assert_eq!(found(&server, "limit=1&offset=1").await, ["greeter 1.10.0"]);
    assert_eq!(server.get("/api/agents?offset=x").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_listed_as_the_source_prints_them() {
    let server = Server::start().await;
    server.register(&contract("greeter", "1.9.0", "[greet, Text]")).await;
    let plain = json!([
        {"name": "greeter", "version": "1.9.0", "description": "Does greeter", "capabilities": ["greet", "Text"]},
    ]);
    assert_eq!(server.get("/api/agents").await.json(), plain);
    let full = server.get("/api/agents?view=full").await.json();
    assert_eq!(
        (&full[0]["name"], &full[0]["kind"], &full[0]["retired"]),
        (&json!("greeter"), &json!("agent"), &json!(false))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_deprecated_and_retired() {
    let server = three_versions().await;
    let path = "/api/agents/greeter/versions/1.10.0";
    let marked = server.post(&format!("{path}/deprecate"), r#"{"message": "use 2.0.0"}"#).await;
    assert_eq!((marked.status, marked.json()), (200, json!({"deprecated": "use 2.0.0"})));
    let shown = server.get(path).await.json();
    assert_eq!((&shown["deprecated"], &shown["retired"]), (&json!("use 2.0.0"), &json!(false)));
    let job = server.post("/api/jobs?validate=refuse", r#"{"agent": "greeter", "version": "1.10.0"}"#).await;
    assert_eq!(job.status, 201, "it goes on taking jobs: {job:?}");
    let back = server.post(&format!("{path}/deprecate"), r#"{"deprecated": false}"#).await;
    assert_eq!(back.json(), json!({"deprecated": null}));
    assert_eq!(server.send("DELETE", path, "", b"").await.json(), json!({"retired": true}));
    assert_eq!(found(&server, "name=greeter").await, ["greeter 1.9.0"]);
    assert_eq!(server.get(path).await.json()["retired"], true);
    let versions = server.get("/api/agents/greeter/versions").await.json();
    assert_eq!(versions.as_array().map(Vec::len), Some(2));
    for (path, body) in [
        ("/api/agents/greeter/versions/9.9.9/deprecate", "{}"),
        ("/api/agents/greeter/versions/x/deprecate", "{}"),
        ("/api/agents/nobody/versions/1.0.0/deprecate", "{}"),
    ] {
        assert_eq!(server.post(path, body).await.status, 404, "{path}");
    }
    let long = json!({"message": "x".repeat(2_000)}).to_string();
    assert_eq!(server.post(&format!("{path}/deprecate"), &long).await.status, 413);
    assert_eq!(server.post(&format!("{path}/deprecate"), r#"{"why": "x"}"#).await.status, 400);
    let unknown = server.get("/api/agents/greetr/versions").await;
    assert_eq!((unknown.status, &unknown.json()["hint"]), (404, &json!("did you mean greeter?")));
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_and_what_is_not_set_up() {
    let server = Server::start().await;
    let head = server.send("HEAD", "/api/health", "", b"").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let wrong = server.send("PUT", "/api/jobs", "idempotency-key:\r\n", b"").await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET, HEAD, POST")));
    assert_eq!(server.get("/api/openapi.json").await.json()["openapi"], "3.1.0");
    let reply = server.get("/api/security/policy").await;
    assert_eq!((reply.status, reply.json()), (404, json!({"error": "No security policy configured"})));
}

/// The packages of `greeter` 1.0.0: number, first letters of the digest, who registered it.
async fn revisions(server: &Server) -> Vec<(u64, String)> {
    let agent = server.get("/api/agents/greeter/versions/1.0.0").await.json();
    let shown = |revision: &Value| {
        assert_eq!(revision["registered_by"], "local");
        (revision["revision"].as_u64().expect("a number"), revision["digest"].as_str().expect("a digest").to_owned())
    };
    agent["revisions"].as_array().expect("a list").iter().map(shown).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_immutable_unless_it_is_replaced_and_can_go_back() {
    let server = Server::start().await;
    let (first, second) = (contract("greeter", "1.0.0", "[first]"), contract("greeter", "1.0.0", "[second]"));
    server.register(&first).await;
    assert_eq!(
        server.upload("/api/agents", &first).await.json()["changed"],
        false,
        "the same bytes are accepted again"
    );
    let pinned = server.send("POST", "/api/jobs", "", br#"{"agent": "greeter", "input": {}}"#).await.json();

    let refused = server.upload("/api/agents", &second).await;
    assert!(refused.status == 409 && refused.head.contains("atlas-error-code: E1127"), "{refused:?}");
    let [(1, digest)] = &revisions(&server).await[..] else { panic!("one revision") };
    assert!(refused.body.contains(digest.as_str()), "{refused:?}");
    assert_eq!(server.upload("/api/agents?replace=true", &second).await.status, 201);
    let [(2, replaced), (1, kept)] = &revisions(&server).await[..] else { panic!("two revisions") };
    assert_ne!((digest, replaced), (replaced, digest));
    assert_eq!(digest, kept);
    assert_eq!(found(&server, "capability=second").await, ["greeter 1.0.0"]);

    let back = server.send("POST", "/api/agents/greeter/versions/1.0.0/rollback", "", b"").await;
    assert_eq!((back.status, &back.json()["from"], &back.json()["revision"]), (200, &json!(1), &json!(3)), "{back:?}");
    assert_eq!(found(&server, "capability=first").await, ["greeter 1.0.0"]);
    let shown = server.get("/api/agents/greeter/versions/1.0.0").await.json();
    let copies = shown["revisions"].as_array().expect("a list").iter().map(|one| (&one["revision"], &one["copy_of"]));
    let numbers = [(json!(3), json!(1)), (json!(2), Value::Null), (json!(1), Value::Null)];
    assert!(copies.eq(numbers.iter().map(|(number, copy)| (number, copy))), "{shown}");
    let to = |revision: u32| json!({ "revision": revision }).to_string().into_bytes();
    let again = server.send("POST", "/api/agents/greeter/versions/1.0.0/rollback", "", &to(2)).await;
    assert_eq!((again.status, again.json()["digest"].as_str()), (200, Some(replaced.as_str())), "{again:?}");
    for (revision, why) in [(9, "has no revision 9: it has 1, 2, 3 and 4"), (4, "is at revision 4 already")] {
        let unknown = server.send("POST", "/api/agents/greeter/versions/1.0.0/rollback", "", &to(revision)).await;
        assert!(unknown.status == 404 && unknown.head.contains("atlas-error-code: E1128"), "{unknown:?}");
        assert!(unknown.body.contains(why), "{unknown:?}");
    }
    let path = format!("/api/jobs/{}?view=full", pinned["id"].as_str().expect("an id"));
    assert_eq!(server.get(&path).await.json()["agent_version"], "1.0.0");
    let retired = server.send("DELETE", "/api/agents/greeter/versions/1.0.0", "", b"").await;
    assert_eq!(retired.status, 200, "{retired:?}");
    assert_eq!(server.upload("/api/agents", &first).await.status, 409, "a retired version keeps its package too");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_registry_document_can_have_a_port_of_its_own() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_with(dir, |options| options.registry_listen = Some(any)).await;
    server.register("agent: {name: a_b, version: 1.0.0, provider: {type: exec, command: [cat]}}").await;
    let own = server.controller.registry_addr().expect("it listens");
    let mut stream = TcpStream::connect(own).await.expect("connects");
    let request = format!("GET /.well-known/mcp/server.json HTTP/1.1\r\nhost: {own}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(&format!("http://{own}/agents/a_b/mcp")), "{answer}");
}
