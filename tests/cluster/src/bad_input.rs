//! Malformed and hostile requests: a coded refusal, no effect, and a server that answers the next request.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Agent, Dev, write_agent};

const STRICT: Agent<'static> = Agent {
    name: "strict",
    version: "1.0.0",
    contract: "  input: { schema: { type: object, properties: { n: { type: integer } }, required: [n], additionalProperties: false } }",
    script: "cat >/dev/null; printf '{}'",
};

#[tokio::test]
async fn bad_requests_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(&folder.path().join("agents"), &STRICT);
    let dev = Dev::start(folder.path(), ["--ephemeral", "--agents", "./agents"]);
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = |path: &str| format!("{}{path}", dev.server());
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_input = format!("{{\"agent\": \"strict\", \"input\": {nested}}}");
    let bodies: [(&str, Vec<u8>, &[u16]); 12] = [
        ("/api/jobs", b"".to_vec(), &[400]),
        ("/api/jobs", b"{".to_vec(), &[400]),
        ("/api/jobs", b"[1, 2]".to_vec(), &[400]),
        ("/api/jobs", b"\xff\xfe\x00".to_vec(), &[400]),
        ("/api/jobs", b"{\"agent\": 5}".to_vec(), &[400]),
        ("/api/jobs", b"{\"agent\": \"\"}".to_vec(), &[400]),
        ("/api/jobs", b"{\"agent\": \"../../etc/passwd\"}".to_vec(), &[400]),
        ("/api/jobs", b"{\"agent\": \"strict\", \"priority\": \"high\"}".to_vec(), &[400]),
        ("/api/jobs", deep_input.into_bytes(), &[400, 413, 422]),
        ("/api/jobs?validate=refuse", b"{\"agent\": \"strict\", \"input\": {\"m\": 1}}".to_vec(), &[400, 422]),
        ("/api/jobs", vec![b' '; 3 << 20], &[413]),
        ("/api/agents", b"not a package".to_vec(), &[400, 422]),
    ];
    for (path, body, statuses) in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let answer = client.post(url(path)).body(body).send().await.expect("an answer");
        let (status, code) = (answer.status().as_u16(), answer.headers().get("Atlas-Error-Code").cloned());
        let text = answer.text().await.expect("a body");
        assert!(statuses.contains(&status), "{path} {shown}: {status} {text}");
        assert!(code.is_some(), "{path} {shown}: {status} without a code");
        let body: Value = serde_json::from_str(&text).expect("a JSON body");
        assert!(body["error"].is_string() || body["detail"].is_string(), "{path} {shown}: {body}");
    }
    for path in
        ["/api/jobs/nonsense", "/api/jobs/job-ffffffffffffffff", "/api/jobs/%2e%2e%2f", "/api/agents/none", "/api/none"]
    {
        let status = client.get(url(path)).send().await.expect("an answer").status().as_u16();
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    let jobs: Value = client.get(url("/api/jobs")).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(jobs, json!([]), "no refused request left a job");
    let good = client.post(url("/api/jobs?wait=30")).json(&json!({"agent": "strict", "input": {"n": 1}}));
    let job: Value = good.send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(job["status"], json!("completed"), "{job}");
}

#[tokio::test]
async fn bytes_that_are_no_http_end_the_connection_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(folder.path(), ["--ephemeral", "--agents", "./none"]);
    let address = dev.server().trim_start_matches("http://").to_owned();
    let header = vec![b'a'; 1 << 20];
    for bytes in [&b"\x16\x03\x01\x02\x00"[..], b"GET / HTTP/9.9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nXX", &header] {
        let mut stream = TcpStream::connect(&address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        // The server may have closed before it read everything.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let health = client.get(format!("{}/api/health", dev.server())).send().await.expect("an answer");
    assert!(health.status().is_success());
}
