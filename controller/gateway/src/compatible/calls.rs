//! The calls that are being answered, so that their clients can cancel them (`notifications/cancelled`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use atlas_service::Unwanted;
use serde_json::Value;
use tokio::sync::watch;

type Key = (String, String);

/// The calls of all sessions.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<HashMap<Key, watch::Sender<bool>>>>);

/// A call that is being answered, until it is dropped.
pub(super) struct Running {
    calls: Calls,
    key: Key,
    sender: watch::Sender<bool>,
}

impl Calls {
    /// Notes that a request of a session is being answered.
    pub(super) fn begin(&self, session: &str, request: &Value) -> Running {
        let (key, sender) = (key(session, request), watch::channel(false).0);
        self.with(|calls| calls.insert(key.clone(), sender.clone()));
        Running { calls: self.clone(), key, sender }
    }

    /// The client of a session does not want the answer to a request any more. What is not known has its answer.
    pub(super) fn cancel(&self, session: &str, request: &Value) {
        if let Some(sender) = self.with(|calls| calls.remove(&key(session, request))) {
            sender.send_replace(true);
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashMap<Key, watch::Sender<bool>>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Running {
    /// When the client cancels it.
    pub(super) fn unwanted(&self) -> Unwanted {
        Unwanted::new(self.sender.subscribe())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.calls.with(|calls| {
            // A client that gives an id twice has replaced it.
            if calls.get(&self.key).is_some_and(|sender| sender.same_channel(&self.sender)) {
                calls.remove(&self.key);
            }
        });
    }
}

/// Ids of requests are texts or numbers: `1` is not `"1"`.
fn key(session: &str, request: &Value) -> Key {
    (session.to_owned(), request.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_cancelled_by_its_session_and_id() {
        let calls = Calls::default();
        let running = calls.begin("s", &json!(1));
        for (session, request) in [("t", json!(1)), ("s", json!("1")), ("s", json!(2))] {
            calls.cancel(session, &request);
            assert!(!*running.sender.borrow(), "{session} {request}");
        }
        calls.cancel("s", &json!(1));
        assert!(*running.sender.borrow());
        let (first, second) = (calls.begin("s", &json!(3)), calls.begin("s", &json!(3)));
        drop(first);
        calls.cancel("s", &json!(3));
        assert!(*second.sender.borrow(), "the later call of an id is the one that is cancelled");
        drop((running, second));
        assert_eq!(calls.with(|calls| calls.len()), 0);
    }
}
