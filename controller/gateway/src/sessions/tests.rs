//! Tests which sessions rest, and that they go on.

use atlas_service::Caller;
use atlas_types::Door;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, Implementation, InitializeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, SessionStore as _};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use super::*;
use crate::door::{GatewayOptions, GatewayResponse, Served};

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

/// A server that offers nothing, and is called in vain.
#[derive(Clone)]
struct Nothing;

impl ServerHandler for Nothing {
    /// Has no end.
    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        std::future::pending().await
    }
}

/// Sends a message. Nothing of the answer is read yet.
async fn begin(served: &Served<Nothing>, session: Option<&str>, message: &Value) -> GatewayResponse {
    let request = http::Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    let mut request = request.header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25");
    }
    let request = request.body(Bytes::from(message.to_string())).expect("a request");
    served.answer(request, Caller::anonymous(Door::Mcp)).await
}

/// Sends a message, and reads the answer to its end. Returns the session that it names as well.
async fn send(served: &Served<Nothing>, session: Option<&str>, message: &Value) -> (Option<String>, String) {
    let answer = begin(served, session, message).await;
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
        rests(&sessions, &ids[0]).await;
    }
}

/// Waits until the service of a session has ended.
async fn rests(sessions: &Sessions, id: &str) {
    while stage(sessions, id) != Some(Stage::Resting) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ids_of_events_mean_those_since_the_last_waking() {
    let sessions = Sessions::with_quiet(0, Duration::from_secs(300), Env::system());
    let served = Served::new(Nothing, sessions.clone(), &GatewayOptions::default());
    let session = open(&served).await;
    sessions.rest();
    rests(&sessions, &session).await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "nothing" } });
    // This request brings the session back.
    let mut calling = begin(&served, Some(&session), &call).await;
    let primed = calling.body_mut().frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
    let primed = primed.expect("a first event");
    assert!(primed.windows(9).any(|line| line == b"id: 0/0-1"), "{}", primed.escape_ascii());
    let resumed = |event: &str| {
        let (sessions, id, event) = (sessions.clone(), SessionId::from(session.as_str()), event.to_owned());
        async move { sessions.resume(&id, event).await.is_ok() }
    };
    for old in ["0/0", "1/0", "0/0-2"] {
        assert!(!resumed(old).await, "{old} takes the stream of a later call");
    }
    for (event, what) in
        [("7", "is of before, so all of the stream is new"), ("0-1", "is known"), ("0/0-1", "is the call's")]
    {
        assert!(resumed(event).await, "{event} {what}");
    }
    assert!(!resumed("x-1").await);
}

#[tokio::test]
async fn a_session_comes_back_after_a_request_that_was_given_up() {
    let sessions = Sessions::with_quiet(0, Duration::from_secs(300), Env::system());
    let served = Served::new(Nothing, sessions.clone(), &GatewayOptions::default());
    let session = open(&served).await;
    sessions.rest();
    rests(&sessions, &session).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let held = sessions.live.sessions.read().await;
    {
        let mut given_up = pin!(send(&served, Some(&session), &ping));
        assert!(futures::poll!(&mut given_up).is_pending());
    }
    assert_eq!(stage(&sessions, &session), Some(Stage::Resting));
    drop(held);
    let (_, text) = send(&served, Some(&session), &ping).await;
    assert!(text.contains(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), "{text}");
}

#[tokio::test]
async fn sessions_that_end_while_they_rest_do_not_add_up() {
    let sessions = Sessions::with_quiet(0, Duration::from_millis(1), Env::system());
    for _ in 0..5 {
        let (id, _) = sessions.create_session().await.expect("a session");
        let params = InitializeRequestParams::new(ClientCapabilities::default(), Implementation::new("test", "1"));
        sessions.store(&id, &SessionState::new(params)).await.expect("stored");
        use_once(&sessions, &id).await;
        sessions.close_session(&id).await.expect("rests");
        assert_eq!(stage(&sessions, &id), Some(Stage::Resting));
        assert_eq!(sessions.known().all.len(), 1);
        sessions.env.clock.sleep(Duration::from_millis(5)).await;
    }
}
