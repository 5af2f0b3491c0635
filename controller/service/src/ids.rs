//! Texts that name jobs and runs of chains.

use atlas_types::RunId;

/// Whether a text is the id of an execution, or the beginning of one, and not of a job.
pub(crate) fn is_execution(id: &str) -> bool {
    [RunId::EXECUTION, RunId::PREFIX].iter().any(|prefix| id.starts_with(prefix))
}
