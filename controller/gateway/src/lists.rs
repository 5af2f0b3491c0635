//! Tells clients of `/mcp` that its tools have changed: a pin, or the version of a pinned agent. Versions of the protocol with sessions get a
//! notification on the stream of the session, the later ones on the streams that they open for it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use atlas_env::{Env, Task};
use atlas_service::{Caller, Error, PinChanges, Service};
use rmcp::model::Tool;
use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::sync::{Semaphore, watch};

use crate::context::caller;
use crate::pins;
use crate::sessions::Sessions;
use crate::view::error_text;

/// Changes within this time are told once: a deployment publishes many agents.
const GATHER: Duration = Duration::from_millis(200);
/// How long one session may take for a notification. A slow one must not keep others waiting.
const NOTIFY_MAX: Duration = Duration::from_secs(1);

/// Who has read the list of tools.
pub(crate) struct Lists {
    service: Service,
    env: Env,
    sessions: Arc<Sessions>,
    /// By the ids of sessions.
    watching: Mutex<BTreeMap<Box<str>, Watching>>,
    /// Counts changes.
    changes: watch::Sender<u64>,
    /// Streams that later versions may open.
    streams: Semaphore,
    task: Mutex<Option<Task<()>>>,
}

/// A session that has read the list.
struct Watching {
    caller: Caller,
    /// The list that the client has read.
    read: u64,
    /// The list that the client knows, or that it was told of.
    known: u64,
}

impl Lists {
    /// Nobody has read the list yet. At most `streams_max` clients without sessions wait for changes.
    pub(crate) fn new(service: Service, sessions: Arc<Sessions>, env: Env, streams_max: usize) -> Arc<Self> {
        let (changes, _) = watch::channel(0);
        let streams = Semaphore::new(streams_max.min(Semaphore::MAX_PERMITS));
        Arc::new(Self { service, env, sessions, watching: Mutex::default(), changes, streams, task: Mutex::default() })
    }

    fn watching(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Watching>> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which tools a session has seen besides those of the platform. Changes are followed before these are read.
    pub(crate) fn seen(&self, session: &str, peer: &Peer<RoleServer>, caller: &Caller, pinned: &[Tool]) {
        let known = digest(pinned);
        let mut watching = self.watching();
        // Now and then, so that sessions that have ended do not add up.
        if watching.len().is_power_of_two() {
            watching.retain(|session, _| self.sessions.is_open(session));
        }
        watching.insert(session.into(), Watching { caller: caller.clone(), read: known, known });
        self.sessions.set_peer(session, peer);
    }

    /// Notes that a session rests no more, and tells it of a list that it has not read. Whether it heard before of that list is not known:
    /// what a client did not fetch is lost when its session rests.
    pub(crate) fn back(&self, session: &str, peer: &Peer<RoleServer>) {
        let all = self.watching();
        let Some(watching) = all.get(session) else { return };
        self.sessions.set_peer(session, peer);
        if watching.known != watching.read {
            self.env.spawn("mcp-list-missed", notify(peer.clone()));
        }
    }

    /// Serves a stream on which a client waits for changes, until the client ends it.
    pub(crate) async fn listen(self: &Arc<Self>, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let place = self.streams.try_acquire();
        let _place = place.map_err(|_| ErrorData::internal_error("too many clients wait for changes", None))?;
        self.begin();
        let caller = caller(context.request_context())?;
        let internal = |error: Error| ErrorData::internal_error(error_text(&error), None);
        let mut changes = self.changes.subscribe();
        let mut known = self.digest(&caller).await.map_err(internal)?;
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
            }
            let Ok(now) = self.digest(&caller).await else { continue };
            if std::mem::replace(&mut known, now) != now && context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }

    async fn digest(&self, caller: &Caller) -> Result<u64, Error> {
        Ok(digest(&pins::tools(&self.service, caller).await?))
    }

    /// Follows the changes of pins, once somebody wants to know of them.
    pub(crate) fn begin(self: &Arc<Self>) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.is_none() {
            let (lists, changes) = (Arc::downgrade(self), self.service.pin_changes());
            *task = Some(self.env.spawn("mcp-lists", follow(lists, changes)));
        }
    }

    /// Tells the sessions whose list is another one now.
    async fn tell(&self) {
        self.changes.send_modify(|changes| *changes += 1);
        let mut namespaces: BTreeMap<String, Caller> = BTreeMap::new();
        for watching in self.watching().values() {
            namespaces.entry(watching.caller.namespace.to_string()).or_insert_with(|| watching.caller.clone());
        }
        let mut now = BTreeMap::new();
        for (namespace, caller) in namespaces {
            // Without a list, the next change tells.
            if let Ok(digest) = self.digest(&caller).await {
                now.insert(namespace, digest);
            }
        }
        let mut told = Vec::new();
        self.watching().retain(|session, watching| {
            if let Some(now) = now.get(watching.caller.namespace.as_str()).filter(|now| **now != watching.known) {
                watching.known = *now;
                told.extend(self.sessions.peer(session));
            }
            self.sessions.is_open(session)
        });
        futures::future::join_all(told.into_iter().map(notify)).await;
    }
}

async fn notify(peer: Peer<RoleServer>) {
    // A session that cannot be told has ended, or reads nothing: it lists the tools again when it needs them.
    let _ = tokio::time::timeout(NOTIFY_MAX, peer.notify_tool_list_changed()).await;
}

async fn follow(lists: Weak<Lists>, mut changes: PinChanges) {
    while changes.next().await {
        let Some(lists) = lists.upgrade() else { return };
        lists.env.clock.sleep(GATHER).await;
        lists.tell().await;
    }
}

fn digest(pinned: &[Tool]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for tool in pinned {
        serde_json::to_string(tool).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}
