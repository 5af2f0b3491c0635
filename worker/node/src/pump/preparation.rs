//! What an attempt needs before it begins: its package and its input.

use std::sync::Arc;

use atlas_slots::AttemptEnd;
use atlas_types::{Assignment, Failure, FailureKind, Micros, Payload, PayloadBody, ReportKind, Usage};
use serde_json::value::RawValue;
use tracing::warn;

use crate::agent::{Agent, OutputFault};
use crate::environment::EnvironmentError;
use crate::packages::{PackageError, Packages};
use crate::payloads::Transfers;
use crate::provider::bounded;
use crate::slot::{Ended, Work};

/// Why an attempt could not begin.
pub(crate) enum Unprepared {
    /// It is the job's failure, here and anywhere.
    Failed(Failure),
    /// It is this node's: the lease is given back.
    GiveBack,
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
        Err(OutputFault::Violations(why) | OutputFault::Unusable(why)) => {
            let error = bounded(format!("Output validation: {why}"));
            Ended::failed(Failure { kind: FailureKind::OutputInvalid, error: error.into() }).into_end(None)
        }
    }
}

/// Fetches what an attempt needs, or tells whose fault it is that it is not there.
pub(super) async fn prepare(
    assignment: Box<Assignment>,
    packages: &Packages,
    transfers: &Transfers,
) -> Result<Arc<Work>, Unprepared> {
    let agent = packages.get(assignment.digest, assignment.package_bytes).await.map_err(|error| match &error {
        PackageError::Fetch(cause) if cause.is_nodes_own() => give_back(cause),
        PackageError::CutShort | PackageError::Environment(EnvironmentError::CutShort) => give_back(&error),
        PackageError::Environment(_) => failed(FailureKind::Startup, "Pool error", &error),
        _ => failed(FailureKind::Internal, "Pool error", &error),
    })?;
    let input = transfers.load(&assignment.input).await.map_err(|error| match error {
        error if error.is_nodes_own() => give_back(&error),
        error => failed(FailureKind::Internal, "the input could not be fetched", &error),
    })?;
    Ok(Arc::new(Work { assignment, input, agent }))
}

fn give_back(error: &dyn std::error::Error) -> Unprepared {
    warn!(%error, "an attempt could not be prepared, its lease is given back");
    Unprepared::GiveBack
}

fn failed(kind: FailureKind, what: &str, error: &dyn std::error::Error) -> Unprepared {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let error = bounded(format!("{what}: {error}{cause}")).into();
    Unprepared::Failed(Failure { kind, error })
}
