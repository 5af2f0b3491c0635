//! The sessions: ids that end when they are idle. Those of the older transport have a stream of messages.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::owners::Owner;

/// Messages that may wait to be read by a client of the older transport.
const MESSAGES_MAX: usize = 64;

/// All sessions.
pub(super) struct Sessions {
    max: usize,
    idle: Duration,
    env: Env,
    open: Mutex<HashMap<String, Session>>,
}

struct Session {
    /// Who opened it, and may use it.
    owner: Owner,
    /// The time of the latest request, since the machine's start.
    used: Duration,
    /// Where answers go in the older transport.
    stream: Option<mpsc::Sender<Value>>,
}

/// What a request with the id of a session may do.
pub(super) enum Found {
    /// The session is unknown, has ended, or is that of somebody else.
    Unknown,
    Known(Option<mpsc::Sender<Value>>),
}

impl Sessions {
    pub(super) fn new(max: usize, idle: Duration, env: Env) -> Self {
        Self { max, idle, env, open: Mutex::default() }
    }

    /// Opens a session and returns its id; none if there are too many.
    pub(super) fn open(&self, owner: Owner) -> Option<String> {
        self.add(owner, None)
    }

    /// Opens a session of the older transport, with the messages for its client.
    pub(super) fn open_stream(&self, owner: Owner) -> Option<(String, mpsc::Receiver<Value>)> {
        let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
        Some((self.add(owner, Some(sender))?, receiver))
    }

    fn add(&self, owner: Owner, stream: Option<mpsc::Sender<Value>>) -> Option<String> {
        let now = self.env.clock.monotonic();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, session| match &session.stream {
            Some(stream) => !stream.is_closed(),
            None => now.saturating_sub(session.used) <= self.idle,
        });
        if open.len() >= self.max {
            return None;
        }
        let id = format!("{:032x}", self.env.entropy.u128());
        open.insert(id.clone(), Session { owner, used: now, stream });
        Some(id)
    }

    /// Looks a session up for a request of its owner, which keeps it open.
    pub(super) fn find(&self, id: &str, owner: &Owner) -> Found {
        let now = self.env.clock.monotonic();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(id).filter(|session| session.owner == *owner) {
            Some(session) if session.stream.is_some() || now.saturating_sub(session.used) <= self.idle => {
                session.used = now;
                Found::Known(session.stream.clone())
            }
            _ => Found::Unknown,
        }
    }

    pub(super) fn end(&self, id: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

#[cfg(test)]
mod tests {
    use atlas_service::Caller;
    use atlas_types::Door;

    use super::*;

    #[test]
    fn sessions_are_bounded_and_end_when_idle() {
        let sessions = Sessions::new(1, Duration::from_secs(60), Env::system());
        let caller = Caller::anonymous(Door::Mcp);
        let own = || Owner::new(&caller, None);
        let foreign = Owner::new(&caller.clone().in_namespace("elsewhere").expect("a namespace"), None);
        let id = sessions.open(own()).expect("a session");
        assert_eq!(id.len(), 32);
        assert!(sessions.open(own()).is_none(), "one at a time");
        assert!(matches!(sessions.find(&id, &own()), Found::Known(None)));
        assert!(matches!(sessions.find(&id, &foreign), Found::Unknown));
        sessions.end(&id);
        assert!(matches!(sessions.find(&id, &own()), Found::Unknown));
        let (_, messages) = sessions.open_stream(own()).expect("a stream");
        drop(messages);
        assert!(sessions.open(own()).is_some(), "a stream ends with its connection");
    }
}
