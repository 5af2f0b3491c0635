//! Servers whose tools a person has accepted.

use atlas_mcp::{McpError, McpErrorKind, Pool, ServerSpec, Target};
use atlas_mcp_spec::Pins;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::json;

use crate::scripted::{Scripted, document, result_of};
use crate::support::{LIMIT, arguments, pool, target};

const HELD: &str = "the tool add of the MCP server strict is held back because it is changed; accept it: atlasctl mcp accept-changes strict";

async fn call(pool: &Pool, target: &Target) -> Result<String, McpError> {
    pool.call(target, "add", arguments(&json!({})), LIMIT).await.map(|called| called.text())
}

/// A server, and its definition with the pins of its tools as they are.
async fn accepted(in_sessions: bool) -> (Scripted, Pool, Target) {
    let server = Scripted::begin(in_sessions, |_, _| None).await;
    server.seen().description = "Adds.".to_owned();
    let (pool, spec) = (pool(), ServerSpec::http(&server.url));
    let listing = pool.tools(&target(&spec, None)).await.expect("tools");
    let spec = ServerSpec { pinned: true, pins: Pins::of(listing.iter()), ..spec };
    (server, pool, target(&spec, None))
}

#[tokio::test]
async fn a_new_session_compares_before_the_call() {
    for say in [|| StatusCode::NOT_FOUND.into_response(), || (StatusCode::BAD_REQUEST, "no session").into_response()] {
        let (server, pool, target) = accepted(true).await;
        assert_eq!(call(&pool, &target).await.expect("a result"), "done");
        // The server is started again with another tool under the same name.
        {
            let mut seen = server.seen();
            seen.forgotten = Some(say);
            seen.sessions.clear();
            seen.description = "Sends mail.".to_owned();
        }
        let before = server.count("tools/call");
        let error = call(&pool, &target).await.expect_err("held back");
        assert_eq!((error.kind, error.text.as_str()), (McpErrorKind::Refused, HELD));
        // The call that the old session refused is the only one that the server heard.
        assert!(server.count("tools/call") <= before + 1);
        assert_eq!(server.seen().heard.last().map(String::as_str), Some("tools/list"));
    }
}

#[tokio::test]
async fn without_a_session_each_call_compares() {
    let (server, pool, target) = accepted(false).await;
    assert_eq!(call(&pool, &target).await.expect("a result"), "done");
    server.seen().description = "Sends mail.".to_owned();
    assert_eq!(call(&pool, &target).await.expect_err("held back").text, HELD);
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn who_asks_for_the_tools_of_now_gets_them() {
    let (server, pool, target) = accepted(true).await;
    server.seen().description = "Sends mail.".to_owned();
    assert_eq!(pool.tools_now(&target).await.expect("tools")[0].description, "Sends mail.");
    // From then on its call is held back too.
    assert_eq!(call(&pool, &target).await.expect_err("held back").text, HELD);
}

#[tokio::test]
async fn a_tool_that_is_gone_or_new_is_not_called() {
    let (server, pool, target) = accepted(true).await;
    let call =
        async |tool: &str| pool.call(&target, tool, arguments(&json!({})), LIMIT).await.expect_err("refused").text;
    assert_eq!(call("sub").await, "the tool sub of the MCP server strict does not exist");
    assert_eq!(server.count("tools/call"), 0);
}

#[tokio::test]
async fn a_session_that_only_the_failed_handshake_had_does_not_count() {
    let script = |asked: &str, message: &serde_json::Value| match asked {
        "initialize" => {
            let error =
                json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32_601, "message": "too old"}});
            let mut response = document(StatusCode::OK, &error);
            response.headers_mut().insert("mcp-session-id", "a-session".parse().expect("a header"));
            Some(response)
        }
        "server/discover" => Some(result_of(
            message,
            &json!({
                "resultType": "complete", "supportedVersions": [rmcp::model::ProtocolVersion::LATEST],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "new", "version": "1"}, "ttlMs": 0,
                "cacheScope": "private"
            }),
        )),
        _ => None,
    };
    let server = Scripted::begin(false, script).await;
    let (pool, spec) = (pool(), ServerSpec::http(&server.url));
    let listing = pool.tools(&target(&spec, None)).await.expect("tools");
    let spec = ServerSpec { pinned: true, pins: Pins::of(listing.iter()), ..spec };
    let target = target(&spec, None);
    assert_eq!(call(&pool, &target).await.expect("a result"), "done");
    server.seen().description = "Sends mail.".to_owned();
    assert_eq!(call(&pool, &target).await.expect_err("held back").text, HELD);
}
