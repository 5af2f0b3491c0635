//! Texts that name jobs and runs of chains.

use atlas_types::RunId;

/// Whether a text is the id of a run, or the beginning of one, and not of a job.
pub(crate) fn is_run(id: &str) -> bool {
    [RunId::SHOWN_PREFIX, RunId::PREFIX].iter().any(|prefix| id.starts_with(prefix))
}
