//! For any input, the answer is a refusal or a correct effect: never a 5xx, a hang or a panic.

use crate::client::{Server, parse};

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_refused() {
    let server = Server::start().await;
    let deep = format!(r#"{{"agent": "echo", "input": {}1{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    let long_name = format!(r#"{{"agent": "{}"}}"#, "x".repeat(300));
    let long_key = format!("idempotency-key: {}\r\n", "k".repeat(300));
    let requests: Vec<(&str, &str, &str, &[u8], u16)> = vec![
        ("POST", "/api/jobs", "", b"", 400),
        ("POST", "/api/jobs", "", b"{", 400),
        ("POST", "/api/jobs", "", b"\xff\xfe\x00", 400),
        ("POST", "/api/jobs", "", b"[1,2]", 400),
        ("POST", "/api/jobs", "", b"null", 400),
        ("POST", "/api/jobs", "", br#"{"agent": "\ud80"}"#, 400),
        ("POST", "/api/jobs", "", br#"{"agent": "../../etc/passwd"}"#, 400),
        ("POST", "/api/jobs", "", br#"{"agent": "a\u0000b"}"#, 400),
        ("POST", "/api/jobs", "", br#"{"agent": "echo", "priority": 1e999}"#, 400),
        ("POST", "/api/jobs", "", br#"{"agent": "echo", "priority": {"a": 1}}"#, 400),
        ("POST", "/api/jobs", "", br#"{"agent": "echo", "version": "not a version"}"#, 400),
        ("POST", "/api/jobs", "", br#"{"agent": "echo", "labels": {"": "x"}}"#, 400),
        ("POST", "/api/jobs", "", br#"{"agent": "echo", "input": 1e999}"#, 400),
        ("POST", "/api/jobs", "", br#"{"agent": "echo", "input": "\ud80"}"#, 400),
        ("POST", "/api/jobs", "origin: http://evil.example\r\n", br#"{"agent": "echo"}"#, 403),
        ("POST", "/api/jobs", "origin: http://localhost\r\n", br#"{"agent": "echo"}"#, 201),
        ("GET", "/api/jobs", "origin: http://evil.example\r\n", b"", 200),
        ("POST", "/api/jobs", "", long_name.as_bytes(), 400),
        ("POST", "/api/jobs", "", deep.as_bytes(), 400),
        ("POST", "/api/jobs", &long_key, br#"{"agent": "echo"}"#, 400),
        ("POST", "/api/jobs", "idempotency-key: \u{ff}\r\n", br#"{"agent": "echo"}"#, 400),
        ("POST", "/api/jobs?wait=soon", "", br#"{"agent": "echo"}"#, 400),
        ("POST", "/api/jobs", "traceparent: zz-zz\r\n", br#"{"agent": "echo"}"#, 201),
        ("GET", "/api/jobs?limit=abc&status=odd&agent=%00", "", b"", 200),
        ("GET", "/api/jobs?since=yesterday", "", b"", 400),
        ("GET", "/api/jobs?offset=-1", "", b"", 400),
        ("GET", "/api/jobs/%2e%2e%2f", "", b"", 404),
        ("GET", "/api/jobs/job-zzzz", "", b"", 404),
        ("GET", "/api/jobs/%ff", "", b"", 404),
        ("GET", "/api/jobs/job-0000000000000000/wait?timeout=1e400", "", b"", 404),
        ("GET", "/api/jobs/job-0000000000000000/logs", "", b"", 404),
        ("POST", "/api/jobs/job-0000000000000000/cancel", "", b"", 404),
        ("POST", "/api/jobs/job-0000000000000000/retry", "", b"", 404),
        ("GET", "/api/agents/no..such", "", b"", 404),
        ("GET", "/api/agents/none?version=%5E%5E", "", b"", 400),
        ("POST", "/api/agents", "", b"not a package", 400),
        ("POST", "/api/agents", "", b"\x1f\x8b\x08\x00", 400),
        ("DELETE", "/api/agents/none/versions/1", "", b"", 404),
        ("GET", "/api/nodes/none", "", b"", 404),
        ("POST", "/api/nodes/none/drain", "", b"", 404),
        ("POST", "/api/nodes/none/labels", "", br#"{"set": {"zone": "b"}}"#, 404),
        ("POST", "/api/nodes/none/labels", "", b"", 400),
        ("POST", "/api/nodes/none/labels", "", br#"{"set": {"zone": 1}}"#, 400),
        ("POST", "/api/nodes/none/labels", "", br#"{"set": {"zone": "b"}, "remove": ["zone"]}"#, 400),
        ("POST", "/api/nodes/none/labels", "", br#"{"remove": ["zone-"]}"#, 400),
        ("POST", "/api/nodes/none/explode", "", b"", 404),
        ("DELETE", "/api/nodes/none", "", b"", 404),
        ("GET", "/nowhere", "", b"", 404),
        ("PUT", "/api/jobs", "", b"", 405),
        ("PATCH", "/api/health", "", b"", 405),
        ("TRACE", "/metrics", "", b"", 405),
    ];
    for (method, path, headers, body, status) in requests {
        let reply = server.send(method, path, headers, body).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(reply.status, status, "{method} {path} {headers:?} {shown:?}: {reply:?}");
        let is_text = reply.header("content-type") == Some("text/plain; charset=utf-8");
        assert!(!is_text || [404, 405].contains(&status), "{method} {path}: {reply:?}");
        if status >= 400 && !is_text {
            let json = reply.json();
            assert!(json["error"].is_string() || json["detail"].is_string(), "{method} {path}: {reply:?}");
        }
    }
    assert_eq!(server.get("/api/health").await.status, 200);
    assert_eq!(server.get("/api/jobs?agent=%ff").await.json(), serde_json::json!([]));
    for (host, status) in [("evil.example", 403), ("127.0.0.1:1", 200), ("[::1]:1", 200), ("a.localhost", 200)] {
        let request = format!("GET /api/health HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        assert_eq!(parse(&server.raw(request.as_bytes()).await).status, status, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_over_the_limit_are_refused() {
    let server = Server::start().await;
    let body = format!(r#"{{"agent": "echo", "input": {{"text": "{}"}}}}"#, "x".repeat(1 << 20));
    let reply = server.post("/api/jobs", &body).await;
    assert_eq!((reply.status, reply.header("atlas-error-code")), (413, Some("E3006")));
    assert_eq!(reply.header("connection"), Some("close"), "the rest of the body is not read");
    let chunked =
        "POST /api/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut request = chunked.as_bytes().to_vec();
    for _ in 0..40 {
        request.extend_from_slice(format!("10000\r\n{}\r\n", "y".repeat(0x10000)).as_bytes());
    }
    assert!([413, 0].contains(&parse(&server.raw(&request).await).status));
    // A payload that is too large for the log is an artifact, and reads back whole.
    let large = format!(r#"{{"agent": "ghost", "input": "{}"}}"#, "é".repeat(100_000));
    let id = server.submit(&large).await;
    let job = server.get(&format!("/api/jobs/{id}")).await.json();
    assert_eq!(job["input_data"].as_str().map(str::len), Some(200_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_requests_end_in_time() {
    let server = Server::start().await;
    let many_headers = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(500));
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(200_000));
    let streams: Vec<&[u8]> = vec![
        b"",
        b"\r\n\r\n\r\n",
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /api/health HTTP/1.1\r\nhost: localhost\r\n",
        b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 100\r\n\r\n{\"agent\"",
        b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n",
        b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}",
        b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n",
        many_headers.as_bytes(),
        long_path.as_bytes(),
    ];
    for bytes in streams {
        let reply = parse(&server.raw(bytes).await);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert!(reply.status < 500, "{shown:?}: {reply:?}");
    }
    assert_eq!(server.get("/api/health").await.status, 200);
}
