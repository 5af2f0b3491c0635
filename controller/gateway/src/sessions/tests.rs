//! Tests which sessions rest, and that they go on.

use atlas_service::Caller;
use atlas_types::Door;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use rmcp::ServerHandler;
use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, SessionStore as _};
use serde_json::{Value, json};

use super::*;
use crate::door::{GatewayOptions, Served};

/// Sessions of which one may be quiet, and `count` of them that are open.
async fn sessions(count: usize) -> (Arc<Sessions>, Vec<SessionId>) {
    let sessions = Sessions::with_quiet(1, Duration::from_secs(300), Env::system());
    let mut ids = Vec::new();
    for _ in 0..count {
        let (id, _) = sessions.create_session().await.expect("a session");
        let params = InitializeRequestParams::new(ClientCapabilities::default(), Implementation::new("test", "1"));
        sessions.store(&id, &SessionState::new(params)).await.expect("stored");
        ids.push(id);
    }
    (sessions, ids)
}

fn stage(sessions: &Sessions, id: &str) -> Option<Stage> {
    sessions.known().all.get(id).map(|session| session.stage)
}

async fn use_once(sessions: &Arc<Sessions>, id: &str) {
    sessions.used(id).await.expect("an open session").end();
    sessions.rest();
}

#[tokio::test]
async fn the_session_that_was_used_last_is_live() {
    let (sessions, ids) = sessions(3).await;
    for id in &ids {
        use_once(&sessions, id).await;
    }
    for id in &ids[..2] {
        while sessions.has_session(id).await.expect("known") {
            tokio::task::yield_now().await;
        }
        assert_eq!(stage(&sessions, id), Some(Stage::Parting), "its service has not ended yet");
        // `rmcp` says that the service has ended.
        sessions.close_session(id).await.expect("closed");
        assert!(sessions.is_open(id));
        assert_eq!(stage(&sessions, id), Some(Stage::Resting));
    }
    assert!(sessions.has_session(&ids[2]).await.expect("known"));
    assert!(sessions.is_full(3) && !sessions.is_full(4), "those that rest are open");
}

#[tokio::test]
async fn a_request_waits_while_its_session_is_put_to_rest() {
    let (sessions, ids) = sessions(2).await;
    for id in &ids {
        use_once(&sessions, id).await;
    }
    let mut waiting = pin!(sessions.used(&ids[0]));
    while sessions.has_session(&ids[0]).await.expect("known") {
        assert!(futures::poll!(&mut waiting).is_pending());
        tokio::task::yield_now().await;
    }
    assert!(futures::poll!(&mut waiting).is_pending(), "its service has not ended yet");
    sessions.close_session(&ids[0]).await.expect("closed");
    let mut used = waiting.await.expect("an open session");
    assert!(used.rested && sessions.load(&ids[0]).await.expect("known").is_some());
    let mut second = pin!(sessions.used(&ids[0]));
    assert!(futures::poll!(&mut second).is_pending(), "it is not back yet");
    assert!(matches!(sessions.restore_session(ids[0].clone()).await, Ok(RestoreOutcome::Restored(_))));
    assert!(futures::poll!(&mut second).is_pending(), "its service has begun, and is not ready");
    used.woke();
    assert_eq!(stage(&sessions, &ids[0]), Some(Stage::Live));
    assert!(second.await.is_some_and(|second| !second.rested));
}

#[tokio::test]
async fn a_request_that_is_given_up_leaves_its_session_resting() {
    let (sessions, ids) = sessions(2).await;
    for id in &ids {
        use_once(&sessions, id).await;
    }
    sessions.close_session(&ids[0]).await.expect("rests");
    for begun in [false, true] {
        let used = sessions.used(&ids[0]).await;
        if begun {
            assert!(sessions.restore_session(ids[0].clone()).await.is_ok());
        }
        drop(used);
        let then = if begun { Stage::Parting } else { Stage::Resting };
        assert_eq!(stage(&sessions, &ids[0]), Some(then));
    }
}

#[tokio::test]
async fn a_session_with_something_open_or_lost_stays_live() {
    let (sessions, ids) = sessions(3).await;
    let open = sessions.used(&ids[0]).await;
    drop(sessions.used(&ids[1]).await);
    for _ in 0..3 {
        use_once(&sessions, &ids[1]).await;
        use_once(&sessions, &ids[2]).await;
    }
    for id in &ids {
        assert!(sessions.has_session(id).await.expect("known"), "{id}");
    }
    drop(open);
}

#[tokio::test]
async fn a_session_that_its_client_ends_is_gone() {
    let (sessions, ids) = sessions(2).await;
    for id in &ids {
        use_once(&sessions, id).await;
    }
    sessions.close_session(&ids[0]).await.expect("rests");
    for id in &ids {
        sessions.close_session(id).await.expect("ends");
        assert!(!sessions.is_open(id) && sessions.used(id).await.is_none());
        assert!(sessions.load(id).await.expect("unknown").is_none());
    }
}

/// A server that offers nothing.
#[derive(Clone)]
struct Nothing;

impl ServerHandler for Nothing {}

/// Sends a message, and reads the answer to its end. Returns the session that it names as well.
async fn send(served: &Served<Nothing>, session: Option<&str>, message: &Value) -> (Option<String>, String) {
    let request = http::Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    let mut request = request.header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25");
    }
    let request = request.body(Bytes::from(message.to_string())).expect("a request");
    let answer = served.answer(request, Caller::anonymous(Door::Mcp)).await;
    let session = answer.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let text = answer.into_body().collect().await.expect("a body").to_bytes();
    (session, String::from_utf8_lossy(&text).into_owned())
}

async fn open(served: &Served<Nothing>) -> String {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let (session, text) = send(served, None, &hello).await;
    let session = session.unwrap_or_else(|| panic!("a session: {text}"));
    send(served, Some(&session), &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    session
}

#[tokio::test]
async fn a_session_that_rests_answers_as_if_it_never_had() {
    let sessions = Sessions::with_quiet(1, Duration::from_secs(300), Env::system());
    let served = Served::new(Nothing, sessions.clone(), &GatewayOptions::default());
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(open(&served).await);
    }
    for round in 0..3 {
        for id in &ids {
            let ping = json!({ "jsonrpc": "2.0", "id": round, "method": "ping" });
            let (_, text) = send(&served, Some(id), &ping).await;
            assert!(text.contains(&format!(r#"{{"jsonrpc":"2.0","id":{round},"result":{{}}}}"#)), "{text}");
        }
        while stage(&sessions, &ids[0]) != Some(Stage::Resting) {
            // Its service ends.
            tokio::task::yield_now().await;
        }
    }
}
