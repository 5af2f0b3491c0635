//! Single jobs, for a history that keeps ended jobs.

use atlas_types::Job;
use prost::Message as _;

use crate::{FormatError, proto};

/// The bytes of a job.
pub fn encode_job(job: &Job) -> Vec<u8> {
    proto::Job::from(job).encode_to_vec()
}

/// Reads a job.
pub fn decode_job(bytes: &[u8]) -> Result<Job, FormatError> {
    let message = proto::Job::decode(bytes).map_err(|source| FormatError::Malformed { source })?;
    let understood = message.encoded_len();
    if understood != bytes.len() {
        return Err(FormatError::UnknownField { found: bytes.len(), understood });
    }
    message.try_into()
}
