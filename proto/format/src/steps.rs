//! Steps of journals in artifacts of their own.

use std::sync::Arc;

use atlas_types::Step;
use prost::Message as _;

use crate::convert::table::Field as _;
use crate::{FormatError, proto};

/// The content of an artifact that holds steps.
pub fn encode_steps(steps: &[Arc<Step>]) -> Vec<u8> {
    proto::Steps { steps: steps.iter().map(|step| (&**step).into()).collect() }.encode_to_vec()
}

/// Reads an artifact that holds steps.
pub fn decode_steps(bytes: &[u8]) -> Result<Vec<Arc<Step>>, FormatError> {
    let message = proto::Steps::decode(bytes).map_err(|source| FormatError::Malformed { source })?;
    let understood = message.encoded_len();
    if understood != bytes.len() {
        return Err(FormatError::UnknownField { found: bytes.len(), understood });
    }
    Vec::read("steps.steps", message.steps)
}
