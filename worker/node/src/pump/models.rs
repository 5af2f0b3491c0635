//! Tries of calls of limited models: each waits until the leader lets it begin, across sessions. What the tries of the last minute used is
//! kept here, so that the next leader learns it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use atlas_types::{FencingToken, JobId, Micros, Namespace, level};
use atlas_wire::limits::MODEL_USES_MAX;
use atlas_wire::session::{ModelAsk, ModelUse, ModelUses, PastModelUse, ToLeader};
use tokio::sync::{mpsc, oneshot};

use super::Pump;

/// How long a try counts after it began. The leader rounds to seconds.
const COUNTED: Duration = Duration::from_secs(62);

/// A limited model of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct LimitedModel {
    pub(crate) token: FencingToken,
    pub(crate) job: JobId,
    pub(crate) namespace: Namespace,
    /// The name of its object.
    pub(crate) name: String,
}

/// What a try says to the pump.
#[derive(Debug)]
pub(crate) enum TryEvent {
    /// It asks whether it may begin, with the most tokens that it may use.
    Ask { number: u64, model: LimitedModel, tokens: u64, begin: oneshot::Sender<()> },
    /// It has ended, with the tokens that it used; none if it did not begin.
    Done { number: u64, tokens: Option<u64> },
}

/// The tries' side of the pump.
#[derive(Debug, Clone)]
pub(crate) struct TryDoor {
    /// Unbounded, because the end of a try that is dropped cannot wait. Each try says two things.
    events: mpsc::UnboundedSender<TryEvent>,
    last: Arc<AtomicU64>,
}

impl TryDoor {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<TryEvent>) {
        let (events, heard) = mpsc::unbounded_channel();
        (Self { events, last: Arc::default() }, heard)
    }

    /// Waits until a try may begin. None if its attempt is being stopped.
    pub(crate) async fn begin(&self, model: LimitedModel, tokens: u64) -> Option<Try> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        // From now on the end of the future is the end of the try.
        let mut tried = Try { events: self.events.clone(), number, tokens: None };
        let (begin, begun) = oneshot::channel();
        self.events.send(TryEvent::Ask { number, model, tokens, begin }).ok()?;
        begun.await.ok()?;
        tried.tokens = Some(tokens);
        Some(tried)
    }
}

/// A try. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Try {
    events: mpsc::UnboundedSender<TryEvent>,
    number: u64,
    /// What it used, as far as it is known; none before it begins.
    tokens: Option<u64>,
}

impl Try {
    /// Ends it, with the tokens that it used.
    pub(crate) fn end(mut self, tokens: u64) {
        self.tokens = Some(tokens);
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        // If the pump has ended, nothing counts any more.
        let _ = self.events.send(TryEvent::Done { number: self.number, tokens: self.tokens });
    }
}

/// All tries.
#[derive(Default)]
pub(crate) struct Tries {
    waiting: BTreeMap<u64, Waiting>,
    held: BTreeMap<u64, Held>,
    /// Requests and tokens of tries that ended, by the second in which they began.
    past: BTreeMap<(Namespace, String), BTreeMap<u64, (u32, u64)>>,
}

struct Waiting {
    model: LimitedModel,
    tokens: u64,
    begin: oneshot::Sender<()>,
}

struct Held {
    model: LimitedModel,
    tokens: u64,
    at: Duration,
}

impl Tries {
    fn count(&mut self, held: Held, tokens: u64, now: Duration) {
        let past = self.past.entry((held.model.namespace, held.model.name)).or_default();
        let (requests, sum) = past.entry(held.at.as_secs()).or_default();
        (*requests, *sum) = (requests.saturating_add(1), sum.saturating_add(tokens));
        self.past.retain(|_, past| {
            past.retain(|second, _| now.saturating_sub(Duration::from_secs(*second)) < COUNTED);
            !past.is_empty()
        });
    }

    fn uses(&self, now: Duration) -> ModelUses {
        let held = self.held.iter().map(|(number, held)| ModelUse {
            number: *number,
            job: held.model.job,
            namespace: held.model.namespace.clone(),
            model: held.model.name.clone(),
            tokens: held.tokens,
            age: Micros::from(now.saturating_sub(held.at)),
        });
        // The end of their second is the least age.
        let least = |second: u64| Micros::from(now.saturating_sub(Duration::from_secs(second + 1)));
        let one = |(namespace, model): &(Namespace, String), second: u64, (requests, tokens): (u32, u64)| {
            PastModelUse { namespace: namespace.clone(), model: model.clone(), age: least(second), requests, tokens }
        };
        let seconds: usize = self.past.values().map(BTreeMap::len).sum();
        let past: Vec<PastModelUse> = if seconds <= MODEL_USES_MAX {
            self.past.iter().flat_map(|(of, past)| past.iter().map(move |(at, used)| one(of, *at, *used))).collect()
        } else {
            // As if all of a model had begun with its last.
            let sum = |past: &BTreeMap<u64, (u32, u64)>| {
                past.values()
                    .fold((0_u32, 0_u64), |sum, used| (sum.0.saturating_add(used.0), sum.1.saturating_add(used.1)))
            };
            let last = |past: &BTreeMap<u64, (u32, u64)>| past.keys().next_back().copied().unwrap_or(0);
            self.past.iter().map(|(of, past)| one(of, last(past), sum(past))).take(MODEL_USES_MAX).collect()
        };
        ModelUses { held: held.take(MODEL_USES_MAX).collect(), past }
    }
}

impl Pump {
    pub(super) fn on_try(&mut self, event: TryEvent) {
        match event {
            TryEvent::Ask { model, .. } if !self.attempts.contains_key(&model.token) => {}
            // A leader that knows no limits.
            TryEvent::Ask { begin, .. } if self.welcomed && self.leader_level < level::MODELS => {
                let _ = begin.send(());
            }
            TryEvent::Ask { number, model, tokens, begin } => {
                self.tries.waiting.insert(number, Waiting { model, tokens, begin });
                self.ask_model(number);
            }
            TryEvent::Done { number, tokens } => {
                let held = self.tries.held.remove(&number);
                if self.tries.waiting.remove(&number).is_none() && held.is_none() {
                    return;
                }
                if let (Some(held), Some(tokens)) = (held, tokens) {
                    self.tries.count(held, tokens, self.env.clock.monotonic());
                }
                self.end_model(number, tokens);
            }
        }
    }

    /// A try may begin. If it has ended meanwhile, its end is on its way.
    pub(super) fn on_model_granted(&mut self, number: u64) {
        let Some(Waiting { model, tokens, begin }) = self.tries.waiting.remove(&number) else { return };
        let at = self.env.clock.monotonic();
        self.tries.held.insert(number, Held { model, tokens, at });
        let _ = begin.send(());
    }

    /// Tells a new leader, or the old one on a new stream, of all tries.
    pub(super) fn announce_models(&mut self) {
        if self.leader_level < level::MODELS {
            for (_, waiting) in std::mem::take(&mut self.tries.waiting) {
                let _ = waiting.begin.send(());
            }
            return;
        }
        let uses = self.tries.uses(self.env.clock.monotonic());
        self.send(ToLeader::AnnounceModels(uses));
        for number in self.tries.waiting.keys().copied().collect::<Vec<_>>() {
            self.ask_model(number);
        }
    }

    fn ask_model(&mut self, number: u64) {
        let Some(Waiting { model, tokens, .. }) = self.tries.waiting.get(&number).filter(|_| self.welcomed) else {
            return;
        };
        let (job, token, model, tokens) = (model.job, model.token, model.name.clone(), *tokens);
        self.send(ToLeader::AskModel(ModelAsk { number, job, token, model, tokens }));
    }

    /// Without a session the next announcement says it.
    fn end_model(&mut self, number: u64, tokens: Option<u64>) {
        if self.welcomed {
            self.send(ToLeader::ModelDone { number, tokens });
        }
    }

    /// Ends the waiting of an attempt that has ended or is being stopped.
    pub(super) fn forget_tries(&mut self, token: FencingToken) {
        let waiting = self.tries.waiting.iter().filter(|(_, waiting)| waiting.model.token == token);
        for number in waiting.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.tries.waiting.remove(&number);
            self.end_model(number, None);
        }
    }
}
