//! The open sessions of one kind of server. Those used last are live: `rmcp` has a service with channels for each, which takes 85 KiB. The
//! others rest: only what the client said when it opened the session is kept, and its next request brings the session back.
//!
//! A session rests only while nothing of it is open: no call, no stream of notifications, and no stream that its client may resume.

mod manager;
#[cfg(test)]
mod tests;
mod used;

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use rmcp::RoleServer;
use rmcp::service::Peer;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _, SessionState};
use tokio::sync::Notify;

pub(crate) use self::used::InUse;

/// Live sessions of which nothing is open.
const QUIET_MAX: usize = 256;

/// All sessions.
pub(crate) struct Sessions {
    live: LocalSessionManager,
    known: Mutex<Known>,
    /// Notified when a session that is waited for rests or is back.
    changed: Notify,
    quiet_max: usize,
    idle: Duration,
    pub(crate) env: Env,
}

#[derive(Default)]
struct Known {
    all: HashMap<SessionId, Session>,
    /// Live sessions of which nothing is open, in the order in which they became so.
    quiet: BTreeMap<u64, SessionId>,
    turn: u64,
}

struct Session {
    /// What its client said when it opened the session; none before it is open.
    said: Option<SessionState>,
    stage: Stage,
    /// How often it came back.
    wakings: u32,
    /// The requests that are being answered.
    open: usize,
    /// Whether a client lost the answer to a request. It may resume the stream, so the session stays live.
    lost: bool,
    /// The place among the quiet sessions.
    turn: Option<u64>,
    /// The time of the latest request, since the machine's start.
    used: Duration,
    /// The client of a live session, if it wants to hear of changes.
    peer: Option<Peer<RoleServer>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Live,
    /// It is being put to rest: its service ends.
    Parting,
    Resting,
    /// A request brings it back. Others wait, because `rmcp` takes them as soon as the service has `begun`, and not when it is ready.
    Waking {
        begun: bool,
    },
}

impl Known {
    fn add(&mut self, id: &SessionId, used: Duration) {
        let session =
            Session { said: None, stage: Stage::Live, wakings: 0, open: 0, lost: false, turn: None, used, peer: None };
        self.all.insert(id.clone(), session);
    }

    fn remove(&mut self, id: &str) {
        if let Some(turn) = self.all.remove(id).and_then(|session| session.turn) {
            self.quiet.remove(&turn);
        }
    }
}

impl Sessions {
    /// No session is open yet.
    pub(crate) fn new(idle: Duration, env: Env) -> Arc<Self> {
        Self::with_quiet(QUIET_MAX, idle, env)
    }

    fn with_quiet(quiet_max: usize, idle: Duration, env: Env) -> Arc<Self> {
        let mut live = LocalSessionManager::default();
        live.session_config.keep_alive = Some(idle);
        Arc::new(Self { live, known: Mutex::default(), changed: Notify::new(), quiet_max, idle, env })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self, session: &Session) -> bool {
        // Live sessions end by themselves.
        session.stage == Stage::Resting && self.env.clock.monotonic().saturating_sub(session.used) > self.idle
    }

    /// Notes a session that is being opened.
    fn opened(&self, id: &SessionId) {
        let mut known = self.known();
        // Now and then, so that sessions that ended while they rested do not add up.
        if known.all.len().is_power_of_two() {
            known.all.retain(|_, session| !self.is_over(session));
        }
        known.add(id, self.env.clock.monotonic());
    }

    /// Whether there are as many sessions.
    pub(crate) fn is_full(&self, max: usize) -> bool {
        let mut known = self.known();
        if known.all.len() >= max {
            known.all.retain(|_, session| !self.is_over(session));
        }
        known.all.len() >= max
    }

    /// Whether a session is open, live or not.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.known().all.get(id).is_some_and(|session| !self.is_over(session))
    }

    /// Keeps the client of a session, to tell it of changes.
    pub(crate) fn set_peer(&self, id: &str, peer: &Peer<RoleServer>) {
        let has_service = |session: &&mut Session| matches!(session.stage, Stage::Live | Stage::Waking { .. });
        if let Some(session) = self.known().all.get_mut(id).filter(has_service) {
            session.peer = Some(peer.clone());
        }
    }

    /// The client of a session; none if it rests.
    pub(crate) fn peer(&self, id: &str) -> Option<Peer<RoleServer>> {
        self.known().all.get(id)?.peer.clone()
    }

    /// Notes a request in a session, which then stays live until the result is dropped. None for a session that is not open. Waits while
    /// the session is being put to rest, or brought back.
    pub(crate) async fn used(self: &Arc<Self>, id: &str) -> Option<InUse> {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(used) = self.try_used(id) {
                return used;
            }
            changed.await;
        }
    }

    /// None while the session has to be waited for.
    fn try_used(self: &Arc<Self>, id: &str) -> Option<Option<InUse>> {
        let mut known = self.known();
        if known.all.get(id).is_some_and(|session| self.is_over(session)) {
            known.remove(id);
        }
        let Known { all, quiet, .. } = &mut *known;
        let Some(session) = all.get_mut(id) else { return Some(None) };
        let rested = match session.stage {
            Stage::Live => false,
            Stage::Resting => true,
            Stage::Parting | Stage::Waking { .. } => return None,
        };
        if rested {
            session.stage = Stage::Waking { begun: false };
        }
        session.open += 1;
        if let Some(turn) = session.turn.take() {
            quiet.remove(&turn);
        }
        Some(Some(InUse::new(self, id, rested)))
    }

    /// Notes that the request that brings a session back is answered, or was given up before (not `ready`).
    fn woke(self: &Arc<Self>, id: &str, ready: bool) {
        let mut known = self.known();
        if let Some(session) = known.all.get_mut(id)
            && let Stage::Waking { begun } = session.stage
        {
            session.stage = match (begun, ready) {
                (false, _) => Stage::Resting,
                (true, true) => Stage::Live,
                // Nobody opens this service any more.
                (true, false) => Stage::Parting,
            };
            if session.stage == Stage::Parting {
                self.part(id.into());
            }
        }
        drop(known);
        self.changed.notify_waiters();
    }

    /// Whether a request is to bring a session back, and nothing has begun.
    fn is_to_wake(&self, id: &str) -> bool {
        self.known().all.get(id).is_some_and(|session| session.stage == Stage::Waking { begun: false })
    }

    /// Ends the service of a session.
    fn part(self: &Arc<Self>, id: SessionId) {
        let sessions = Arc::clone(self);
        self.env.spawn("mcp-rest", async move {
            // If it had ended before, this is what was wanted.
            let _ = sessions.live.close_session(&id).await;
        });
    }

    fn left(&self, id: &str, whole: bool) {
        let mut known = self.known();
        let Known { all, quiet, turn } = &mut *known;
        let Some(session) = all.get_mut(id) else { return };
        session.open -= 1;
        session.lost |= !whole;
        session.used = self.env.clock.monotonic();
        if session.open == 0 && !session.lost && session.said.is_some() && session.stage == Stage::Live {
            *turn += 1;
            session.turn = Some(*turn);
            quiet.insert(*turn, id.into());
        }
    }

    /// Puts those to rest that have been quiet for longest, if too many are live.
    pub(crate) fn rest(self: &Arc<Self>) {
        loop {
            let mut known = self.known();
            if known.quiet.len() <= self.quiet_max {
                return;
            }
            let Some((_, id)) = known.quiet.pop_first() else { return };
            if let Some(session) = known.all.get_mut(&id) {
                (session.stage, session.turn, session.peer) = (Stage::Parting, None, None);
            }
            self.part(id);
        }
    }
}
