//! Tests agents inside the worker's process with a journal: recorded steps are replayed, and new ones are used once
//! they are recorded.

use std::sync::{Arc, Mutex};

use atlas_format::decode_steps;
use atlas_types::{
    AssignedJournal, Assignment, Attempt, Failure, Fold, Journal, StepKey, StepKind, StepUsage, StepsResult,
};
use atlas_wire::session::{ToLeader, ToWorker};
use atlas_worker::{Inside, InsideJob, JournalError, Made};

use crate::support::{Agent, Controller, Node, Session};

const CONTRACT: &str = "agent:
  name: inside
  version: 1.0.0
  provider:
    type: exec
    command: [\"@inside\"]
";

/// The actions of the agent in all attempts: the steps that it made, and those whose outcomes it used.
#[derive(Debug, Default)]
struct Done {
    made: Vec<(u32, u64)>,
    used: Vec<(u32, u64)>,
}

fn key(number: u64) -> StepKey {
    StepKey([number as u8; 16])
}

/// An outcome of `bytes` bytes. Outcomes with odd numbers are at most 12,000 bytes long.
fn outcome(number: u64, bytes: u64) -> String {
    let bytes = if number.is_multiple_of(2) { bytes } else { bytes.min(12_000) };
    format!("\"{number:0>width$}\"", width = bytes as usize - 2)
}

/// Makes the number of steps given in its input, each of the given size. The first of them is step `from`.
async fn agent(job: InsideJob, done: Arc<Mutex<Done>>) -> Result<String, Failure> {
    let InsideJob { attempt: Attempt(attempt), input, mut journal, .. } = job;
    let input = String::from_utf8_lossy(&input).into_owned();
    let numbers: Vec<u64> = input.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [steps, bytes, first] = numbers[..] else { panic!("{input}") };
    for number in first..first + steps {
        let make = || async {
            done.lock().expect("not poisoned").made.push((attempt, number));
            let usage = StepUsage { tokens_input: number, ..StepUsage::default() };
            Ok::<_, JournalError>(Made { outcome: outcome(number, bytes).into_bytes(), usage })
        };
        let found = journal.step(StepKind::Model, key(number), make).await?;
        assert_eq!(found[..], *outcome(number, bytes).as_bytes());
        done.lock().expect("not poisoned").used.push((attempt, number));
    }
    Ok(format!("{{\"next\":{}}}", journal.next()))
}

struct Scene {
    controller: Controller,
    node: Node,
    session: Session,
    agent: Agent,
    done: Arc<Mutex<Done>>,
    /// The steps that the controller has recorded.
    journal: Journal,
}

impl Scene {
    async fn set() -> Self {
        let mut controller = Controller::start().await;
        let done = Arc::<Mutex<Done>>::default();
        let shared = Arc::clone(&done);
        let inside = Inside::new(move |job| agent(job, Arc::clone(&shared)));
        let node = Node::start_with(&controller, |options| options.inside = Some(inside)).await;
        let session = controller.welcomed(Vec::new()).await;
        let agent = controller.publish(&[("agent.yaml", CONTRACT)]);
        Self { controller, node, session, agent, done, journal: Journal::default() }
    }

    /// An attempt that continues the recorded journal.
    fn attempt(&mut self, attempt: u32, input: [u64; 3]) -> Assignment {
        let [steps, bytes, first] = input;
        let input = format!("{{\"steps\": {steps}, \"bytes\": {bytes}, \"first\": {first}}}");
        let journal = AssignedJournal { journal: Arc::new(self.journal.clone()), ..AssignedJournal::default() };
        let assignment = self.controller.assignment(&self.agent, &input);
        Assignment { attempt: Attempt(attempt), journal: Some(Box::new(journal)), ..assignment }
    }

    /// The next frame with journal entries.
    async fn entry(&mut self) -> ToLeader {
        loop {
            match self.session.next().await {
                said @ (ToLeader::RecordSteps { .. } | ToLeader::FoldSteps { .. }) => return said,
                ToLeader::Renew { number } => self.session.say(ToWorker::RenewAck { number }).await,
                ToLeader::Report { report, .. } => panic!("{report:?}"),
                _ => {}
            }
        }
    }

    async fn answer(&mut self, number: u64, result: StepsResult) {
        self.session.say(ToWorker::StepsAck { number, result }).await;
    }

    /// Records this many entries.
    async fn record(&mut self, entries: usize) {
        for _ in 0..entries {
            let number = match self.entry().await {
                ToLeader::RecordSteps { number, from, steps, .. } => {
                    assert_eq!(from, self.journal.next());
                    self.journal.steps.extend(steps);
                    number
                }
                ToLeader::FoldSteps { number, fold, .. } => {
                    let folded = self.controller.artifact(&fold.artifact);
                    let steps = decode_steps(&folded).expect("steps");
                    assert_eq!(steps.len() as u64, fold.upto - self.journal.first());
                    self.journal.steps.clear();
                    self.journal.folds.push(fold);
                    number
                }
                other => panic!("{other:?}"),
            };
            self.answer(number, StepsResult::Applied).await;
        }
    }

    fn made(&self) -> Vec<(u32, u64)> {
        self.done.lock().expect("not poisoned").made.clone()
    }

    fn used(&self) -> Vec<(u32, u64)> {
        self.done.lock().expect("not poisoned").used.clone()
    }
}

#[tokio::test]
async fn the_next_attempt_repeats_only_the_step_that_was_under_way() {
    let mut scene = Scene::set().await;
    let first = scene.attempt(1, [4, 10, 0]);
    scene.session.grant(&first).await;
    scene.record(2).await;
    // The third step gets no answer, so its outcome is not used.
    scene.entry().await;
    scene.session.say(ToWorker::Revoke { job: first.job, token: first.token }).await;
    assert_eq!(scene.used(), [(1, 0), (1, 1)]);
    let second = scene.attempt(2, [4, 10, 0]);
    scene.session.grant(&second).await;
    scene.record(2).await;
    let (token, end) = scene.session.end().await;
    assert_eq!((token, end.output(&scene.controller)), (second.token, "{\"next\":4}".to_owned()));
    assert_eq!(scene.made(), [(1, 0), (1, 1), (1, 2), (2, 2), (2, 3)]);
    assert_eq!(scene.used()[2..], [(2, 0), (2, 1), (2, 2), (2, 3)]);
    assert_eq!(scene.journal.step(3).expect("recorded").usage.tokens_input, 3);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_step_is_sent_again_on_the_next_session_and_after_busy() {
    let mut scene = Scene::set().await;
    let only = scene.attempt(1, [1, 10, 0]);
    scene.session.grant(&only).await;
    let ToLeader::RecordSteps { number, .. } = scene.entry().await else { panic!("no steps") };
    let Scene { mut controller, node, session, agent, done, journal } = scene;
    drop(session);
    let session = controller.welcomed(vec![only]).await;
    let mut scene = Scene { controller, node, session, agent, done, journal };
    let ToLeader::RecordSteps { number: again, .. } = scene.entry().await else { panic!("no steps") };
    assert_eq!(again, number);
    scene.answer(again, StepsResult::Busy).await;
    let ToLeader::RecordSteps { number: again, .. } = scene.entry().await else { panic!("no steps") };
    scene.answer(again, StepsResult::NoRoom).await;
    scene.record(1).await;
    assert_eq!(scene.session.end().await.1.output(&scene.controller), "{\"next\":1}");
    assert_eq!(scene.made(), [(1, 0)]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn old_steps_are_folded_before_there_are_too_many_and_replayed_from_the_fold() {
    let mut scene = Scene::set().await;
    let first = scene.attempt(1, [7, 12_000, 0]);
    scene.session.grant(&first).await;
    // Two steps are inline, then a fold, and so on.
    scene.record(8).await;
    assert_eq!((scene.journal.folds.len(), scene.journal.next()), (2, 6));
    scene.session.say(ToWorker::Revoke { job: first.job, token: first.token }).await;
    let second = scene.attempt(2, [7, 12_000, 0]);
    scene.session.grant(&second).await;
    scene.record(2).await;
    assert_eq!(scene.session.end().await.1.output(&scene.controller), "{\"next\":7}");
    let repeated = scene.made().into_iter().filter(|(attempt, _)| *attempt == 2).collect::<Vec<_>>();
    assert_eq!(repeated, [(2, 6)]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_large_outcome_is_an_artifact_and_its_fold_holds_it_by_value() {
    let mut scene = Scene::set().await;
    let first = scene.attempt(1, [6, 20_000, 0]);
    scene.session.grant(&first).await;
    // Steps 1 and 3 are inline. Step 5 does not fit beside them.
    scene.record(6).await;
    let steps = decode_steps(&scene.controller.artifact(&scene.journal.folds[0].artifact)).expect("steps");
    let sizes: Vec<_> = steps.iter().map(|step| step.outcome.inline_bytes()).collect();
    assert_eq!(sizes, [20_000, 12_000, 20_000, 12_000, 20_000]);
    scene.record(1).await;
    assert_eq!(scene.session.end().await.1.output(&scene.controller), "{\"next\":6}");
    let second = scene.attempt(2, [6, 20_000, 0]);
    assert_eq!(scene.session.run(&second).await.output(&scene.controller), "{\"next\":6}");
    assert_eq!(scene.made().len(), 6);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn an_attempt_that_leaves_the_recorded_path_fails_with_both_sides() {
    let mut scene = Scene::set().await;
    let first = scene.attempt(1, [1, 10, 0]);
    scene.session.grant(&first).await;
    scene.record(1).await;
    scene.session.end().await;
    let second = scene.attempt(2, [1, 10, 7]);
    let (recorded, asked) = ("00".repeat(16), "07".repeat(16));
    let expected = format!("E3013: step 0 is recorded as model {recorded}, and the agent asks for model {asked}");
    assert_eq!(scene.session.run(&second).await.error(), expected);
    assert_eq!(scene.made(), [(1, 0)]);

    scene.journal = Journal::default();
    let third = scene.attempt(3, [1, 10, 0]);
    scene.session.grant(&third).await;
    let ToLeader::RecordSteps { number, .. } = scene.entry().await else { panic!("no steps") };
    scene.answer(number, StepsResult::Refused { step: 0, why: "two sides".to_owned() }).await;
    assert_eq!(scene.session.end().await.1.error(), "E3013: step 0 could not be recorded: two sides");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_fenced_step_and_a_damaged_fold_end_the_attempt() {
    let mut scene = Scene::set().await;
    let first = scene.attempt(1, [1, 10, 0]);
    scene.session.grant(&first).await;
    let ToLeader::RecordSteps { number, .. } = scene.entry().await else { panic!("no steps") };
    scene.answer(number, StepsResult::Fenced).await;
    assert_eq!(scene.session.end().await.1.error(), "the attempt was stopped");
    let junk = scene.controller.payload(&"x".repeat(70_000));
    scene.journal.folds.push(Fold { upto: 1, artifact: junk });
    let second = scene.attempt(2, [1, 10, 0]);
    let error = scene.session.run(&second).await.error();
    assert!(error.starts_with("E3010: the recorded steps in"), "{error}");
    let without = Assignment { journal: None, ..scene.attempt(3, [1, 10, 0]) };
    assert_eq!(scene.session.run(&without).await.error(), "E4007: not all controllers can keep journals yet");
    scene.node.shutdown().await;
}
