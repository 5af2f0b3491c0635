//! What the calls of a program get that starts again.
//!
//! A recorded call gets its record, and only after all calls that were recorded before it have got theirs: whatever a program does with
//! the first of several ends, it does again. A call that is not recorded is held while records are left that the program has not asked
//! for, so that a program that differs from its record does nothing new before that is found.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::CallKind;

/// The longest that a program may ask for nothing while a call of it cannot go on before the rest of the record is asked for. It is long, because
/// code between two recorded calls may take its time beside a call that is held, and an error would end a job that has done nothing wrong.
const PATIENCE: Duration = Duration::from_secs(120);

/// The same for an attempt that has a limit: half of it, so that the difference is found and said before the attempt ends.
fn patience(limit: Duration) -> Duration {
    if limit.is_zero() { PATIENCE } else { PATIENCE.min(limit / 2) }
}

/// The key of a step in the journal: a hash of the identity of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 16]);

/// A call that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    pub key: Key,
    pub kind: CallKind,
    pub name: String,
}

impl PastCall {
    /// A program need not ask for what it only wanted to know about its own code.
    fn is_needed(&self) -> bool {
        self.kind != CallKind::Version
    }
}

/// What a program asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    pub key: Key,
    pub kind: CallKind,
    pub name: String,
    /// The arguments, shortened.
    pub given: String,
    /// The place in its code.
    pub at: String,
    /// Whether the program does nothing else until it is answered.
    pub alone: bool,
}

/// What happens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEffect {
    /// The call gets the record of this number.
    Release { call: u64, record: usize },
    /// The call is not recorded and begins.
    Begin(u64),
    /// The record is of code from before the change that the call names.
    Old(u64),
    /// A call of this identity was asked for before.
    Repeated(u64),
    /// The program does something else than its record.
    Differs(Difference),
}

/// A program that does something else than its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What cannot go on.
    pub asked: CallRequest,
    /// What the program did not ask for.
    pub recorded: PastCall,
    /// Whether the call is recorded, but later.
    pub early: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, recorded, early } = self;
        write!(f, "the program asks for {}", asked.kind.shown(&asked.name))?;
        if !asked.given.is_empty() {
            write!(f, " with {}", asked.given)?;
        }
        if !asked.at.is_empty() {
            write!(f, " ({})", asked.at)?;
        }
        let next = recorded.kind.shown(&recorded.name);
        match (early, (asked.kind, &asked.name) == (recorded.kind, &recorded.name)) {
            (true, _) => write!(f, ", and its record has {next} before that"),
            (false, true) => write!(f, ", and its record has {next} with other arguments"),
            (false, false) => write!(f, ", and its record has {next} there"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unasked,
    /// The call waits for the records before its own.
    Asked(u64),
    Over,
}

/// The replay of one attempt.
#[derive(Debug)]
pub struct CallReplay {
    records: Vec<(PastCall, State)>,
    places: BTreeMap<Key, usize>,
    /// All records before are over, or are not needed.
    next: usize,
    /// How many needed records were not asked for.
    unasked: usize,
    /// Calls that wait for their records.
    waiting: BTreeMap<u64, (usize, CallRequest)>,
    /// Calls that are not recorded, in the order in which they were asked for.
    held: BTreeMap<u64, CallRequest>,
    /// What was asked for.
    asked: BTreeSet<Key>,
    /// When the program last asked for something.
    heard: Duration,
    patience: Duration,
}

impl CallReplay {
    /// The replay of what earlier attempts recorded, in the order of their records. `limit`: how long the attempt may take; zero for none.
    pub fn new(records: Vec<PastCall>, now: Duration, limit: Duration) -> Self {
        let unasked = records.iter().filter(|record| record.is_needed()).count();
        let places = records.iter().enumerate().map(|(place, record)| (record.key, place)).collect();
        let records = records.into_iter().map(|record| (record, State::Unasked)).collect();
        let (waiting, held, asked) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let patience = patience(limit);
        Self { records, places, next: 0, unasked, waiting, held, asked, heard: now, patience }
    }

    /// Whether the program has asked for all that is recorded.
    pub fn is_over(&self) -> bool {
        self.unasked == 0
    }

    /// Records that the program has not asked for.
    pub fn unclaimed(&self) -> impl Iterator<Item = &PastCall> {
        let unasked = self.records.iter().filter(|(record, state)| *state == State::Unasked && record.is_needed());
        unasked.map(|(record, _)| record)
    }

    /// The program has taken the first so many records, which it was told before.
    pub fn claimed(&mut self, so_far: usize, now: Duration) -> Vec<CallEffect> {
        let mut effects = Vec::new();
        self.heard = self.heard.max(now);
        for place in self.next..so_far.min(self.records.len()) {
            if self.records[place].1 == State::Unasked {
                self.asked.insert(self.records[place].0.key);
                self.claim(place, State::Over);
            }
        }
        self.go_on(&mut effects);
        effects
    }

    /// The program asks for a call, which has a number of its own.
    pub fn ask(&mut self, call: u64, asked: CallRequest, now: Duration) -> Vec<CallEffect> {
        self.heard = self.heard.max(now);
        if !self.asked.insert(asked.key) {
            return vec![CallEffect::Repeated(call)];
        }
        let mut effects = Vec::new();
        let alone = asked.alone;
        match self.places.get(&asked.key).copied() {
            // Behind what is over lies only what is not needed.
            Some(place) if place < self.next => {
                self.claim(place, State::Over);
                effects.push(CallEffect::Release { call, record: place });
            }
            Some(place) => {
                self.claim(place, State::Asked(call));
                self.waiting.insert(call, (place, asked));
                self.go_on(&mut effects);
            }
            None if self.is_over() => effects.push(CallEffect::Begin(call)),
            None if asked.kind == CallKind::Version => effects.push(CallEffect::Old(call)),
            None => {
                self.held.insert(call, asked);
            }
        }
        let is_stuck = self.held.contains_key(&call) || self.waiting.contains_key(&call);
        if alone && is_stuck {
            effects.extend(self.difference(Some(call)).map(CallEffect::Differs));
        }
        effects
    }

    /// The record for which a call waits.
    pub fn awaited(&self, call: u64) -> Option<usize> {
        self.waiting.get(&call).map(|(record, _)| *record)
    }

    /// The program no longer waits for a call.
    pub fn forget(&mut self, call: u64, now: Duration) -> Vec<CallEffect> {
        self.heard = self.heard.max(now);
        let mut effects = Vec::new();
        self.held.remove(&call);
        if let Some((place, _)) = self.waiting.remove(&call) {
            self.records[place].1 = State::Over;
            self.go_on(&mut effects);
        }
        effects
    }

    /// When [`tick`](Self::tick) finds a difference, unless the program asks for something until then.
    pub fn deadline(&self) -> Option<Duration> {
        let is_stuck = !self.held.is_empty() || !self.waiting.is_empty();
        is_stuck.then(|| self.heard.saturating_add(self.patience))
    }

    /// The difference of a program that has not asked for the rest of its record in time.
    pub fn tick(&self, now: Duration) -> Option<Difference> {
        self.deadline().filter(|at| *at <= now).and_then(|_| self.difference(None))
    }

    fn claim(&mut self, place: usize, state: State) {
        let (record, old) = &mut self.records[place];
        if *old == State::Unasked && record.is_needed() {
            self.unasked -= 1;
        }
        *old = state;
    }

    /// Releases the records whose turn it is, and begins what was held for the last of them.
    fn go_on(&mut self, effects: &mut Vec<CallEffect>) {
        while let Some((record, state)) = self.records.get_mut(self.next) {
            match *state {
                State::Unasked if record.is_needed() => break,
                State::Asked(call) => {
                    *state = State::Over;
                    self.waiting.remove(&call);
                    effects.push(CallEffect::Release { call, record: self.next });
                }
                State::Unasked | State::Over => {}
            }
            self.next += 1;
        }
        if self.is_over() {
            effects.extend(std::mem::take(&mut self.held).into_keys().map(CallEffect::Begin));
        }
    }

    /// What the call, or the first that cannot go on, waits for.
    fn difference(&self, call: Option<u64>) -> Option<Difference> {
        let recorded = self.unclaimed().next()?.clone();
        let held = self.held.iter().map(|(number, asked)| (*number, asked, false));
        let waiting = self.waiting.iter().map(|(number, (_, asked))| (*number, asked, true));
        let mut stuck = held.chain(waiting).filter(|(number, ..)| call.is_none_or(|call| call == *number));
        let (_, asked, early) = stuck.next()?;
        Some(Difference { asked: asked.clone(), recorded, early })
    }
}
