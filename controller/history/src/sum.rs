//! A checksum per row: SQLite's own check verifies the structure of its pages, but not the content of rows.

use rusqlite::Connection;

use crate::HistoryError;

/// The checksum column of a row written before checksums existed.
const NONE: i64 = -1;

/// The kind of a row, for error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Row {
    /// The job that an event ended.
    Job,
    /// The events of one transaction.
    Events,
}

/// The checksum of a row's body and key.
pub(crate) fn of(key: i64, body: &[u8]) -> i64 {
    i64::from(crc32c::crc32c_append(crc32c::crc32c(&key.to_le_bytes()), body))
}

/// Returns an error if a row's checksum does not match.
pub(crate) fn check(connection: &Connection, row: Row, key: i64, body: &[u8], sum: i64) -> Result<(), HistoryError> {
    if sum == NONE || sum == of(key, body) {
        return Ok(());
    }
    let detail = match row {
        Row::Job => format!("the checksum of the job that event {key} ended does not match"),
        Row::Events => format!("the checksum of the events up to {key} does not match"),
    };
    Err(HistoryError::Damaged { path: connection.path().unwrap_or_default().into(), detail })
}
