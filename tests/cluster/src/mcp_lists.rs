//! Clients of `/mcp` hear that its tools have changed.

use std::time::Duration;

use serde_json::json;

use crate::api::Api;
use crate::mcp::{Wire, register_echo};
use crate::pair::Controller;

const CHANGED: &str = "notifications/tools/list_changed";

/// More sessions than the gateway keeps live.
const MANY: usize = 300;

/// Reads a stream until it says this.
async fn hears(stream: &mut reqwest::Response, what: &str) {
    let heard = async {
        let mut text = String::new();
        while !text.contains(what) {
            let piece = stream.chunk().await.expect("a stream").unwrap_or_else(|| panic!("it ended after {text:?}"));
            text.push_str(&String::from_utf8_lossy(&piece));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), heard).await.unwrap_or_else(|_| panic!("nobody said {what}"));
}

#[tokio::test]
async fn pins_are_told_to_those_who_have_read_the_list() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let wire = Wire::new(&controller);
    register_echo(&Api::new(&controller.http.to_string())).await;
    let session = wire.open().await;
    let before = wire.ask(&session, "tools/list", json!({})).await;
    // A client that never reads its stream keeps nobody waiting.
    let lazy = wire.open().await;
    wire.ask(&lazy, "tools/list", json!({})).await;
    let _unread = wire.stream(&lazy).await;
    let (mut stream, mut listening) = (wire.stream(&session).await, wire.listen().await);
    hears(&mut listening, "notifications/subscriptions/acknowledged").await;

    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = format!("http://{}/api/objects/pin/exec-echo", controller.http);
    for pinned in [true, false, true] {
        let changed = match pinned {
            true => http.put(&url).body(r#"{"spec": {"version": "^1.0.0"}}"#).send().await,
            false => http.delete(&url).send().await,
        };
        assert!(changed.expect("an answer").status().is_success());
        hears(&mut stream, CHANGED).await;
        hears(&mut listening, CHANGED).await;
    }
    let after = wire.ask(&session, "tools/list", json!({})).await;
    let count = |list: &serde_json::Value| list["result"]["tools"].as_array().map_or(0, Vec::len);
    assert_eq!(count(&after), count(&before) + 1, "{after}");
}

/// A session has read the list, nothing of it is open, and the list changes while it rests or `before`. Another session hears when it is told.
async fn misses_a_change(before: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let wire = Wire::new(&controller);
    register_echo(&Api::new(&controller.http.to_string())).await;
    let (session, other) = (wire.open().await, wire.open().await);
    let listed = wire.ask(&session, "tools/list", json!({})).await;
    wire.ask(&other, "tools/list", json!({})).await;
    let mut stream = wire.stream(&other).await;
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let url = format!("http://{}/api/objects/pin/exec-echo", controller.http);
    for pins in [before, !before] {
        if pins {
            let pinned = http.put(&url).body(r#"{"spec": {"version": "^1.0.0"}}"#).send().await.expect("an answer");
            assert!(pinned.status().is_success());
            hears(&mut stream, CHANGED).await;
            continue;
        }
        for _ in 0..MANY {
            wire.open().await;
        }
    }
    if before {
        // The session comes back before the client resumes its stream.
        wire.ask(&session, "ping", json!({})).await;
    }
    // A client that was told of other changes resumes its stream.
    hears(&mut wire.resumed(&session, "3").await, CHANGED).await;
    let after = wire.ask(&session, "tools/list", json!({})).await;
    let count = |list: &serde_json::Value| list["result"]["tools"].as_array().map_or(0, Vec::len);
    assert_eq!(count(&after), count(&listed) + 1, "{after}");
}

#[tokio::test]
async fn a_session_that_rested_hears_what_it_missed() {
    misses_a_change(false).await;
}

#[tokio::test]
async fn a_session_that_rested_hears_what_it_had_not_fetched() {
    misses_a_change(true).await;
}
