//! Waiting for a job together with its retries.

use serde_json::{Value, json};

use crate::client::Server;

/// Its input is refused, which is retried once; the retry waits for a worker that never comes.
const PICKY: &str = "agent:\n  name: picky\n  version: 1.0.0\n  input:\n    schema:\n      type: object\n      required: [n]\n  retry:\n    max_retries: 1\n    backoff_base: 0\n";

fn told(job: &Value) -> (&str, i64) {
    (job["status"].as_str().expect("text"), job["retry_count"].as_i64().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_a_family_is_waited_for() {
    let server = Server::start().await;
    server.register(PICKY).await;
    let body = r#"{"agent": "picky"}"#;
    let alone = server.post("/api/jobs?wait=0.2", body).await.json();
    assert_eq!(told(&alone), ("failed", 0), "{alone}");
    let family = server.post("/api/jobs?wait=0.2&family=true", body).await.json();
    assert_eq!(told(&family), ("pending", 1), "the retry, as it stands: {family}");
    let first = family["original_job_id"].as_str().expect("an id").to_owned();
    for path in ["wait?timeout=60&family=false", "wait?timeout=0"] {
        let job = server.get(&format!("/api/jobs/{first}/{path}")).await.json();
        assert_eq!(told(&job), ("failed", 0), "{path}: {job}");
    }
    for wait in [format!("/api/jobs/{first}/wait?timeout=60"), format!("/api/jobs/{first}?wait=60")] {
        let path = format!("{wait}&family=true");
        let waiting = server.get(&path);
        let end = async {
            let retry = family["id"].as_str().expect("an id");
            server.send("DELETE", &format!("/api/jobs/{retry}"), "", b"").await
        };
        let (waited, _) = tokio::join!(waiting, end);
        assert_eq!(told(&waited.json()), ("cancelled", 1), "{waited:?}");
        assert_eq!(waited.json()["id"], family["id"]);
    }
    assert_eq!(server.get(&format!("/api/jobs/{first}/wait?family=maybe")).await.status, 400);
    assert_eq!(
        server.get("/api/jobs/job-0000000000000000?wait=1&family=true").await.json(),
        json!({"error": "Job not found"})
    );
}
