//! The journal of a job: the steps that its attempts have recorded, so that a later attempt does not repeat them.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;

use crate::{JobId, Micros, Payload, QuestionId};

/// Most bytes of one job's steps that are kept inline; older steps are folded into artifacts before there are more.
pub const JOURNAL_INLINE_BYTES_MAX: u64 = 32 * 1_024;

/// Most bytes of the steps of one command.
pub const STEPS_BYTES_MAX: u64 = 256 * 1_024;

/// What a step counts beside its outcome.
pub const STEP_BYTES: u64 = 64;

/// Most artifacts that hold folded steps of one job.
pub const FOLDS_MAX: u64 = 1_024;

/// What a step records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepKind {
    /// What the job is fixed to; always step 0.
    Start,
    /// A model call.
    Model,
    /// The tool calls of one round.
    Tools,
    /// The end of a child.
    Child,
    /// A sleep that is over.
    Sleep,
    /// A question and its answer.
    Question,
    /// A call with effects outside is about to be made.
    Intent,
    /// An effect inside the cluster.
    Effect,
    /// What a step of a program's own code returned.
    Code,
}

impl StepKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Start,
        Self::Model,
        Self::Tools,
        Self::Child,
        Self::Sleep,
        Self::Question,
        Self::Intent,
        Self::Effect,
        Self::Code,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Model => "model",
            Self::Tools => "tools",
            Self::Child => "child",
            Self::Sleep => "sleep",
            Self::Question => "question",
            Self::Intent => "intent",
            Self::Effect => "effect",
            Self::Code => "code",
        }
    }
}

/// The hash of what a step was asked, from journaled content alone: a replay that computes another key has left the recorded path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct StepKey(pub [u8; 16]);

impl StepKey {
    /// What the keys of values that a person set begin with.
    const SET: [u8; 8] = *b"graphset";

    /// The key of the values that a person set before a super-step of a graph.
    pub fn set_before(step: u64) -> Self {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&Self::SET);
        key[8..].copy_from_slice(&step.to_be_bytes());
        Self(key)
    }

    /// The super-step, if this is such a key.
    pub fn is_set_before(self) -> Option<u64> {
        let number = self.0.strip_prefix(&Self::SET)?;
        Some(number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The id that follows from another one and the key.
    pub fn derive(self, id: JobId) -> JobId {
        let (high, low) = self.0.split_at(8);
        let half = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        id.derive(half(high)).derive(half(low))
    }

    /// Keeps the ids of questions apart from those of jobs.
    const QUESTIONS: u64 = u64::MAX / 7;

    /// The id of the question that a job asks under the key.
    pub fn question(self, job: JobId) -> QuestionId {
        QuestionId(self.derive(job.derive(Self::QUESTIONS)).0)
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a step cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepUsage {
    /// How long it took.
    pub duration: Micros,
    /// Tokens sent to a model.
    pub tokens_input: u64,
    /// Tokens that a model answered.
    pub tokens_output: u64,
    /// Its price, in billionths of a dollar.
    pub cost_nanodollars: u64,
}

/// Sums stop at the largest number.
impl AddAssign for StepUsage {
    fn add_assign(&mut self, other: Self) {
        self.duration.0 = self.duration.0.saturating_add(other.duration.0);
        self.tokens_input = self.tokens_input.saturating_add(other.tokens_input);
        self.tokens_output = self.tokens_output.saturating_add(other.tokens_output);
        self.cost_nanodollars = self.cost_nanodollars.saturating_add(other.cost_nanodollars);
    }
}

/// One recorded step. Its number is its place in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it records.
    pub kind: StepKind,
    /// What was asked.
    pub key: StepKey,
    /// What came of it, JSON.
    pub outcome: Payload,
    /// What it cost.
    pub usage: StepUsage,
}

impl Step {
    /// Bytes that it counts against the bounds of journals.
    pub fn bytes(&self) -> u64 {
        STEP_BYTES + self.outcome.inline_bytes()
    }
}

/// The oldest steps of a journal, or those after an earlier fold, as one artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// The first step that is not in it.
    pub upto: u64,
    /// The steps from the fold before it to `upto`.
    pub artifact: Payload,
}

/// The steps of a job, numbered from 0 without a gap: first those in artifacts, then those kept inline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Journal {
    /// The folded steps, the oldest first.
    pub folds: Vec<Fold>,
    /// The steps after them.
    pub steps: Vec<Arc<Step>>,
    /// What the folded steps cost together: their own figures are in the artifacts.
    pub folded: StepUsage,
}

impl Journal {
    /// The first step that is not folded.
    pub fn first(&self) -> u64 {
        self.folds.last().map_or(0, |fold| fold.upto)
    }

    /// The number of the next step.
    pub fn next(&self) -> u64 {
        self.first() + self.steps.len() as u64
    }

    /// A step that is not folded.
    pub fn step(&self, number: u64) -> Option<&Arc<Step>> {
        let place = number.checked_sub(self.first())?;
        self.steps.get(usize::try_from(place).ok()?)
    }

    /// Bytes that it counts against the bounds of journals.
    pub fn bytes(&self) -> u64 {
        self.steps.iter().map(|step| step.bytes()).sum::<u64>() + STEP_BYTES * self.folds.len() as u64
    }

    /// Bytes that it takes of the cluster's budget: with its first step it reserves all that it may keep inline, so that no later step
    /// waits for other jobs.
    pub fn reserved_bytes(&self) -> u64 {
        if self.next() == 0 { 0 } else { self.bytes().max(JOURNAL_INLINE_BYTES_MAX) }
    }

    /// What all its steps cost together, those of every attempt.
    pub fn usage(&self) -> StepUsage {
        let mut usage = self.folded;
        self.steps.iter().for_each(|step| usage += step.usage);
        usage
    }

    /// Everything that it refers to or holds.
    pub fn payloads(&self) -> impl Iterator<Item = &Payload> {
        self.folds.iter().map(|fold| &fold.artifact).chain(self.steps.iter().map(|step| &step.outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_after_folds() {
        let step = |text: &str| {
            let (outcome, usage) = (Payload::inline(text.as_bytes()), StepUsage::default());
            Arc::new(Step { kind: StepKind::Model, key: StepKey([7; 16]), outcome, usage })
        };
        let mut journal = Journal { steps: vec![step("a"), step("bc")], ..Journal::default() };
        assert_eq!((journal.first(), journal.next(), journal.bytes()), (0, 2, 2 * STEP_BYTES + 3));
        journal.folds.push(Fold { upto: 5, artifact: Payload::inline(b"") });
        assert_eq!((journal.first(), journal.next()), (5, 7));
        assert_eq!(journal.step(6), Some(&step("bc")));
        assert_eq!((journal.step(4), journal.step(7)), (None, None));
        assert_eq!(journal.payloads().count(), 3);
    }

    #[test]
    fn usage_is_that_of_folded_and_of_inline_steps() {
        let usage = |cost_nanodollars| StepUsage { tokens_input: 10, cost_nanodollars, ..StepUsage::default() };
        let step = |usage| {
            Arc::new(Step { kind: StepKind::Model, key: StepKey([7; 16]), outcome: Payload::inline(b""), usage })
        };
        let steps = vec![step(usage(3)), step(usage(4))];
        let mut journal = Journal { steps, folded: usage(100), ..Journal::default() };
        assert_eq!(journal.usage(), StepUsage { tokens_input: 30, ..usage(107) });
        journal.folded.cost_nanodollars = u64::MAX;
        assert_eq!(journal.usage().cost_nanodollars, u64::MAX);
    }
}
