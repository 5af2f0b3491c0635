//! The tries of one model.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use atlas_types::{JobId, NodeId};

use crate::{Ask, COUNTED, Grant, Holder, Session, Unknown};

/// What the whole cluster may ask of a model. None: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Tries at the same time.
    pub concurrency: Option<u32>,
    /// Tries a minute.
    pub requests: Option<u32>,
    /// Tokens a minute, read and written.
    pub tokens: Option<u64>,
}

impl Limits {
    /// Whether there is a limit.
    pub fn is_some(&self) -> bool {
        self.concurrency.is_some() || self.requests.is_some() || self.tokens.is_some()
    }
}

/// What a try waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Other tries of the model that asked before it and wait as well.
    pub before: usize,
    /// What the first of them waits for.
    pub reason: WaitReason,
}

/// Why the first waiting try of a model does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// As many tries as are allowed are under way.
    Concurrency { held: usize, limit: u32 },
    /// As many tries as are allowed began within the minute.
    Requests { used: u64, limit: u32, next: Duration },
    /// The tokens of the minute do not leave enough for it.
    Tokens { used: u64, limit: u64, wanted: u64, next: Duration },
    /// The leader is new, and not all nodes have said which tries are under way.
    Nodes,
    /// The leader is new, and a node was lost that knew what was used within the minute.
    Unknown { next: Duration },
    /// Nothing: it begins now.
    None,
}

/// Requests and tokens.
type Used = (u32, u64);

#[derive(Debug, Default)]
pub(crate) struct Book {
    waiting: VecDeque<(Session, Ask)>,
    held: BTreeMap<(Holder, u64), Try>,
    /// What tries used that ended, by the second in which they began.
    past: BTreeMap<Holder, BTreeMap<u64, Used>>,
}

#[derive(Debug)]
struct Try {
    at: u64,
    tokens: u64,
}

impl Book {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.held.is_empty() && self.past.is_empty()
    }

    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn waits(&self, job: JobId) -> bool {
        self.waiting.iter().any(|(_, ask)| ask.job == job)
    }

    pub(crate) fn wait(&mut self, session: Session, ask: Ask) {
        self.waiting.push_back((session, ask));
    }

    pub(crate) fn hold(&mut self, holder: Holder, ask: &Ask, at: Duration) {
        self.held.insert((holder, ask.number), Try { at: at.as_secs(), tokens: ask.tokens });
    }

    pub(crate) fn count(&mut self, holder: &Holder, at: Duration, used: Used) {
        self.add(holder, at.as_secs(), used);
    }

    fn add(&mut self, holder: &Holder, second: u64, (requests, tokens): Used) {
        let past = self.past.entry(holder.clone()).or_default().entry(second).or_default();
        *past = (past.0.saturating_add(requests), past.1.saturating_add(tokens));
    }

    pub(crate) fn done(&mut self, holder: &Holder, number: u64, tokens: Option<u64>) {
        let Some(Try { at, .. }) = self.held.remove(&(holder.clone(), number)) else {
            self.waiting.retain(|(session, ask)| ask.number != number || session.holder() != *holder);
            return;
        };
        if let Some(tokens) = tokens {
            self.add(holder, at, (1, tokens));
        }
    }

    /// Forgets the tries of a worker that announces them.
    pub(crate) fn forget(&mut self, holder: &Holder) {
        self.waiting.retain(|(session, _)| session.holder() != *holder);
        self.held.retain(|(of, _), _| of != holder);
        self.past.remove(holder);
    }

    /// Forgets the tries of a node that have not begun, and returns them.
    pub(crate) fn forget_waiting(&mut self, node: &NodeId) -> VecDeque<(Session, Ask)> {
        let all = std::mem::take(&mut self.waiting);
        let (gone, kept): (VecDeque<_>, VecDeque<_>) = all.into_iter().partition(|(session, _)| session.node == *node);
        self.waiting = kept;
        gone
    }

    /// Ends tries. Each counts as what it might have used.
    pub(crate) fn free(&mut self, ended: impl Fn(&Holder) -> bool) {
        let gone = self.held.extract_if(.., |(holder, _), _| ended(holder)).collect::<Vec<_>>();
        for ((holder, _), Try { at, tokens }) in gone {
            self.add(&holder, at, (1, tokens));
        }
    }

    /// Forgets what counts no more.
    pub(crate) fn prune(&mut self, now: Duration) {
        for past in self.past.values_mut() {
            past.retain(|second, _| counts(*second, now));
        }
        self.past.retain(|_, past| !past.is_empty());
    }

    /// Lets tries begin in their order, as far as the limits allow, and says when the next one may if only time passes.
    /// Those whose streams have no room are passed over.
    pub(crate) fn grant(
        &mut self,
        now: Duration,
        limits: Option<&Limits>,
        unknown: Option<Unknown>,
        room: &mut dyn FnMut(&Session) -> bool,
        granted: &mut Vec<Grant>,
    ) -> Option<Duration> {
        let limits = limits.filter(|limits| limits.is_some());
        let (mut passed, mut until) = (Vec::new(), None);
        while let Some((session, ask)) = self.waiting.pop_front() {
            let reason = limits.map_or(WaitReason::None, |limits| self.reason(&ask, now, limits, unknown));
            match reason {
                WaitReason::None if room(&session) => {
                    self.hold(session.holder(), &ask, now);
                    granted.push(Grant { session, number: ask.number });
                    continue;
                }
                WaitReason::None => {
                    passed.push((session, ask));
                    continue;
                }
                WaitReason::Concurrency { .. } | WaitReason::Nodes => {}
                WaitReason::Requests { next, .. } | WaitReason::Tokens { next, .. } | WaitReason::Unknown { next } => {
                    until = Some(now.saturating_add(next));
                }
            }
            passed.push((session, ask));
            break;
        }
        passed.into_iter().rev().for_each(|waiting| self.waiting.push_front(waiting));
        until
    }

    pub(crate) fn wait_of(&self, job: JobId, now: Duration, limits: &Limits, unknown: Option<Unknown>) -> Option<Wait> {
        let before = self.waiting.iter().position(|(_, ask)| ask.job == job)?;
        let (_, first) = self.waiting.front()?;
        Some(Wait { before, reason: self.reason(first, now, limits, unknown) })
    }

    fn reason(&self, ask: &Ask, now: Duration, limits: &Limits, unknown: Option<Unknown>) -> WaitReason {
        let is_rate = limits.requests.is_some() || limits.tokens.is_some();
        match unknown {
            Some(Unknown::Nodes) => return WaitReason::Nodes,
            Some(Unknown::Past { until }) if is_rate => {
                return WaitReason::Unknown { next: until.saturating_sub(now) };
            }
            _ => {}
        }
        if let Some(limit) = limits.concurrency.filter(|limit| self.held.len() >= *limit as usize) {
            return WaitReason::Concurrency { held: self.held.len(), limit };
        }
        if !is_rate {
            return WaitReason::None;
        }
        let seconds = self.seconds(now);
        let (used, tokens) = sum(seconds.values());
        if let Some(limit) = limits.requests.filter(|limit| used >= u64::from(*limit)) {
            let next = when(&seconds, now, |left, _| left < u64::from(limit));
            return WaitReason::Requests { used, limit, next };
        }
        let wanted = ask.tokens;
        // One that wants more than all of them begins once there is nothing beside it. It would wait for ever.
        let fits = |used: u64, limit: u64| used == 0 || used.saturating_add(wanted) <= limit;
        if let Some(limit) = limits.tokens.filter(|limit| !fits(tokens, *limit)) {
            let next = when(&seconds, now, |_, left| fits(left, limit));
            return WaitReason::Tokens { used: tokens, limit, wanted, next };
        }
        WaitReason::None
    }

    /// What counts now, by the second in which it began.
    fn seconds(&self, now: Duration) -> BTreeMap<u64, (u64, u64)> {
        let past = self.past.values().flatten().map(|(second, used)| (*second, *used));
        let held = self.held.values().map(|held| (held.at, (1, held.tokens)));
        let mut seconds: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (second, (requests, tokens)) in past.chain(held).filter(|(second, _)| counts(*second, now)) {
            let sum = seconds.entry(second).or_default();
            *sum = (sum.0.saturating_add(requests.into()), sum.1.saturating_add(tokens));
        }
        seconds
    }
}

/// Whether what began in a second counts.
fn counts(second: u64, now: Duration) -> bool {
    now.as_secs() < second.saturating_add(COUNTED.as_secs())
}

fn sum<'a>(seconds: impl Iterator<Item = &'a (u64, u64)>) -> (u64, u64) {
    seconds.fold((0, 0), |sum, used| (sum.0.saturating_add(used.0), sum.1.saturating_add(used.1)))
}

/// How long it takes until what counts is little enough, if nothing else begins.
fn when(seconds: &BTreeMap<u64, (u64, u64)>, now: Duration, enough: impl Fn(u64, u64) -> bool) -> Duration {
    let (mut requests, mut tokens) = sum(seconds.values());
    let mut at = now;
    for (second, used) in seconds {
        if enough(requests, tokens) {
            break;
        }
        (requests, tokens) = (requests.saturating_sub(used.0), tokens.saturating_sub(used.1));
        at = Duration::from_secs(second.saturating_add(COUNTED.as_secs()));
    }
    at.saturating_sub(now)
}
