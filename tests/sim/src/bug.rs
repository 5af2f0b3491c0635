//! Deliberate bugs of the simulation, which its checks must catch.

/// One mistake of a shell, or of a machine as a shell would see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// A client is answered when its command is planned, not when it is applied.
    AckBeforeCommit,
    /// A refusal is released without asking the quorum whether this member still leads.
    RefusalWithoutQuorum,
    /// A read is answered from whatever this member has applied.
    StaleRead,
    /// A report is taken for the job's live lease, whatever token it carries.
    NoFencing,
    /// Request ids are not remembered.
    NoDedupe,
    /// Renewals are acknowledged without asking the quorum.
    RenewalWithoutQuorum,
    /// A new leader takes its predecessor's sessions for ended.
    TakeoverWithoutTtl,
    /// A worker believes in its leases for ten times as long as they live.
    DeafWorker,
    /// Jobs that must not run twice run before their start is committed.
    StartUncommitted,
    /// A leader that is elected again goes on with the head it had.
    HeadKept,
    /// A snapshot leaves out the remembered requests.
    SnapshotForgetsRequests,
    /// A member that restarts goes on one entry too late.
    EntrySkipped,
    /// A member applies entries at its own time.
    OwnClock,
    /// Timeouts run on the leader's wall clock.
    TimeoutsByWallClock,
    /// A lost node's leases are given away as soon as its stream breaks.
    LossByBrokenStream,
    /// A worker leaves out the last recorded step when it replays a journal.
    ReplayDropsStep,
    /// A worker uses the outcome of a step before the leader has answered that it is recorded.
    UseBeforeApplied,
    /// A worker goes on with an attempt that parked.
    ParkKeepsPlace,
    /// The leader does not wake parked jobs for which a time has come.
    WakeForgotten,
    /// A new leader does not go on with the runs that began under another.
    RunForgotten,
    /// A run starts a step after its job was cancelled.
    RunGoesOn,
    /// Steps and folds are taken for the job's live lease, whatever token they carry.
    StepsUnfenced,
    /// A door that cuts a fold for a fork copies all its steps.
    ForkCutsLate,
    /// A log is stored for the job's live lease, whoever sent its lines.
    LogUnfenced,
    /// Jobs of a namespace are placed only while no other has a job to place.
    NamespaceStarves,
    /// The oldest jobs of an agent are placed last.
    YoungestFirst,
    /// A worker makes the last recorded call of a durable program again.
    CallBegunAgain,
    /// A durable program gets the result of a call before the leader has answered that it is recorded.
    AnsweredBeforeApplied,
    /// A durable program gets recorded results in another order than that of its record.
    ReleasedOutOfOrder,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 29] = [
        Self::AckBeforeCommit,
        Self::RefusalWithoutQuorum,
        Self::StaleRead,
        Self::NoFencing,
        Self::NoDedupe,
        Self::RenewalWithoutQuorum,
        Self::TakeoverWithoutTtl,
        Self::DeafWorker,
        Self::StartUncommitted,
        Self::HeadKept,
        Self::SnapshotForgetsRequests,
        Self::EntrySkipped,
        Self::OwnClock,
        Self::TimeoutsByWallClock,
        Self::LossByBrokenStream,
        Self::ReplayDropsStep,
        Self::UseBeforeApplied,
        Self::ParkKeepsPlace,
        Self::WakeForgotten,
        Self::RunForgotten,
        Self::RunGoesOn,
        Self::StepsUnfenced,
        Self::ForkCutsLate,
        Self::LogUnfenced,
        Self::NamespaceStarves,
        Self::YoungestFirst,
        Self::CallBegunAgain,
        Self::AnsweredBeforeApplied,
        Self::ReleasedOutOfOrder,
    ];
}
