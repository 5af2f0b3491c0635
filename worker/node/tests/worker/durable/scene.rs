//! A worker with a durable program, and a controller that keeps its journal.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atlas_types::{
    AssignedJournal, Assignment, AttachedSecret, Attachment, Attachments, Attempt, JobId, Journal, Mail, Message,
    MessageId, Micros, Park, ParkResult, Payload, Principal, ReportResult, SecretSource, SecretText, SpawnEnd,
    StepKind, StepsResult, Timestamp, ToolEnd, Wait,
};
use atlas_wire::session::{ToLeader, ToWorker};
use serde_json::Value;

use crate::support::{Agent, Controller, End, Node, PATIENCE, Session, in_time, until};

const HEADER: &str = r#"
import asyncio, os, time
from atlas.runtime.base import AgentBase


def wrote(file, line):
    with open(file, "a") as log:
        log.write(f"{line}\n")
    return line


def counted(file, n):
    return wrote(file, n)


def fails(file):
    wrote(file, "failed")
    raise ValueError("no luck")


def returns_a_set(file):
    return {1, 2}


def slow(file, line, pause):
    wrote(file, line)
    time.sleep(pause)
    return line


def large(file):
    wrote(file, "large")
    time.sleep(5)
    return "x" * 100_000


class A(AgentBase):
"#;

/// A durable agent whose class has this body.
pub(super) fn agent(body: &str, more: &str) -> Vec<(&'static str, String)> {
    let contract = format!("agent:\n  name: py\n  version: 1.0.0\n  durable: true\n  execution_timeout: 600\n{more}");
    vec![("agent.yaml", contract), ("agent.py", format!("{}{body}", HEADER.trim_start()))]
}

pub(super) struct Scene {
    pub(super) controller: Controller,
    pub(super) node: Node,
    pub(super) session: Session,
    agent: Agent,
    pub(super) journal: Journal,
    /// Where steps leave lines.
    file: PathBuf,
    /// What the worker asked people, and the answers that are left.
    pub(super) asked: Vec<Value>,
    pub(super) answers: VecDeque<&'static str>,
    /// Jobs that the program spawned.
    pub(super) spawned: Vec<String>,
    /// What the job was parked for.
    pub(super) parked: Vec<Park>,
    /// Whether the leader parks jobs.
    pub(super) parks: bool,
    pub(super) mail: Vec<Arc<Message>>,
    pub(super) slept_until: Timestamp,
    /// Messages that were read before this attempt.
    read: u64,
}

impl Scene {
    pub(super) async fn set(files: &[(&'static str, String)]) -> Self {
        Self::set_with(Duration::from_secs(10), Duration::ZERO, files).await
    }

    /// With sessions that last so long without a renewal, and jobs that wait so long before they park.
    pub(super) async fn set_with(ttl: Duration, park_after: Duration, files: &[(&'static str, String)]) -> Self {
        let mut controller = Controller::start().await;
        let node = Node::start_with(&controller, |options| options.park_after = park_after).await;
        let mut session = controller.session().await;
        session.hello().await;
        session.welcome_for(ttl, Vec::new()).await;
        let agent = controller.publish_owned(files);
        let file = node.dir.path().join("lines.txt");
        Self {
            controller,
            node,
            session,
            agent,
            journal: Journal::default(),
            file,
            asked: Vec::new(),
            answers: VecDeque::new(),
            spawned: Vec::new(),
            parked: Vec::new(),
            parks: true,
            mail: Vec::new(),
            slept_until: Timestamp::NOT_YET,
            read: 0,
        }
    }

    pub(super) fn publish(&mut self, files: &[(&'static str, String)]) {
        self.agent = self.controller.publish_owned(files);
    }

    /// An attempt that goes on with the recorded journal.
    pub(super) fn attempt(&mut self, attempt: u32) -> Assignment {
        let first = usize::try_from(self.read).expect("few");
        let mail = Mail { first: self.read, messages: self.mail.iter().skip(first).cloned().collect() };
        let slept_until = self.slept_until;
        let journal = Arc::new(self.journal.clone());
        let journal = AssignedJournal { journal, mail, slept_until, ..AssignedJournal::default() };
        let input = serde_json::json!({ "file": self.file }).to_string();
        let assignment = self.controller.assignment(&self.agent, &input);
        Assignment { job: JobId(7), attempt: Attempt(attempt), journal: Some(Box::new(journal)), ..assignment }
    }

    pub(super) fn attempt_with_secret(&mut self, attempt: u32, name: &str, value: &str) -> Assignment {
        let secret = AttachedSecret { source: SecretSource::Value(SecretText::new(value)), declared: true };
        let attachments = Attachments::new([Attachment::Secrets(BTreeMap::from([(name.to_owned(), secret)]))]);
        Assignment { attachments, ..self.attempt(attempt) }
    }

    /// Runs an attempt to its end.
    pub(super) async fn run(&mut self, assignment: &Assignment) -> End {
        self.session.grant(assignment).await;
        self.record_until(u64::MAX).await.expect("the attempt ends")
    }

    /// Records steps until the journal has this many, or the attempt parks or ends. The worker does not hear of the last one.
    pub(super) async fn record_until(&mut self, most: u64) -> Option<End> {
        while self.journal.next() < most {
            match self.session.next().await {
                ToLeader::RecordSteps { number, from, steps, .. } => {
                    assert_eq!(from, self.journal.next());
                    self.journal.steps.extend(steps);
                    if self.journal.next() < most {
                        self.session.say(ToWorker::StepsAck { number, result: StepsResult::Applied }).await;
                    }
                }
                ToLeader::Renew { number } => self.session.say(ToWorker::RenewAck { number }).await,
                ToLeader::StreamEvents { events, .. } => self.session.events.extend(events),
                ToLeader::Report { number, report } => {
                    self.session.say(ToWorker::ReportAck { number, result: ReportResult::Applied }).await;
                    if let Some(end) = End::of(report.kind) {
                        return Some(end);
                    }
                }
                ToLeader::Park { number, park, job, token } => {
                    let is_ready = !self.parks || self.is_over(&park);
                    let result = if is_ready { ParkResult::Ready } else { ParkResult::Parked };
                    self.read = park.read;
                    self.parked.push(park);
                    if is_ready {
                        let first = usize::try_from(self.read).expect("few");
                        let mail = Mail { first: self.read, messages: self.mail.iter().skip(first).cloned().collect() };
                        self.session.say(ToWorker::Messages { job, token, mail }).await;
                    }
                    self.session.say(ToWorker::ParkAck { number, result }).await;
                    if !is_ready {
                        return None;
                    }
                }
                ToLeader::CallTool { number, call } => {
                    let arguments: Value = serde_json::from_slice(&call.arguments).expect("JSON");
                    self.asked.push(serde_json::json!({ "tool": call.tool, "arguments": arguments }));
                    if let Some(answer) = self.answers.pop_front() {
                        let end = match answer.strip_prefix("refused ") {
                            Some(why) => ToolEnd::Refused(why.to_owned()),
                            None => ToolEnd::Result(answer.as_bytes().into()),
                        };
                        self.session.say(ToWorker::ToolCalled { number, end }).await;
                    }
                }
                ToLeader::Spawn { number, spawn } => {
                    self.spawned.push(format!("{} {}", spawn.agent, self.controller.text(&spawn.input)));
                    if spawn.agent == "echo" {
                        let end = SpawnEnd::Completed(Payload::inline(b"{\"heard\":1}"));
                        self.session.say(ToWorker::Spawned { number, end }).await;
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn is_over(&self, park: &Park) -> bool {
        park.waits.contains(&Wait::Message) && self.mail.len() as u64 > park.read
    }

    /// Takes the lease of an attempt away.
    pub(super) async fn revoke(&mut self, attempt: &Assignment) {
        self.session.say(ToWorker::Revoke { job: attempt.job, token: attempt.token }).await;
    }

    pub(super) async fn cancel(&mut self, attempt: &Assignment) {
        let (job, token, grace) = (attempt.job, attempt.token, Micros::from(Duration::from_secs(1)));
        self.session.say(ToWorker::Cancel { job, token, grace }).await;
    }

    /// A message of a channel arrives at the job.
    pub(super) fn message(&mut self, id: &str, channel: Option<&str>) {
        let message = Message {
            id: MessageId::new(id).expect("a name"),
            answers: None,
            channel: channel.map(|name| atlas_types::Channel::new(name).expect("a name")),
            payload: Payload::inline(format!("\"{id}\"").as_bytes()),
            from: Principal::local(),
            at: Timestamp(5),
        };
        self.mail.push(Arc::new(message));
    }

    /// What steps have left in the file.
    pub(super) fn lines(&self) -> String {
        std::fs::read_to_string(&self.file).unwrap_or_default()
    }

    /// Waits until a step has left a line. Renewals are answered later.
    pub(super) async fn until_line(&mut self, line: &str) {
        let file = self.file.clone();
        let holds = || std::fs::read_to_string(&file).is_ok_and(|text| text.lines().any(|one| one == line));
        // The worker's first step must be recorded before its program does one.
        let looking = until("a line", PATIENCE, holds);
        tokio::pin!(looking);
        loop {
            tokio::select! {
                () = &mut looking => return,
                said = self.session.next() => match said {
                    ToLeader::RecordSteps { number, from, steps, .. } => {
                        assert_eq!(from, self.journal.next());
                        self.journal.steps.extend(steps);
                        self.session.say(ToWorker::StepsAck { number, result: StepsResult::Applied }).await;
                    }
                    ToLeader::Renew { number } => self.session.say(ToWorker::RenewAck { number }).await,
                    ToLeader::Report { report, .. } => panic!("{report:?}"),
                    _ => {}
                },
            }
        }
    }

    pub(super) fn kinds(&self) -> Vec<StepKind> {
        self.journal.steps.iter().map(|step| step.kind).collect()
    }

    /// The outcomes of all steps.
    pub(super) fn outcomes(&self) -> String {
        self.journal.steps.iter().map(|step| self.controller.text(&step.outcome)).collect::<Vec<_>>().join("\n")
    }

    /// The names of the calls that are recorded; those of other steps are empty.
    pub(super) fn names(&self) -> Vec<String> {
        let name = |text: String| {
            let outcome: Value = serde_json::from_str(&text).expect("JSON");
            outcome["name"].as_str().unwrap_or_default().to_owned()
        };
        self.journal.steps.iter().map(|step| name(self.controller.text(&step.outcome))).collect()
    }

    pub(super) async fn shutdown(self) {
        in_time("the end", self.node.shutdown()).await;
    }
}
