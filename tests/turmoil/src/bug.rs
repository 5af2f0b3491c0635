//! Deliberate bugs that this layer must catch.

use std::time::Duration;

use crate::Options;
use crate::fault::Kind;

/// One deliberate bug, made below or beside the product. The product's code has no switches for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// The log's disk reports a sync that it did not make.
    LogNotSynced,
    /// The name of a new log segment is lost in a crash, because its directory was not synced.
    SegmentNameNotSynced,
    /// The same for a new snapshot.
    SnapshotNameNotSynced,
    /// A failed sync is reported as successful.
    FailedSyncIgnored,
    /// A member restarts with an empty disk under its old number.
    DiskReplaced,
    /// A read is answered from the state that the member has applied, without confirmation.
    StaleRead,
    /// A member does not wait until it has applied the entries that the client has seen.
    BackwardsRead,
    /// A client is answered before its submission is applied.
    AckBeforeCommit,
    /// A cancel is always answered as accepted.
    CancelAlwaysAccepted,
    /// Request ids are not passed on.
    NoDedupe,
    /// A report is attributed to the job's current lease, whatever token it has.
    NoFencing,
    /// Renewals are acknowledged without asking the quorum.
    RenewalWithoutQuorum,
    /// A report is acknowledged before it is applied.
    ReportAckedEarly,
    /// A broken stream is treated as a lost worker.
    LossByBrokenStream,
    /// A worker trusts its leases for ten times their lifetime.
    DeafWorker,
    /// A worker's clock runs at a third of the right rate, far more than leases tolerate.
    SlowWorkerClock,
    /// Jobs that must not run twice run before their start is committed.
    StartUncommitted,
    /// Timeouts run on the wall clock.
    TimeoutsByWallClock,
    /// A welcome leaves out leases that the worker did not report, such as those whose grant was lost.
    LostGrantForgotten,
    /// A wait for a job's end is answered once any member has applied the end, not the answering one.
    WaitEndsElsewhere,
    /// A log treats damage as a torn tail and continues with the data before it.
    DamageCutOff,
}

impl Bug {
    /// The options with which the bug has an effect often.
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
            // To be noticed, a start must be lost between its acknowledgement and its entry.
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

    /// All bugs.
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
