//! One attempt: its work, what it says to the pump while it runs, and its end.

use std::sync::Arc;
use std::time::Duration;

use atlas_slots::{AttemptEnd, SlotId};
use atlas_types::{
    Assignment, Failure, FailureKind, FencingToken, Message, Park, ReportKind, SpawnStep, StepKey, StepsResult,
    StreamEvent, Usage,
};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::agent::Agent;
use crate::journal::Entry;
use crate::mailbox::Answer;

/// One attempt with all the data that it needs.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) assignment: Box<Assignment>,
    /// The input, JSON text.
    pub(crate) input: Arc<[u8]>,
    /// What the agent is told about the chain of which the job is a step, a JSON object.
    pub(crate) context: Option<Arc<[u8]>>,
    pub(crate) agent: Arc<Agent>,
    /// True if the package's files were looked at for this attempt. Otherwise it may only run in a process that is there.
    pub(crate) is_looked_at: bool,
}

/// An event that a slot's task reports to the pump.
#[derive(Debug)]
pub(crate) enum SlotEvent {
    /// The attempt has a stream event.
    Event { token: FencingToken, event: StreamEvent },
    /// A call of the attempt, that is a step and how often it was begun, said a piece of its answer.
    Delta { token: FencingToken, call: (u32, u32), text: String },
    /// The attempt spawns a job.
    Spawn { token: FencingToken, call: SpawnCall },
    /// The attempt calls a tool of the platform.
    Tool { token: FencingToken, call: ToolCall },
    /// The attempt no longer waits for a job that it spawned.
    Leave { token: FencingToken, call: u64 },
    /// The attempt has an entry for its journal, and waits for the answer.
    Journal { token: FencingToken, entry: Entry, answer: oneshot::Sender<StepsResult> },
    /// The attempt waits, and does nothing until it is answered. Its job may be parked meanwhile.
    /// It has waited for that time already.
    Wait { token: FencingToken, park: Park, waited: Duration, answer: oneshot::Sender<Resumed> },
    /// What the attempt waited for has come.
    WaitOver { token: FencingToken },
    /// The attempt waits for the message of a number, after it has read all before that.
    Read { token: FencingToken, number: u64, answer: oneshot::Sender<Arc<Message>> },
    /// The attempt ended. The output is still text of any length.
    Ended { token: FencingToken, end: Ended },
    /// The idle program ended on its own.
    Died { slot: SlotId },
    /// A slot's task has ended, and with it its program.
    Gone { slot: SlotId },
}

/// A job that an attempt spawns.
#[derive(Debug)]
pub(crate) struct SpawnCall {
    /// The attempt's number of the call.
    pub(crate) call: u64,
    pub(crate) agent: String,
    /// Whether `agent` is the name of a skill.
    pub(crate) skill: bool,
    /// The input as JSON text.
    pub(crate) input: Box<RawValue>,
    pub(crate) priority: i64,
    pub(crate) timeout: Duration,
    /// Set if the attempt has a journal.
    pub(crate) journaled: Option<JournaledCall>,
}

/// A tool of the platform that an attempt calls.
#[derive(Debug)]
pub(crate) struct ToolCall {
    pub(crate) tool: String,
    /// A JSON object.
    pub(crate) arguments: Arc<[u8]>,
    /// The same in each attempt that makes the call again.
    pub(crate) key: StepKey,
    /// True if an earlier attempt may have made it.
    pub(crate) again: bool,
    pub(crate) asker: Asker,
}

/// A spawn that belongs to a step of a journal.
#[derive(Debug)]
pub(crate) struct JournaledCall {
    pub(crate) step: SpawnStep,
    /// True if an earlier attempt may have spawned the job.
    pub(crate) again: bool,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// How an attempt ended, before a large output was stored.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Set on success, and also if only the output's validation failed.
    pub(crate) output: Option<Box<RawValue>>,
    pub(crate) failure: Option<Failure>,
    pub(crate) usage: Usage,
    pub(crate) metadata: Option<Arc<[u8]>>,
    pub(crate) slot_usable: bool,
}

impl Ended {
    /// The end of an attempt that failed before its program ran.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self { output: None, failure: Some(failure), usage: Usage::default(), metadata: None, slot_usable: false }
    }

    /// The report, once a large output is stored.
    pub(crate) fn into_end(self, output: Option<atlas_types::Payload>) -> AttemptEnd {
        let Self { failure, usage, metadata, slot_usable, .. } = self;
        let report = match (failure, output) {
            (Some(failure), output) => ReportKind::Failed { failure, output, usage, metadata, cancelled: false },
            (None, Some(output)) => ReportKind::Completed { output, usage, metadata },
            (None, None) => {
                let failure = Failure { kind: FailureKind::Internal, error: "the output was lost".into() };
                ReportKind::Failed { failure, output: None, usage, metadata, cancelled: false }
            }
        };
        AttemptEnd { report, slot_usable }
    }
}

/// Whom a call is answered.
#[derive(Debug)]
pub(crate) enum Asker {
    /// The program of an attempt, under its number of the call.
    Program { token: FencingToken, call: u64 },
    /// The journal of an attempt.
    Journal(oneshot::Sender<Answer>),
}

/// The reason why a job could not be parked; none if the attempt continues.
pub(crate) type Resumed = Option<String>;
