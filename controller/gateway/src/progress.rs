//! Progress of a job, for clients that asked for it with a token.

use std::collections::VecDeque;
use std::convert::Infallible;

use atlas_service::{Caller, EventFilter, EventKind, JobStream, Next, Service};
use atlas_types::{Event, EventRecord, Job, JobChange, JobId, PayloadBody, Step, StepKind};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use serde_json::Value;

/// Most calls of tools that are remembered until they return.
const CALLS_MAX: usize = 1_024;

/// Sends a notification for each change of a job and each step that it records, until it is dropped. Without events it sends nothing
/// and waits: progress never fails a call.
pub(crate) async fn report(
    service: &Service,
    caller: &Caller,
    id: JobId,
    token: ProgressToken,
    peer: &Peer<RoleServer>,
) -> Infallible {
    let _ = tell_all(service, caller, id, token, peer).await;
    std::future::pending().await
}

/// Ends when the events or the client do.
async fn tell_all(
    service: &Service,
    caller: &Caller,
    id: JobId,
    token: ProgressToken,
    peer: &Peer<RoleServer>,
) -> Option<()> {
    // What happened before, because a job is usually assigned in the moment in which it is submitted.
    let JobStream { so_far, mut reader } = service.follow_job(caller, id, true).await.ok()?;
    let mut progress = Progress::default();
    let mut notes: Vec<Note> =
        so_far.iter().filter_map(|change| progress.of_change(change.change, &change.job)).collect();
    let filter = EventFilter { kinds: vec![EventKind::Job], name: Some(id.to_string()) };
    loop {
        for note in notes {
            progress.sent += 1.0;
            let mut notification =
                ProgressNotificationParam::new(token.clone(), progress.sent).with_message(note.message);
            // What is left of the whole is unknown; a part that has ended is one of one.
            notification.total = note.ended.then_some(1.0);
            peer.notify_progress(notification).await.ok()?;
        }
        let Ok(Next::Changes(events)) = reader.next_events(&filter).await else { return None };
        notes = events.iter().flat_map(|event| progress.notes(event)).collect();
    }
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

#[derive(Default)]
struct Progress {
    /// Rises with every notification, as the protocol asks.
    sent: f64,
    agent: String,
    /// The calls of tools that have not returned: their ids and names, in order.
    calls: VecDeque<(String, String)>,
}

impl Progress {
    /// The notes for one event, in the forms of Pallas: `{agent} step N (llm|tool)`, `{server}/{tool}: started|completed|failed`.
    fn notes(&mut self, event: &EventRecord) -> Vec<Note> {
        match &event.event {
            Event::Job { change, job, .. } => self.of_change(*change, job).into_iter().collect(),
            Event::StepsRecorded { from, steps, .. } => {
                let numbered = (*from..).zip(steps.iter());
                numbered.flat_map(|(number, step)| self.of_step(number, step)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_change(&mut self, change: JobChange, job: &Job) -> Option<Note> {
        self.agent = job.agent.to_string();
        change_words(change).map(|words| Note::going_on(format!("{}: {words}", self.agent)))
    }

    fn of_step(&mut self, number: u64, step: &Step) -> Vec<Note> {
        let outcome: Value = match &step.outcome.body {
            PayloadBody::Inline(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
            // A large outcome is not fetched for a notification.
            PayloadBody::Artifact { .. } => Value::Null,
        };
        match step.kind {
            StepKind::Model => {
                let mut notes = vec![self.step(number, "llm")];
                notes.extend(self.begun(&outcome));
                notes
            }
            StepKind::Tools => {
                let mut notes = self.returned(&outcome);
                notes.push(self.step(number, "tool"));
                notes
            }
            StepKind::Child => {
                let ended = self.calls.pop_front().map(|(_, tool)| ended(&tool, outcome.get("completed").is_some()));
                ended.into_iter().chain([self.step(number, "tool")]).collect()
            }
            _ => Vec::new(),
        }
    }

    fn step(&self, number: u64, kind: &str) -> Note {
        let agent = if self.agent.is_empty() { "the job" } else { &self.agent };
        Note::going_on(format!("{agent} step {number} ({kind})"))
    }

    /// The calls of tools in an answer of the model.
    fn begun(&mut self, answer: &Value) -> Vec<Note> {
        self.calls.clear();
        let parts = answer["parts"].as_array().into_iter().flatten().filter(|part| part["type"] == "tool_call");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.calls.extend(parts.map(|part| (text(&part["id"]), text(&part["name"]))).take(CALLS_MAX));
        self.calls.iter().map(|(_, tool)| Note::going_on(format!("{}: started", place(tool)))).collect()
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
    let parts = tool.split_once("__").or_else(|| tool.split_once('.'));
    parts.map_or_else(|| format!("agents/{tool}"), |(server, tool)| format!("{server}/{tool}"))
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
    use atlas_types::{Payload, StepKey, StepUsage};
    use serde_json::json;

    use super::*;

    fn step(kind: StepKind, outcome: &Value) -> Step {
        let outcome = Payload::inline(outcome.to_string().as_bytes());
        Step { kind, key: StepKey([0; 16]), outcome, usage: StepUsage::default() }
    }

    #[test]
    fn tools_are_told_from_their_calls_to_their_results() {
        let mut progress = Progress { agent: "research".to_owned(), ..Progress::default() };
        let call = |id: &str, name: &str| json!({ "type": "tool_call", "id": id, "name": name, "arguments": {} });
        let calls = [call("a", "argos__search"), call("b", "atlas.registry.list"), call("c", "writer")];
        let answer = json!({ "parts": [{ "type": "text", "text": "x" }, calls[0], calls[1], calls[2]] });
        let results = json!([
            { "call": "a", "outcome": { "value": {} } },
            { "call": "b", "outcome": { "error": { "kind": "ValueError", "text": "x" } } },
        ]);
        let mut told = Vec::new();
        told.extend(progress.of_step(1, &step(StepKind::Model, &answer)));
        told.extend(progress.of_step(2, &step(StepKind::Tools, &results)));
        told.extend(progress.of_step(3, &step(StepKind::Child, &json!({ "completed": {} }))));
        let told: Vec<(&str, bool)> = told.iter().map(|note| (note.message.as_str(), note.ended)).collect();
        assert_eq!(
            told,
            [
                ("research step 1 (llm)", false),
                ("argos/search: started", false),
                ("atlas/registry.list: started", false),
                ("agents/writer: started", false),
                ("argos/search: completed", true),
                ("atlas/registry.list: failed", true),
                ("research step 2 (tool)", false),
                ("agents/writer: completed", true),
                ("research step 3 (tool)", false),
            ]
        );
    }
}
