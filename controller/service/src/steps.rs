//! The journal of a running job: steps that its attempt records, and folds of them.
//!
//! These requests are proposed only at this member. If it does not lead, the worker sends the same frame to the next
//! leader.

use std::sync::Arc;

use atlas_artifacts::{ArtifactError, digest_of};
use atlas_desk::{on_behalf, requests};
use atlas_format::decode_steps;
use atlas_types::{
    Command, ErrorKind, FencingToken, Fold, FoldSteps, JobId, Journal, Payload, PayloadBody, RecordSteps, Rejection,
    ReserveBudget, Step, StepsResult,
};
use bytes::Bytes;

use crate::json::{self, NotJson};
use crate::{Caller, Error, Service};

/// Outcomes up to this size are checked on the caller's thread.
const SMALL_BYTES_MAX: usize = 4 * 1_024;

/// Why nothing is proposed.
enum Unfit {
    /// The request has this answer without a proposal.
    Answer(StepsResult),
    /// The request fails.
    Error(Error),
}

impl Service {
    /// Appends steps to the journal of a job, for the holder of its lease.
    pub async fn record_steps(&self, command: RecordSteps) -> Result<StepsResult, Error> {
        let Some(caller) = self.holder(command.job, command.token) else { return Ok(StepsResult::Fenced) };
        for (number, step) in (command.from..).zip(&command.steps) {
            match self.check_outcome(number, &step.outcome).await {
                Ok(()) => {}
                Err(Unfit::Answer(answer)) => return Ok(answer),
                Err(Unfit::Error(error)) => return Err(error),
            }
        }
        let from = command.from;
        self.propose_steps(&caller, from, Command::RecordSteps(command)).await
    }

    /// Reserves what a model call may cost in the budget of a job or of one above it, for the holder of its lease.
    pub async fn reserve_budget(&self, command: ReserveBudget) -> Result<StepsResult, Error> {
        let Some(caller) = self.holder(command.job, command.token) else { return Ok(StepsResult::Fenced) };
        self.propose_steps(&caller, 0, Command::ReserveBudget(command)).await
    }

    /// Replaces the oldest inline steps of a job's journal by an artifact, for the holder of its lease.
    pub async fn fold_steps(&self, command: FoldSteps) -> Result<StepsResult, Error> {
        let Some(caller) = self.holder(command.job, command.token) else { return Ok(StepsResult::Fenced) };
        match self.check_fold(&command).await {
            Ok(()) => {}
            Err(Unfit::Answer(answer)) => return Ok(answer),
            Err(Unfit::Error(error)) => return Err(error),
        }
        let upto = command.upto;
        self.propose_steps(&caller, upto, Command::FoldSteps(command)).await
    }

    /// The job as a caller, if its current lease has this token.
    pub(crate) fn holder(&self, job: JobId, token: FencingToken) -> Option<Caller> {
        let state = self.shared.handle.applied();
        let job = state.job(job).filter(|job| job.lease.as_ref().is_some_and(|lease| lease.token == token))?;
        Some(on_behalf::job(job))
    }

    async fn propose_steps(&self, caller: &Caller, step: u64, command: Command) -> Result<StepsResult, Error> {
        let outcomes = self.shared.handle.propose_here(vec![requests::of(caller, command)]).await;
        let outcome = match outcomes.map_err(Error::from) {
            Ok(outcomes) => outcomes.into_iter().next().ok_or(Error::OutcomeUnknown)?,
            Err(Error::Overloaded | Error::NoSpace) => return Ok(StepsResult::Busy),
            Err(error) => return Err(error),
        };
        Ok(outcome.map_or_else(|rejection| refused(step, &rejection), |_| StepsResult::Applied))
    }

    /// Checks an outcome. One that is missing, or that some clients cannot parse, would break the journal for all
    /// readers.
    async fn check_outcome(&self, step: u64, outcome: &Payload) -> Result<(), Unfit> {
        let text = self.durable(step, outcome).await?;
        let checked = if text.len() <= SMALL_BYTES_MAX {
            json::check(&text)
        } else {
            let task = self.shared.env.spawn_blocking("check-step", move || json::check(&text));
            task.join().await.map_err(|_| Unfit::Error(Error::Internal))?
        };
        let why = match checked {
            Ok(()) => return Ok(()),
            Err(NotJson::TooDeep) => format!("its outcome is nested more than {} levels", json::DEPTH_MAX),
            Err(NotJson::OutOfRange { place }) => {
                format!("the number at {place:?} of its outcome is beyond the range of numbers")
            }
            Err(NotJson::Malformed) => "its outcome is not JSON that every client can read".to_owned(),
        };
        Err(Unfit::Answer(StepsResult::Refused { step, why }))
    }

    /// Checks the artifact of a fold. If it does not contain exactly the steps that it replaces, the journal would
    /// change.
    async fn check_fold(&self, command: &FoldSteps) -> Result<(), Unfit> {
        let state = self.shared.handle.applied();
        let empty = Arc::default();
        let journal = state.journal(command.job).unwrap_or(&empty);
        let fold = Fold { upto: command.upto, artifact: command.artifact.clone() };
        // The fold was recorded before, or `apply` will refuse its number.
        if journal.folds.last() == Some(&fold) || fold.upto <= journal.first() || fold.upto > journal.next() {
            return Ok(());
        }
        let bytes = self.durable(command.upto, &command.artifact).await?;
        let differs = |step, why: &str| Unfit::Answer(StepsResult::Refused { step, why: why.to_owned() });
        let steps = decode_steps(&bytes).map_err(|_| differs(fold.upto, "its artifact does not hold steps"))?;
        check_folded(journal, fold.upto, &steps)
            .map_err(|step| differs(step, "the artifact does not hold the recorded step"))
    }

    /// The bytes of a payload, which a majority holds durably.
    async fn durable(&self, step: u64, payload: &Payload) -> Result<Bytes, Unfit> {
        let PayloadBody::Artifact { digest, size_bytes } = payload.body else {
            return self.bytes(payload).await.map_err(Unfit::Error);
        };
        let read = async {
            self.shared.artifacts.pin(digest).await?;
            self.shared.artifacts.read(digest).await
        };
        match read.await {
            Ok(bytes) if bytes.len() as u64 == size_bytes => Ok(bytes),
            Ok(_) => {
                let why = "its artifact does not have the announced size".to_owned();
                Err(Unfit::Answer(StepsResult::Refused { step, why }))
            }
            Err(error @ ArtifactError::Stopped) => Err(Unfit::Error(Error::Artifact(error))),
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(Unfit::Answer(StepsResult::Busy)),
            Err(error) => Err(Unfit::Answer(StepsResult::Refused { step, why: error.to_string() })),
        }
    }
}

/// Compares an artifact with the inline steps that it replaces. The error is the number of the first step that differs.
fn check_folded(journal: &Journal, upto: u64, folded: &[Arc<Step>]) -> Result<(), u64> {
    for number in journal.first()..upto {
        let place = usize::try_from(number - journal.first()).unwrap_or(usize::MAX);
        let same = match (journal.step(number), folded.get(place)) {
            (Some(recorded), Some(folded)) => is_same(recorded, folded),
            _ => false,
        };
        if !same {
            return Err(number);
        }
    }
    if folded.len() as u64 == upto - journal.first() { Ok(()) } else { Err(upto) }
}

/// Compares a recorded step with a folded one. A fold contains all outcomes by value, even those recorded as artifacts.
fn is_same(recorded: &Step, folded: &Step) -> bool {
    let same_outcome = match (&recorded.outcome.body, &folded.outcome.body) {
        (PayloadBody::Artifact { digest, .. }, PayloadBody::Inline(bytes)) => digest_of(bytes) == *digest,
        (recorded, folded) => recorded == folded,
    };
    same_outcome && (recorded.kind, recorded.key, recorded.usage) == (folded.kind, folded.key, folded.usage)
}

fn refused(step: u64, rejection: &Rejection) -> StepsResult {
    let step = match *rejection {
        Rejection::Fenced | Rejection::UnknownJob { .. } | Rejection::WrongStatus { .. } => return StepsResult::Fenced,
        // The room is freed when other jobs end.
        Rejection::LimitReached { what: "journal bytes", .. } => return StepsResult::NoRoom,
        Rejection::OverBudget { budget, spent } => return StepsResult::OverBudget { budget, spent },
        // Calls under way end, and most of them cost less than was reserved for them.
        Rejection::BudgetReserved => return StepsResult::Busy,
        // The level rises with the next upgrade.
        Rejection::LevelTooLow { .. } => return StepsResult::Busy,
        Rejection::StepDiffers { step, .. } => step,
        Rejection::StepGap { from, .. } => from,
        Rejection::StepsFolded { upto, .. } => upto,
        _ => step,
    };
    StepsResult::Refused { step, why: rejection.to_string() }
}
