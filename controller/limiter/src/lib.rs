//! Limits of models for the whole cluster: which try of a call may begin, and when.
//!
//! The leader keeps one [`Limiter`] in memory. Workers ask before each try of a model with limits, and say when it has ended. Every worker
//! knows what its own tries use and announces it on each session, so a new leader learns all of it. Until it has heard every node that could have tries under
//! way, or such a node is lost, it grants nothing.
//!
//! Times are those of a monotonic clock.

mod book;
#[cfg(test)]
mod tests;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atlas_types::{JobId, Namespace, NodeEpoch, NodeId};

use book::Book;
pub use book::{Limits, Wait, WaitReason};

/// How long a try counts after it began: a minute, and up to one second more, because times are rounded down to seconds.
pub const COUNTED: Duration = Duration::from_secs(61);

/// A model of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelKey {
    pub namespace: Namespace,
    /// The name of its object.
    pub model: String,
}

/// One stream of a node's worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session {
    pub node: NodeId,
    pub epoch: NodeEpoch,
    /// Tells the streams of a node apart.
    pub stream: u64,
}

impl Session {
    fn holder(&self) -> Holder {
        (self.node.clone(), self.epoch)
    }
}

/// A process of a worker, whose tries have numbers of their own.
type Holder = (NodeId, NodeEpoch);

/// A try that asks whether it may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Its number at its worker.
    pub number: u64,
    pub job: JobId,
    pub model: ModelKey,
    /// The most tokens that it may use.
    pub tokens: u64,
}

/// A try under way, as its worker announces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub ask: Ask,
    /// How long ago it began.
    pub age: Duration,
}

/// Tries that ended, as their worker announces them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    pub model: ModelKey,
    /// How long ago they began, at least.
    pub age: Duration,
    pub requests: u32,
    pub tokens: u64,
}

/// A try that may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub session: Session,
    pub number: u64,
}

/// The tries of all workers.
#[derive(Debug, Default)]
pub struct Limiter {
    books: BTreeMap<ModelKey, Book>,
    /// The model of each try that waits or is under way, by its number. No map in it is empty.
    tries: BTreeMap<Holder, BTreeMap<u64, ModelKey>>,
    /// The stream of each connected node.
    streams: BTreeMap<NodeId, Stream>,
    knowledge: Knowledge,
    /// When this leader began.
    began: Duration,
}

#[derive(Debug)]
struct Stream {
    session: Session,
    announced: bool,
}

/// What a leader knows of the tries that began under the leader before it.
#[derive(Debug, Default)]
enum Knowledge {
    /// Nobody has asked yet.
    #[default]
    Unasked,
    /// These nodes have not announced theirs yet. `blind` if one was lost before it did.
    Partial { silent: BTreeSet<Holder>, blind: bool },
    /// Everything, except what began before the time, if that is still in the window.
    Whole { blind: bool },
}

impl Limiter {
    /// Begins anew, as a leader that knows nothing.
    pub fn restart(&mut self, now: Duration) {
        *self = Self { began: now, ..Self::default() };
    }

    /// A node has a new stream. Until its worker announces its tries on it, nothing is granted on it. One that `announces` nothing asks for nothing.
    pub fn connected(&mut self, session: Session, announces: bool) {
        self.forget_waiting(&session.node);
        // The process before this one has ended, or was lost.
        for book in self.books.values_mut() {
            book.free(|holder| holder.0 == session.node && holder.1 != session.epoch);
        }
        self.tries.retain(|(node, epoch), _| *node != session.node || *epoch == session.epoch);
        self.streams.insert(session.node.clone(), Stream { session, announced: !announces });
    }

    /// A stream has ended. Nothing begins on it any more. What is under way goes on.
    pub fn left(&mut self, session: &Session) {
        if self.streams.get(&session.node).is_some_and(|stream| stream.session == *session) {
            self.forget_waiting(&session.node);
        }
    }

    /// A worker says what its tries use.
    pub fn announce(&mut self, session: &Session, held: Vec<Held>, past: Vec<Past>, now: Duration) {
        let Some(stream) = self.streams.get_mut(&session.node).filter(|stream| stream.session == *session) else {
            return;
        };
        stream.announced = true;
        let holder = session.holder();
        for book in self.books.values_mut() {
            book.forget(&holder);
        }
        self.tries.remove(&holder);
        for Held { ask, age } in held {
            self.tries.entry(holder.clone()).or_default().insert(ask.number, ask.model.clone());
            let at = now.saturating_sub(age);
            self.books.entry(ask.model.clone()).or_default().hold(holder.clone(), &ask, at);
        }
        for Past { model, age, requests, tokens } in past {
            let at = now.saturating_sub(age);
            self.books.entry(model).or_default().count(&holder, at, (requests, tokens));
        }
    }

    /// A try asks whether it may begin. The same try may ask again.
    pub fn ask(&mut self, session: &Session, ask: Ask) {
        let is_open =
            self.streams.get(&session.node).is_some_and(|stream| stream.announced && stream.session == *session);
        if !is_open {
            return;
        }
        if let Entry::Vacant(vacant) = self.tries.entry(session.holder()).or_default().entry(ask.number) {
            vacant.insert(ask.model.clone());
            self.books.entry(ask.model.clone()).or_default().wait(session.clone(), ask);
        }
    }

    /// How many tries of a worker wait or are under way.
    pub fn tries(&self, session: &Session) -> usize {
        self.tries.get(&session.holder()).map_or(0, BTreeMap::len)
    }

    /// A try has ended, with the tokens that it used; none if it did not begin.
    pub fn done(&mut self, session: &Session, number: u64, tokens: Option<u64>) {
        let holder = session.holder();
        if self.streams.get(&session.node).is_none_or(|stream| stream.session != *session) {
            return;
        }
        let Some(model) = take(&mut self.tries, &holder, number) else { return };
        if let Some(book) = self.books.get_mut(&model) {
            book.done(&holder, number, tokens);
        }
    }

    /// A node was lost in an epoch: its tries have ended. What they used still counts. Of a later epoch nothing changes.
    pub fn lost(&mut self, node: &NodeId, epoch: NodeEpoch) {
        if self.streams.get(node).is_some_and(|stream| stream.session.epoch <= epoch) {
            self.streams.remove(node);
            self.forget_waiting(node);
        }
        for book in self.books.values_mut() {
            book.free(|holder| holder.0 == *node && holder.1 <= epoch);
        }
        self.tries.retain(|(of, at), _| of != node || *at > epoch);
    }

    /// Whether the tries of all nodes are known.
    pub fn is_informed(&self) -> bool {
        matches!(self.knowledge, Knowledge::Whole { .. })
    }

    /// Looks which of the nodes that have a session by the replicated state have announced their tries.
    pub fn look(&mut self, ready: &BTreeSet<(NodeId, NodeEpoch)>) {
        let announced = |holder: &Holder| {
            let stream = self.streams.get(&holder.0);
            stream.is_some_and(|stream| stream.announced && stream.session.epoch == holder.1)
        };
        let (mut silent, mut blind) = match std::mem::take(&mut self.knowledge) {
            Knowledge::Unasked => (ready.clone(), false),
            Knowledge::Partial { silent, blind } => (silent, blind),
            whole @ Knowledge::Whole { .. } => {
                self.knowledge = whole;
                return;
            }
        };
        silent.retain(|holder| !announced(holder));
        let before = silent.len();
        silent.retain(|holder| ready.contains(holder));
        blind |= silent.len() < before;
        self.knowledge =
            if silent.is_empty() { Knowledge::Whole { blind } } else { Knowledge::Partial { silent, blind } };
    }

    /// Grants what the limits allow, and says when to look again if nothing happens before.
    ///
    /// `room` takes the place of a grant on a stream. While it has none, its tries are passed over.
    pub fn grants(
        &mut self,
        now: Duration,
        limits: &dyn Fn(&ModelKey) -> Option<Limits>,
        room: &mut dyn FnMut(&Session) -> bool,
    ) -> (Vec<Grant>, Option<Duration>) {
        let (mut granted, mut next) = (Vec::new(), None::<Duration>);
        let unknown = self.unknown(now);
        for (key, book) in &mut self.books {
            book.prune(now);
            if !book.has_waiting() {
                continue;
            }
            let until = book.grant(now, limits(key).as_ref(), unknown, room, &mut granted);
            next = next.into_iter().chain(until).min();
        }
        self.books.retain(|_, book| !book.is_empty());
        (granted, next)
    }

    /// Which limit a try of a job waits for.
    pub fn wait_of(
        &self,
        job: JobId,
        now: Duration,
        limits: &dyn Fn(&ModelKey) -> Option<Limits>,
    ) -> Option<(ModelKey, Wait)> {
        let unknown = self.unknown(now);
        self.books.iter().filter(|(_, book)| book.waits(job)).find_map(|(key, book)| {
            let limits = limits(key)?;
            Some((key.clone(), book.wait_of(job, now, &limits, unknown)?))
        })
    }

    /// Whether anything waits, is under way or counts.
    pub fn is_empty(&self) -> bool {
        self.books.is_empty() && self.tries.is_empty()
    }

    fn unknown(&self, now: Duration) -> Option<Unknown> {
        match self.knowledge {
            Knowledge::Unasked | Knowledge::Partial { .. } => Some(Unknown::Nodes),
            Knowledge::Whole { blind } => {
                let until = self.began.saturating_add(COUNTED);
                (blind && now < until).then_some(Unknown::Past { until })
            }
        }
    }

    fn forget_waiting(&mut self, node: &NodeId) {
        for book in self.books.values_mut() {
            for (session, ask) in book.forget_waiting(node) {
                take(&mut self.tries, &session.holder(), ask.number);
            }
        }
    }
}

/// Removes a try, and returns its model.
fn take(tries: &mut BTreeMap<Holder, BTreeMap<u64, ModelKey>>, holder: &Holder, number: u64) -> Option<ModelKey> {
    let of = tries.get_mut(holder)?;
    let model = of.remove(&number);
    if of.is_empty() {
        tries.remove(holder);
    }
    model
}

/// What a leader does not know of the tries under the leader before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// A node has not said yet what is under way.
    Nodes,
    /// A node was lost before it said what it had used. It counts until this time.
    Past { until: Duration },
}
