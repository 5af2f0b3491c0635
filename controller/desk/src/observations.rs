//! Statuses of objects, as the leader sees them.

use atlas_raft::ProposeError;
use atlas_types::{Command, Namespace, Observation, ObserveObjects, Origin, Request};

use crate::Desk;

/// The most observations in one command, so that it fits into an entry with the largest statuses.
const OBSERVATIONS_MAX: usize = 64;

impl Desk {
    /// Notes statuses of objects. Refused unless this member leads: a former leader must not overwrite what its successor noted. Returns
    /// whether all of them were accepted.
    pub async fn observe_objects(&self, observations: Vec<Observation>) -> Result<bool, ProposeError> {
        let request = |observations: &[Observation]| Request {
            origin: Origin::duty(Namespace::default_namespace()),
            command: Command::ObserveObjects(ObserveObjects { observations: observations.to_vec() }),
        };
        let requests = observations.chunks(OBSERVATIONS_MAX).map(request).collect();
        let mut accepted = true;
        for answer in self.handle.propose_here(requests).await? {
            if let Err(rejection) = answer {
                tracing::warn!(%rejection, "the status of objects was refused");
                accepted = false;
            }
        }
        Ok(accepted)
    }
}
