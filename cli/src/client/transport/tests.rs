//! Connections that nobody accepts.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::*;

const SHORT: Duration = Duration::from_millis(20);
/// A connection that is not there after it finds no room; one that finds room needs less, also on a busy machine.
const FULL: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(60);

/// A listener that has no room for another connection until those that wait are accepted.
async fn full() -> (TcpListener, SocketAddr, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let listener = socket.listen(0).expect("listening");
    let address = listener.local_addr().expect("bound");
    let mut waiting = Vec::new();
    while let Ok(stream) = tokio::time::timeout(FULL, TcpStream::connect(address)).await {
        waiting.push(stream.expect("connected"));
    }
    (listener, address, waiting)
}

fn request(address: SocketAddr) -> Request {
    let url = format!("http://{address}/").parse().expect("an address");
    Request::new(http::Method::GET, url)
}

#[tokio::test]
async fn a_connection_that_nobody_accepts_is_tried_again() {
    let (listener, address, waiting) = full().await;
    let transport = Transport::with_timeouts(&Trust::Machine, false, [SHORT, SHORT, LONG]).expect("a transport");
    let serve = async {
        // Longer than the first attempts.
        let _ = tokio::time::timeout(SHORT * 10, std::future::pending::<()>()).await;
        drop(waiting);
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = [0; 1_024];
            if stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("written");
                break;
            }
        }
    };
    let request = request(address);
    let (answer, ()) = futures::join!(transport.execute(&request, &None), serve);
    assert_eq!(answer.expect("an answer").status(), 204);
}

#[tokio::test]
async fn silence_is_no_refusal() {
    let (_listener, address, _waiting) = full().await;
    let transport = Transport::with_timeouts(&Trust::Machine, false, [SHORT; 3]).expect("a transport");
    let silent = transport.execute(&request(address), &None).await.expect_err("nobody accepts");
    assert!(silent.is_connect() && silent.is_silence(), "{silent:?}");
    let closed = "127.0.0.1:1".parse().expect("an address");
    let refused = transport.execute(&request(closed), &None).await.expect_err("nobody listens");
    assert!(refused.is_connect() && !refused.is_silence(), "{refused:?}");
}
