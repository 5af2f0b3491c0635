//! Messages and timers: the closed set of events that can happen next.

use std::sync::Arc;
use std::time::Duration;

use atlas_duty::sessions::Round;
use atlas_slots::SlotId;
use atlas_types::{
    Assignment, Digest, EventSeq, FencingToken, HandBack, Job, JobId, MemberId, NodeEpoch, Outcome, QuestionId,
    Rejection, Report, ReportResult, Request, Seq, StepsResult, Timestamp,
};

use crate::family::Spawn;
use crate::journal::Sent;
use crate::logs::Lines;
use crate::sleeper::{Doze, Dozed};

/// Indexes into the world's tables.
pub(crate) type Member = usize;
pub(crate) type Node = usize;
pub(crate) type Client = usize;

/// One connection of a node; never used again.
pub(crate) type Conn = u64;

#[derive(Debug, Clone)]
pub(crate) enum Event {
    ToMember(Member, ToMember),
    ToNode(Node, Conn, ToNode),
    ToClient(Client, u64, Answer),

    /// A leader's loop comes round.
    MemberTick {
        member: Member,
        term: u64,
    },
    /// The entry in flight has been synced by a majority, if there is one.
    Commit {
        member: Member,
        term: u64,
        proposal: u64,
    },
    /// The quorum has said whether the member still leads: answers without an entry.
    Release {
        member: Member,
        term: u64,
        batch: u64,
    },
    /// The same for renewals.
    Confirm {
        member: Member,
        term: u64,
        round: Round,
    },
    /// A member applies what is committed.
    Apply(Member),
    /// A read index was asked for.
    ReadIndex {
        member: Member,
        read: u64,
    },
    Elect,
    /// A deposed leader hears of it.
    StepDown {
        member: Member,
        term: u64,
    },
    Restart(Member),

    NodeTick(Node),
    Connect(Node),
    /// The hello of this connection was not answered in time.
    HelloTimeout(Node, Conn),
    /// A result is on the disk of the process that runs under `boot`.
    Saved {
        node: Node,
        boot: u128,
        number: u64,
        report: Box<Report>,
    },
    /// What an attempt needs has come to its node, or will not come.
    Prepared {
        node: Node,
        token: FencingToken,
        fails: bool,
    },
    ChildEnds(Node, FencingToken),
    /// The process of a slot that shuts down is gone.
    SlotGone {
        node: Node,
        boot: u128,
        slot: SlotId,
    },
    SpawnSaid(Node, u64),
    SpawnTimeout(Node, u64),
    /// The child of an attempt has made a step.
    StepMade(Node, FencingToken, u64),
    /// An entry of a journal is sent again.
    EntrySaid(Node, u64),
    /// What an attempt recorded last arrives after it was stopped.
    StepSaidLate(Node, Box<Sent>),
    /// What a sleeper asks is said again.
    DozeSaid(Node, FencingToken),
    /// An attempt has logged so many lines.
    LogSaid(Node, Lines),
    /// Somebody sends a job the message of this number.
    Message {
        job: JobId,
        number: u64,
    },
    /// Somebody answers a question of a job.
    Answer(JobId, QuestionId),
    /// Somebody looks whether a policy asks about a job. So often they look again.
    Approve(JobId, u32),
    NodeStart(Node),
    /// Sent to a node in place of what its pause held up.
    NodeAwake(Node),

    ClientActs(Client),
    ClientTimeout(Client, u64),

    Fault(u64),
    FaultsEnd,
    /// What operators did is taken back.
    Heal,
}

#[derive(Debug, Clone)]
pub(crate) enum ToMember {
    Client {
        client: Client,
        op: u64,
        ask: Ask,
    },
    Node {
        node: Node,
        conn: Conn,
        frame: Frame,
    },
    /// A member's history has synced this far.
    Synced {
        member: MemberId,
        event: EventSeq,
    },
}

#[derive(Debug, Clone)]
pub(crate) enum Ask {
    Change(Box<Request>),
    Read(JobId),
}

/// From a worker.
#[derive(Debug, Clone)]
pub(crate) enum Frame {
    Hello {
        boot: u128,
        previous: Option<u128>,
    },
    Renew(u64),
    Report {
        number: u64,
        report: Arc<Report>,
    },
    Warm {
        digest: Digest,
        idle: u32,
    },
    Draining,
    Leaving,
    /// Its end of the stream is closed.
    Parted,
    Spawn {
        number: u64,
        spawn: Spawn,
    },
    Journal {
        number: u64,
        sent: Sent,
    },
    Doze(Doze),
    Log(Lines),
}

/// To a worker.
#[derive(Debug, Clone)]
pub(crate) enum ToNode {
    Welcome {
        epoch: NodeEpoch,
        ttl: Duration,
        leases: Vec<Assignment>,
    },
    Grant(Box<Assignment>),
    Cancel(FencingToken),
    Revoke(FencingToken),
    RenewAck(u64),
    ReportAck {
        number: u64,
        result: ReportResult,
    },
    HandBack(Option<HandBack>),
    /// This child has ended, or there is none.
    Spawned(JobId),
    /// Steps or a fold were decided on.
    StepsAck {
        number: u64,
        result: StepsResult,
    },
    /// What a sleeper asked is done, or its attempt is over; with the time of the state.
    Dozed {
        doze: Doze,
        answer: Dozed,
        at: Timestamp,
    },
    Closed,
}

/// To a client.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Outcome(Result<Outcome, Rejection>),
    Job {
        job: Option<Arc<Job>>,
        seq: Seq,
    },
    /// Not proposed: safe to ask elsewhere.
    NotLeader,
    /// Perhaps proposed: ask again with the same request id.
    Unknown,
}
