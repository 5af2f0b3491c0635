//! One attempt's way through the journal of its job: recorded steps come first, and new ones are recorded before they are used.
//!
//! The provider asks for each step by kind and key. As long as the journal has the step, the answer is what was recorded; after that the
//! provider does what the step says, has it recorded, and may use the outcome once the leader has answered `applied`. What must be loaded,
//! stored and sent is the shell's business; this machine says what and when.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use atlas_types::{AssignedJournal, Fold, JOURNAL_INLINE_BYTES_MAX, Payload, Step, StepKey, StepKind};

/// The answer to a provider that asks for its next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepAnswer {
    /// It was recorded by an earlier attempt: this is what came of it.
    Recorded(Arc<Step>),
    /// The recorded steps in this artifact come first: load them, then ask again.
    Load(Payload),
    /// It is not recorded: do it, then record it.
    New,
}

/// How a new step gets into the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recording {
    /// Send it under this number.
    Send {
        /// The number.
        from: u64,
    },
    /// There is no room for it: write these steps to an artifact, send the fold, then record the step.
    Fold {
        /// The first step that is not in the fold.
        upto: u64,
        /// The steps of the fold.
        steps: Vec<Arc<Step>>,
    },
}

/// The attempt asks for another step than the one that was recorded: it has left the recorded path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepDiffers {
    /// The number of the step.
    pub step: u64,
    /// What is recorded.
    pub recorded: (StepKind, StepKey),
    /// What was asked for.
    pub asked: (StepKind, StepKey),
}

impl fmt::Display for StepDiffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, recorded, asked } = self;
        let (kind, key) = (recorded.0.as_str(), recorded.1);
        write!(f, "step {step} is recorded as {kind} {key}, and the agent asks for {} {}", asked.0.as_str(), asked.1)
    }
}

/// An artifact does not hold as many steps as the journal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongSteps {
    /// How many it holds.
    pub found: u64,
}

/// Recorded steps that were not loaded yet.
#[derive(Debug)]
struct Unread {
    artifact: Payload,
    /// The first step that is not in it; none for the steps after the folds.
    upto: Option<u64>,
}

/// The journal of one attempt.
#[derive(Debug)]
pub struct Replay {
    unread: VecDeque<Unread>,
    /// Loaded steps of a fold that were not asked for yet.
    folded: VecDeque<Arc<Step>>,
    /// The first step after the folds.
    first: u64,
    /// The steps after the folds.
    inline: Vec<Arc<Step>>,
    /// The step that is asked for next.
    next: u64,
}

impl Replay {
    /// A journal as an attempt got it, before its first step.
    pub fn new(assigned: AssignedJournal) -> Self {
        let AssignedJournal { journal, unfolded, .. } = assigned;
        let fold = |Fold { upto, artifact }: Fold| Unread { artifact, upto: Some(upto) };
        let mut unread: VecDeque<_> = journal.folds.iter().cloned().map(fold).collect();
        unread.extend(unfolded.map(|artifact| Unread { artifact, upto: None }));
        Self { unread, folded: VecDeque::new(), first: journal.first(), inline: journal.steps.clone(), next: 0 }
    }

    /// Asks for the next step.
    pub fn ask(&mut self, kind: StepKind, key: StepKey) -> Result<StepAnswer, StepDiffers> {
        let recorded = match self.front() {
            Err(artifact) => return Ok(StepAnswer::Load(artifact.clone())),
            Ok(Some(step)) => step,
            Ok(None) => return Ok(StepAnswer::New),
        };
        if (recorded.kind, recorded.key) != (kind, key) {
            let recorded = (recorded.kind, recorded.key);
            return Err(StepDiffers { step: self.next, recorded, asked: (kind, key) });
        }
        let recorded = Arc::clone(recorded);
        self.folded.pop_front();
        self.next += 1;
        Ok(StepAnswer::Recorded(recorded))
    }

    /// Kind and key of the next step, if it is recorded. The error is an artifact that has to be loaded first, as for [`StepAnswer::Load`].
    pub fn peek(&self) -> Result<Option<(StepKind, StepKey)>, Payload> {
        self.front().map(|step| step.map(|step| (step.kind, step.key))).map_err(Clone::clone)
    }

    fn front(&self) -> Result<Option<&Arc<Step>>, &Payload> {
        match (self.folded.front(), self.unread.front()) {
            (Some(step), _) => Ok(Some(step)),
            (None, Some(unread)) => Err(&unread.artifact),
            (None, None) => Ok(self.inline.get(self.place())),
        }
    }

    /// The steps of the artifact that [`StepAnswer::Load`] named.
    pub fn loaded(&mut self, steps: Vec<Arc<Step>>) -> Result<(), WrongSteps> {
        let Some(Unread { upto, .. }) = self.unread.pop_front() else { return Ok(()) };
        let found = steps.len() as u64;
        match upto {
            Some(upto) if upto.checked_sub(self.next) != Some(found) => Err(WrongSteps { found }),
            Some(_) => {
                self.folded = steps.into();
                Ok(())
            }
            None => {
                self.inline = steps;
                Ok(())
            }
        }
    }

    /// How a step that the journal does not have is recorded.
    pub fn record(&self, step: &Step) -> Recording {
        let bytes: u64 = self.inline.iter().map(|step| step.bytes()).sum();
        if bytes + step.bytes() > JOURNAL_INLINE_BYTES_MAX && !self.inline.is_empty() {
            return Recording::Fold { upto: self.next, steps: self.inline.clone() };
        }
        Recording::Send { from: self.next }
    }

    /// The fold of the inline steps was applied.
    pub fn folded(&mut self) {
        self.first = self.next;
        self.inline.clear();
    }

    /// The new step was applied: it may be used.
    pub fn applied(&mut self, step: Arc<Step>) {
        self.inline.push(step);
        self.next += 1;
    }

    /// The number of the step that is asked for next.
    pub fn next(&self) -> u64 {
        self.next
    }

    fn place(&self) -> usize {
        usize::try_from(self.next.saturating_sub(self.first)).unwrap_or(usize::MAX)
    }
}
