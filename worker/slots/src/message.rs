//! The inputs and effects of the machine.

use std::sync::Arc;
use std::time::Duration;

use atlas_types::{
    Assignment, Digest, FencingToken, HandBack, HeldLease, JobId, NodeEpoch, Park, ParkResult, Report, ReportKind,
    ReportResult,
};

/// One slot of this process; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u64);

/// What happened outside.
#[derive(Debug, Clone)]
pub enum Input {
    /// A stream to the leader is open.
    Connected,
    /// The leader's answer to hello.
    Welcome {
        /// This process's incarnation of the node.
        epoch: NodeEpoch,
        /// How long leases live without a renewal.
        ttl: Duration,
        /// All leases of this node.
        leases: Vec<Assignment>,
    },
    /// A new lease.
    Granted(Box<Assignment>),
    /// The attempt must stop and be reported as cancelled.
    Cancelled {
        /// Its lease.
        token: FencingToken,
        /// Time between SIGTERM and SIGKILL.
        grace: Duration,
    },
    /// The lease is over: stop, report nothing.
    Revoked {
        /// The lease.
        token: FencingToken,
    },
    /// The leader confirmed a renewal with a quorum.
    RenewAcked {
        /// The renewal's number.
        number: u64,
    },
    /// The leader answered a report.
    ReportAcked {
        /// The report's number.
        number: u64,
        result: ReportResult,
    },
    /// A report is on disk, as [`Effect::SaveReport`] asked, or could not be written.
    Saved {
        /// The report's number.
        number: u64,
    },
    /// What an attempt needs is here, as [`Effect::PrepareAttempt`] asked.
    Prepared {
        /// Its lease.
        token: FencingToken,
    },
    /// It could not be fetched.
    Unprepared {
        /// The attempt's lease.
        token: FencingToken,
        report: ReportKind,
    },
    /// An attempt ended, by itself or because it was stopped.
    Ended {
        /// Its lease.
        token: FencingToken,
        /// How.
        end: AttemptEnd,
    },
    /// An attempt with a journal waits, and does nothing until [`Effect::Resume`]. Its job may be parked meanwhile.
    Waits {
        /// Its lease.
        token: FencingToken,
        /// What it waits for. Without waits, it asks whether it should leave the node before its next step.
        park: Park,
        /// For how long it has waited for that already.
        waited: Duration,
    },
    /// What an attempt waited for has come.
    WaitOver {
        /// Its lease.
        token: FencingToken,
    },
    /// The leader has answered [`Effect::SendPark`].
    ParkAnswered {
        /// The number of the request.
        number: u64,
        result: ParkResult,
    },
    /// An idle slot's process ended on its own.
    SlotDied { slot: SlotId },
    /// Nothing is left of a slot that was evicted, died or was not usable any more: what it held is free.
    SlotGone { slot: SlotId },
    /// The stream is closed.
    Disconnected,
    /// By when the node gives back what it runs: it is drained, and goes on. None if it need not.
    HandBack(Option<HandBack>),
    /// Take no new work, end once nothing runs.
    Drain,
    /// The patience of a drain is over: give back what still runs.
    Abandon,
    /// Time passed.
    Tick,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEnd {
    /// What to report; `usage.idle` is filled in by the machine.
    pub report: ReportKind,
    /// Whether the slot can serve another job. If not, [`Input::SlotGone`] follows when its process is gone.
    pub slot_usable: bool,
}

/// Why an attempt is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Its job was cancelled.
    Cancelled,
    /// The leader took the lease back.
    Revoked,
    /// The session's time to live is used up.
    SessionExpired,
    /// The worker stops, or has drained for as long as it may.
    Abandoned,
    /// Its job is parked.
    Parked,
}

/// Why a stream is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// The session's time to live is used up.
    TimeUsedUp,
    /// Its leader leaves renewals unanswered.
    Unanswered,
    /// The controller at its other end does not answer the hello.
    NoWelcome,
}

/// What the shell must do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Say hello on the new stream.
    SendHello {
        /// The leases this process believes to hold.
        held: Vec<HeldLease>,
    },
    /// Ask the leader to renew the session.
    SendRenew {
        /// The renewal's number.
        number: u64,
    },
    SendReport {
        /// Its number.
        number: u64,
        /// What it says.
        report: Arc<Report>,
    },
    /// Write the result of an attempt that must not run twice to disk, and say when it is there: it is sent after that.
    SaveReport {
        /// Its number.
        number: u64,
        /// What it says.
        report: Arc<Report>,
    },
    /// A saved report was answered.
    SavedAnswered {
        /// Its number.
        number: u64,
        /// The result; none if the leader gave no answer in time.
        result: Option<ReportResult>,
    },
    /// What the process before this one saved is delivered: close the stream and say hello under a new boot id.
    BeginEpoch,
    /// Tell how many idle warm slots of a package there are, outside of a job's end.
    SendWarmChanged {
        /// The package.
        digest: Digest,
        /// How many.
        idle: u32,
    },
    /// Tell the leader that this node takes no new work.
    SendDraining,
    /// Tell the leader that this process ends: nothing runs, and nothing waits for an answer.
    SendLeaving,
    /// Close the stream and connect again.
    Disconnect {
        /// What for.
        why: Leave,
    },
    /// Fetch what an attempt needs and keep it until it is started or forgotten: nothing may run yet.
    PrepareAttempt {
        /// What is to run.
        assignment: Box<Assignment>,
    },
    /// An attempt that was to be prepared will not be started.
    ForgetPrepared {
        /// Its lease.
        token: FencingToken,
    },
    /// Run an attempt.
    StartAttempt {
        /// What to run.
        assignment: Box<Assignment>,
        /// Where.
        slot: SlotId,
        /// True: the slot is there and idle. False: make it.
        warm: bool,
    },
    /// Stop an attempt; its end is reported back as [`Input::Ended`] all the same.
    StopAttempt {
        /// Its lease.
        token: FencingToken,
        why: StopReason,
        /// Time between SIGTERM and SIGKILL; zero kills at once.
        grace: Duration,
    },
    /// Ask the leader to park a job.
    SendPark {
        /// Counted from 1 over all sessions of one boot.
        number: u64,
        job: JobId,
        /// Its lease.
        token: FencingToken,
        park: Box<Park>,
    },
    /// An attempt continues after [`Input::Waits`]. Its wait may not be over: the attempt looks, and may wait again.
    Resume {
        /// Its lease.
        token: FencingToken,
        /// Why the leader refused for good to park the job: the attempt fails.
        refused: Option<String>,
    },
    /// Shut an idle slot down; [`Input::SlotGone`] follows when its process is gone.
    EvictSlot { slot: SlotId },
    /// Nothing runs and nothing waits for an answer: the process may end.
    Drained,
}
