//! One helper: the agent loop with a scripted model.

use std::collections::VecDeque;

use atlas_loki_agent::Config;
use atlas_model::{Message, Tool, ToolCall};
use atlas_supervisor::{HelperOutcome, Tree, WaitCause, supervisor_tools, teammate_tools, user_tools};
use atlas_turn::{AutoContinue, Effect, Event, Limits, NoChecks, OfferedTool, Plan, Settings, ToolReturn, Turn, todo};
use serde_json::{Value, json};

use crate::kind::todo::reply;
use crate::row::text;

/// Equal calls in a row that Loki makes for a helper.
const SAME_CALLS: u32 = 4;

/// What a helper needs next.
pub(super) enum Step {
    /// An answer of its model.
    Ask,
    /// The result of a tool.
    Call(String, Value),
    /// Something that happens elsewhere.
    Wait,
    /// Nothing.
    Ended(HelperOutcome),
}

pub(super) struct Child {
    turn: Turn,
    /// Its texts so far: all of them are its output.
    said: Vec<String>,
    /// The answer of its model, and when it arrives.
    answer: Option<Event>,
    ready_ms: u64,
    calls: VecDeque<ToolCall>,
    results: Vec<ToolReturn>,
    waiting: Option<WaitCause>,
}

impl Child {
    pub(super) fn new(config: &Config) -> Self {
        let mut tools = teammate_tools();
        tools.extend(user_tools());
        if config.helpers.spawns {
            tools.extend(supervisor_tools());
        }
        let continuation = AutoContinue::resolve(&[&config.auto_continue]);
        if continuation.enabled {
            tools.extend(todo::tools());
        }
        let offered = |tool: Tool| OfferedTool { name: tool.name.clone(), tool };
        let turn = Turn::new(Settings {
            system: config.instructions.clone(),
            tools: tools.into_iter().map(offered).collect(),
            limits: Limits { requests: 1000, same_calls: SAME_CALLS, ..Limits::default() },
            plan: continuation.enabled.then(|| Plan { continuation, ..Plan::default() }),
            ..Settings::default()
        });
        Self {
            turn,
            said: Vec::new(),
            answer: None,
            ready_ms: u64::MAX,
            calls: VecDeque::new(),
            results: Vec::new(),
            waiting: None,
        }
    }

    pub(super) fn next_ms(&self) -> u64 {
        self.ready_ms
    }

    pub(super) fn start(&mut self, prompt: String) -> Step {
        let said = vec![Message::user(prompt)];
        self.step(Event::Started { input: json!({}), images: Vec::new(), said })
    }

    /// Its model is asked, and will answer with a scripted reply.
    pub(super) fn ask(&mut self, scripted: Option<&Value>, ready_ms: u64) {
        let sleep = scripted.and_then(|reply| reply["sleep"].as_f64()).unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a row, which are few")]
        let sleep = (sleep.max(0.0) * 1000.0) as u64;
        if let Some(scripted) = scripted {
            let said = scripted.as_str().unwrap_or(text(scripted, "text"));
            if !said.is_empty() {
                self.said.push(said.to_owned());
            }
        }
        self.answer = Some(reply(scripted));
        self.ready_ms = ready_ms.saturating_add(sleep);
    }

    /// Its model answers.
    pub(super) fn answered(&mut self) -> Step {
        match self.answer.take() {
            Some(event) => self.step(event),
            None => Step::Wait,
        }
    }

    pub(super) fn wait(&mut self, waiting: WaitCause, until_ms: u64) {
        (self.waiting, self.ready_ms) = (Some(waiting), until_ms);
    }

    pub(super) fn take_waiting(&mut self) -> Option<WaitCause> {
        self.waiting.take()
    }

    /// A helper whose wait is over asks again now.
    pub(super) fn wake(&mut self, tree: &Tree, now_ms: u64) {
        let ready = match &self.waiting {
            None => false,
            Some(WaitCause::Helper(id)) => tree.has_ended(id) || tree.questions().next().is_some(),
            Some(WaitCause::Reply(question)) => tree.questions().all(|open| open.id != question.id),
        };
        if ready {
            self.ready_ms = now_ms;
        }
    }

    /// The result of its tool.
    pub(super) fn returned(&mut self, value: Value) -> Step {
        if let Some(call) = self.calls.pop_front() {
            self.results.push(ToolReturn { call: call.id, outcome: atlas_turn::Outcome::Value(value) });
        }
        match self.calls.front() {
            Some(call) => Step::Call(call.name.clone(), call.arguments.clone()),
            None => {
                let results = std::mem::take(&mut self.results);
                self.step(Event::Returned(results))
            }
        }
    }

    fn step(&mut self, event: Event) -> Step {
        let mut effects = self.turn.step(event, &NoChecks);
        match effects.pop() {
            Some(Effect::Call { .. }) => Step::Ask,
            Some(Effect::Tools { calls, .. }) => {
                self.calls = calls.into();
                match self.calls.front() {
                    Some(call) => Step::Call(call.name.clone(), call.arguments.clone()),
                    None => Step::Wait,
                }
            }
            Some(Effect::Finish { .. }) => Step::Ended(HelperOutcome::Completed(self.said.join("\n"))),
            Some(Effect::Fail(failure)) => Step::Ended(HelperOutcome::Failed(failure.to_string())),
            // The team asks whether it may stop.
            Some(Effect::Stop { .. }) => self.step(Event::Stopping(None)),
            Some(Effect::Warn(_)) | None => Step::Wait,
        }
    }
}
