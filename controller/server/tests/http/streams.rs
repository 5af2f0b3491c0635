//! Server-sent events and WebSockets.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, Server, parse};

const HANDSHAKE: &str = "host: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Reads until a text has come.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(text) {
            let mut part = [0; 4096];
            let count = stream.read(&mut part).await.expect("readable");
            assert_ne!(count, 0, "closed before {text:?}: {}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&part[..count]);
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("in time");
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_get_of_an_event_stream_is_refused() {
    let server = Server::start().await;
    for path in ["/api/events", "/ws", "/api/jobs/job-1/events"] {
        assert_eq!(server.get(path).await.status, 400, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_read_again_from_a_number_on() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.addr()).await.expect("connects");
    stream
        .write_all(b"GET /api/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
        .await
        .expect("sent");
    until(&mut stream, "\r\n\r\n").await;
    let id = server.submit(r#"{"agent": "ghost"}"#).await;
    let live = until(&mut stream, "\"new_status\":\"failed\"").await;
    assert!(live.contains(&format!("event: job\ndata: {{\"job_id\":\"{id}\"")), "{live}");
    assert!(live.contains("\"old_status\":\"pending\",\"new_status\":\"running\""), "{live}");
    let first: u64 =
        live.split("id: ").nth(1).and_then(|text| text.split('\n').next()?.parse().ok()).expect("a number");
    let mut again = TcpStream::connect(server.addr()).await.expect("connects");
    let request = format!(
        "GET /api/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nlast-event-id: {first}\r\n\r\n"
    );
    again.write_all(request.as_bytes()).await.expect("sent");
    let rest = until(&mut again, "\"new_status\":\"failed\"").await;
    assert!(rest.contains(&format!("id: {}\n", first + 1)) && !rest.contains("\"new_status\":\"running\""), "{rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_read_again_over_a_restart() {
    let server = Server::start().await;
    let id = server.submit(r#"{"agent": "ghost"}"#).await;
    let Server { controller, dir } = server;
    controller.shutdown().await;
    let server = Server::start_in(dir).await;
    let mut stream = TcpStream::connect(server.addr()).await.expect("connects");
    let request =
        b"GET /api/events?view=full HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nlast-event-id: 0\r\n\r\n";
    stream.write_all(request).await.expect("sent");
    let events = until(&mut stream, "\"new_status\":\"failed\"").await;
    assert!(events.contains(&id), "{events}");
    for change in ["submitted", "granted", "ended"] {
        assert!(events.contains(&format!("\"change\":\"{change}\"")), "{events}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_an_ended_job_tells_its_life_and_ends() {
    let server = Server::start().await;
    let id = server.submit(r#"{"agent": "ghost"}"#).await;
    server.get(&format!("/api/jobs/{id}/wait")).await;
    let reply = server.send("GET", &format!("/api/jobs/{id}/events"), "accept: text/event-stream\r\n", b"").await;
    assert_eq!(reply.body.matches("event: job\n").count(), 2, "{reply:?}");
    let unknown = "GET /api/jobs/job-0000000000000000/events HTTP/1.1\r\n".to_owned() + HANDSHAKE;
    assert_eq!(parse(&server.raw(unknown.as_bytes()).await).status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jobs_stream_is_taken_up_where_it_broke() {
    let server = Server::start().await;
    let id = server.submit(r#"{"agent": "ghost"}"#).await;
    server.get(&format!("/api/jobs/{id}/wait")).await;
    let told = async |last: &str| {
        let headers = format!("accept: text/event-stream\r\n{last}");
        let body = server.send("GET", &format!("/api/jobs/{id}/events?view=full"), &headers, b"").await.body;
        let field = |name: &str| body.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect();
        let (ids, data): (Vec<String>, Vec<String>) = (field("id: "), field("data: "));
        (ids, data)
    };
    let (ids, data) = told("").await;
    assert_eq!(data.len(), 3, "submitted, running, failed: {data:?}");
    for (place, last) in ids.iter().enumerate() {
        let (_, rest) = told(&format!("last-event-id: {last}\r\n")).await;
        assert_eq!(rest, data[place + 1..], "behind {last} of {ids:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_gets_frames_and_is_closed_after_the_end() {
    let server = Server::start().await;
    let mut all = TcpStream::connect(server.addr()).await.expect("connects");
    all.write_all(format!("GET /ws HTTP/1.1\r\n{HANDSHAKE}").as_bytes()).await.expect("sent");
    until(&mut all, "101 Switching Protocols").await;
    let id = server.submit(r#"{"agent": "ghost"}"#).await;
    until(&mut all, "\"new_status\":\"failed\"").await;
    let mut one = TcpStream::connect(server.addr()).await.expect("connects");
    one.write_all(format!("GET /api/jobs/{id}/events HTTP/1.1\r\n{HANDSHAKE}").as_bytes()).await.expect("sent");
    let frames = until(&mut one, "\u{3}\u{fffd}").await;
    assert!(frames.contains("\"new_status\":\"failed\""), "{frames}");
    // What had happened before it came, in order.
    let running = "\"old_status\":\"pending\",\"new_status\":\"running\"";
    assert!(frames.find(running) < frames.find("\"old_status\":\"running\",\"new_status\":\"failed\""), "{frames}");
    assert_eq!(frames.matches("{\"job_id\"").count(), 2, "{frames}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_its_client_closes_is_closed_in_order() {
    let server = Server::start().await;
    let mut socket = TcpStream::connect(server.addr()).await.expect("connects");
    socket.write_all(format!("GET /ws HTTP/1.1\r\n{HANDSHAKE}").as_bytes()).await.expect("sent");
    until(&mut socket, "\r\n\r\n").await;
    // A closing frame with the code 1000, masked with zeros as clients must.
    socket.write_all(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]).await.expect("sent");
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, socket.read_to_end(&mut answer)).await.expect("in time").expect("no reset");
    assert_eq!(answer, [0x88, 0x02, 0x03, 0xe8], "a closing frame with the same code, and the end");
}

/// Reads a stream until so many jobs have ended, and returns the numbers of its events.
async fn numbers_until_ended(stream: &mut TcpStream, jobs: usize) -> Vec<u64> {
    const ENDED: &[u8] = b"\"change\":\"ended\"";
    let (mut read, mut looked, mut ended) = (Vec::new(), 0, 0);
    let reading = async {
        while ended < jobs {
            let count = stream.read_buf(&mut read).await.expect("readable");
            assert_ne!(count, 0, "closed after {ended} ends");
            // What may be the beginning of one is looked at again.
            let whole = read.len().saturating_sub(ENDED.len() - 1).max(looked);
            ended += (looked..whole).filter(|at| read[*at..].starts_with(ENDED)).count();
            looked = whole;
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("in time");
    let text = String::from_utf8_lossy(&read);
    text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_begin_at_the_same_event_hear_the_same_and_nothing_twice() {
    const JOBS: usize = 20;
    let server = Server::start().await;
    // More than a stream sends at once.
    let input = "x".repeat(30 << 10);
    for _ in 0..JOBS {
        server.submit(&format!(r#"{{"agent": "ghost", "input": {{"text": "{input}"}}}}"#)).await;
    }
    let mut heard = Vec::new();
    // The first job has the first three events.
    for (begins, ends) in [(0, JOBS), (0, JOBS), (5, JOBS - 1)] {
        let mut stream = TcpStream::connect(server.addr()).await.expect("connects");
        let request = format!(
            "GET /api/events?view=full HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nlast-event-id: {begins}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        heard.push(numbers_until_ended(&mut stream, ends).await);
    }
    assert!(heard[0].is_sorted_by(|before, after| before < after), "{heard:?}");
    assert_eq!(heard[0].len(), 3 * JOBS, "each was submitted, granted and ended");
    assert_eq!(heard[0], heard[1]);
    let later: Vec<u64> = heard[0].iter().copied().filter(|number| *number > 5).collect();
    assert_eq!(heard[2], later);
}
