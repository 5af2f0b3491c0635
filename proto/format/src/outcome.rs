//! The answers to an entry's commands, as they go into the chain.

use atlas_types::{Outcome, Rejection};
use prost::Message as _;

use crate::convert::required;
use crate::{FormatError, proto};

/// The bytes of an entry's answers, in the order of its commands.
pub fn encode_outcomes(outcomes: &[Result<Outcome, Rejection>]) -> Vec<u8> {
    let answer = |outcome: &Result<Outcome, Rejection>| {
        let kind = match outcome {
            Ok(outcome) => proto::answer::Kind::Accepted(outcome.into()),
            Err(rejection) => proto::answer::Kind::Rejected(rejection.into()),
        };
        proto::Answer { kind: Some(kind) }
    };
    proto::Outcomes { answers: outcomes.iter().map(answer).collect() }.encode_to_vec()
}

/// Reads an entry's answers.
pub fn decode_outcomes(bytes: &[u8]) -> Result<Vec<Result<Outcome, Rejection>>, FormatError> {
    let message = proto::Outcomes::decode(bytes).map_err(|source| FormatError::Malformed { source })?;
    let understood = message.encoded_len();
    if understood != bytes.len() {
        return Err(FormatError::UnknownField { found: bytes.len(), understood });
    }
    let answer = |answer: proto::Answer| {
        Ok(match required("answer.kind", answer.kind)? {
            proto::answer::Kind::Accepted(outcome) => Ok(outcome.try_into()?),
            proto::answer::Kind::Rejected(rejection) => Err(rejection.try_into()?),
        })
    };
    message.answers.into_iter().map(answer).collect()
}
