//! Addresses, refusals, and the change to the next controller.

use expect_test::expect;

use super::*;

#[test]
fn a_problem_document_becomes_an_error_with_places() {
    let body = br#"{"status":422,"code":"E1102","detail":"the input does not fit","hint":"show the contract: x",
        "errors":[{"pointer":"","message":"\"name\" is required"},{"pointer":"/nme","message":"not allowed here"}]}"#;
    let failure = refusal(StatusCode::UNPROCESSABLE_ENTITY, None, body);
    expect![[r#"
        error[E1102]: the input does not fit
          at /       "name" is required
          at /nme    not allowed here
        show the contract: x"#]]
    .assert_eq(&failure.to_string());
    assert_eq!(failure.exit, Exit::Invalid);
}

#[test]
fn only_the_loopback_interface_is_private() {
    let is_private = |list: &str| Client::new(list).expect("addresses").is_private();
    for list in ["127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "127.0.0.2:1,127.0.0.1:2", "https://10.0.0.1:1"]
    {
        assert!(is_private(list), "{list}");
    }
    for list in [
        "10.0.0.1:1",
        "https://10.0.0.1:1,http://10.0.0.1:2",
        "127.0.0.1:1,c2:1",
        "localhost.example:1",
        "127.0.0.1.example:1",
        "0.0.0.0:1",
    ] {
        assert!(!is_private(list), "{list}");
    }
}

#[test]
fn the_short_body_and_its_header_are_enough() {
    let failure = refusal(StatusCode::NOT_FOUND, Some("E3001".to_owned()), br#"{"error": "Job not found"}"#);
    expect![[r#"
        error[E3001]: Job not found
        list them: atlasctl job list"#]]
    .assert_eq(&failure.to_string());
    assert_eq!(failure.exit, Exit::NotFound);
    let failure = refusal(StatusCode::BAD_GATEWAY, None, b"<html>");
    expect!["error: the server answered 502 Bad Gateway"].assert_eq(&failure.to_string());
}

#[test]
fn ids_stay_one_segment() {
    let client = Client::new("127.0.0.1:7400/").expect("an address");
    let request = client.request(Method::GET, &["api", "jobs", "../a b?"]).expect("an address");
    let uri = request.uri().expect("an address").to_string();
    assert_eq!(uri, "http://127.0.0.1:7400/api/jobs/..%2Fa%20b%3F");
    assert!(Client::new("http://a b").is_err());
    assert!(Client::new(" ,").is_err());
    assert!(Client::new("ftp://127.0.0.1").is_err());
}

#[test]
fn the_text_of_a_warning_is_shown() {
    assert_eq!(
        text_of(r#"299 atlas "the member 'inptu' is ignored; did you mean 'input'?""#),
        "the member 'inptu' is ignored; did you mean 'input'?"
    );
    assert_eq!(text_of(r#"299 atlas "the member 'a\"' is ignored""#), r#"the member 'a"' is ignored"#);
    assert_eq!(text_of("110 - stale"), "110 - stale");
}

/// A controller that answers one request with `answer`, and returns the request.
fn controller(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let serve = move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("readable") > 0 {
            head.push(byte[0]);
        }
        stream.write_all(answer.as_bytes()).expect("writable");
        String::from_utf8_lossy(&head).into_owned()
    };
    (address, std::thread::Builder::new().spawn(serve).expect("a thread"))
}

const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
const NO_LEADER: &str = "HTTP/1.1 503 Service Unavailable\r\nAtlas-Error-Code: E4001\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";

#[tokio::test]
async fn the_next_controller_is_asked_by_the_same_name() {
    let ((waiting, asked), (leading, done)) = (controller(NO_LEADER), controller(DONE));
    let client = Client::new(&format!("{waiting},http://{leading}/")).expect("addresses");
    client.post(&["api", "jobs"], &[], &Value::Null).await.expect("answered by the second");
    let key = |head: String| head.lines().find(|line| line.starts_with("idempotency-key: ")).map(str::to_owned);
    let (first, second) = (key(asked.join().expect("asked")), key(done.join().expect("asked")));
    assert!(first.is_some() && first == second, "{first:?} {second:?}");
}

#[tokio::test]
async fn a_live_controller_tells_more_than_a_refused_connection() {
    for live_first in [true, false] {
        let (waiting, asked) = controller(NO_LEADER);
        let gone = "127.0.0.1:1".to_owned();
        let list = if live_first { [waiting, gone] } else { [gone, waiting] };
        let client = Client::new(&list.join(",")).expect("addresses");
        let failure = client.get(&["api", "jobs"], &[]).await.expect_err("nobody leads");
        assert_eq!(failure.code.as_deref(), Some("E4001"), "{failure}");
        asked.join().expect("asked");
    }
}

#[tokio::test]
async fn a_refusal_is_read_while_the_body_is_still_being_sent() {
    let (full, asked) = controller(
        "HTTP/1.1 413 Payload Too Large\r\nAtlas-Error-Code: E3006\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    let client = Client { ask_first: Duration::from_secs(60), ..Client::new(&full).expect("an address") };
    let body = Value::String("x".repeat(16 << 20));
    let failure = client.post(&["api", "jobs"], &[], &body).await.expect_err("too large");
    assert_eq!(failure.code.as_deref(), Some("E3006"), "{failure}");
    let asked = asked.join().expect("asked");
    assert!(asked.contains("content-length: 16777218\r\n"), "{asked}");
}
