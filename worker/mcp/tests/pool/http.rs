//! Servers over HTTP: what is shared, what is bounded, and what never reaches them.

use std::time::Duration;

use atlas_mcp::{McpErrorKind, ServerSpec, Verdict};
use serde_json::json;

use crate::server::{Mood, Server};
use crate::support::{LIMIT, arguments, pool, target};

#[tokio::test]
async fn calls_share_one_connection_that_ends_with_a_goodbye() {
    let server = Server::start().await;
    let (pool, target) = (pool(), target(&ServerSpec::http(&server.url), None));
    let tools = pool.tools(&target).await.expect("tools");
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["add", "fail"]);
    let sums = (1..=3).map(|n| pool.call(&target, "add", arguments(&json!({"a": n, "b": 1})), LIMIT));
    let sums = futures::future::join_all(sums).await;
    let sums: Vec<_> = sums.into_iter().map(|sum| sum.expect("a sum").value()["sum"].clone()).collect();
    assert_eq!(sums, [json!(2.0), json!(3.0), json!(4.0)]);
    let failed = pool.call(&target, "fail", arguments(&json!({})), LIMIT).await.expect("an answer");
    assert_eq!((failed.is_error, failed.text().as_str()), (true, "it failed"));
    let unknown = pool.call(&target, "nope", arguments(&json!({})), LIMIT).await.expect_err("refused");
    assert_eq!(unknown.kind, McpErrorKind::Refused);
    assert_eq!((server.count("initialize"), pool.open()), (1, 1));
    pool.close_idle().await;
    server.hears("DELETE", 1).await;
    assert_eq!(pool.open(), 0);
    assert!(server.inner().sessions.is_empty());
}

#[tokio::test]
async fn a_lost_session_is_opened_again() {
    let server = Server::start().await;
    let (pool, target) = (pool(), target(&ServerSpec::http(&server.url), None));
    pool.tools(&target).await.expect("tools");
    server.inner().sessions.clear();
    let sum = pool.call(&target, "add", arguments(&json!({"a": 1, "b": 1})), LIMIT).await.expect("a sum");
    assert_eq!((sum.value()["sum"].clone(), server.count("initialize")), (json!(2.0), 2));
}

#[tokio::test]
async fn servers_that_misbehave_are_cut_off_with_a_reason() {
    let server = Server::start().await;
    let (pool, target) = (pool(), target(&ServerSpec::http(&server.url), None));
    pool.tools(&target).await.expect("tools");
    let call = async |mood| {
        server.mood(mood);
        let limit = if mood == Mood::Hangs { Duration::from_secs(1) } else { LIMIT };
        let failed = pool.call(&target, "add", arguments(&json!({})), limit).await.expect_err("a failure");
        server.mood(Mood::Kind);
        failed
    };
    let late = call(Mood::Hangs).await;
    assert_eq!(
        (late.kind, late.text.as_str()),
        (McpErrorKind::Timeout, "the MCP server strict did not answer the call of add within 1 s")
    );
    // The server hears that nobody waits any more.
    server.hears("notifications/cancelled", 1).await;
    for mood in [Mood::Floods, Mood::Dies] {
        let failed = call(mood).await;
        assert!(failed.kind.is_down(), "{mood:?}: {failed:?}");
    }
    let sum = pool.call(&target, "add", arguments(&json!({"a": 1})), LIMIT).await.expect("it goes on");
    assert_eq!(sum.value()["sum"], 1.0);
}

#[tokio::test]
async fn redirects_to_other_hosts_and_refused_credentials_are_told() {
    let server = Server::start().await;
    for (mood, kind, word) in [
        (Mood::Redirects, McpErrorKind::Unreachable, "redirects to 192.0.2.1"),
        (Mood::Forbids, McpErrorKind::Unauthorized, "refuses the credential"),
        (Mood::Crowds, McpErrorKind::Protocol, "more than 256 tools"),
    ] {
        server.mood(mood);
        let target = target(&ServerSpec::http(&server.url), None);
        let error = pool().tools(&target).await.expect_err("refused");
        assert_eq!(error.kind, kind, "{mood:?}: {error}");
        assert!(error.text.contains(word), "{mood:?}: {error}");
    }
}

#[tokio::test]
async fn a_probe_is_a_handshake_and_a_goodbye() {
    let server = Server::start().await;
    let (pool, target) = (pool(), target(&ServerSpec::http(&server.url), None));
    pool.probe(&target).await.expect("it answers");
    server.hears("DELETE", 1).await;
    assert_eq!((server.count("initialize"), server.count("tools/list"), pool.open()), (1, 0, 0));
    let nobody = crate::support::target(&ServerSpec::http("http://127.0.0.1:9/mcp"), None);
    assert_eq!(pool.probe(&nobody).await.expect_err("nobody").kind, McpErrorKind::Unreachable);
}

#[tokio::test]
async fn a_failed_server_is_not_asked_again_at_once() {
    let (pool, target) = (pool(), target(&ServerSpec::http("http://127.0.0.1:9/mcp"), None));
    assert!(pool.tools(&target).await.is_err());
    let again = pool.tools(&target).await.expect_err("too early");
    assert!(again.text.contains("strict is tried again in"), "{again}");
}

#[tokio::test]
async fn callers_never_see_each_others_credentials() {
    let server = Server::start().await;
    let spec = ServerSpec { forward_inbound_auth: true, ..ServerSpec::http(&server.url) };
    let pool = pool();
    let one = target(&spec, Some("Bearer canary-1"));
    let two = target(&spec, Some("Bearer canary-2"));
    let call = |target| pool.call(target, "add", arguments(&json!({"a": 1})), LIMIT);
    let (first, second) = tokio::join!(call(&one), call(&two));
    assert!(first.is_ok() && second.is_ok());
    // Each has a session of its own, and none is in the pool.
    assert_eq!((server.count("initialize"), pool.open()), (2, 0));
    let seen: Vec<String> = server.inner().authorizations.iter().cloned().collect();
    assert_eq!(seen, ["Bearer canary-1", "Bearer canary-2"]);
    drop((one, two));
    server.hears("DELETE", 2).await;
}

#[tokio::test]
async fn servers_without_the_mark_get_only_their_own_headers() {
    let server = Server::start().await;
    let mut own = ServerSpec { forward_inbound_auth: true, ..ServerSpec::http(&server.url) };
    own.headers.insert("Authorization".to_owned(), "Bearer {{KEY}}".to_owned());
    let pool = pool();
    for spec in [ServerSpec::http(&server.url), own] {
        pool.tools(&target(&spec, Some("Bearer canary"))).await.expect("tools");
    }
    assert_eq!(server.inner().authorizations.iter().collect::<Vec<_>>(), ["Bearer own"]);
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time() {
    let server = Server::start().await;
    let spec = ServerSpec { idle_timeout_seconds: 1, ..ServerSpec::http(&server.url) };
    let (pool, target) = (pool(), target(&spec, None));
    pool.tools(&target).await.expect("tools");
    tokio::time::timeout(Duration::from_secs(10), server.hears("DELETE", 1)).await.expect("it is closed");
}

#[tokio::test]
async fn tools_are_listed_again_after_the_server_announced_a_change() {
    let server = Server::start().await;
    server.mood(Mood::Streams);
    let (pool, target) = (pool(), target(&ServerSpec::http(&server.url), None));
    let accepted = pool.tools(&target).await.expect("tools");
    let spec = ServerSpec { pinned: true, pins: atlas_mcp_spec::Pins::of(accepted.iter()), ..target.spec().clone() };
    server.hears("GET", 1).await;
    server.inner().description = "Sends mail.".to_owned();
    assert_eq!(pool.tools(&target).await.expect("tools"), accepted);
    server.announce();
    let renewed = async {
        loop {
            let tools = pool.tools(&target).await.expect("tools");
            if tools != accepted {
                return tools;
            }
            tokio::task::yield_now().await;
        }
    };
    let renewed = tokio::time::timeout(Duration::from_secs(10), renewed).await.expect("they are read again");
    assert_eq!((renewed[0].description.as_str(), server.count("tools/list")), ("Sends mail.", 2));
    // A pinned server's tool is held back from then on.
    let (admitted, held) = spec.admit(renewed.tools.clone());
    assert_eq!((admitted[0].name.as_str(), held[0].0.name.as_str(), held[0].1), ("fail", "add", Verdict::Changed));
}
