//! Skills: deploying, listing and removing them.

use serde_json::json;

use crate::client::Server;

fn package(yaml: &str, code: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("skill.yaml"), yaml).expect("writable");
    std::fs::write(dir.path().join("skill.py"), code).expect("writable");
    atlas_package::pack_skill(dir.path()).expect("packs").bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_is_deployed_listed_and_removed() {
    let server = Server::start().await;
    let yaml =
        "skill: {name: half, version: 1.0.0, description: Halves., input: {schema: {properties: {n: {minimum: 0.5}}}}}";
    let first = server.send("POST", "/api/skills", "", &package(yaml, "")).await;
    assert_eq!((first.status, &first.json()["changed"]), (201, &json!(true)), "{first:?}");
    let again = server.send("POST", "/api/skills", "", &package(yaml, "")).await;
    assert_eq!(again.json()["changed"], false, "{again:?}");
    let refused = server.send("POST", "/api/skills", "", &package(yaml, "x = 1")).await;
    assert!(refused.status == 409 && refused.head.contains("atlas-error-code: E1127"), "{refused:?}");
    let other = server.send("POST", "/api/skills?replace=true", "", &package(yaml, "x = 1")).await;
    assert_eq!(other.json()["changed"], true, "{other:?}");
    assert_ne!(other.json()["digest"], first.json()["digest"]);

    let shown = json!({
        "name": "half", "version": "1.0.0", "description": "Halves.",
        "input_schema": {"properties": {"n": {"minimum": 0.5}}}, "output_schema": {"type": "object"},
    });
    let listed = server.get("/api/skills").await.json();
    let listed = listed.as_array().expect("a list");
    assert_eq!((listed.len(), &listed[0], &listed[1]["name"]), (13, &shown, &json!("atlas.registry.list")));
    assert_eq!(server.get("/api/skills/half").await.json(), shown);
    let object = server.get("/api/objects/skill/half").await.json();
    assert_eq!((&object["spec"]["runtime"], &object["spec"]["package"]), (&json!("python"), &other.json()["digest"]));
    // Another namespace has the tools of the platform alone.
    let other = server.get("/api/skills?namespace=other").await.json();
    assert_eq!(other.as_array().map(Vec::len), Some(12));

    let labels = r#"{"labels": {"team": "a"}, "spec": {"package": "x"}}"#;
    let labelled = server.send("PUT", "/api/objects/skill/half", "", labels.as_bytes()).await;
    assert_eq!((labelled.status, &labelled.json()["spec"]), (200, &object["spec"]), "{labelled:?}");
    let bare = server.send("PUT", "/api/objects/skill/bare", "", br#"{"spec": {}}"#).await;
    assert_eq!((bare.status, &bare.json()["code"]), (400, &json!("E1118")), "{bare:?}");

    assert_eq!(server.send("DELETE", "/api/skills/half", "", b"").await.status, 200);
    assert_eq!(server.get("/api/skills/half").await.status, 404);
    assert_eq!(server.get("/api/skills").await.json().as_array().map(Vec::len), Some(12));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_skill_is_refused() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("agent.yaml"), "agent: {name: a, version: 1.0.0}").expect("writable");
    let agent = atlas_package::pack(dir.path()).expect("packs").bytes;
    for (bytes, text) in [(&agent[..], "no skill.yaml"), (b"nonsense", "Failed to extract archive"), (b"", "")] {
        let reply = server.send("POST", "/api/skills", "", bytes).await;
        assert!((400..500).contains(&reply.status), "{reply:?}");
        assert!(reply.json().to_string().contains(text), "{reply:?}");
    }
    assert_eq!(server.get("/api/skills").await.json().as_array().map(Vec::len), Some(12), "nothing was deployed");
}
