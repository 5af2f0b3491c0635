//! A row's people and models, and what a run showed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use atlas_env::Env;
use atlas_graph::run::{BranchEnd, Effect, Fault, FaultKind};
use atlas_graph_run::{Host, NodePlace, NodeQuestion};
use atlas_model::{Answer, CallError, CallErrorKind, Part, Request, Stop, Usage};
use serde_json::{Value, json};

use super::runs::stepped;
use crate::row::{Row, items, text};

/// The model of a row's agent, if it names none.
const MODEL: &str = "m";

/// What a run showed.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) trace: Vec<Vec<(String, BranchEnd)>>,
    /// The nodes of each super-step of the graphs inside, by depth and name.
    pub(super) nested: BTreeMap<(u32, String), Vec<Vec<String>>>,
    pub(super) questions: Vec<Value>,
    pub(super) requests: Vec<Request>,
}

/// The surroundings of a row's run.
pub(super) struct RowHost {
    env: Env,
    replies: Vec<Value>,
    answers: Vec<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seen: Seen,
    /// The replies that are used up.
    used: Vec<usize>,
    answered: usize,
}

impl RowHost {
    pub(super) fn new(row: &Row) -> Self {
        let answers = items(&row.input, "answers").filter_map(|answer| Some(answer.as_str()?.to_owned()));
        let replies = items(&row.input, "replies").cloned().collect();
        Self { env: Env::system(), replies, answers: answers.collect(), state: Mutex::default() }
    }

    pub(super) fn seen(&self) -> Seen {
        self.state().seen.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first unused reply for a request.
    fn reply(&self, request: &Request) -> Option<Value> {
        let said: Vec<String> = request.messages.iter().map(atlas_model::Message::text).collect();
        let said = format!("{}\n{}", request.system, said.join("\n"));
        let mut state = self.state();
        let fits = |reply: &Value| reply.get("match").and_then(Value::as_str).is_none_or(|word| said.contains(word));
        let place = (0..self.replies.len()).find(|place| !state.used.contains(place) && fits(&self.replies[*place]))?;
        state.used.push(place);
        Some(self.replies[place].clone())
    }
}

#[async_trait]
impl Host for RowHost {
    async fn call(&self, _: NodePlace<'_>, model: Option<&str>, mut request: Request) -> Result<Answer, CallError> {
        // The rows call the provider `fake`.
        request.model = model.unwrap_or(MODEL).trim_start_matches("fake:").to_owned();
        self.state().seen.requests.push(request.clone());
        let none = || CallError::new(CallErrorKind::Provider, "the row has no further reply");
        let reply = self.reply(&request).ok_or_else(none)?;
        if let Some(seconds) = reply.get("sleep").and_then(Value::as_f64) {
            self.env.clock.sleep(Duration::from_secs_f64(seconds)).await;
        }
        if let Some(status) = reply.get("status").and_then(Value::as_u64).filter(|status| *status >= 400) {
            let kind = match status {
                401 | 403 => CallErrorKind::Credentials,
                404 => CallErrorKind::UnknownModel,
                429 => CallErrorKind::RateLimited,
                400..=499 => CallErrorKind::Request,
                _ => CallErrorKind::Provider,
            };
            return Err(CallError::new(kind, text(&reply, "error")));
        }
        let said = reply.as_str().unwrap_or_else(|| text(&reply, "text")).to_owned();
        let parts = vec![Part::Text { text: said }];
        let (usage, raw) = (Usage::default(), serde_json::Map::new());
        Ok(Answer { parts, stop: Stop::End, usage, model: request.model, id: None, raw })
    }

    async fn ask(&self, asked: NodeQuestion<'_>) -> Result<String, Fault> {
        let mut state = self.state();
        let question = asked.question;
        let kind = if question.options.is_some() { FaultKind::Approval } else { FaultKind::Input };
        let mark = if question.options.is_some() { "ask" } else { "input" };
        let agent = if asked.place.depth == 0 { "g" } else { asked.place.graph };
        let mut shown = json!({"from_agent_name": agent, "question": format!("[{mark}] {}", question.text)});
        if let Some(options) = &question.options {
            shown["options"] = json!(options);
        }
        state.seen.questions.push(shown);
        let answer = self.answers.get(state.answered).cloned();
        state.answered += 1;
        answer.ok_or_else(|| Fault::new(kind, "nobody answers"))
    }

    async fn agent(&self, _: NodePlace<'_>, agent: &str, _: &str) -> Result<String, Fault> {
        Err(Fault::new(FaultKind::Agent, format!("agent \"{agent}\" has no graph")))
    }

    fn observe(&self, depth: u32, graph: &str, effect: &Effect) {
        let Some(branches) = stepped(effect) else { return };
        let mut state = self.state();
        match depth {
            0 => state.seen.trace.push(branches.clone()),
            _ => {
                let ids = branches.iter().map(|(id, _)| id.clone()).collect();
                state.seen.nested.entry((depth, graph.to_owned())).or_default().push(ids);
            }
        }
    }
}
