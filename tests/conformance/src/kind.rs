//! One file a kind of row, or a family of kinds that one rule answers.

mod contract;
mod hardware;
mod jobs;
mod rest;
mod schema;
mod versions;
mod websocket;

use crate::bench::Bench;
use crate::row::Row;
use crate::verdict::{Stop, Verdict};

/// Judges one row.
pub(crate) fn judge(row: &Row, bench: &Bench) -> Verdict {
    let judged = match row.kind.as_str() {
        "contract" => contract::contract(row),
        "skill" => contract::skill(row),
        "validate" => schema::judge(row),
        "latest" | "exact" | "range" | "best" | "matches" | "missing" => versions::judge(row),
        "sequence" => hardware::sequence(row),
        "describe" => hardware::describe(row),
        "jobs" => jobs::judge(row, bench),
        "http" => rest::judge(row, bench),
        "websocket" => websocket::judge(row, bench),
        "cli" => Err(Stop::skip("the program \"atlas\" of the source's command line")),
        other => Err(Stop::skip(format!("rows of kind \"{other}\""))),
    };
    judged.into()
}
