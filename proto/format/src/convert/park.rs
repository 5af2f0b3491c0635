//! What parked jobs wait for.

use atlas_types::{ClusterTime, JobId, Parked, Timestamp, Wait};

use super::required;
use crate::proto::wait::Kind;
use crate::{FormatError, proto};

impl From<&Parked> for proto::Parked {
    fn from(parked: &Parked) -> Self {
        Self { waits: waits_out(&parked.waits), due_us: parked.due.map(|due| due.0) }
    }
}

impl TryFrom<proto::Parked> for Parked {
    type Error = FormatError;

    fn try_from(parked: proto::Parked) -> Result<Self, FormatError> {
        Ok(Self { waits: waits_in(parked.waits)?, due: parked.due_us.map(ClusterTime) })
    }
}

/// Waits, outward.
pub(super) fn waits_out(waits: &[Wait]) -> Vec<proto::Wait> {
    let kind = |wait: &Wait| match wait {
        Wait::Time { at } => Kind::UntilUs(at.0),
        Wait::Child { job } => Kind::ChildJobId(job.0),
    };
    waits.iter().map(|wait| proto::Wait { kind: Some(kind(wait)) }).collect()
}

/// Waits, inward.
pub(super) fn waits_in(waits: Vec<proto::Wait>) -> Result<Vec<Wait>, FormatError> {
    let wait = |wait: proto::Wait| {
        Ok(match required("wait.kind", wait.kind)? {
            Kind::UntilUs(at) => Wait::Time { at: Timestamp(at) },
            Kind::ChildJobId(job) => Wait::Child { job: JobId(job) },
        })
    };
    waits.into_iter().map(wait).collect()
}
