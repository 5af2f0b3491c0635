//! Servers of the older transport.

use std::sync::{Arc, Mutex, PoisonError};

use atlas_env::Env;
use atlas_mcp::{McpErrorKind, ServerSpec, Transport};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::support::{LIMIT, arguments, pool, target};

/// A server whose stream carries what is put in here.
#[derive(Clone, Default)]
struct Old(Arc<Mutex<Option<UnboundedSender<String>>>>);

impl Old {
    fn says(&self, text: String) {
        if let Some(stream) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = stream.send(text);
        }
    }
}

async fn answer(State(server): State<Old>, method: Method, body: Bytes) -> Response {
    if method == Method::GET {
        let (sender, receiver) = unbounded_channel();
        let _ = sender.send("event: endpoint\ndata: /messages\n\n".to_owned());
        *server.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        let pieces = futures::stream::unfold((receiver, false), async |(mut receiver, floods)| {
            if floods {
                let line =
                    r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
                return Some((Ok::<_, std::io::Error>(format!("{line}\n\n").repeat(100)), (receiver, true)));
            }
            let piece = receiver.recv().await?;
            let floods = piece.is_empty();
            Some((Ok(piece), (receiver, floods)))
        });
        return ([("content-type", "text/event-stream")], Body::from_stream(pieces)).into_response();
    }
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "one", "inputSchema": {"type": "object"}}]}),
        "tools/call" if message["params"]["arguments"]["flood"] == true => {
            server.says(String::new());
            return StatusCode::ACCEPTED.into_response();
        }
        "tools/call" if message["params"]["arguments"]["refuse"] == true => {
            let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "out of paper"}});
            server.says(format!("event: ping\ndata: now\n\ndata: hello\n\nevent: message\ndata: {error}\n\n"));
            return StatusCode::ACCEPTED.into_response();
        }
        "tools/call" if message["params"]["arguments"]["fail"] == true => {
            return (StatusCode::BAD_REQUEST, "out of paper").into_response();
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    server.says(format!("data: {answer}\n\n"));
    StatusCode::ACCEPTED.into_response()
}

/// A server, and its definition.
async fn start() -> (atlas_env::Task<std::io::Result<()>>, ServerSpec) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/sse", listener.local_addr().expect("an address"));
    let service = axum::Router::new().fallback(answer).with_state(Old::default());
    let serving = Env::system().spawn("test server", async { axum::serve(listener, service).await });
    let mut spec = ServerSpec::http(&url);
    spec.transport = Transport::Sse;
    (serving, spec)
}

#[tokio::test]
async fn an_error_ends_the_only_call_and_other_events_are_skipped() {
    let (serving, spec) = start().await;
    let (pool, target) = (pool(), target(&spec, None));
    let call =
        async |input: Value| pool.call(&target, "one", arguments(&input), LIMIT).await.expect_err("an error").text;
    assert_eq!(call(json!({"refuse": true})).await, "the MCP server strict refused the request: out of paper");
    let text = "the request to the MCP server strict failed: it answered 400: out of paper";
    assert_eq!(call(json!({"fail": true})).await, text);
    serving.abort();
}

#[tokio::test]
async fn a_stream_without_end_is_closed() {
    let (serving, spec) = start().await;
    let (pool, target) = (pool(), target(&spec, None));
    let call = async |input: Value| pool.call(&target, "one", arguments(&input), LIMIT).await;
    assert_eq!(call(json!({})).await.expect("a result").text(), "done");
    let lost = call(json!({"flood": true})).await.expect_err("no answer");
    let text = "the MCP server strict sent more than 10000 messages in 10 s";
    assert_eq!((lost.kind, lost.text.as_str()), (McpErrorKind::Lost, text));
    assert_eq!(call(json!({})).await.expect("a new stream").text(), "done");
    serving.abort();
}
