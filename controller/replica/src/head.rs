//! The head: the state that the leader's next entry will produce.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use atlas_format::{ENTRY_BYTES_MAX, ENTRY_REQUESTS_MAX, EntryEncoder};
use atlas_state::State;
use atlas_types::{
    ClusterTime, Entry, EventRecord, Level, Outcome, Parent, Rejection, ReportDigest, Request, Timestamp,
};

use crate::replica::digest_of;

/// Gathered requests get two thirds of an entry, so that the grants that follow from them fit into the same entry: a
/// job needs three commands, two of which are gathered requests.
const GATHERED_MAX: usize = ENTRY_REQUESTS_MAX * 2 / 3;

/// The same limit in bytes. Grants are small.
const GATHERED_BYTES_MAX: usize = ENTRY_BYTES_MAX / 8 * 7;

/// The leader tasks: return at most the given number of commands that follow from a state.
pub type Duties<'a> = dyn FnMut(&State, usize) -> Vec<Request> + 'a;

/// An entry with its complete result.
#[derive(Debug, Clone)]
pub struct PlannedEntry {
    /// The entry to propose. Empty if there is nothing to propose. The answers are then released by a read index (ADR
    /// 1).
    pub entry_bytes: Vec<u8>,
    /// The state after the entry.
    pub state: State,
    /// One answer for each gathered request that was taken, in order. A refused request is not in the entry.
    pub outcomes: Vec<Result<Outcome, Rejection>>,
    /// The events of the entry.
    pub events: Arc<[EventRecord]>,
    /// Gathered requests that did not fit. They come first in the next plan.
    pub leftover: Vec<Request>,
    /// How many plans were discarded because a command or a leader task panicked. Any number but 0 is a defect to
    /// report.
    pub panics: usize,
    pub(crate) parent: Parent,
    /// The digests that members report in the entry.
    pub(crate) digests: Vec<ReportDigest>,
    /// One answer for each command of the entry, as every replica will compute it.
    pub(crate) entry_outcomes: Vec<Result<Outcome, Rejection>>,
}

impl PlannedEntry {
    /// True if there is nothing to propose.
    pub fn is_empty(&self) -> bool {
        self.entry_bytes.is_empty()
    }
}

/// The state after all planned entries. Dropped when a proposal fails, and rebuilt from the applied state.
#[derive(Debug, Clone)]
pub struct Head {
    state: State,
    /// The feature level that the next entry activates, if it is above the state's.
    level: Level,
}

impl Head {
    /// A head on the applied state, which the caller knows to be complete (ADR 1).
    pub fn new(state: State) -> Self {
        let level = state.level();
        Self { state, level }
    }

    /// Lets the next entry raise the feature level, once all members are known to have it (B.43).
    pub fn raise(&mut self, level: Level) {
        self.level = self.level.max(level.min(Level::CURRENT));
    }

    /// The state after all planned entries.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Plans one entry: the gathered requests one by one, then leader tasks until no more commands follow or fit.
    ///
    /// A refused request changes nothing, so it is answered and left out of the entry, and so is a repeated submission.
    /// The head advances only if there is an entry. A command that panics is answered with [`Rejection::Internal`] and
    /// never proposed: the clone on which it ran is discarded, and the other requests are planned again.
    pub fn plan(
        &mut self,
        gathered: Vec<Request>,
        at: Timestamp,
        clock: ClusterTime,
        duties: &mut Duties<'_>,
    ) -> PlannedEntry {
        let mut faults = Faults::default();
        let draft = loop {
            let mut draft = Draft::begin(&self.state, self.level, at, clock);
            if draft.run(&gathered, duties, &mut faults) {
                break draft;
            }
        };
        let parent = Parent { seq: self.state.seq(), chain: self.state.chain() };
        let planned = draft.finish(parent, gathered, faults.count);
        if !planned.is_empty() {
            self.state = planned.state.clone();
        }
        planned
    }
}

/// The panics so far in one plan.
#[derive(Default)]
struct Faults {
    count: usize,
    /// Indexes of gathered requests.
    gathered: Vec<usize>,
    /// Commands of leader tasks. They are remembered because the tasks return them again for the same state.
    commands: Vec<Request>,
    /// True if a leader task itself panicked. This entry is then planned without leader tasks.
    duties: bool,
}

/// An entry that is being planned, on a clone of the head.
struct Draft {
    state: State,
    /// True if the entry raises the feature level. It is then written even if it holds no request.
    raises: bool,
    at: Timestamp,
    clock: ClusterTime,
    encoder: EntryEncoder,
    entry_outcomes: Vec<Result<Outcome, Rejection>>,
    outcomes: Vec<Result<Outcome, Rejection>>,
    events: Vec<EventRecord>,
    digests: Vec<ReportDigest>,
}

/// The result of one request in a draft.
enum Step {
    Answered(Result<Outcome, Rejection>),
    /// The entry has no space for the request.
    Full,
    Panicked,
}

impl Draft {
    fn begin(state: &State, level: Level, at: Timestamp, clock: ClusterTime) -> Self {
        let raises = level > state.level();
        let mut state = state.clone();
        state.raise(level);
        state.begin_entry(at, clock);
        // Neither clock goes backwards, so the entry contains the times that the state accepted.
        let (at, clock) = (state.at(), state.clock());
        Self {
            state,
            raises,
            at,
            clock,
            encoder: EntryEncoder::new(),
            entry_outcomes: Vec::new(),
            outcomes: Vec::new(),
            events: Vec::new(),
            digests: Vec::new(),
        }
    }

    /// Fills the draft. False if something panicked. The panic is recorded, and the draft must be discarded.
    fn run(&mut self, gathered: &[Request], duties: &mut Duties<'_>, faults: &mut Faults) -> bool {
        for (index, request) in gathered.iter().enumerate() {
            if faults.gathered.contains(&index) {
                self.outcomes.push(Err(Rejection::Internal));
                continue;
            }
            if self.encoder.requests() == GATHERED_MAX {
                break;
            }
            match self.step(request, GATHERED_BYTES_MAX) {
                Step::Answered(outcome) => self.outcomes.push(outcome),
                // A request that does not fit into an empty entry never fits.
                Step::Full if self.encoder.is_empty() => {
                    let bytes = atlas_format::request_len(request) as u64;
                    self.outcomes.push(Err(Rejection::PayloadTooLarge { bytes }));
                }
                Step::Full => break,
                Step::Panicked => {
                    faults.count += 1;
                    faults.gathered.push(index);
                    return false;
                }
            }
        }
        faults.duties || self.run_duties(duties, faults)
    }

    /// Runs the leader tasks repeatedly, because the commands of one can lead to commands of another: a job whose
    /// backoff ends can be granted.
    fn run_duties(&mut self, duties: &mut Duties<'_>, faults: &mut Faults) -> bool {
        while self.encoder.requests() < ENTRY_REQUESTS_MAX {
            let before = self.encoder.requests();
            let left = ENTRY_REQUESTS_MAX - before;
            let Ok(commands) = catch_unwind(AssertUnwindSafe(|| duties(&self.state, left))) else {
                faults.count += 1;
                faults.duties = true;
                return false;
            };
            for request in commands.into_iter().take(left) {
                if faults.commands.contains(&request) {
                    continue;
                }
                match self.step(&request, ENTRY_BYTES_MAX) {
                    Step::Answered(_) => {}
                    Step::Full => return true,
                    Step::Panicked => {
                        faults.count += 1;
                        faults.commands.push(request);
                        return false;
                    }
                }
            }
            // Only refused commands are left. They are not proposed and would only be planned again.
            if self.encoder.requests() == before {
                break;
            }
        }
        true
    }

    /// Applies one request, and adds it to the entry if it was accepted and changed something.
    fn step(&mut self, request: &Request, bytes_max: usize) -> Step {
        let needed = request.command.level();
        if needed > self.state.level() {
            return Step::Answered(Err(Rejection::LevelTooLow { needed }));
        }
        let (requests, bytes) = (self.encoder.requests(), self.encoder.len());
        if !self.encoder.try_push(request) || self.encoder.len() > bytes_max {
            self.encoder.truncate(requests, bytes);
            return Step::Full;
        }
        let applied = catch_unwind(AssertUnwindSafe(|| {
            #[cfg(test)]
            crate::tests::panic_if_asked(request);
            self.state.apply_to(request, self.at, self.clock, &mut self.events)
        }));
        let Ok(outcome) = applied else { return Step::Panicked };
        if outcome.is_err() || matches!(outcome, Ok(Outcome::Submitted { repeated: true, .. })) {
            self.encoder.truncate(requests, bytes);
        } else {
            self.entry_outcomes.push(outcome.clone());
            self.digests.extend(digest_of(request));
        }
        Step::Answered(outcome)
    }

    fn finish(mut self, parent: Parent, mut gathered: Vec<Request>, panics: usize) -> PlannedEntry {
        let leftover = gathered.split_off(self.outcomes.len());
        let mut entry_bytes = Vec::new();
        if !self.encoder.is_empty() || self.raises {
            self.state.end_entry();
            let header = Entry {
                cluster_id: self.state.cluster_id(),
                level: self.state.level(),
                // Once a level is active, a program that does not know it must stop, whatever this entry contains.
                min_reader_level: self.state.level(),
                parent,
                at: self.at,
                clock: self.clock,
                requests: Vec::new(),
            };
            entry_bytes = self.encoder.finish(&header);
            let outcome_bytes = atlas_format::encode_outcomes(&self.entry_outcomes);
            self.state.set_chain(atlas_format::chain(&parent.chain, &entry_bytes, &outcome_bytes));
        }
        PlannedEntry {
            entry_bytes,
            state: self.state,
            outcomes: self.outcomes,
            events: self.events.into(),
            leftover,
            panics,
            parent,
            digests: self.digests,
            entry_outcomes: self.entry_outcomes,
        }
    }
}
