//! Join tokens.

use atlas_types::{JoinKind, JoinToken};

use super::enum_field;
use super::table::table;
use crate::proto;

enum_field!(JoinKind, proto::JoinKind, { Controller = Controller, Worker = Worker });

table! {
    "join_token_record": JoinToken = JoinTokenRecord {
        hash = hash,
        kind = kind,
        expires = expires_us,
        uses = uses,
    }
}
