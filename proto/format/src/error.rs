//! Why bytes were refused.

use std::io;

use atlas_types::{IdError, Level};
use prost::DecodeError;

/// Why an entry, outcomes or a record were refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FormatError {
    /// The bytes are no message of this format.
    #[error("could not read the message")]
    Malformed {
        /// Where it broke.
        source: DecodeError,
    },
    /// A message has fields that this program does not know, or was not written by this encoding.
    #[error("the message has {found} bytes, of which this program understands {understood}")]
    UnknownField {
        /// Bytes found.
        found: usize,
        /// Bytes that the understood fields take.
        understood: usize,
    },
    /// The writer asks for a reader of a higher level.
    #[error("this data needs level {} or above, this program has {}", wanted.0, Level::CURRENT.0)]
    Level {
        /// The lowest level that may read it.
        wanted: Level,
    },
    /// A request holds a command that this program does not know.
    #[error("request {index} has a command that this program does not know")]
    UnknownCommand {
        /// Its place in the entry, from 0.
        index: usize,
    },
    /// A field that must be there is not.
    #[error("field \"{field}\" is missing")]
    Missing {
        /// Its name in the message.
        field: &'static str,
    },
    /// A field holds a number that is not a value of its kind.
    #[error("field \"{field}\" has the unknown value {found}")]
    Value {
        /// Its name in the message.
        field: &'static str,
        /// What was found.
        found: i64,
    },
    /// A field holds a text that is not a value of its kind.
    #[error("field \"{field}\" has a text that this program does not know")]
    Text {
        /// Its name in the message.
        field: &'static str,
    },
    /// A field has the wrong number of bytes.
    #[error("field \"{field}\" has {found} bytes instead of {wanted}")]
    Width {
        /// Its name in the message.
        field: &'static str,
        /// Bytes found.
        found: usize,
        /// Bytes that such a value has.
        wanted: usize,
    },
    /// A list is not in its order, or names one thing twice.
    #[error("field \"{field}\" is not in order")]
    Order {
        /// Its name in the message.
        field: &'static str,
    },
    /// More bytes or items than any writer of ours writes.
    #[error("\"{field}\" has {found} bytes or items, more than {max}")]
    TooLarge {
        /// Its name in the message, or what it is.
        field: &'static str,
        /// Bytes or items found.
        found: usize,
        /// The bound.
        max: usize,
    },
    /// A name breaks the rules of names.
    #[error("field \"{field}\" is not a name")]
    Name {
        /// Its name in the message.
        field: &'static str,
        /// What is wrong with it.
        source: IdError,
    },
}

/// Why a snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file could not be written or read.
    #[error("could not {doing} the snapshot")]
    Io {
        /// `write` or `read`.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// It is not a snapshot.
    #[error("this is not a snapshot")]
    NotASnapshot,
    /// It ends before its end.
    #[error("the snapshot is truncated after {records} records")]
    Truncated {
        /// Whole records before.
        records: u64,
    },
    /// A record is larger than any writer of ours writes.
    #[error("record {record} has {found} bytes, more than {max}")]
    RecordTooLarge {
        /// Its place, from 0.
        record: u64,
        /// Its size.
        found: usize,
        /// The bound.
        max: usize,
    },
    /// A record is not understood.
    #[error("could not read record {record}")]
    Record {
        /// Its place, from 0.
        record: u64,
        /// Why.
        source: FormatError,
    },
    /// The records are not in the order of the format.
    #[error("record {record} is out of order")]
    Order {
        /// Its place, from 0.
        record: u64,
    },
    /// The checksum does not match: bytes were changed.
    #[error("the snapshot is damaged: its checksum does not match")]
    Damaged,
    /// Bytes follow the checksum.
    #[error("bytes follow the end of the snapshot")]
    Trailing,
}
