//! Jobs that give up their lease while they wait. Proposed at this member only: the worker asks the next leader again.

use atlas_desk::requests;
use atlas_types::{Command, Micros, Outcome, ParkJob, ParkResult, Rejection, Timestamp, Wait};

use crate::{Error, Service};

/// How long a job waits before it is queued again that left a draining node. The leader learns of a stopping worker's drain before that.
const LEAVE_PAUSE: Micros = Micros::from_secs(1);

impl Service {
    /// Parks a job, for the holder of its lease. A repeat after the job has parked gets the same answer. Without waits, the job only leaves
    /// its node, and is queued again after a moment.
    pub async fn park(&self, mut command: ParkJob) -> Result<ParkResult, Error> {
        let Some(caller) = self.holder(command.job, command.token) else { return Ok(self.without_lease(&command)) };
        self.store_last_lines(&command).await;
        if command.waits.is_empty() {
            let pause = i64::try_from(LEAVE_PAUSE.0).unwrap_or(i64::MAX);
            command.waits.push(Wait::Time { at: Timestamp(self.shared.env.clock.wall().0.saturating_add(pause)) });
        }
        let proposed = vec![requests::of(&caller, Command::ParkJob(command.clone()))];
        let outcome = match self.shared.handle.propose_here(proposed).await.map_err(Error::from) {
            Ok(outcomes) => outcomes.into_iter().next().ok_or(Error::OutcomeUnknown)?,
            Err(Error::Overloaded | Error::NoSpace) => return Ok(ParkResult::Busy),
            Err(error) => return Err(error),
        };
        Ok(match outcome {
            Ok(Outcome::Parked { ready: false }) => ParkResult::Parked,
            Ok(Outcome::Parked { ready: true }) => ParkResult::Ready,
            // A cancel had been accepted, and the job has ended.
            Ok(_) => ParkResult::Fenced,
            Err(Rejection::Fenced) => self.without_lease(&command),
            // The child is still being submitted, or has left the state. The spawn is answered in both cases.
            Err(Rejection::UnknownJob { .. }) => ParkResult::Ready,
            // The same with a question that is still being asked.
            Err(Rejection::UnknownQuestion) => ParkResult::Ready,
            Err(Rejection::LevelTooLow { .. }) => ParkResult::Busy,
            Err(rejection) => ParkResult::Refused { why: rejection.to_string() },
        })
    }

    /// The answer for a lease that has ended.
    fn without_lease(&self, command: &ParkJob) -> ParkResult {
        let state = self.shared.handle.applied();
        let parked = state.job(command.job).and_then(|job| job.parked.as_ref());
        match parked {
            Some(parked) if parked.token == command.token => ParkResult::Parked,
            _ => ParkResult::Fenced,
        }
    }

    /// Stores what the attempt has logged, because nothing is collected after it has parked. If that fails, the job parks all the same.
    async fn store_last_lines(&self, command: &ParkJob) {
        let ParkJob { job, ref node, token, .. } = *command;
        let state = self.shared.handle.applied();
        let Some(attempt) = state.lease(job).map(|lease| lease.attempt) else { return };
        if !self.streams().take_due(job, attempt, None) {
            return;
        }
        if let Err(error) = self.store_log(job, node.clone(), token).await {
            tracing::debug!(%job, %error, "could not store the log of an attempt that parks");
        }
    }
}
