//! A journal through several attempts: each replays what the ones before it recorded, and records the next steps.

use std::sync::Arc;

use atlas_types::{
    AssignedJournal, Fold, JOURNAL_INLINE_BYTES_MAX, Journal, Payload, PayloadBody, STEP_BYTES, Step, StepKey,
    StepKind, StepUsage,
};
use proptest::prelude::*;

use crate::{Recording, Replay, StepAnswer, WrongSteps};

/// What a controller and its artifacts keep of one job.
#[derive(Default)]
struct Kept {
    journal: Journal,
    /// The content of each fold.
    folds: Vec<Vec<Arc<Step>>>,
    /// Bytes that were ever written: steps in commands, folds in artifacts.
    written: u64,
}

fn key(number: u64) -> StepKey {
    StepKey([number as u8; 16])
}

fn step(number: u64, bytes: usize) -> Step {
    let outcome = Payload::inline(&vec![b' '; bytes]);
    Step { kind: StepKind::Model, key: key(number), outcome, usage: StepUsage::default() }
}

/// A reference to the fold of this place.
fn artifact(place: usize) -> Payload {
    Payload {
        key_id: 0,
        body: PayloadBody::Artifact { digest: atlas_types::Digest([0; 32]), size_bytes: place as u64 },
    }
}

fn place(artifact: &Payload) -> usize {
    match artifact.body {
        PayloadBody::Artifact { size_bytes, .. } => size_bytes as usize,
        PayloadBody::Inline(_) => panic!("folds are artifacts"),
    }
}

impl Kept {
    fn replay(&self) -> Replay {
        Replay::new(AssignedJournal { journal: Arc::new(self.journal.clone()), ..AssignedJournal::default() })
    }

    fn write(&mut self, steps: &[Arc<Step>]) {
        self.written += steps.iter().map(|step| step.bytes()).sum::<u64>();
    }

    /// The recorded step, or none if it is new. Artifacts are read on the way.
    fn ask(&self, replay: &mut Replay, number: u64) -> Option<Arc<Step>> {
        loop {
            match replay.ask(StepKind::Model, key(number)).expect("the recorded path") {
                StepAnswer::Recorded(step) => return Some(step),
                StepAnswer::New => return None,
                StepAnswer::Load(artifact) => replay.loaded(self.folds[place(&artifact)].clone()).expect("whole"),
            }
        }
    }

    /// Records a step, as the shell of an attempt does it.
    fn record(&mut self, replay: &mut Replay, step: Step) {
        let step = Arc::new(step);
        loop {
            match replay.record(&step) {
                Recording::Send { from } => {
                    assert_eq!(from, self.journal.next());
                    self.write(&[Arc::clone(&step)]);
                    self.journal.steps.push(Arc::clone(&step));
                    let inline: u64 = self.journal.steps.iter().map(|step| step.bytes()).sum();
                    assert!(inline <= JOURNAL_INLINE_BYTES_MAX, "{inline} bytes are inline");
                    return replay.applied(step);
                }
                Recording::Fold { upto, steps } => {
                    assert_eq!((upto, &steps), (self.journal.next(), &self.journal.steps));
                    self.write(&steps);
                    self.journal.folds.push(Fold { upto, artifact: artifact(self.folds.len()) });
                    self.journal.steps.clear();
                    self.folds.push(steps);
                    replay.folded();
                }
            }
        }
    }
}

#[test]
fn an_attempt_replays_what_is_recorded_and_goes_on_after_it() {
    let mut kept = Kept::default();
    let mut first = kept.replay();
    for number in 0..3 {
        assert_eq!(kept.ask(&mut first, number), None);
        kept.record(&mut first, step(number, 12_000));
    }
    assert_eq!(kept.folds.len(), 1);
    let mut second = kept.replay();
    for number in 0..3 {
        assert_eq!(kept.ask(&mut second, number).as_deref(), Some(&step(number, 12_000)));
    }
    assert_eq!((kept.ask(&mut second, 3), second.next()), (None, 3));
}

#[test]
fn an_attempt_that_asks_for_another_step_is_told_both_sides() {
    let mut kept = Kept::default();
    let mut first = kept.replay();
    kept.record(&mut first, step(0, 1));
    let differs = kept.replay().ask(StepKind::Tools, key(9)).expect_err("another step");
    let (recorded, asked) = ("00".repeat(16), "09".repeat(16));
    assert_eq!(
        differs.to_string(),
        format!("step 0 is recorded as model {recorded}, and the agent asks for tools {asked}")
    );
}

#[test]
fn an_artifact_with_another_number_of_steps_is_refused() {
    let folds = vec![Fold { upto: 2, artifact: artifact(0) }, Fold { upto: 1, artifact: artifact(1) }];
    let journal = Arc::new(Journal { folds, ..Journal::default() });
    let mut replay = Replay::new(AssignedJournal { journal: Arc::clone(&journal), ..AssignedJournal::default() });
    assert_eq!(replay.ask(StepKind::Model, key(0)), Ok(StepAnswer::Load(artifact(0))));
    assert_eq!(replay.loaded(vec![Arc::new(step(0, 1))]), Err(WrongSteps { found: 1 }));
    let mut replay = Replay::new(AssignedJournal { journal, ..AssignedJournal::default() });
    assert_eq!(replay.loaded(vec![Arc::new(step(0, 1)), Arc::new(step(1, 1))]), Ok(()));
    for number in 0..2 {
        assert!(matches!(replay.ask(StepKind::Model, key(number)), Ok(StepAnswer::Recorded(_))));
    }
    assert_eq!(replay.loaded(Vec::new()), Err(WrongSteps { found: 0 }));
}

#[test]
fn steps_that_had_no_room_in_a_frame_are_loaded_first() {
    let unfolded = Some(artifact(0));
    let mut replay = Replay::new(AssignedJournal { unfolded, ..AssignedJournal::default() });
    assert_eq!(replay.ask(StepKind::Model, key(0)), Ok(StepAnswer::Load(artifact(0))));
    replay.loaded(vec![Arc::new(step(0, 20_000))]).expect("any number");
    assert!(matches!(replay.ask(StepKind::Model, key(0)), Ok(StepAnswer::Recorded(_))));
    assert_eq!(replay.record(&step(1, 1)), Recording::Send { from: 1 });
    assert!(matches!(replay.record(&step(1, 20_000)), Recording::Fold { upto: 1, .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever the sizes and wherever attempts are lost: no recorded step is asked for again, and what is written is at most twice
    /// what is new.
    #[test]
    fn a_thousand_rounds_write_at_most_twice_their_content(seed in any::<u64>(), losses in 0..20_u64) {
        let mut random = seed | 1;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let (mut kept, mut new) = (Kept::default(), 0);
        let mut replay = kept.replay();
        for number in 0..1_000 {
            if next() % 1_000 < losses {
                replay = kept.replay();
                for done in 0..number {
                    prop_assert!(kept.ask(&mut replay, done).is_some(), "step {} is repeated", done);
                }
            }
            prop_assert_eq!(kept.ask(&mut replay, number), None);
            let bytes = next() as usize % 16_384;
            new += STEP_BYTES + bytes as u64;
            kept.record(&mut replay, step(number, bytes));
        }
        prop_assert!(kept.written <= 2 * new, "{} bytes were written of {new} new ones", kept.written);
    }
}
