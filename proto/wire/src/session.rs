//! The messages of a worker's session, as plain data: each frame of the stream is one of these.

use std::sync::Arc;

use atlas_types::{
    Assignment, Attempt, BootId, Delta, Digest, FencingToken, Fold, HandBack, HeldLease, Inventory, JobId, Level, Mail,
    Micros, Namespace, NodeEpoch, NodeId, Park, ParkResult, Report, ReportResult, Reservation, Spawn, SpawnEnd, Step,
    StepsResult, StreamEvent, ToolEnd, ToolRequest,
};

/// What a worker says to the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToLeader {
    /// First on every stream, and only there.
    Hello(Hello),
    /// Asks for the session to live on.
    Renew {
        /// Counted by the worker.
        number: u64,
    },
    /// An attempt started or ended.
    Report {
        /// Counted by the worker from 1, over all sessions of one boot.
        number: u64,
        /// What happened.
        report: Report,
    },
    /// Idle warm slots changed outside of a job's end.
    WarmChanged {
        /// The package.
        digest: Digest,
        /// Idle warm slots of it now.
        idle: u32,
    },
    /// Log lines and progress of an attempt, by rising number.
    StreamEvents {
        job: JobId,
        /// Which try.
        attempt: Attempt,
        /// The lines.
        events: Vec<StreamEvent>,
    },
    /// Pieces of models' answers, for current followers. Not sent to a leader below the feature level that has them.
    Deltas {
        job: JobId,
        /// Which try.
        attempt: Attempt,
        /// The pieces.
        deltas: Vec<Delta>,
    },
    /// The worker takes no new leases and exits when it holds none.
    Draining,
    /// The worker ends: nothing runs on it, and nothing waits for an answer.
    Leaving,
    /// An attempt spawns a job. The same number again, without any time left, says that it waits no longer.
    Spawn {
        /// Counted by the worker from 1, over all sessions of one boot.
        number: u64,
        /// What.
        spawn: Box<Spawn>,
    },
    /// An attempt is about to call a model under a budget.
    ReserveBudget {
        /// Counted by the worker from 1, over all sessions of one boot, together with steps.
        number: u64,
        job: JobId,
        /// Its lease.
        token: FencingToken,
        /// The call and its amount.
        call: Reservation,
    },
    /// An attempt records steps of its job.
    RecordSteps {
        /// Counted by the worker from 1, over all sessions of one boot, together with folds.
        number: u64,
        job: JobId,
        /// Its lease.
        token: FencingToken,
        /// The number of the first of these steps.
        from: u64,
        steps: Vec<Arc<Step>>,
    },
    /// An attempt folds steps of its job into an artifact.
    FoldSteps {
        /// Counted together with the frames of steps.
        number: u64,
        job: JobId,
        /// Its lease.
        token: FencingToken,
        fold: Fold,
    },
    /// An attempt asks for its job to be parked.
    Park {
        /// Counted by the worker from 1, over all sessions of one boot.
        number: u64,
        job: JobId,
        /// Its lease.
        token: FencingToken,
        park: Park,
    },
    /// An attempt calls a tool of the platform. Not sent to a leader below the feature level that has them.
    CallTool {
        /// Counted by the worker from 1, over all sessions of one boot.
        number: u64,
        call: Box<ToolRequest>,
    },
    /// A try of a model call asks whether it may begin. Not sent to a leader below the feature level that has models.
    AskModel(ModelAsk),
    /// A try of a model call has ended, or does not want to begin any more.
    ModelDone {
        /// The number of the try.
        number: u64,
        /// The tokens that it used; none if it did not begin.
        tokens: Option<u64>,
    },
    /// What the worker's attempts use of limited models. Said once on every session, before the worker asks again.
    AnnounceModels(ModelUses),
}

/// A try of a model call whose object limits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAsk {
    /// Counted by the worker from 1, over all sessions of one boot.
    pub number: u64,
    pub job: JobId,
    /// Its lease.
    pub token: FencingToken,
    /// The name of the model's object.
    pub model: String,
    /// The most tokens that the try may use.
    pub tokens: u64,
}

/// What a worker's attempts use of limited models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelUses {
    /// The tries under way.
    pub held: Vec<ModelUse>,
    /// Those that ended and began within the last minute.
    pub past: Vec<PastModelUse>,
}

/// A try under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelUse {
    /// The number of the try.
    pub number: u64,
    pub job: JobId,
    pub namespace: Namespace,
    /// The name of the model's object.
    pub model: String,
    /// The most tokens that it may use.
    pub tokens: u64,
    /// How long ago it began.
    pub age: Micros,
}

/// Tries of one model that ended, and that began at about the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastModelUse {
    pub namespace: Namespace,
    /// The name of the model's object.
    pub model: String,
    /// How long ago they began, at least.
    pub age: Micros,
    pub requests: u32,
    /// The tokens that they used.
    pub tokens: u64,
}

/// Claims a node's name for a worker process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The node's name.
    pub node: NodeId,
    /// The process: a new one is a new epoch, the same one a resume.
    pub boot_id: BootId,
    /// What the node has.
    pub inventory: Inventory,
    /// The highest feature level that the worker knows.
    pub level: Level,
    /// What the process still runs.
    pub leases: Vec<HeldLease>,
    /// The process that used the worker's data directory before.
    pub previous: Option<BootId>,
}

/// What the leader says to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToWorker {
    /// Answers a hello: the session lives.
    Welcome(Welcome),
    /// Answers a hello at a controller that does not lead.
    NotLeader {
        /// Where the leader's worker door is, if one is known.
        leader_address: Option<String>,
    },
    /// A lease was granted.
    Grant(Box<Assignment>),
    /// Stop an attempt and report how it ended.
    Cancel {
        job: JobId,
        /// Its lease.
        token: FencingToken,
        /// Between the request to stop and the kill.
        grace: Micros,
    },
    /// Stop an attempt and report nothing: its lease is gone.
    Revoke {
        job: JobId,
        /// Its lease.
        token: FencingToken,
    },
    /// A report was decided on.
    ReportAck {
        /// The report's number.
        number: u64,
        result: ReportResult,
    },
    /// A quorum confirmed the leader after this renewal arrived.
    RenewAck {
        /// The renewal's number.
        number: u64,
    },
    /// Stream events are stored up to a number.
    StreamAck {
        job: JobId,
        /// Which try.
        attempt: Attempt,
        /// The last number stored.
        number: u64,
    },
    /// Take no new leases; finish what runs.
    Drain,
    /// The controller stops; say hello elsewhere.
    Shutdown,
    /// A job that an attempt spawned has ended, or could not be.
    Spawned {
        /// The number of the spawn.
        number: u64,
        /// How it ended.
        end: SpawnEnd,
    },
    /// The node is drained with another deadline than before, or with none any more.
    HandBack(Option<HandBack>),
    /// Steps or a fold were decided on.
    StepsAck {
        /// The number of their frame.
        number: u64,
        result: StepsResult,
    },
    /// A park was decided on.
    ParkAck {
        /// The number of the park.
        number: u64,
        result: ParkResult,
    },
    /// Messages to a job that the worker runs. It may know some of them.
    Messages {
        job: JobId,
        /// Its lease.
        token: FencingToken,
        mail: Mail,
    },
    /// A tool was called, or refused.
    ToolCalled {
        /// The number of the call.
        number: u64,
        end: ToolEnd,
    },
    /// A try of a model call may begin.
    ModelGranted {
        /// The number of the try.
        number: u64,
    },
}

/// Answers a hello: the session lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The node's incarnation.
    pub epoch: NodeEpoch,
    /// How long the session lives after a renewal was sent.
    pub session_ttl: Micros,
    /// Every lease that the node holds.
    pub leases: Vec<Assignment>,
    /// Where the worker doors of all controllers are.
    pub controllers: Vec<String>,
    /// The highest feature level that the leader knows; 0 from programs below level 6.
    pub level: Level,
    /// By when the node gives back what it runs; none if it is not drained, or may take its time.
    pub hand_back: Option<HandBack>,
}
