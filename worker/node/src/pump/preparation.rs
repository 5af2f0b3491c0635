//! Prepares an attempt: fetches its package and its input.

use std::sync::Arc;

use atlas_slots::{AttemptEnd, Input};
use atlas_types::{
    Assignment, Demand, Failure, FailureKind, FencingToken, Micros, Payload, PayloadBody, ReportKind, Usage,
};
use serde_json::value::RawValue;
use tracing::warn;

use super::{Pump, RunningAttempt};
use crate::agent::{Agent, OutputFault};
use crate::attempt::{Ended, Work};
use crate::environment::EnvironmentError;
use crate::news::{News, Unprepared};
use crate::packages::{PackageError, Packages};
use crate::payloads::{TransferError, Transfers};
use crate::preparing::{Preparing, Untold};
use crate::texts::bounded;

impl Pump {
    /// Runs an attempt at once if everything is available. Otherwise prepares it outside this loop.
    pub(super) fn start(&mut self, assignment: Box<Assignment>, place: RunningAttempt) {
        let token = assignment.token;
        self.attempts.insert(token, place);
        if let Some(work) = self.prepared.remove(&token).flatten() {
            return self.begin(place, work);
        }
        match self.at_hand(assignment, place.warm) {
            Ok(work) => self.begin(place, work),
            Err(assignment) => self.fetch(assignment),
        }
    }

    /// Prepares an attempt whose start is committed afterwards.
    pub(super) fn prepare(&mut self, assignment: Box<Assignment>) {
        let token = assignment.token;
        match self.at_hand(assignment, false) {
            Ok(work) => {
                self.prepared.insert(token, Some(work));
                self.step_later(Input::Prepared { token });
            }
            Err(assignment) => {
                self.prepared.insert(token, None);
                self.fetch(assignment);
            }
        }
    }

    /// Handles the result of a preparation.
    pub(super) fn on_prepared(&mut self, token: FencingToken, work: Result<Arc<Work>, Unprepared>) {
        if let Some(kept) = self.prepared.get_mut(&token) {
            return match work {
                Ok(work) => {
                    *kept = Some(work);
                    self.step(Input::Prepared { token });
                }
                Err(unprepared) => {
                    self.prepared.remove(&token);
                    self.spool.close(token);
                    self.step(Input::Unprepared { token, report: unprepared.report() });
                }
            };
        }
        match (self.attempts.get(&token).copied(), work) {
            (Some(place), Ok(work)) => self.begin(place, work),
            (Some(_), Err(Unprepared::Failed(failure))) => self.ended(token, Ended::failed(failure)),
            (Some(place), Err(Unprepared::GiveBack)) => {
                self.attempts.remove(&token);
                self.spool.discard(token);
                let end = AttemptEnd { report: ReportKind::NotHeld, slot_usable: false };
                self.end_later(token, place.slot, end);
                self.settle();
            }
            // The attempt was stopped meanwhile and already reported.
            (None, _) => {}
        }
    }

    /// The work of an attempt, if everything is available.
    fn at_hand(&self, assignment: Box<Assignment>, warm: bool) -> Result<Arc<Work>, Box<Assignment>> {
        let inline = |payload: &Payload| match &payload.body {
            PayloadBody::Inline(bytes) => Some(Arc::clone(bytes)),
            PayloadBody::Artifact { .. } => None,
        };
        let context = assignment.context.as_ref().map(inline);
        match (self.packages.ready(assignment.digest, warm), inline(&assignment.input), context) {
            (_, _, Some(None)) => Err(assignment),
            (Some((agent, is_looked_at)), Some(input), context) => {
                let agent = agent.within(assignment.attachments.bounds());
                Ok(Arc::new(Work { assignment, input, context: context.flatten(), agent, is_looked_at }))
            }
            _ => Err(assignment),
        }
    }

    /// Prepares an attempt outside this loop.
    pub(super) fn fetch(&mut self, assignment: Box<Assignment>) {
        let token = assignment.token;
        self.spool.open(assignment.job, assignment.attempt, token);
        let untold = Untold {
            settings: Arc::clone(&self.shared.settings),
            python: !self.told_of(Demand::PYTHON, token),
            nodejs: !self.told_of(Demand::NODE, token),
        };
        let (env, news) = (self.env.clone(), self.news.clone());
        let preparing = Preparing::new(env, news, token, self.prepare_timeout, untold);
        let (packages, transfers, news) = (self.packages.clone(), self.transfers.clone(), self.news.clone());
        self.env.spawn("prepare attempt", async move {
            let work = prepare(assignment, &packages, &transfers, &preparing).await;
            // If the pump has ended, it has given the lease back.
            let _ = news.send(News::Prepared { token, work }).await;
        });
    }
}

/// The in-process agent's answer: its input.
pub(super) fn echo(input: &Arc<[u8]>, agent: &Agent, warm: bool) -> AttemptEnd {
    let text = String::from_utf8_lossy(input).into_owned();
    let checked = match RawValue::from_string(text) {
        Ok(output) => agent.check_output(&output),
        Err(error) => Err(OutputFault::Unusable(error.to_string())),
    };
    match checked {
        Ok(()) => {
            let output = Payload { key_id: 0, body: PayloadBody::Inline(Arc::clone(input)) };
            let warmup = if warm { Micros(0) } else { Micros(1) };
            let usage = Usage { warm, warmup, ..Usage::default() };
            AttemptEnd { report: ReportKind::Completed { output, usage, metadata: None }, slot_usable: true }
        }
        Err(fault) => Ended::failed(fault.into_failure()).into_end(None),
    }
}

/// Fetches the data of an attempt. On failure, decides whether the job or the node is the cause.
async fn prepare(
    assignment: Box<Assignment>,
    packages: &Packages,
    transfers: &Transfers,
    preparing: &Preparing,
) -> Result<Arc<Work>, Unprepared> {
    let agent = packages.get(assignment.digest, assignment.package_bytes, preparing);
    let agent = agent.await.map_err(|error| match &error {
        PackageError::Fetch(cause) if cause.is_nodes_own() => give_back(cause),
        PackageError::CutShort | PackageError::Environment(EnvironmentError::CutShort) => give_back(&error),
        PackageError::Environment(EnvironmentError::NoPython(_)) if preparing.is_python_untold() => give_back(&error),
        PackageError::Environment(_) => failed(FailureKind::Startup, "Pool error", &error),
        _ => failed(FailureKind::Internal, "Pool error", &error),
    })?;
    if let Some(why) = preparing.untold_lack(&agent.contract).await {
        warn!("{why}: returning the lease of an agent that needs it");
        return Err(Unprepared::GiveBack);
    }
    let load = |payload| preparing.slow("fetching the input", transfers.load(payload));
    let lost = |error: TransferError| match error {
        error if error.is_nodes_own() => give_back(&error),
        // An input that did not fit into a welcome is stored only at the controller that sent it. It is sent again
        // with the next lease. An input that is lost for good uses up the job's attempts.
        TransferError::Gone(_) => give_back(&error),
        error => failed(FailureKind::Internal, "could not fetch the input", &error),
    };
    let input = load(&assignment.input).await.map_err(lost)?;
    let context = match &assignment.context {
        Some(context) => Some(load(context).await.map_err(lost)?),
        None => None,
    };
    let agent = agent.within(assignment.attachments.bounds());
    Ok(Arc::new(Work { assignment, input, context, agent, is_looked_at: true }))
}

fn give_back(error: &dyn std::error::Error) -> Unprepared {
    warn!(%error, "could not prepare an attempt, returning its lease");
    Unprepared::GiveBack
}

fn failed(kind: FailureKind, what: &str, error: &dyn std::error::Error) -> Unprepared {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let error = bounded(format!("{what}: {error}{cause}")).into();
    Unprepared::Failed(Failure { kind, error })
}
