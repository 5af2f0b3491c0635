//! Agents and jobs in a namespace of their own.

use crate::client::Server;

const GREETER: &str = "agent:\n  name: greeter\n  version: 1.2.0\n  description: Greets\n";

#[tokio::test(flavor = "multi_thread")]
async fn agents_and_jobs_are_in_the_namespace_of_their_request() {
    let server = Server::start().await;
    server.register(GREETER).await;
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("agent.yaml"), GREETER.replace("1.2.0", "2.0.0")).expect("written");
    std::fs::write(dir.path().join("agent.py"), "").expect("written");
    let package = atlas_package::pack(dir.path()).expect("packs").bytes;
    let registered = server.send("POST", "/api/agents?namespace=team", "", &package).await;
    assert_eq!(registered.status, 201, "{registered:?}");

    for (path, version) in [("/api/agents/greeter", "1.2.0"), ("/api/agents/greeter?namespace=team", "2.0.0")] {
        assert_eq!(server.get(path).await.json()["version"], version, "{path}");
    }
    let submitted = server.post("/api/jobs?namespace=team", r#"{"agent": "greeter", "input": {}}"#).await;
    let id = submitted.json()["id"].as_str().expect("an id").to_owned();
    let job = server.get(&format!("/api/jobs/{id}?namespace=team&view=full")).await.json();
    assert_eq!((&job["namespace"], &job["agent_version"]), (&"team".into(), &"2.0.0".into()));
    assert_eq!(server.get(&format!("/api/jobs/{id}")).await.status, 404, "the namespace default does not have it");
    assert_eq!(server.get("/api/jobs").await.json(), serde_json::json!([]));
    let cancelled = server.post(&format!("/api/jobs/{id}/cancel?namespace=team"), "").await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_a_namespace_hold_for_what_is_sent_to_it() {
    let server = Server::start().await;
    server.register(GREETER).await;
    let limits = br#"{"spec": {"jobs_pending_max": 1, "agents_max": 0}}"#;
    for name in ["team", "default"] {
        let spec = if name == "team" { &limits[..] } else { br#"{"spec": {}}"# };
        assert_eq!(server.send("PUT", &format!("/api/objects/namespace/{name}"), "", spec).await.status, 200);
    }
    let submit = async |query: &str| {
        let reply = server.post(&format!("/api/jobs{query}"), r#"{"agent": "greeter", "input": {}}"#).await;
        (reply.status, reply.header("atlas-error-code").map(str::to_owned))
    };
    for _ in 0..2 {
        assert_eq!(submit("").await, (201, None), "the limits are of another namespace");
    }
    // No agent of this name is there: the job ends at once, and does not count.
    assert_eq!(submit("?namespace=team").await.0, 201);
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("agent.yaml"), GREETER).expect("written");
    std::fs::write(dir.path().join("agent.py"), "").expect("written");
    let package = atlas_package::pack(dir.path()).expect("packs").bytes;
    let refused = server.send("POST", "/api/agents?namespace=team", "", &package).await;
    assert_eq!(refused.header("atlas-error-code"), Some("E2115"), "{refused:?}");

    let more = br#"{"spec": {"jobs_pending_max": 1}}"#;
    assert_eq!(server.send("PUT", "/api/objects/namespace/team", "", more).await.status, 200);
    assert_eq!(server.send("POST", "/api/agents?namespace=team", "", &package).await.status, 201);
    assert_eq!(submit("?namespace=team").await, (201, None));
    assert_eq!(submit("?namespace=team").await.1.as_deref(), Some("E2103"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_no_name_is_refused() {
    let server = Server::start().await;
    for path in ["/api/jobs?namespace=..", "/api/agents?namespace=%2F", "/api/objects/webhook?namespace=%00"] {
        let reply = server.get(path).await;
        assert_eq!((reply.status, reply.header("atlas-error-code")), (400, Some("E1104")), "{path}: {reply:?}");
    }
    assert_eq!(server.get("/api/nodes?namespace=a").await.status, 400, "nodes have none");
}
