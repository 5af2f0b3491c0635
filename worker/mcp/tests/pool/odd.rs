//! Servers that stretch the protocol. What can be used is used, and nobody waits for an answer that was given.

use atlas_mcp::{McpError, McpErrorKind, ServerSpec};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use crate::scripted::{Scripted, document, events, result_of};
use crate::support::{LIMIT, arguments, pool, target};

async fn called(server: &Scripted) -> Result<String, McpError> {
    let (pool, target) = (pool(), target(&ServerSpec::http(&server.url), None));
    pool.call(&target, "add", arguments(&json!({})), LIMIT).await.map(|called| called.text())
}

#[tokio::test]
async fn an_error_ends_the_call_that_it_answers_whatever_its_id_is() {
    for id in [Value::Null, json!("server-error"), json!(4_711)] {
        for status in [StatusCode::OK, StatusCode::BAD_REQUEST, StatusCode::INTERNAL_SERVER_ERROR] {
            let id = id.clone();
            let server = Scripted::begin(false, move |asked, _| {
                let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32_000, "message": "out of paper"}});
                (asked == "tools/call").then(|| document(status, &error))
            });
            let error = called(&server.await).await.expect_err("an error");
            assert_eq!(error.kind, McpErrorKind::Refused);
            assert_eq!(error.text, "the MCP server strict refused the request: out of paper");
        }
    }
    let server = Scripted::start(|asked, _| {
        let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32_000, "message": "out of paper"}});
        (asked == "tools/call").then(|| events(format!("event: message\ndata: {error}\n\n")))
    });
    assert_eq!(called(&server.await).await.expect_err("an error").kind, McpErrorKind::Refused);
}

#[tokio::test]
async fn a_status_ends_a_call_with_the_words_of_the_server() {
    for (status, kind) in [(422, McpErrorKind::Refused), (429, McpErrorKind::Refused), (503, McpErrorKind::Lost)] {
        let status = StatusCode::from_u16(status).expect("a status");
        let server = Scripted::start(move |asked, _| {
            (asked == "tools/call").then(|| (status, "<html><title>Out of paper</title></html>").into_response())
        });
        let error = called(&server.await).await.expect_err("an error");
        let text =
            format!("the request to the MCP server strict failed: it answered {}: Out of paper", status.as_u16());
        assert_eq!((error.kind, error.text), (kind, text));
    }
}

#[tokio::test]
async fn a_forgotten_session_is_renewed_whatever_the_server_calls_it() {
    let python = || {
        let error = json!({"code": -32_600, "message": "Bad Request: No valid session ID provided"});
        document(StatusCode::BAD_REQUEST, &json!({"jsonrpc": "2.0", "id": "server-error", "error": error}))
    };
    let plain = || (StatusCode::BAD_REQUEST, "Server not initialized").into_response();
    let missing = || StatusCode::NOT_FOUND.into_response();
    for forgotten in [python as fn() -> _, plain, missing] {
        let server = Scripted::start(|_, _| None).await;
        server.seen().forgotten = Some(forgotten);
        let (pool, target) = (pool(), target(&ServerSpec::http(&server.url), None));
        pool.tools(&target).await.expect("tools");
        server.seen().sessions.clear();
        let called = pool.call(&target, "add", arguments(&json!({})), LIMIT).await.expect("a result");
        assert_eq!((called.text().as_str(), server.count("initialize"), pool.open()), ("done", 2, 1));
    }
}

#[tokio::test]
async fn a_bad_request_is_no_forgotten_session() {
    let server = Scripted::start(|asked, message| {
        let error = json!({"code": -32_602, "message": "a is missing"});
        let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        (asked == "tools/call").then(|| document(StatusCode::BAD_REQUEST, &error))
    });
    let server = server.await;
    let error = called(&server).await.expect_err("an error");
    assert_eq!(error.text, "the MCP server strict refused the request: a is missing");
    assert_eq!((server.count("initialize"), server.count("tools/call")), (1, 1));
    // One that is not told apart costs one more session, and ends with the words of the server.
    let server = Scripted::start(|asked, _| {
        (asked == "tools/call").then(|| (StatusCode::BAD_REQUEST, "a is missing").into_response())
    });
    let server = server.await;
    let error = called(&server).await.expect_err("an error");
    assert!(error.text.ends_with("it answered 400 to its session: a is missing"), "{error}");
    assert_eq!((server.count("initialize"), server.count("tools/call")), (2, 2));
}

#[tokio::test]
async fn events_of_other_names_and_without_json_are_skipped() {
    let noise = "event: ping\ndata: 2026-11-29\n\n: comment\n\nevent: ping\n\ndata: hello\n\nevent: endpoint\ndata: /x\n\n\
                 event: status\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n\ndata: {\"ok\":true}\n\ndata:\n\n";
    let server = Scripted::start(move |asked, message| {
        let result = match asked {
            "initialize" => json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "o", "version": "1"}
            }),
            "tools/list" => json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
            _ => return None,
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        Some(events(format!("{noise}event: message\ndata: {answer}\n\n{noise}")))
    });
    let server = server.await;
    let (pool, target) = (pool(), target(&ServerSpec::http(&server.url), None));
    assert_eq!(pool.tools(&target).await.expect("tools").len(), 1);
    assert_eq!(called(&server).await.expect("a result"), "done");
}

#[tokio::test]
async fn malformed_tools_and_pages_take_no_others_away() {
    let server = Scripted::start(|asked, message| {
        let page = match message["params"]["cursor"].as_str() {
            _ if asked != "tools/list" => return None,
            None => json!({"tools": [{"name": "add", "inputSchema": {}}, {"name": "odd"}, 7], "nextCursor": "2"}),
            Some("2") => json!({"tools": [{"name": "sub", "inputSchema": {}, "annotations": [1]}], "nextCursor": "3"}),
            Some(_) => json!({"tools": "none"}),
        };
        Some(result_of(message, &page))
    });
    let server = server.await;
    let target = target(&ServerSpec::http(&server.url), None);
    let listing = pool().tools(&target).await.expect("tools");
    assert_eq!(listing.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["add", "sub"]);
    assert_eq!(
        listing.left_out,
        [
            "tool \"odd\" has no \"inputSchema\"",
            "tool 3 is not an object",
            "page 3 and what follows: the MCP server strict refused the request: the answer cannot be read: it has no list \"tools\"",
        ]
    );
}

#[tokio::test]
async fn an_unknown_version_of_the_protocol_is_refused() {
    let server = Scripted::start(|asked, message| {
        let result = json!({
            "protocolVersion": "1999-01-01", "capabilities": {"tools": {}}, "serverInfo": {"name": "o", "version": "1"}
        });
        (asked == "initialize").then(|| result_of(message, &result))
    });
    let error = called(&server.await).await.expect_err("refused");
    assert_eq!(error.kind, McpErrorKind::Protocol);
    assert!(
        error.text.starts_with("the MCP server strict wants the version \"1999-01-01\" of the protocol"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_the_call() {
    let texts = [r#"{"jsonrpc":"2.0","id":1,"result":"a text"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{"sum":1.50}}"#];
    for (text, wanted) in texts.into_iter().zip(["a text", r#"{"sum":1.50}"#]) {
        let server =
            Scripted::start(move |asked, _| (asked == "tools/call").then(|| events(format!("data: {text}\n\n"))));
        assert_eq!(called(&server.await).await.expect("a result"), wanted.replace("1.50", "1.5"));
    }
}

#[tokio::test]
async fn a_call_that_the_server_answers_by_its_id_is_made_once() {
    for status in [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND] {
        let server = Scripted::start(move |asked, message| {
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"message": "session is full"}});
            (asked == "tools/call").then(|| document(status, &error))
        });
        let server = server.await;
        let (pool, target) = (pool(), target(&ServerSpec::http(&server.url), None));
        for times in 1..=2 {
            let error = pool.call(&target, "add", arguments(&json!({})), LIMIT).await.expect_err("an error");
            assert_eq!(error.text, "the MCP server strict refused the request: session is full");
            // The session may be gone, so the next call has another one.
            assert_eq!((server.count("tools/call"), server.count("initialize")), (times, times));
        }
    }
}

#[tokio::test]
async fn the_answer_to_another_request_ends_no_call() {
    let texts = |id: &Value| {
        let result =
            |id: &Value, text: &str| json!({"id": id, "result": {"content": [{"type": "text", "text": text}]}});
        (result(&json!(0), "another"), result(id, "own"))
    };
    let streamed = Scripted::start(move |asked, message| {
        let (another, own) = texts(&message["id"]);
        (asked == "tools/call").then(|| events(format!("data: {another}\n\ndata: {own}\n\n")))
    });
    assert_eq!(called(&streamed.await).await.expect("a result"), "own");
    let batch = Scripted::start(move |asked, message| {
        let (another, own) = texts(&message["id"]);
        (asked == "tools/call").then(|| document(StatusCode::OK, &json!([another, own])))
    });
    assert_eq!(called(&batch.await).await.expect("a result"), "own");
}
