//! Tests agents that sleep, receive messages and wait for children: each wait is a step, and a wait that lasts parks the job.

use std::sync::Arc;
use std::time::Duration;

use atlas_types::{
    AssignedJournal, Assignment, Attachment, Attachments, Attempt, ClusterTime, Failure, HandBack, HandBackDeadline,
    JobId, Journal, Mail, Message, MessageId, Micros, Park, ParkResult, Payload, Principal, ReportKind, ReportResult,
    SecretText, Spawn, SpawnEnd, Step, StepKey, StepKind, StepUsage, StepsResult, Timestamp, Wait,
};
use atlas_wire::session::{ToLeader, ToWorker};
use atlas_worker::{ChildCall, Inside, InsideJob, JournalError, Made};
use serde_json::value::RawValue;

use crate::support::{Agent, Controller, Node, Session};

const CONTRACT: &str = "agent:
  name: inside
  version: 1.0.0
  provider:
    type: exec
    command: [\"@inside\"]
";

/// No wait lasts so long in these tests.
const NEVER: Duration = Duration::from_secs(3_600);

/// Does what its input lists, and returns what came of it.
async fn agent(job: InsideJob) -> Result<String, Failure> {
    let InsideJob { input, mut journal, .. } = job;
    let acts: Vec<String> = serde_json::from_slice(&input).expect("a list of words");
    let mut log = Vec::new();
    for act in acts {
        let now = journal.time().await?;
        let later = |seconds: i64| Timestamp(now.0 + seconds * 1_000_000);
        log.push(match act.as_str() {
            "sleep" => {
                journal.sleep(later(3_600)).await?;
                "slept".to_owned()
            }
            "nap" => {
                journal.sleep(Timestamp(now.0 + 20_000)).await?;
                "napped".to_owned()
            }
            "receive" => match journal.receive(None).await? {
                Some(message) => format!("{} from {}: {}", message.id, message.from, message.body),
                None => "nothing".to_owned(),
            },
            "listen" => journal.receive(Some(later(3_600))).await?.map_or("nothing".to_owned(), |message| message.id),
            "child" => {
                let input = RawValue::from_string("{\"n\":1}".to_owned()).expect("JSON");
                let call = ChildCall { agent: "child".to_owned(), input, priority: 2, skill: false };
                format!("{:?}", journal.child(call).await?)
            }
            _ => {
                let make =
                    || async { Ok::<_, JournalError>(Made { outcome: b"1".to_vec(), usage: StepUsage::default() }) };
                journal.step(StepKind::Model, StepKey([1; 16]), make).await?;
                "called".to_owned()
            }
        });
    }
    Ok(serde_json::json!({"log": log.join(", ")}).to_string())
}

struct Scene {
    controller: Controller,
    node: Node,
    session: Session,
    agent: Agent,
    /// The steps that the controller has recorded.
    steps: Vec<Arc<Step>>,
    attempts: u32,
}

impl Scene {
    async fn set(park_after: Duration) -> Self {
        let mut controller = Controller::start().await;
        let inside = Inside::new(agent);
        let node = Node::start_with(&controller, |options| {
            options.inside = Some(inside);
            options.park_after = park_after;
        })
        .await;
        let session = controller.welcomed(Vec::new()).await;
        let agent = controller.publish(&[("agent.yaml", CONTRACT)]);
        Self { controller, node, session, agent, steps: Vec::new(), attempts: 0 }
    }

    /// The next attempt of the job, with all recorded steps.
    async fn grant(&mut self, acts: &[&str], change: impl FnOnce(&mut AssignedJournal)) -> Assignment {
        let assignment = self.attempt(acts, change);
        self.session.grant(&assignment).await;
        assignment
    }

    fn attempt(&mut self, acts: &[&str], change: impl FnOnce(&mut AssignedJournal)) -> Assignment {
        self.attempts += 1;
        let journal = Journal { steps: self.steps.clone(), ..Journal::default() };
        let mut journal = AssignedJournal { journal: Arc::new(journal), ..AssignedJournal::default() };
        change(&mut journal);
        let assignment = self.controller.assignment(&self.agent, &format!("{acts:?}"));
        Assignment { job: JobId(7), attempt: Attempt(self.attempts), journal: Some(Box::new(journal)), ..assignment }
    }

    /// Records one frame of steps.
    async fn record(&mut self) {
        loop {
            match self.session.next().await {
                ToLeader::RecordSteps { number, from, steps, .. } => return self.recorded(number, from, steps).await,
                ToLeader::Renew { number } => self.session.say(ToWorker::RenewAck { number }).await,
                other => panic!("{other:?}"),
            }
        }
    }

    async fn recorded(&mut self, number: u64, from: u64, steps: Vec<Arc<Step>>) {
        assert_eq!(from, self.steps.len() as u64);
        self.steps.extend(steps);
        self.session.say(ToWorker::StepsAck { number, result: StepsResult::Applied }).await;
    }

    /// The next frame that is neither steps, which are recorded, nor a renewal.
    async fn frame(&mut self) -> ToLeader {
        loop {
            match self.session.next().await {
                ToLeader::RecordSteps { number, from, steps, .. } => self.recorded(number, from, steps).await,
                ToLeader::Renew { number } => self.session.say(ToWorker::RenewAck { number }).await,
                ToLeader::Report { number, report } => {
                    let result = ReportResult::Applied;
                    self.session.say(ToWorker::ReportAck { number, result }).await;
                    return ToLeader::Report { number, report };
                }
                other => return other,
            }
        }
    }

    async fn park(&mut self) -> (u64, Park) {
        match self.frame().await {
            ToLeader::Park { number, park, job: JobId(7), .. } => (number, park),
            other => panic!("{other:?}"),
        }
    }

    async fn spawn(&mut self) -> (u64, Spawn) {
        match self.frame().await {
            ToLeader::Spawn { number, spawn } => (number, *spawn),
            other => panic!("{other:?}"),
        }
    }

    async fn answer(&mut self, number: u64, result: ParkResult) {
        self.session.say(ToWorker::ParkAck { number, result }).await;
    }

    /// What the job did, or its error.
    async fn end(&mut self) -> String {
        match self.frame().await {
            ToLeader::Report { report, .. } => self.ended(report.kind),
            other => panic!("{other:?}"),
        }
    }

    fn ended(&self, report: ReportKind) -> String {
        match report {
            ReportKind::Completed { output, .. } => {
                let output: serde_json::Value = serde_json::from_str(&self.controller.text(&output)).expect("JSON");
                output["log"].as_str().expect("a text").to_owned()
            }
            ReportKind::Failed { failure, .. } => failure.error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.steps.iter().map(|step| step.kind.as_str()).collect()
    }
}

fn message(id: &str) -> Arc<Message> {
    let (answers, channel, payload, from) = (None, None, Payload::inline(b"{\"ok\":true}"), Principal::local());
    Arc::new(Message { id: MessageId::new(id).expect("a name"), answers, channel, payload, from, at: Timestamp(5) })
}

fn mail(first: u64, ids: &[&str]) -> Mail {
    Mail { first, messages: ids.iter().map(|id| message(id)).collect() }
}

#[tokio::test]
async fn a_long_sleep_parks_the_job_and_the_next_attempt_finds_it_over() {
    let mut scene = Scene::set(Duration::ZERO).await;
    scene.grant(&["sleep", "model"], |_| {}).await;
    let (number, park) = scene.park().await;
    let [Wait::Time { at }] = park.waits[..] else { panic!("{park:?}") };
    assert_eq!((park.journal_length, park.read), (1, 0));
    scene.answer(number, ParkResult::Parked).await;
    // Nothing is reported. The next attempt runs in the same place.
    scene.grant(&["sleep", "model"], |journal| journal.slept_until = at).await;
    assert_eq!(scene.end().await, "slept, called");
    assert_eq!(scene.kinds(), ["effect", "sleep", "effect", "model"]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn waits_that_end_soon_ask_nobody() {
    let mut scene = Scene::set(NEVER).await;
    let acts = ["nap", "receive", "receive", "child"];
    let Assignment { job, token, .. } = scene.grant(&acts, |journal| journal.mail = mail(0, &["m1"])).await;
    scene.session.say(ToWorker::Messages { job, token, mail: mail(1, &["m2"]) }).await;
    let (number, spawn) = scene.spawn().await;
    assert_eq!((spawn.agent.as_str(), spawn.priority, spawn.again), ("child", 2, false));
    let end = SpawnEnd::Completed(Payload::inline(b"{\"n\":2}"));
    scene.session.say(ToWorker::Spawned { number, end }).await;
    assert_eq!(
        scene.end().await,
        r#"napped, m1 from local: {"ok":true}, m2 from local: {"ok":true}, Completed(RawValue({"n":2}))"#
    );
    scene.node.shutdown().await;
}

#[tokio::test]
async fn messages_are_read_once_and_a_wait_for_one_has_an_end() {
    let mut scene = Scene::set(Duration::ZERO).await;
    let Assignment { job, token, .. } = scene.grant(&["receive", "listen", "listen"], |_| {}).await;
    let (number, park) = scene.park().await;
    assert_eq!((park.waits, park.read), (vec![Wait::Message], 0));
    scene.session.say(ToWorker::Messages { job, token, mail: mail(0, &["m1"]) }).await;
    scene.answer(number, ParkResult::Ready).await;
    let (number, park) = scene.park().await;
    assert!(matches!(park.waits[..], [Wait::Message, Wait::Time { .. }]) && park.read == 1, "{park:?}");
    scene.answer(number, ParkResult::Parked).await;
    scene.grant(&["receive", "listen", "listen"], |journal| journal.mail = mail(1, &["m2"])).await;
    // What was in the mail may be read before the leader is asked.
    loop {
        let (number, park) = scene.park().await;
        scene.answer(number, ParkResult::Ready).await;
        if park.read == 2 {
            break;
        }
    }
    assert_eq!(scene.end().await, r#"m1 from local: {"ok":true}, m2, nothing"#);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn the_next_attempt_waits_for_the_same_child() {
    let mut scene = Scene::set(Duration::ZERO).await;
    scene.grant(&["child"], |_| {}).await;
    let (_, first) = scene.spawn().await;
    let child = first.child(0);
    // The leader does not know the child yet.
    for result in [ParkResult::Ready, ParkResult::Parked] {
        let (number, park) = scene.park().await;
        assert_eq!(park.waits, [Wait::Child { job: child }]);
        scene.answer(number, result).await;
    }
    scene.grant(&["child"], |_| {}).await;
    let (number, again) = scene.spawn().await;
    assert_eq!((again.child(9), again.again, again.step), (child, true, first.step));
    scene.session.say(ToWorker::Spawned { number, end: SpawnEnd::Failed("kaput".to_owned()) }).await;
    let ended = loop {
        match scene.frame().await {
            ToLeader::Park { number, .. } => scene.answer(number, ParkResult::Ready).await,
            ToLeader::Report { report, .. } => break scene.ended(report.kind),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended, "Failed(\"kaput\")");
    assert_eq!(scene.kinds(), ["effect", "child"]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_park_that_is_refused_ends_the_job_with_the_reason() {
    let mut scene = Scene::set(Duration::ZERO).await;
    scene.grant(&["sleep"], |_| {}).await;
    let (number, _) = scene.park().await;
    scene.answer(number, ParkResult::Refused { why: "no".to_owned() }).await;
    assert_eq!(scene.end().await, "E3013: the job could not be parked: no");
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_job_with_the_credential_of_its_caller_waits_in_its_place() {
    let mut scene = Scene::set(Duration::ZERO).await;
    let assignment = scene.attempt(&["receive"], |_| {});
    let attachments = Attachments::new([Attachment::Bearer(SecretText::new("Bearer canary"))]);
    let assignment = Assignment { attachments, ..assignment };
    scene.session.grant(&assignment).await;
    let Assignment { job, token, .. } = assignment;
    scene.session.say(ToWorker::Messages { job, token, mail: mail(0, &["m1"]) }).await;
    assert_eq!(scene.end().await, r#"m1 from local: {"ok":true}"#);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_job_leaves_a_draining_node_at_its_next_step() {
    let mut scene = Scene::set(NEVER).await;
    let by = HandBack { deadline: Some(HandBackDeadline { until: ClusterTime(1), within: Micros::from_secs(3_600) }) };
    scene.session.say(ToWorker::HandBack(Some(by))).await;
    scene.grant(&["model", "model"], |_| {}).await;
    let (number, park) = scene.park().await;
    assert_eq!((park.waits, park.journal_length), (Vec::new(), 1));
    scene.answer(number, ParkResult::Parked).await;
    scene.session.say(ToWorker::HandBack(None)).await;
    scene.grant(&["model", "model"], |_| {}).await;
    assert_eq!(scene.end().await, "called, called");
    assert_eq!(scene.kinds(), ["effect", "model", "effect", "model"]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_message_that_arrived_without_a_session_is_in_the_welcome() {
    let mut scene = Scene::set(NEVER).await;
    let assignment = scene.grant(&["receive"], |_| {}).await;
    // The attempt runs once its first step is recorded.
    scene.record().await;
    let Scene { mut controller, node, session, agent, steps, attempts } = scene;
    drop(session);
    let mut journal = assignment.journal.clone().expect("a journal");
    journal.mail = mail(0, &["m1"]);
    let session = controller.welcomed(vec![Assignment { journal: Some(journal), ..assignment }]).await;
    let mut scene = Scene { controller, node, session, agent, steps, attempts };
    assert_eq!(scene.end().await, r#"m1 from local: {"ok":true}"#);
    scene.node.shutdown().await;
}
