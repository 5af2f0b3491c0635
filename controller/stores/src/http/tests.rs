//! Servers that answer well and badly.

use std::sync::{Arc, Mutex};

use atlas_env::Env;
use atlas_http::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// A server that gives these answers, one for each connection, and what it was sent.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

async fn server(answers: Vec<String>) -> Server {
    let env = Env::system();
    let listener = env.net.listen(([127, 0, 0, 1], 0).into()).await.expect("a free port");
    let url = format!("http://{}/base", listener.local_addr().expect("an address"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    env.spawn("server", async move {
        for answer in answers {
            let Ok(mut stream) = listener.accept().await else { return };
            let mut bytes = vec![0; 65536];
            let read = stream.read(&mut bytes).await.unwrap_or_default();
            noted.lock().expect("no panic").push(String::from_utf8_lossy(&bytes[..read]).into_owned());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    Server { url, seen }
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn memory(server: &Server) -> HttpMemory {
    HttpMemory(Site::new(&Env::system(), &server.url, Some(Secret::new("geheim"))).expect("an address"))
}

#[tokio::test]
async fn requests_are_those_of_atlas_for_python() {
    let server = server(vec![answer("200 OK", "a\n"), answer("204 No Content", "")]).await;
    let memory = memory(&server);
    assert_eq!(memory.read().await.expect("a text"), "a\n");
    memory.write("b", false, WriteKey::random(1)).await.expect("written");
    let seen = server.seen.lock().expect("no panic");
    assert!(seen[0].starts_with("GET /base HTTP/1.1\r\n") && seen[0].contains("authorization: Bearer geheim\r\n"));
    assert!(seen[1].starts_with("POST /base HTTP/1.1\r\n"), "{}", seen[1]);
    assert!(seen[1].contains("idempotency-key: 00000000000000000000000000000001\r\n"), "{}", seen[1]);
    assert!(seen[1].contains("\r\n\r\n{\"content\":\"b\",\"action\":\"append\"}"), "{}", seen[1]);
}

#[tokio::test]
async fn bad_answers_are_errors_that_show_nothing() {
    let huge =
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 99999999999\r\n\r\n".to_owned() + &"x".repeat(9 << 20);
    for (bad, expected) in [
        (answer("401 Unauthorized", "Bearer geheim is wrong"), "it answered 401"),
        (answer("302 Found", ""), "it answered 302, and redirects are not followed; give the server's own address"),
        (answer("500 Oops", "geheim"), "it answered 500"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n\u{0}".to_owned(), "its answer broke off"),
        (huge, "its answer has more than 8388608 bytes"),
        ("nonsense geheim\r\n\r\n".to_owned(), ""),
    ] {
        let server = server(vec![bad]).await;
        let error = memory(&server).read().await.expect_err(expected).to_string();
        assert!(error.starts_with("the store at 127.0.0.1:") && error.contains(expected), "{error}");
        assert!(!error.contains("geheim"), "{error}");
    }
    let nobody = Server { url: "http://127.0.0.1:9/".to_owned(), seen: Arc::default() };
    assert!(memory(&nobody).read().await.is_err());
}
