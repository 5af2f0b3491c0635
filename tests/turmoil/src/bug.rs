//! Mistakes made on purpose, to see whether this layer notices.

/// One mistake, made below or beside the product: its code has no switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// The log's disk reports a sync that it did not make.
    LogNotSynced,
    /// The name of a new segment of the log is gone after a crash: its directory was not synced.
    SegmentNameNotSynced,
    /// The same for a new snapshot.
    SnapshotNameNotSynced,
    /// A sync that failed is reported as made.
    FailedSyncIgnored,
    /// A member starts again on an empty disk under its old number.
    DiskReplaced,
    /// A read is answered from whatever the member has applied.
    StaleRead,
    /// A member does not wait until it has applied what the client has seen.
    BackwardsRead,
    /// A client is answered before its submission is applied.
    AckBeforeCommit,
    /// A cancel is answered as accepted, whatever became of it.
    CancelAlwaysAccepted,
    /// Request ids are not passed on.
    NoDedupe,
    /// A report is taken for the job's live lease, whatever token it carries.
    NoFencing,
    /// Renewals are acknowledged without asking the quorum.
    RenewalWithoutQuorum,
    /// A report is acknowledged before it is applied.
    ReportAckedEarly,
    /// A lost stream is taken for a lost worker.
    LossByBrokenStream,
    /// A worker believes in its leases for ten times as long as they live.
    DeafWorker,
    /// A worker's clock runs at a third of its rate: far beyond what leases allow for.
    SlowWorkerClock,
    /// Jobs that must not run twice run before their start is committed.
    StartUncommitted,
    /// Timeouts run on the wall clock.
    TimeoutsByWallClock,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::LogNotSynced,
        Self::SegmentNameNotSynced,
        Self::SnapshotNameNotSynced,
        Self::FailedSyncIgnored,
        Self::DiskReplaced,
        Self::StaleRead,
        Self::BackwardsRead,
        Self::AckBeforeCommit,
        Self::CancelAlwaysAccepted,
        Self::NoDedupe,
        Self::NoFencing,
        Self::RenewalWithoutQuorum,
        Self::ReportAckedEarly,
        Self::LossByBrokenStream,
        Self::DeafWorker,
        Self::SlowWorkerClock,
        Self::StartUncommitted,
        Self::TimeoutsByWallClock,
    ];
}
