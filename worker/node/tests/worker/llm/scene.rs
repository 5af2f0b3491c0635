//! A worker with a model agent, and a controller that keeps the journal.

use std::collections::VecDeque;
use std::sync::Arc;

use atlas_types::{
    AssignedJournal, Assignment, Attempt, Journal, Park, ParkResult, ReportResult, SpawnEnd, StepKey, StepsResult,
    ToolEnd, ToolRequest,
};
use atlas_wire::session::{ToLeader, ToWorker};
use atlas_worker::{ModelEnvironment, Options};
use serde_json::Value;

use crate::support::{Agent, Controller, End, Node, Session};

pub(super) struct Scene {
    pub(super) controller: Controller,
    pub(super) node: Node,
    pub(super) session: Session,
    agent: Agent,
    pub(super) journal: Journal,
    /// What the controller is asked for by tool calls and spawns, in order.
    pub(super) asked: Vec<String>,
    /// The answers to the next reservations in a budget; later ones are granted.
    pub(super) budget: VecDeque<StepsResult>,
    /// What was reserved, in billionths of a dollar, in order.
    pub(super) reserved: Vec<u64>,
    /// What the attempts asked for when they were parked, in order.
    pub(super) parked: Vec<Park>,
    /// How many of the next requests to park meet a leader whose clock is ahead: it says that the time has come.
    pub(super) ahead: usize,
    /// The keys of the tool calls, in order.
    pub(super) keys: Vec<(StepKey, bool)>,
}

/// A contract with these members of `provider`, and more members of `agent`.
pub(super) fn contract(provider: &str, more: &str) -> String {
    format!("agent:\n  name: thinker\n  version: 1.0.0\n{more}  provider:\n    type: llm\n{provider}")
}

impl Scene {
    /// A worker whose environment has these variables.
    pub(super) async fn set(files: &[(&str, &str)], variables: &[(&'static str, String)]) -> Self {
        let models = ModelEnvironment::new(variables.iter().cloned());
        Self::set_with(files, |options| options.models = models).await
    }

    /// A worker with other options.
    pub(super) async fn set_with(files: &[(&str, &str)], change: impl FnOnce(&mut Options)) -> Self {
        let mut controller = Controller::start().await;
        let node = Node::start_with(&controller, change).await;
        let session = controller.welcomed(Vec::new()).await;
        let agent = controller.publish(files);
        let (asked, keys, reserved) = (Vec::new(), Vec::new(), Vec::new());
        let (journal, budget) = (Journal::default(), VecDeque::new());
        let (parked, ahead) = (Vec::new(), 0);
        Self { controller, node, session, agent, journal, asked, budget, reserved, parked, ahead, keys }
    }

    /// An attempt that continues the recorded journal.
    pub(super) fn attempt(&mut self, attempt: u32, input: &str) -> Assignment {
        let journal = AssignedJournal { journal: Arc::new(self.journal.clone()), ..AssignedJournal::default() };
        let assignment = self.controller.assignment(&self.agent, input);
        Assignment { attempt: Attempt(attempt), journal: Some(Box::new(journal)), ..assignment }
    }

    /// Runs an attempt to its end, and records its steps.
    pub(super) async fn run(&mut self, assignment: &Assignment) -> End {
        self.session.grant(assignment).await;
        self.record_until(u64::MAX).await.expect("the attempt ends")
    }

    /// Records steps until the journal has this many, or the attempt parks or ends. The worker does not hear of the last one, so it
    /// does not go on.
    pub(super) async fn record_until(&mut self, most: u64) -> Option<End> {
        while self.journal.next() < most {
            match self.session.next().await {
                ToLeader::RecordSteps { number, from, steps, .. } => {
                    assert_eq!(from, self.journal.next());
                    self.journal.steps.extend(steps);
                    if self.journal.next() < most {
                        let result = StepsResult::Applied;
                        self.session.say(ToWorker::StepsAck { number, result }).await;
                    }
                }
                ToLeader::ReserveBudget { number, call, .. } => {
                    self.reserved.push(call.nanodollars);
                    let result = self.budget.pop_front().unwrap_or(StepsResult::Applied);
                    self.session.say(ToWorker::StepsAck { number, result }).await;
                }
                ToLeader::Renew { number } => self.session.say(ToWorker::RenewAck { number }).await,
                ToLeader::StreamEvents { events, .. } => self.session.events.extend(events),
                ToLeader::Deltas { deltas, .. } => self.session.deltas.extend(deltas),
                ToLeader::Report { number, report } => {
                    self.session.say(ToWorker::ReportAck { number, result: ReportResult::Applied }).await;
                    if let Some(end) = End::of(report.kind) {
                        return Some(end);
                    }
                }
                ToLeader::Park { number, park, .. } => {
                    self.parked.push(park);
                    if let Some(left) = self.ahead.checked_sub(1) {
                        self.ahead = left;
                        self.session.say(ToWorker::ParkAck { number, result: ParkResult::Ready }).await;
                        continue;
                    }
                    self.session.say(ToWorker::ParkAck { number, result: ParkResult::Parked }).await;
                    return None;
                }
                ToLeader::CallTool { number, call } => self.answer(number, *call).await,
                ToLeader::Spawn { number, spawn } => {
                    let what = if spawn.skill { "skill" } else { "spawn" };
                    self.asked.push(format!("{what} {} {}", spawn.agent, self.controller.text(&spawn.input)));
                    let end = match spawn.agent.as_str() {
                        "words" if self.asked.len() > 2 => SpawnEnd::Failed("no text".to_owned()),
                        "words" => SpawnEnd::Completed(self.controller.payload(r#"{"words":2}"#)),
                        "echo" => SpawnEnd::Completed(self.controller.payload(r#"{"heard":1}"#)),
                        _ => SpawnEnd::Failed(format!(
                            "Pool error: Agent not found or no implementation: {}",
                            spawn.agent
                        )),
                    };
                    self.session.say(ToWorker::Spawned { number, end }).await;
                }
                _ => {}
            }
        }
        None
    }

    async fn answer(&mut self, number: u64, call: ToolRequest) {
        let arguments = String::from_utf8_lossy(&call.arguments).into_owned();
        self.asked.push(format!("{} {arguments}", call.tool));
        self.keys.push((call.key, call.again));
        if ["atlas.memory.", "atlas.knowledge.", "atlas.documents."].iter().any(|kind| call.tool.starts_with(kind)) {
            let end = crate::library::answer(&call);
            return self.session.say(ToWorker::ToolCalled { number, end }).await;
        }
        let result = match (call.tool.as_str(), arguments.as_str()) {
            ("atlas.tool.lookup", r#"{"name":"echo"}"#) => {
                r#"{"source":"agent","name":"echo","description":"Repeats.","input_schema":{"type":"object","required":["message"]}}"#
            }
            ("atlas.tool.lookup", r#"{"name":"words@^1.0.0"}"#) => {
                r#"{"source":"skill","name":"words","version":"1.2.0","description":"","input_schema":{"type":"object"}}"#
            }
            ("atlas.tool.lookup", _) => r#"{"error":"Skill 'ghost' not found in registry","registry":false}"#,
            ("atlas.monitor.health", _) => {
                let end = ToolEnd::Refused("no".to_owned());
                return self.session.say(ToWorker::ToolCalled { number, end }).await;
            }
            _ => r#"{"agents":[]}"#,
        };
        let end = ToolEnd::Result(result.as_bytes().into());
        self.session.say(ToWorker::ToolCalled { number, end }).await;
    }

    /// Revokes the lease of an attempt. What the worker says of it until then is dropped.
    pub(super) async fn stop(&mut self, attempt: &Assignment) {
        self.session.say(ToWorker::Revoke { job: attempt.job, token: attempt.token }).await;
    }

    /// The recorded steps: kind, tokens and outcome.
    pub(super) fn steps(&self) -> Vec<String> {
        let step = |step: &Arc<atlas_types::Step>| {
            let usage = step.usage;
            let tokens = format!("{}+{}", usage.tokens_input, usage.tokens_output);
            format!("{} {tokens} {}", step.kind.as_str(), self.controller.text(&step.outcome))
        };
        self.journal.steps.iter().map(step).collect()
    }

    /// The metadata that a completed attempt added.
    pub(super) fn metadata(end: &End) -> Value {
        let End::Completed { metadata, .. } = end else { panic!("not completed: {end:?}") };
        metadata.as_ref().map_or(Value::Null, |text| serde_json::from_str(text).expect("metadata is JSON"))
    }
}
