//! Tries of calls of limited models: each waits until the leader lets it begin, across sessions. What the tries of the last minute used is
//! kept here, so that the next leader learns it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use atlas_types::{FencingToken, Micros, Namespace, level};
use atlas_wire::limits::MODEL_USES_MAX;
use atlas_wire::session::{ModelAsk, ModelUse, ModelUses, PastModelUse, ToLeader};
use tokio::sync::oneshot;

use super::Pump;
use crate::link::Stream;
use crate::tries::{LimitedModel, TryEvent};

/// How long a try counts after it began. The leader rounds to seconds.
const COUNTED: Duration = Duration::from_secs(62);

/// All tries.
#[derive(Default)]
pub(crate) struct Tries {
    waiting: BTreeMap<u64, Waiting>,
    /// Those of them that have not asked yet on this stream.
    unasked: BTreeSet<u64>,
    /// Ends that were not said yet on this stream.
    ends: VecDeque<(u64, Option<u64>)>,
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
    /// Whether something is to be said.
    pub(super) fn has_unsaid(&self) -> bool {
        !self.ends.is_empty() || self.may_ask()
    }

    /// Whether another try may ask. The leader takes as many of a worker as an announcement has.
    fn may_ask(&self) -> bool {
        let asked = self.waiting.len().saturating_sub(self.unasked.len());
        !self.unasked.is_empty() && self.held.len() + asked < MODEL_USES_MAX
    }

    /// What is said next. Ends come first, because they make room for others.
    fn next_said(&mut self) -> Option<ToLeader> {
        if let Some((number, tokens)) = self.ends.pop_front() {
            return Some(ToLeader::ModelDone { number, tokens });
        }
        if !self.may_ask() {
            return None;
        }
        let number = self.unasked.pop_first()?;
        let Waiting { model, tokens, .. } = self.waiting.get(&number)?;
        let (job, token, model, tokens) = (model.job, model.token, model.name.clone(), *tokens);
        Some(ToLeader::AskModel(ModelAsk { number, job, token, model, tokens }))
    }

    /// A try has ended. The leader does not know one that has not asked.
    fn end(&mut self, number: u64, tokens: Option<u64>) {
        if !self.unasked.remove(&number) {
            self.ends.push_back((number, tokens));
        }
    }

    /// Begins to say everything on a new stream, after the announcement.
    fn start_over(&mut self) {
        self.ends.clear();
        self.unasked = self.waiting.keys().copied().collect();
    }

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
                self.tries.unasked.insert(number);
                self.say_tries();
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
        self.tries.unasked.remove(&number);
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
            self.tries.start_over();
            return;
        }
        let uses = self.tries.uses(self.env.clock.monotonic());
        self.send(ToLeader::AnnounceModels(uses));
        self.tries.start_over();
        self.say_tries();
    }

    /// Says what tries ask and which have ended, as far as the stream keeps up. Without a session the next announcement says it.
    pub(super) fn say_tries(&mut self) {
        while self.welcomed && self.stream.as_ref().is_some_and(Stream::has_room) {
            let Some(said) = self.tries.next_said() else { return };
            self.send(said);
        }
    }

    fn end_model(&mut self, number: u64, tokens: Option<u64>) {
        self.tries.end(number, tokens);
        self.say_tries();
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

#[cfg(test)]
mod tests {
    use atlas_types::JobId;

    use super::*;

    fn wait(tries: &mut Tries, number: u64) {
        let (token, job, name) = (FencingToken(1), JobId(1), "small".to_owned());
        let model = LimitedModel { token, job, namespace: Namespace::default_namespace(), name };
        tries.waiting.insert(number, Waiting { model, tokens: 1, begin: oneshot::channel().0 });
        tries.unasked.insert(number);
    }

    #[test]
    fn no_more_tries_ask_than_the_leader_takes() {
        let max = MODEL_USES_MAX as u64;
        let mut tries = Tries::default();
        (1..=max + 2).for_each(|number| wait(&mut tries, number));
        let asked = |tries: &mut Tries| {
            std::iter::from_fn(|| tries.next_said())
                .map(|said| match said {
                    ToLeader::AskModel(ask) => (true, ask.number),
                    ToLeader::ModelDone { number, .. } => (false, number),
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        assert!(asked(&mut tries).into_iter().eq((1..=max).map(|number| (true, number))));
        assert!(!tries.has_unsaid(), "two of them wait for the others");
        // One that has not asked says nothing of its end, another one makes room.
        for number in [max + 1, 5] {
            tries.waiting.remove(&number);
            tries.end(number, None);
        }
        assert_eq!(asked(&mut tries), [(false, 5), (true, max + 2)]);
        tries.end(7, None);
        tries.waiting.remove(&7);
        tries.start_over();
        assert_eq!(
            asked(&mut tries).len(),
            tries.waiting.len(),
            "all of them ask on another stream, and no end is said"
        );
    }
}
