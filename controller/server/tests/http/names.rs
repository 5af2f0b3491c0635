//! Names: of paths, of members of a query or a body, and answers to unknown ones.

use serde_json::json;

use crate::client::Server;

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_are_refused_on_paths_of_our_own() {
    let server = Server::start().await;
    for (method, path, body, says) in [
        ("GET", "/api/nodes?limt=1", "", "unknown parameter \"limt\"; did you mean \"limit\"?"),
        ("GET", "/api/agents?nme=echo", "", "unknown parameter \"nme\"; did you mean \"name\"?"),
        ("GET", "/api/cluster/members?status=up", "", "unknown parameter \"status\"; known here: limit, offset"),
        ("GET", "/api/jobs/job-1/wait?timout=1", "", "unknown parameter \"timout\"; did you mean \"timeout\"?"),
        (
            "POST",
            "/api/nodes/n1/drain",
            r#"{"dedline_s": 1}"#,
            "unknown member \"dedline_s\"; did you mean \"deadline_s\"?",
        ),
        ("POST", "/api/jobs/job-1/resolve", r#"{"outptu": 1}"#, "unknown member \"outptu\"; did you mean \"output\"?"),
        (
            "POST",
            "/api/cluster/join-tokens",
            r#"{"expires": 1}"#,
            "unknown member \"expires\"; did you mean \"expires_s\"?",
        ),
    ] {
        let problem = "accept: application/problem+json\r\n";
        let reply = server.send(method, path, problem, body.as_bytes()).await;
        assert_eq!((reply.status, reply.header("atlas-error-code")), (400, Some("E1104")), "{path}: {reply:?}");
        assert_eq!(reply.json()["detail"], says, "{path}");
        assert_eq!(reply.json()["type"], "/errors/E1104");
    }
    let page = server.get("/errors/E1104").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert!(page.body.starts_with("# E1104: the request is malformed\n"), "{page:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_are_ignored_where_atlas_for_python_ignores_them() {
    let server = Server::start().await;
    let reply = server.post("/api/jobs?whatever=1", r#"{"agent": "ghost", "inptu": {}, "colour": "red"}"#).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    for path in ["/api/jobs?stauts=failed", "/api/health?x=1", "/api/metrics?x=1"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_that_do_not_exist_are_answered_as_text() {
    let server = Server::start().await;
    for (method, path, status, text) in [
        ("GET", "/nowhere", 404, "404: Not Found"),
        ("GET", "/api/knowledge", 404, "404: Not Found"),
        ("PUT", "/api/jobs", 405, "405: Method Not Allowed"),
        ("PATCH", "/api/health", 405, "405: Method Not Allowed"),
    ] {
        let reply = server.send(method, path, "", b"").await;
        assert_eq!((reply.status, &*reply.body), (status, text), "{method} {path}: {reply:?}");
        assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"), "{path}");
        let reply = server.send(method, path, "accept: application/problem+json\r\n", b"").await;
        assert_eq!(reply.json()["status"], status, "{path}: {reply:?}");
    }
    let ours = server.send("PUT", "/api/nodes", "", b"").await;
    assert_eq!((ours.status, &ours.json()["code"]), (405, &json!("E1108")), "{ours:?}");
    assert_eq!(ours.header("allow"), Some("GET, HEAD"));
    assert_eq!(server.send("PUT", "/api/jobs", "", b"").await.header("allow"), Some("GET, HEAD, POST"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encoded_name_reaches_its_handler_whole() {
    let server = Server::start().await;
    let figures = server.get("/api/metrics/a%20b%2Fc").await;
    assert_eq!(figures.json(), json!({"error": "No metrics for agent: a b/c"}), "{figures:?}");
    let agent = server.get("/api/agents/a%20b%2Fc").await;
    assert_eq!((agent.status, &agent.json()["detail"]), (404, &json!("no such agent: a b/c")), "{agent:?}");
    let node = server.get("/api/nodes/a%20b%2Fc").await;
    assert_eq!((node.status, &node.json()["detail"]), (404, &json!("no such node: a b/c")), "{node:?}");
}
