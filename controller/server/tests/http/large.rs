//! Bodies far over the limit: a client that sends one completely, or asks before sending it, gets the reason.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, Reply, Server, parse};

const SENT: usize = 200 << 20;
const PIECE: usize = 1 << 20;

/// Sends a head and a body of [`SENT`] bytes to the end, reading nothing, and only then reads the answer.
async fn send(server: &Server, head: &str, chunked: bool) -> Reply {
    let mut stream = TcpStream::connect(server.addr()).await.expect("connects");
    stream.write_all(head.as_bytes()).await.expect("the head is sent");
    let piece = vec![b' '; PIECE];
    let sending = async {
        for _ in 0..SENT / PIECE {
            if chunked {
                stream.write_all(format!("{PIECE:x}\r\n").as_bytes()).await?;
            }
            stream.write_all(&piece).await?;
            if chunked {
                stream.write_all(b"\r\n").await?;
            }
        }
        if chunked { stream.write_all(b"0\r\n\r\n").await } else { Ok(()) }
    };
    tokio::time::timeout(PATIENCE, sending).await.expect("in time").expect("the body is sent");
    read(stream).await
}

async fn read(mut stream: TcpStream) -> Reply {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("in time");
    read.unwrap_or_else(|error| panic!("{error} after {:?}", String::from_utf8_lossy(&answer)));
    parse(&answer)
}

fn is_too_large(reply: &Reply) {
    assert_eq!((reply.status, reply.header("atlas-error-code")), (413, Some("E3006")), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_a_length_over_the_limit() {
    let server = Server::start().await;
    for path in ["/api/jobs", "/api/jobs:batch", "/api/agents", "/api/jobs?wait=1"] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {SENT}\r\n\r\n");
        is_too_large(&send(&server, &head, false).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_in_chunks_over_the_limit() {
    let server = Server::start().await;
    let head = "POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    is_too_large(&send(&server, head, true).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_nobody_wants() {
    let server = Server::start().await;
    for (path, status) in [("/nowhere", 404), ("/api/nodes", 405), ("/api/nodes/n1/cordon", 413)] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {SENT}\r\n\r\n");
        assert_eq!(send(&server, &head, false).await.status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_first_sends_nothing() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.addr()).await.expect("connects");
    let head =
        format!("POST /api/jobs HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {SENT}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("the head is sent");
    is_too_large(&read(stream).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_first_and_is_within_the_limit_goes_on() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.addr()).await.expect("connects");
    let body = r#"{"agent": "ghost"}"#;
    let head = format!(
        "POST /api/jobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("the head is sent");
    let mut go_on = [0; 25];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut go_on)).await.expect("in time").expect("an answer");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.expect("the body is sent");
    assert_eq!(read(stream).await.status, 201);
}
