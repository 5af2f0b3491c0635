//! News for the pump from its own tasks.

use std::sync::Arc;

use atlas_slots::{AttemptEnd, SlotId};
use atlas_types::{Failure, FencingToken, Inventory, Payload, ReportKind, StreamEvent};

use crate::attempt::{Asker, Ended, Work};
use crate::mailbox::Answer;

/// News from the pump's own tasks.
pub(crate) enum News {
    /// The package and the input of an attempt are available, or could not be prepared.
    Prepared { token: FencingToken, work: Result<Arc<Work>, Unprepared> },
    /// The large output of an attempt was stored.
    Stored { token: FencingToken, slot: SlotId, end: AttemptEnd },
    /// An attempt that is being prepared has a log line.
    Said { token: FencingToken, event: StreamEvent },
    /// A result is on disk, or could not be written.
    Saved { number: u64 },
    /// The large input of a child was stored, or could not be.
    SpawnStored { number: u64, input: Result<Payload, String> },
    /// The large output of a child was loaded.
    SpawnLoaded { asker: Asker, answer: Answer },
    /// GPUs broke or were repaired.
    Inventory(Inventory),
    /// There is no Python interpreter, or no Node.js.
    NoInterpreter,
    /// Agents run in containers here.
    Containers,
    /// Stop: let attempts end, then end the worker.
    Drain,
    /// The time for attempts to end has passed.
    Abandon,
    /// The time for the leader to answer the last reports has passed as well.
    Leave,
}

/// Why an attempt could not start.
pub(crate) enum Unprepared {
    /// The job fails, because the problem would occur on any node.
    Failed(Failure),
    /// The problem concerns only this node, so the lease is given back.
    GiveBack,
}

impl Unprepared {
    /// The report for the attempt.
    pub(crate) fn report(self) -> ReportKind {
        match self {
            Self::Failed(failure) => Ended::failed(failure).into_end(None).report,
            Self::GiveBack => ReportKind::NotHeld,
        }
    }
}
