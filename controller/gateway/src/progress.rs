//! Progress of a job, for clients that asked for it with a token.

use std::convert::Infallible;

use atlas_service::{Caller, EventFilter, EventKind, JobStream, Next, Service};
use atlas_types::{Event, EventRecord, Job, JobChange, JobId, StepKind};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;

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
    let mut messages: Vec<String> =
        so_far.iter().filter_map(|change| progress.of_change(change.change, &change.job)).collect();
    let filter = EventFilter { kinds: vec![EventKind::Job], name: Some(id.to_string()) };
    loop {
        for message in messages {
            progress.sent += 1.0;
            let notification = ProgressNotificationParam::new(token.clone(), progress.sent).with_message(message);
            peer.notify_progress(notification).await.ok()?;
        }
        let Ok(Next::Changes(events)) = reader.next_events(&filter).await else { return None };
        messages = events.iter().flat_map(|event| progress.messages(event)).collect();
    }
}

#[derive(Default)]
struct Progress {
    /// Rises with every notification, as the protocol asks.
    sent: f64,
    agent: String,
}

impl Progress {
    /// The messages for one event, in the forms of compatibility with Pallas: `{agent} step N (llm|tool)`.
    fn messages(&mut self, event: &EventRecord) -> Vec<String> {
        match &event.event {
            Event::Job { change, job, .. } => self.of_change(*change, job).into_iter().collect(),
            Event::StepsRecorded { from, steps, .. } => {
                let agent = if self.agent.is_empty() { "the job" } else { &self.agent };
                let numbered = (*from..).zip(steps.iter());
                let named = numbered.filter_map(|(number, step)| {
                    let kind = match step.kind {
                        StepKind::Model => "llm",
                        StepKind::Tools | StepKind::Child => "tool",
                        _ => return None,
                    };
                    Some(format!("{agent} step {number} ({kind})"))
                });
                named.collect()
            }
            _ => Vec::new(),
        }
    }

    fn of_change(&mut self, change: JobChange, job: &Job) -> Option<String> {
        self.agent = job.agent.to_string();
        change_words(change).map(|words| format!("{}: {words}", self.agent))
    }
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
