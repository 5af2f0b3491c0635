//! Deliberate bugs that this layer must catch.

use std::time::Duration;

use crate::Options;
use crate::fault::Kind;

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
        use Kind::{
            AwayForLong, CutOffLeader, CutOffMember, CutOffWorker, CutOneWay, DamageDisk, FailSync, HoldUp, JumpClock,
            KillAll, KillLeader, KillMember, KillWorker, LosePower, SlowNetwork, Transfer,
        };
        let millis = Duration::from_millis;
        let (kinds, faults): (&[Kind], u64) = match self {
            Self::SegmentNameNotSynced | Self::SnapshotNameNotSynced | Self::DiskReplaced => {
                (&[KillLeader, KillMember, KillAll], 12)
            }
            Self::LogNotSynced => (&[KillAll, KillLeader, KillAll, LosePower], 8),
            Self::FailedSyncIgnored => (&[FailSync, KillAll, FailSync, KillLeader], 10),
            Self::StaleRead | Self::BackwardsRead => (&[CutOffLeader, CutOffMember, AwayForLong, CutOneWay], 8),
            Self::AckBeforeCommit | Self::CancelAlwaysAccepted => (&[KillLeader, CutOffLeader, KillAll], 8),
            Self::NoDedupe => (&[SlowNetwork, HoldUp, KillLeader], 8),
            Self::NoFencing => (&[CutOffWorker], 18),
            Self::ReportAckedEarly => (&[CutOffLeader, KillLeader, CutOffLeader, KillAll], 14),
            Self::RenewalWithoutQuorum => (&[CutOffLeader, CutOffLeader, CutOffWorker], 8),
            Self::LossByBrokenStream => (&[KillLeader, Transfer, CutOffWorker], 8),
            Self::DeafWorker | Self::SlowWorkerClock => (&[CutOffWorker, CutOffWorker, CutOffLeader], 8),
            Self::StartUncommitted => (&[CutOffWorker, KillWorker, CutOffLeader, KillLeader], 10),
            Self::TimeoutsByWallClock => (&[JumpClock, JumpClock, KillLeader], 10),
            Self::LostGrantForgotten => (&[CutOffWorker, KillLeader, CutOffLeader], 10),
            Self::WaitEndsElsewhere => (&[HoldUp, SlowNetwork, CutOffMember], 8),
            Self::DamageCutOff => (&[DamageDisk, SlowNetwork], 6),
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
