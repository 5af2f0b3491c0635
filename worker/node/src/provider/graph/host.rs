//! What a run needs of the worker: its journal, processes, models, people and other agents.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use atlas_documents::VectorCache;
use atlas_graph::run::{Change, Effect, Fault, FaultKind, Note, Question, Work};
use atlas_graph::{Graph, Kind};
use atlas_graph_run::{Beginning, Embedder, Host, NodePlace, NodeQuestion, Piece, Process, ProcessEnd};
use atlas_model::{Answer, CallError, CallErrorKind, Request, Tool, ToolCall, Usage};
use atlas_turn::{OfferedTool, ToolReturn};
use atlas_types::{Namespace, StepKey, StepKind, StepUsage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::helpers::{self, Helpers};
use super::models::GraphModels;
use super::permitted::Permitted;
use super::remote::Remote;
use crate::agent::Agent;
use crate::journal::{Book, ChildCall, JournalError, Purse, UNATTENDED, Working, hashed};
use crate::mailbox::Answer as Called;
use crate::provider::command::{self, Keep, Launch};
use crate::provider::llm::loki_agent::toolbox::Toolbox;
use crate::provider::llm::outage::Limit;
use crate::provider::platform::Platform;
use crate::provider::round::caller::{Callable, Caller, Told, locked};
use crate::provider::round::model::CallFault;
use crate::provider::{Shared, library, user};
use crate::secrets::Secrets;

/// The surroundings of the run of one attempt.
pub(super) struct Surroundings<'a> {
    pub(super) shared: &'a Shared,
    pub(super) agent: &'a Arc<Agent>,
    pub(super) graph: &'a Graph,
    pub(super) job: String,
    pub(super) namespace: Namespace,
    /// The calls for searches, one at a time, so that nodes with the same documents do not make the same call twice.
    pub(super) searching: tokio::sync::Mutex<BTreeSet<StepKey>>,
    pub(super) book: Book,
    pub(super) purse: Purse,
    /// What answers the calls for memory, knowledge and document bases.
    pub(super) platform: Platform,
    /// None if no node calls tools.
    pub(super) toolbox: Option<Toolbox>,
    /// Which tools may be called.
    pub(super) permits: Permitted,
    /// None for a graph that calls no models.
    pub(super) models: Option<GraphModels>,
    /// The MCP servers of model nodes.
    pub(super) remote: Remote,
    pub(super) helpers: Helpers,
    /// Access tokens of models are added while it runs.
    pub(super) secrets: Mutex<Secrets>,
    /// The environment of scripts.
    pub(super) environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    pub(super) told: mpsc::UnboundedSender<Told>,
    pub(super) tokens: Tokens,
    /// How long the attempt waits for providers of models.
    pub(super) outage_limit: Limit,
}

/// The tokens of all calls, and what pieces of work that have not ended have used.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) input: AtomicU64,
    pub(super) output: AtomicU64,
    /// Whether a part of them is an estimate.
    pub(super) estimated: AtomicBool,
    open: Mutex<BTreeMap<StepKey, Used>>,
}

/// What a piece of work has used of models.
#[derive(Debug, Default, Clone, Copy)]
struct Used {
    input: u64,
    output: u64,
    nanodollars: u64,
}

impl Tokens {
    pub(super) fn add(&self, usage: &Usage) {
        self.input.fetch_add(usage.input, Ordering::Relaxed);
        self.output.fetch_add(usage.output, Ordering::Relaxed);
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<StepKey, Used>> {
        // Every change is complete while the lock is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call of a piece of work.
    pub(super) fn note(&self, work: StepKey, usage: &Usage, nanodollars: u64) {
        self.add(usage);
        let mut open = self.open();
        let used = open.entry(work).or_default();
        used.input += usage.input;
        used.output += usage.output;
        used.nanodollars += nanodollars;
    }
}

/// The recorded result of a piece of work.
#[derive(Debug, Serialize, Deserialize)]
struct WorkEnd {
    graph: String,
    node: String,
    /// The number of the super-step.
    step: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<usize>,
    #[serde(flatten)]
    end: End,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    Result(Value),
    Fault(Fault),
}

impl From<End> for Result<Value, Fault> {
    fn from(end: End) -> Self {
        match end {
            End::Result(value) => Ok(value),
            End::Fault(fault) => Err(fault),
        }
    }
}

/// What a model call is known by.
#[derive(Serialize)]
struct CallKey<'a, R> {
    call: &'a str,
    work: [u8; 16],
    request: &'a R,
}

/// The key of a piece of work. It has the place and the visit, and not what is asked: the same work is asked the same.
pub(super) fn work_key(place: NodePlace<'_>, what: &str) -> StepKey {
    let work = place.work;
    hashed(&("graph", what, place.depth, place.graph, (work.step, &work.node, work.item, work.asked)))
}

impl Surroundings<'_> {
    /// Ends the attempt. The work that noticed never ends.
    pub(super) async fn fail<T>(&self, error: JournalError) -> T {
        self.book.fail(error);
        std::future::pending().await
    }

    pub(super) fn secrets(&self) -> Secrets {
        locked(&self.secrets).clone()
    }

    pub(super) fn tell(&self, told: Told) {
        // The receiver lives as long as the run.
        let _ = self.told.send(told);
    }

    /// Secrets in values of variables: only processes get them.
    fn revealed(&self, value: &std::ffi::OsStr) -> Option<std::ffi::OsString> {
        let text = value.to_str().filter(|text| text.contains("{{"))?;
        let mut revealed = text.to_owned();
        for name in atlas_package::placeholders(text) {
            if let Some(secret) = self.secrets().declared(name) {
                revealed = revealed.replace(&format!("{{{{{name}}}}}"), secret.expose());
            }
        }
        Some(revealed.into())
    }

    /// A new value of the state, without secrets and shortened.
    fn value_shown(&self, change: &Change) -> (String, Value) {
        let Some(value) = &change.value else {
            return (change.key.clone(), format!("more than {} KiB", Change::BYTES_MAX >> 10).into());
        };
        (change.key.clone(), excerpt(&self.secrets().redactor().text(value)).into())
    }

    fn question(&self, place: NodePlace<'_>, question: &Question) -> (&'static str, Value) {
        let timeout = match self.graph.node(place.node).map(|node| &node.kind) {
            Some(Kind::Approval(approval)) => approval.timeout,
            _ => None,
        };
        let mut arguments = json!({ "question": question.text });
        if let Some(seconds) = timeout {
            arguments["timeout_seconds"] = seconds.into();
        }
        match &question.options {
            Some(options) => {
                arguments["options"] = json!(options);
                ("user__ask", arguments)
            }
            None => ("user__input", arguments),
        }
    }

    pub(super) async fn called(
        &self,
        callable: &Callable,
        key: StepKey,
        request: Request,
    ) -> Result<Arc<[u8]>, CallFault> {
        let (env, secrets, told) = (&self.shared.env, &self.secrets, &self.told);
        let (book, purse, outage_limit) = (&self.book, &self.purse, self.outage_limit);
        let caller = Caller { env, job: &self.job, book, purse, secrets, told, outage_limit };
        caller.called(callable, key, request).await
    }
}

pub(super) fn other(text: impl Into<String>) -> CallError {
    CallError::new(CallErrorKind::Answer, text)
}

#[async_trait]
impl Piece for Working<'_> {
    fn rests(&mut self) {
        Working::rests(self);
    }

    async fn goes_on(&mut self) {
        Working::goes_on(self).await;
    }
}

#[async_trait]
impl Host for Surroundings<'_> {
    async fn begin(&self, place: NodePlace<'_>, _: &Work) -> Beginning<'_> {
        if let Some(outcome) = self.book.known(work_key(place, "work")) {
            return match serde_json::from_slice::<WorkEnd>(&outcome) {
                Ok(recorded) => Beginning::Recorded(recorded.end.into()),
                Err(error) => self.fail(JournalError::Unreadable { step: place.work.step, error }).await,
            };
        }
        match self.book.begin().await {
            Ok(working) => {
                self.tell(Told::Progress(event("node_started", place)));
                Beginning::Open(Box::new(working))
            }
            Err(error) => self.fail(error).await,
        }
    }

    async fn finish(&self, place: NodePlace<'_>, result: &Result<Value, Fault>) {
        let (work, key) = (place.work, work_key(place, "work"));
        let end = match result.clone() {
            Ok(mut value) => {
                self.secrets().redactor().json(&mut value);
                End::Result(value)
            }
            Err(fault) => End::Fault(Fault { text: self.secrets().redactor().text(&fault.text).into_owned(), ..fault }),
        };
        let recorded =
            WorkEnd { graph: place.graph.to_owned(), node: work.node.clone(), step: work.step, item: work.item, end };
        let recorded = match serde_json::to_vec(&recorded) {
            Ok(outcome) => self.book.record(StepKind::Effect, key, outcome, StepUsage::default()).await.map(drop),
            Err(error) => Err(JournalError::Unreadable { step: work.step, error }),
        };
        if let Err(error) = recorded {
            return self.fail(error).await;
        }
        let used = self.tokens.open().remove(&key);
        let mut event = match result {
            Ok(_) => event("node_finished", place),
            Err(fault) => {
                let mut failed = event("node_failed", place);
                failed["error"] = excerpt(&fault.text).into();
                failed
            }
        };
        if let Some(Used { input, output, nanodollars }) = used {
            event["tokens_input"] = input.into();
            event["tokens_output"] = output.into();
            event["cost_usd"] = json!(nanodollars as f64 / 1e9);
        }
        self.tell(Told::Progress(event));
    }

    async fn process(&self, process: Process) -> io::Result<ProcessEnd> {
        let mut environment = self.environment.clone();
        for (name, value) in process.variables {
            let value = self.revealed(&value).unwrap_or(value);
            environment.retain(|(other, _)| *other != name);
            environment.push((name, value));
        }
        let launch = Launch {
            program: process.program,
            arguments: process.arguments,
            directory: process.directory,
            environment,
            stdout: Keep::First(process.stdout_max),
            stderr: Keep::First(process.stderr_max),
            writable: Vec::new(),
        };
        let command::Ended { status, stdout, stderr } = command::run(self.shared, self.agent, launch).await?;
        for line in String::from_utf8_lossy(&stderr).lines() {
            self.tell(Told::Log { level: "info", text: line.to_owned() });
        }
        Ok(ProcessEnd { status, stdout, stderr })
    }

    async fn call(&self, place: NodePlace<'_>, model: Option<&str>, request: Request) -> Result<Answer, CallError> {
        let Some(models) = &self.models else { return Err(other("the graph has no model")) };
        if !request.task.is_chat() {
            return self.search_call(place, model.unwrap_or_default(), request).await;
        }
        let Some(models) = models.named(model) else {
            let text = format!(
                "there is no model \"{}\"; add it: atlasctl model add. An agent.yaml beside the graph names it in model.others",
                model.unwrap_or_default()
            );
            return Err(CallError::new(CallErrorKind::UnknownModel, text));
        };
        let (fixed, _) = models;
        let request = Request { model: fixed.settings.model.clone(), stream: fixed.settings.stream, ..request };
        let work = work_key(place, "work");
        let key = self.book.key(&CallKey { call: "model", work: work.0, request: &request });
        self.noted(models, (work, key), request, true).await
    }

    fn embedder(&self, model: &str) -> Result<Embedder, CallError> {
        let (fixed, _) = self.search_model(model)?;
        fixed.embedder(&self.namespace)
    }

    fn vectors(&self) -> Option<Arc<VectorCache>> {
        Some(Arc::clone(&self.shared.settings.vectors))
    }

    fn judges(&self, model: Option<&str>) -> bool {
        let models = self.models.as_ref().and_then(|models| models.named(model));
        models.is_none_or(|(fixed, _)| fixed.settings.judged)
    }

    async fn warn(&self, _: NodePlace<'_>, text: String) {
        self.tell(Told::Log { level: "warning", text });
    }

    async fn tools(&self, place: NodePlace<'_>, names: &[String]) -> Result<Vec<OfferedTool>, Fault> {
        let own = self.toolbox.as_ref().map(Toolbox::offered).unwrap_or_default();
        let mut offered: Vec<OfferedTool> = Vec::new();
        for name in names {
            if let Some(server) = name.strip_prefix("mcp:").filter(|server| self.remote.has(server)) {
                offered.extend(Remote::offered(server));
            } else if let Some(tool) = own.iter().find(|tool| tool.name == *name) {
                offered.push(tool.clone());
            } else if let Some(tool) = library::listed(&self.agent.contract.requires, name) {
                offered.push(tool);
            } else if let Some(tool) = self.helpers.offered(name) {
                offered.push(tool);
            } else if let Some(tool) = user::find(name) {
                let (name, description) = (tool.name.to_owned(), tool.description.to_owned());
                let tool = Tool { name: name.clone(), description, input_schema: tool.input_schema() };
                offered.push(OfferedTool { name, tool });
            } else {
                return Err(Fault::new(FaultKind::Llm, missing(place.node, name)));
            }
        }
        let mut seen = BTreeSet::new();
        offered.retain(|tool| seen.insert(tool.name.clone()));
        let legal = atlas_llm::names::legal(offered.iter().map(|tool| tool.name.as_str()));
        for (tool, legal) in offered.iter_mut().zip(legal) {
            tool.tool.name = legal;
        }
        Ok(offered)
    }

    async fn use_tools(&self, place: NodePlace<'_>, calls: Vec<ToolCall>) -> Vec<ToolReturn> {
        let key = self.book.key(&CallKey { call: "tools", work: work_key(place, "work").0, request: &calls });
        let remote_key = hashed(&("servers", key.0));
        let help_key = |number: usize| hashed(&("help", key.0, number));
        let mut refused = Vec::new();
        for (number, call) in calls.iter().enumerate() {
            let of_people = user::find(&call.name).is_some();
            let recorded = match call {
                call if helpers::is_one(&call.name) => help_key(number),
                call if self.remote.answers(call) => remote_key,
                _ => key,
            };
            // What was recorded was allowed or refused before.
            let recorded = self.book.known(recorded).is_some();
            if !of_people && !recorded {
                let question = hashed(&("permit", key.0, number));
                refused.extend(self.refusal(call, question).await.map(|outcome| (call.id.clone(), outcome)));
            }
        }
        let is_refused = |call: &ToolCall| refused.iter().any(|(id, _)| *id == call.id);
        let (asks, others): (Vec<_>, Vec<_>) =
            calls.into_iter().enumerate().partition(|(_, call)| user::find(&call.name).is_some());
        let (help, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, call)| helpers::is_one(&call.name) && !is_refused(call));
        let (remote, local): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, call)| self.remote.answers(call) && !is_refused(call));
        let mut returned: Vec<(usize, ToolReturn)> = Vec::new();
        for (place, call) in asks {
            returned.push((place, self.asked(&call, hashed(&("user", key.0, place))).await));
        }
        for (place, call) in help {
            match self.help(&call, help_key(place)).await {
                Ok(end) => returned.push((place, end)),
                Err(error) => return self.fail(error).await,
            }
        }
        let (places, remote): (Vec<usize>, Vec<ToolCall>) = remote.into_iter().unzip();
        if !remote.is_empty() {
            match self.remotely(remote_key, &remote).await {
                Ok(ends) => returned.extend(places.into_iter().zip(ends)),
                Err(error) => return self.fail(error).await,
            }
        }
        let (places, local): (Vec<usize>, Vec<ToolCall>) = local.into_iter().unzip();
        if !local.is_empty() {
            match self.locally(key, &local, &refused).await {
                Ok(ends) => returned.extend(places.into_iter().zip(ends)),
                Err(error) => return self.fail(error).await,
            }
        }
        returned.sort_by_key(|(place, _)| *place);
        returned.into_iter().map(|(_, returned)| returned).collect()
    }

    async fn ask(&self, asked: NodeQuestion<'_>) -> Result<String, Fault> {
        let NodeQuestion { place, question } = asked;
        let (tool, arguments) = self.question(place, question);
        self.tell(Told::Progress(
            json!({"event": "question_opened", "node": place.work.node, "question": question.text}),
        ));
        match self.book.question(work_key(place, "question"), tool, &arguments).await {
            Ok(Called::Completed(result)) => {
                let result: Value = serde_json::from_slice(&result).unwrap_or_default();
                match result.get("answer") {
                    Some(Value::String(text)) => Ok(text.clone()),
                    Some(other) => Ok(other.to_string()),
                    None => Err(Fault::new(FaultKind::NoAnswer, "nobody answered the question in time")),
                }
            }
            Ok(Called::Failed(why) | Called::Refused(why)) if why.starts_with(UNATTENDED) => {
                self.fail(JournalError::Unattended(why)).await
            }
            Ok(Called::Failed(why) | Called::Refused(why)) => {
                let approval = question.options.is_some();
                Err(Fault::new(if approval { FaultKind::Approval } else { FaultKind::Input }, why))
            }
            Err(error) => self.fail(error).await,
        }
    }

    async fn agent(&self, place: NodePlace<'_>, agent: &str, prompt: &str) -> Result<String, Fault> {
        let failed = |why: String| Fault::new(FaultKind::Agent, format!("agent \"{agent}\": {why}"));
        let input = RawValue::from_string(message(prompt).to_string()).map_err(|error| failed(error.to_string()))?;
        let call = ChildCall { agent: agent.to_owned(), input, priority: 0, skill: false };
        match self.book.child(work_key(place, "child"), call).await {
            Ok(Called::Completed(output)) => Ok(text(&serde_json::from_slice(&output).unwrap_or_default())),
            Ok(Called::Failed(why) | Called::Refused(why)) => Err(failed(why)),
            Err(error) => self.fail(error).await,
        }
    }

    async fn abandon(&self, place: NodePlace<'_>) {
        if let Err(error) = self.book.cancel(work_key(place, "child")).await {
            self.fail(error).await
        }
    }

    fn observe(&self, _: u32, _: &str, effect: &Effect) {
        match effect {
            Effect::Stepped(record) => {
                let changed = record.changed.as_deref().unwrap_or_default();
                let keys: Vec<&str> = changed.iter().map(|change| change.key.as_str()).collect();
                let mut event = json!({"event": "state_merged", "step": record.number, "keys": keys});
                event["values"] = changed.iter().take(VALUES_MAX).map(|change| self.value_shown(change)).collect();
                event["next"] = json!(record.frontier());
                self.tell(Told::Progress(event));
            }
            Effect::Note(Note::FellBack { node, fault, .. }) => {
                let text =
                    format!("node \"{node}\" failed, the run continues at its fallback: {}", excerpt(&fault.text));
                self.tell(Told::Log { level: "warning", text });
            }
            Effect::Note(Note::NextIgnored { node }) => {
                let text = format!("node \"{node}\": _next is no text, so it is ignored");
                self.tell(Told::Log { level: "warning", text });
            }
            _ => {}
        }
    }
}

/// Most values of the state in one event.
const VALUES_MAX: usize = 32;

/// Why a node cannot call a tool.
fn missing(node: &str, name: &str) -> String {
    if let Some(server) = name.strip_prefix("mcp:") {
        return format!(
            "node \"{node}\" has no MCP server \"{server}\" here; list it in mcp_servers, and add it: atlasctl mcp add {server}"
        );
    }
    if name.starts_with("agent__") {
        return format!("node \"{node}\" has no tool \"{name}\": only a graph with an agent node has helpers");
    }
    format!("node \"{node}\" has no tool \"{name}\" here")
}

/// An event of a node.
fn event(what: &str, place: NodePlace<'_>) -> Value {
    let mut event = json!({"event": what, "node": place.work.node, "step": place.work.step});
    if let Some(item) = place.work.item {
        event["item"] = item.into();
    }
    event
}

/// The input of an agent that is given a prompt. A JSON object is an input of its own, for agents with a contract.
fn message(prompt: &str) -> Value {
    match serde_json::from_str(prompt) {
        Ok(Value::Object(mut members)) => {
            members.entry("message").or_insert_with(|| prompt.into());
            Value::Object(members)
        }
        _ => json!({ "message": prompt }),
    }
}

/// The text of an agent's output.
fn text(output: &Value) -> String {
    let member = |name: &str| output.get(name).and_then(Value::as_str);
    match member("text").or_else(|| member("result")).or_else(|| output.as_str()) {
        Some(text) => text.to_owned(),
        None => output.to_string(),
    }
}

/// The beginning of a text.
fn excerpt(text: &str) -> String {
    text.chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_messages_or_inputs() {
        assert_eq!(message("go"), json!({"message": "go"}));
        assert_eq!(message("[1]"), json!({"message": "[1]"}));
        assert_eq!(message(r#"{"a": 1}"#), json!({"a": 1, "message": r#"{"a": 1}"#}));
    }

    #[test]
    fn outputs_have_texts() {
        assert_eq!(text(&json!({"text": "a", "state": {}})), "a");
        assert_eq!(text(&json!({"result": "a"})), "a");
        assert_eq!(text(&json!("a")), "a");
        assert_eq!(text(&json!({"n": 1})), r#"{"n":1}"#);
    }
}
