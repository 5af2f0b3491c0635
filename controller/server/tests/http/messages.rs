//! Messages to jobs.

use serde_json::json;

use crate::client::Server;

const GREETER: &str = "agent:\n  name: greeter\n  version: 1.2.0\n  description: Greets\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_job_gets_messages_until_it_ends() {
    let server = Server::start().await;
    server.register(GREETER).await;
    // There is no worker: the job waits.
    let id = server.submit(r#"{"agent": "greeter", "input": {}}"#).await;
    let path = format!("/api/jobs/{id}/messages");

    let sent = server.post(&path, r#"{"message": {"text": "hello"}, "id": "m1"}"#).await;
    assert_eq!((sent.status, sent.json()), (200, json!({"id": "m1", "repeated": false})), "{sent:?}");
    let again = server.post(&path, r#"{"message": {"text": "hello"}, "id": "m1"}"#).await;
    assert_eq!((again.status, again.json()), (200, json!({"id": "m1", "repeated": true})), "{again:?}");
    let unnamed = server.post(&path, r#"{"message": 1, "answers": "000102030405060708090a0b0c0d0e0f"}"#).await;
    assert!(unnamed.json()["id"].as_str().is_some_and(|id| id.starts_with("msg-")), "{unnamed:?}");

    let large = format!(r#"{{"message": "{}"}}"#, "x".repeat(65_536));
    for (path, body, status, code) in [
        (&path, r#"{"message": 2, "id": "m1"}"#, 409, "E3004"),
        (&path, r#"{"message": 2, "answers": "00"}"#, 400, "E1104"),
        (&path, r#"{"id": "m2"}"#, 400, "E1104"),
        (&path, &large, 413, "E3006"),
        (&"/api/jobs/job-0000000000000001/messages".to_owned(), r#"{"message": 2}"#, 404, "E3001"),
    ] {
        let refused = server.post(path, body).await;
        assert_eq!((refused.status, refused.header("atlas-error-code")), (status, Some(code)), "{refused:?}");
    }

    server.post(&format!("/api/jobs/{id}/cancel"), "").await;
    let late = server.post(&path, r#"{"message": 3}"#).await;
    assert_eq!((late.status, late.header("atlas-error-code")), (409, Some("E3005")), "{late:?}");
    server.controller.shutdown().await;
}
