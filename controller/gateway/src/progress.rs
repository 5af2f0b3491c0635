//! Progress of a job, for clients that asked for it with a token.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use atlas_contract::platform;
use atlas_service::{Caller, Error, EventFilter, EventKind, JobStream, LogOutput, Next, Service, Shown};
use atlas_types::{Event, EventRecord, Job, JobChange, JobId, PayloadBody, Step, StepKind};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use serde_json::Value;
use tokio::sync::Mutex;

/// Most tool calls that are remembered until they return.
const CALLS_MAX: usize = 1_024;
/// Most reports of an agent that came at once, of which the last ones are told, and most characters of each.
const WORDS_MAX: usize = 32;
const WORD_MAX: usize = 2_000;
/// How long the last notifications may take once the job has ended.
const LAST_MAX: Duration = Duration::from_secs(1);

/// Which changes are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Steps and tool calls, as Pallas tells them.
    Steps,
    /// The states of the job as well.
    All,
}

/// Waits for a job and reports its progress meanwhile; what led to its end is told before it.
pub(crate) async fn with(
    waiting: impl Future<Output = Result<Shown, Error>>,
    report: impl Future<Output = ()>,
) -> Result<Shown, Error> {
    let (mut waiting, mut report) = (pin!(waiting), pin!(report));
    tokio::select! {
        shown = &mut waiting => {
            if shown.as_ref().is_ok_and(|shown| shown.job().status.is_terminal()) {
                // A client that does not read must not keep its own answer waiting.
                let _ = tokio::time::timeout(LAST_MAX, report).await;
            }
            shown
        }
        () = &mut report => waiting.await,
    }
}

/// Sends a notification for each thing that happens to a job, until it has ended. Without events it sends nothing: progress never fails a call.
pub(crate) async fn report(
    service: &Service,
    caller: &Caller,
    id: JobId,
    (token, told): (ProgressToken, Told),
    peer: &Peer<RoleServer>,
) {
    let teller = Teller { peer, token, sent: Mutex::new(0.0) };
    let said = async {
        match told {
            Told::Steps => None,
            Told::All => tell_words(service, caller, id, &teller).await,
        }
    };
    let _ = tokio::join!(tell_events(service, caller, id, told, &teller), said);
}

/// Sends the notifications of one call.
struct Teller<'a> {
    peer: &'a Peer<RoleServer>,
    token: ProgressToken,
    /// Rises with every notification, as the protocol asks.
    sent: Mutex<f64>,
}

impl Teller<'_> {
    /// Sends one; none once the client is gone.
    async fn tell(&self, note: Note) -> Option<()> {
        // Held while it is sent, so that the numbers rise for the client as well.
        let mut sent = self.sent.lock().await;
        *sent += 1.0;
        let mut notification = ProgressNotificationParam::new(self.token.clone(), *sent).with_message(note.message);
        // What is left of the whole is unknown; a part that has ended is one of one.
        notification.total = note.ended.then_some(1.0);
        self.peer.notify_progress(notification).await.ok()
    }
}

/// Ends when the job, the events or the client do.
async fn tell_events(service: &Service, caller: &Caller, id: JobId, told: Told, teller: &Teller<'_>) -> Option<()> {
    // What happened before, because a job is usually assigned in the moment in which it is submitted.
    let JobStream { so_far, mut reader } = service.follow_job(caller, id, true).await.ok()?;
    let mut progress = Progress::new(told);
    let mut notes: Vec<Note> =
        so_far.iter().flat_map(|change| progress.of_change(change.change, &change.job)).collect();
    let filter = EventFilter { kinds: vec![EventKind::Job], name: Some(id.to_string()) };
    loop {
        for note in notes {
            teller.tell(note).await?;
        }
        if progress.is_over {
            return Some(());
        }
        let Ok(Next::Changes(events)) = reader.next_events(&filter).await else { return None };
        notes = events.iter().flat_map(|event| progress.notes(event)).collect();
    }
}

/// Tells what the agent itself reports. Ends with the job's log.
async fn tell_words(service: &Service, caller: &Caller, id: JobId, teller: &Teller<'_>) -> Option<()> {
    let mut log = service.follow_logs(caller, id, None, false).await.ok()?;
    while let Some(output) = log.next().await {
        let LogOutput::Lines(lines) = output else { continue };
        let words: Vec<String> = lines.iter().filter_map(|line| word(&line.json)).collect();
        for message in words.into_iter().rev().take(WORDS_MAX).rev() {
            teller.tell(Note::going_on(message)).await?;
        }
    }
    Some(())
}

/// The text of a line of the log, if the agent reported its progress with it.
fn word(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let text = line["text"].as_str().filter(|_| line["kind"] == "progress")?;
    Some(text.chars().take(WORD_MAX).collect())
}

/// One notification.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    message: String,
    /// Whether a part of the work has ended.
    ended: bool,
}

impl Note {
    fn going_on(message: String) -> Self {
        Self { message, ended: false }
    }
}

struct Progress {
    told: Told,
    agent: String,
    /// Model calls and rounds of tools so far.
    steps: u64,
    /// The tool calls that have not returned: their ids and names, in order.
    calls: VecDeque<(String, String)>,
    /// Whether results of this round are too large to be looked at.
    is_large: bool,
    /// Whether the job has ended.
    is_over: bool,
}

impl Progress {
    fn new(told: Told) -> Self {
        let calls = VecDeque::new();
        Self { told, agent: String::new(), steps: 0, calls, is_large: false, is_over: false }
    }

    /// The notes for one event, in the forms of Pallas: `{agent} step N (llm|tool)`, `{server}/{tool}: started|completed|failed`.
    fn notes(&mut self, event: &EventRecord) -> Vec<Note> {
        match &event.event {
            Event::Job { change, job, .. } => self.of_change(*change, job),
            Event::StepsRecorded { steps, .. } => steps.iter().flat_map(|step| self.of_step(step)).collect(),
            _ => Vec::new(),
        }
    }

    fn of_change(&mut self, change: JobChange, job: &Job) -> Vec<Note> {
        self.agent = job.agent.to_string();
        if change == JobChange::Ended {
            self.is_over = true;
            return self.end_of_round();
        }
        let words = change_words(change).filter(|_| self.told == Told::All);
        words.map(|words| Note::going_on(format!("{}: {words}", self.agent))).into_iter().collect()
    }

    fn of_step(&mut self, step: &Step) -> Vec<Note> {
        let outcome: Option<Value> = match &step.outcome.body {
            PayloadBody::Inline(bytes) => Some(serde_json::from_slice(bytes).unwrap_or_default()),
            // A large outcome is not fetched for a notification.
            PayloadBody::Artifact { .. } => None,
        };
        match step.kind {
            StepKind::Model => {
                let mut notes = self.end_of_round();
                notes.push(self.step("llm"));
                notes.extend(self.begun(&outcome.unwrap_or_default()));
                notes
            }
            StepKind::Tools => {
                let was_told = !self.calls.is_empty();
                self.is_large |= outcome.is_none();
                let notes = self.returned(&outcome.unwrap_or_default());
                self.with_step(notes, was_told)
            }
            StepKind::Child => {
                let was_told = !self.calls.is_empty();
                // An error is never that large.
                let well = outcome.is_none_or(|outcome| outcome.get("completed").is_some());
                let at = self.calls.iter().position(|(_, tool)| is_job(tool)).unwrap_or_default();
                let notes = self.calls.remove(at).map(|(_, tool)| ended(&tool, well)).into_iter().collect();
                self.with_step(notes, was_told)
            }
            _ => Vec::new(),
        }
    }

    /// The step of a round, once all its calls are told. Calls that nobody heard of are a step of their own.
    fn with_step(&mut self, mut notes: Vec<Note>, was_told: bool) -> Vec<Note> {
        if self.calls.is_empty() && (!notes.is_empty() || !was_told) {
            self.is_large = false;
            notes.push(self.step("tool"));
        }
        notes
    }

    /// What is left of a round: calls that were not made, because they were refused, or whose results were not looked at.
    fn end_of_round(&mut self) -> Vec<Note> {
        if self.calls.is_empty() {
            return Vec::new();
        }
        let well = std::mem::take(&mut self.is_large);
        let left = std::mem::take(&mut self.calls);
        let mut notes: Vec<Note> = left.iter().map(|(_, tool)| ended(tool, well)).collect();
        notes.push(self.step("tool"));
        notes
    }

    fn step(&mut self, kind: &str) -> Note {
        self.steps += 1;
        let agent = if self.agent.is_empty() { "the job" } else { &self.agent };
        Note::going_on(format!("{agent} step {} ({kind})", self.steps))
    }

    /// The tool calls in an answer of the model.
    fn begun(&mut self, answer: &Value) -> Vec<Note> {
        let parts = answer["parts"].as_array().into_iter().flatten().filter(|part| part["type"] == "tool_call");
        for part in parts.take(CALLS_MAX) {
            let text = |name: &str| part[name].as_str().unwrap_or_default().to_owned();
            let id = self.unused(text("id"));
            self.calls.push_back((id, text("name")));
        }
        self.calls.iter().map(|(_, tool)| Note::going_on(format!("{}: started", place(tool)))).collect()
    }

    /// The id of a call, as the turn makes it unique: some models give the same one to several calls.
    fn unused(&self, id: String) -> String {
        let is_used = |id: &str| self.calls.iter().any(|(known, _)| known == id);
        match is_used(&id) {
            false => id,
            true => (2..).map(|number| format!("{id}-{number}")).find(|id| !is_used(id)).unwrap_or_default(),
        }
    }

    /// The calls that a step of tools answers.
    fn returned(&mut self, outcome: &Value) -> Vec<Note> {
        let mut notes = Vec::new();
        for returned in outcome.as_array().into_iter().flatten() {
            let Some(at) = self.calls.iter().position(|(id, _)| returned["call"] == **id) else { continue };
            let well = returned["outcome"].get("error").is_none();
            notes.extend(self.calls.remove(at).map(|(_, tool)| ended(&tool, well)));
        }
        notes
    }
}

fn ended(tool: &str, well: bool) -> Note {
    let words = if well { "completed" } else { "failed" };
    Note { message: format!("{}: {words}", place(tool)), ended: true }
}

/// `{server}/{tool}` of the name of a tool. Tools of the platform are called `atlas.…`; a tool without a server is an agent.
fn place(tool: &str) -> String {
    // Models know them under names without dots.
    let own = platform::TOOLS.iter().map(|known| known.name).find(|known| known.replace('.', "_") == tool);
    let tool = own.unwrap_or(tool);
    let parts = tool.split_once("__").or_else(|| tool.split_once('.'));
    parts.map_or_else(|| format!("agents/{tool}"), |(server, tool)| format!("{server}/{tool}"))
}

/// Whether calls of a tool are jobs.
fn is_job(tool: &str) -> bool {
    place(tool) == "atlas/exec.run" || place(tool).starts_with("agents/")
}

fn change_words(change: JobChange) -> Option<&'static str> {
    Some(match change {
        JobChange::Submitted => "queued",
        JobChange::Granted | JobChange::Carried => "assigned",
        JobChange::Started => "running",
        JobChange::Lost => "its worker was lost",
        JobChange::Woken | JobChange::Resolved => "queued again",
        JobChange::Routed => "routed",
        JobChange::Parked => "waiting",
        JobChange::Cancelling => "being cancelled",
        JobChange::Ended => return None,
    })
}

#[cfg(test)]
mod tests {
    use atlas_types::{Digest, Payload, StepKey, StepUsage};
    use serde_json::json;

    use super::*;

    fn step(kind: StepKind, outcome: &Value) -> Step {
        let outcome = Payload::inline(outcome.to_string().as_bytes());
        Step { kind, key: StepKey([0; 16]), outcome, usage: StepUsage::default() }
    }

    fn call(id: &str, name: &str) -> Value {
        json!({ "type": "tool_call", "id": id, "name": name, "arguments": {} })
    }

    fn told(notes: Vec<Note>) -> Vec<(String, bool)> {
        notes.into_iter().map(|note| (note.message, note.ended)).collect()
    }

    fn progress() -> Progress {
        Progress { agent: "research".to_owned(), ..Progress::new(Told::Steps) }
    }

    fn list(notes: &[(&str, bool)]) -> Vec<(String, bool)> {
        notes.iter().map(|(message, ended)| ((*message).to_owned(), *ended)).collect()
    }

    #[test]
    fn only_reports_of_the_agent_are_its_words() {
        let line = |kind: &str, text: &str| json!({ "attempt": 1, "kind": kind, "text": text }).to_string();
        assert_eq!(word(line("progress", "half way").as_bytes()).as_deref(), Some("half way"));
        assert_eq!(word(line("log", "half way").as_bytes()), None);
        assert_eq!(word(line("progress", &"x".repeat(9_000)).as_bytes()).map(|word| word.len()), Some(WORD_MAX));
        assert_eq!(word(b"{"), None);
    }

    #[test]
    fn tools_are_told_from_their_calls_to_their_results() {
        let mut progress = progress();
        let calls = [call("a", "argos__search"), call("b", "atlas_registry_list"), call("c", "writer")];
        let answer = json!({ "parts": [{ "type": "text", "text": "x" }, calls[0], calls[1], calls[2]] });
        let results = json!([
            { "call": "a", "outcome": { "value": {} } },
            { "call": "b", "outcome": { "error": { "kind": "ValueError", "text": "x" } } },
        ]);
        let mut notes = Vec::new();
        notes.extend(progress.of_step(&step(StepKind::Effect, &json!({}))));
        notes.extend(progress.of_step(&step(StepKind::Model, &answer)));
        notes.extend(progress.of_step(&step(StepKind::Tools, &results)));
        notes.extend(progress.of_step(&step(StepKind::Child, &json!({ "completed": {} }))));
        notes.extend(progress.of_step(&step(StepKind::Model, &json!({ "parts": [] }))));
        let wanted = [
            ("research step 1 (llm)", false),
            ("argos/search: started", false),
            ("atlas/registry.list: started", false),
            ("agents/writer: started", false),
            ("argos/search: completed", true),
            ("atlas/registry.list: failed", true),
            ("agents/writer: completed", true),
            ("research step 2 (tool)", false),
            ("research step 3 (llm)", false),
        ];
        assert_eq!(told(notes), list(&wanted));
    }

    #[test]
    fn every_call_that_started_is_told_to_its_end() {
        let mut progress = progress();
        // A call that is refused has no step; the next model call shows that it is over.
        let answer = json!({ "parts": [call("x", "unknown__tool"), call("x", "writer"), call("x", "writer")] });
        let mut notes = progress.of_step(&step(StepKind::Model, &answer));
        notes.extend(progress.of_step(&step(StepKind::Child, &json!({ "failed": "x" }))));
        notes.extend(progress.of_step(&step(StepKind::Tools, &json!([{ "call": "x-3", "outcome": { "value": 1 } }]))));
        notes.extend(progress.of_step(&step(StepKind::Model, &json!({ "parts": [call("y", "argos__search")] }))));
        // The result is too large to be looked at, and the job ends with it.
        let large = PayloadBody::Artifact { digest: Digest([1; 32]), size_bytes: 1 << 30 };
        let mut tools = step(StepKind::Tools, &json!([]));
        tools.outcome.body = large;
        notes.extend(progress.of_step(&tools));
        notes.extend(progress.end_of_round());
        let wanted = [
            ("research step 1 (llm)", false),
            ("unknown/tool: started", false),
            ("agents/writer: started", false),
            ("agents/writer: started", false),
            ("agents/writer: failed", true),
            ("agents/writer: completed", true),
            ("unknown/tool: failed", true),
            ("research step 2 (tool)", false),
            ("research step 3 (llm)", false),
            ("argos/search: started", false),
            ("argos/search: completed", true),
            ("research step 4 (tool)", false),
        ];
        assert_eq!(told(notes), list(&wanted));
    }
}
