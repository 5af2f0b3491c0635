//! Join tokens.

use atlas_types::{ClusterTime, JoinKind, JoinToken};

use super::{EnumField as _, digest, enum_field};
use crate::{FormatError, proto};

enum_field!(JoinKind, proto::JoinKind, { Controller = Controller, Worker = Worker });

impl From<&JoinToken> for proto::JoinTokenRecord {
    fn from(token: &JoinToken) -> Self {
        Self {
            hash: token.hash.0.to_vec(),
            kind: proto::JoinKind::from(token.kind).into(),
            expires_us: token.expires.0,
            uses: token.uses,
        }
    }
}

impl TryFrom<proto::JoinTokenRecord> for JoinToken {
    type Error = FormatError;

    fn try_from(record: proto::JoinTokenRecord) -> Result<Self, FormatError> {
        Ok(Self {
            hash: digest("join_token_record.hash", &record.hash)?,
            kind: JoinKind::read("join_token_record.kind", record.kind)?,
            expires: ClusterTime(record.expires_us),
            uses: record.uses,
        })
    }
}
