//! Mistakes made on purpose, to see whether this layer notices.

use std::time::Duration;

use crate::Options;

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
    /// A welcome leaves out leases that the worker did not say it holds: those whose grant was lost on the way.
    LostGrantForgotten,
    /// Who waits for the end of a job is told once any member knows of it, not the one that answers.
    WaitEndsElsewhere,
    /// A log takes damage for a torn tail, and goes on with what is in front of it.
    DamageCutOff,
}

impl Bug {
    /// The options under which its occasion comes often.
    pub(crate) fn aim(self, options: &Options) -> Options {
        let millis = Duration::from_millis;
        let (kinds, faults): (&[u64], u64) = match self {
            Self::SegmentNameNotSynced | Self::SnapshotNameNotSynced | Self::DiskReplaced => (&[0, 2, 3], 12),
            Self::LogNotSynced => (&[3, 0, 3, 4], 8),
            Self::FailedSyncIgnored => (&[12, 3, 12, 0], 10),
            Self::StaleRead | Self::BackwardsRead => (&[5, 7, 15, 8], 8),
            Self::AckBeforeCommit | Self::CancelAlwaysAccepted => (&[0, 5, 3], 8),
            Self::NoDedupe => (&[10, 9, 0], 8),
            Self::NoFencing => (&[17, 18], 18),
            Self::ReportAckedEarly => (&[5, 0, 5, 3], 14),
            Self::RenewalWithoutQuorum => (&[5, 5, 17], 8),
            Self::LossByBrokenStream => (&[0, 13, 17], 8),
            Self::DeafWorker | Self::SlowWorkerClock => (&[17, 17, 5], 8),
            Self::StartUncommitted => (&[17, 16, 5, 0], 10),
            Self::TimeoutsByWallClock => (&[14, 14, 0], 10),
            Self::LostGrantForgotten => (&[17, 0, 5], 10),
            Self::WaitEndsElsewhere => (&[9, 10, 7], 8),
            Self::DamageCutOff => (&[22, 10], 6),
        };
        let options =
            Options { kinds, faults, faults_for: Duration::from_secs(12), jobs_per_client: 10, ..options.clone() };
        match self {
            Self::NoDedupe => Options { patience: millis(120), ..options },
            // A start must be lost between its acknowledgement and its entry.
            Self::ReportAckedEarly => {
                Options { nodes: 3, session_ttl: millis(1_000), disk_max: millis(150), ..options }
            }
            Self::SnapshotNameNotSynced => Options { snapshot_log_bytes: 2 << 10, ..options },
            Self::DeafWorker | Self::SlowWorkerClock | Self::StartUncommitted | Self::NoFencing => {
                Options { nodes: 3, session_ttl: millis(1_000), ..options }
            }
            _ => options,
        }
    }

    /// All of them.
    pub const ALL: [Self; 21] = [
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
        Self::LostGrantForgotten,
        Self::WaitEndsElsewhere,
        Self::DamageCutOff,
    ];
}
