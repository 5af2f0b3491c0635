//! Conversions between frames and plain data. Outward (`From`) never fails; inward (`TryFrom`) checks every bound, because a frame comes
//! from a peer, and names the field that is missing or wrong.

use std::sync::Arc;

use atlas_types::{IdError, VersionError};

use crate::limits;

mod artifact;
mod attachment;
mod enrollment;
mod inventory;
mod journal;
mod lease;
mod model;
mod park;
mod report;
mod session;
mod spawn;
mod time;
mod tool;

#[cfg(test)]
mod tests;

pub use artifact::{digest_in, digest_out};
pub use attachment::credential_in;
pub use report::{deltas_in, report_from_bytes, report_to_bytes};

/// Why a frame was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// A field that must be there is not.
    #[error("field \"{field}\" is missing")]
    Missing {
        /// Its name in the message.
        field: &'static str,
    },
    /// A field holds what is not a value of its kind.
    #[error("field \"{field}\" has the unknown value {found}")]
    Value {
        /// Its name in the message.
        field: &'static str,
        /// What was found.
        found: i64,
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
    /// A field is longer than its bound.
    #[error("field \"{field}\" has {found} bytes or items, more than {max}")]
    TooLarge {
        /// Its name in the message.
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
    /// A version is not three numbers.
    #[error("field \"{field}\" is not a version")]
    Version {
        /// Its name in the message.
        field: &'static str,
        /// What is wrong with it.
        source: VersionError,
    },
    /// A list names the same thing more than once.
    #[error("field \"{field}\" lists {found} twice")]
    Twice {
        /// Its name in the message.
        field: &'static str,
        /// What it lists twice.
        found: u32,
    },
    /// A text has a form that its field does not allow.
    #[error("field \"{field}\" is malformed")]
    Form {
        /// Its name in the message.
        field: &'static str,
    },
}

/// A field that must be there.
fn required<T>(field: &'static str, value: Option<T>) -> Result<T, ConvertError> {
    value.ok_or(ConvertError::Missing { field })
}

/// Checks the length of bytes, text or a list.
fn bounded(field: &'static str, found: usize, max: usize) -> Result<(), ConvertError> {
    if found > max { Err(ConvertError::TooLarge { field, found, max }) } else { Ok(()) }
}

/// Bytes of a fixed width.
fn fixed<const N: usize>(field: &'static str, bytes: &[u8]) -> Result<[u8; N], ConvertError> {
    bytes.try_into().map_err(|_| ConvertError::Width { field, found: bytes.len(), wanted: N })
}

/// A name, by the constructor of its type.
fn name<T>(field: &'static str, text: &str, new: fn(&str) -> Result<T, IdError>) -> Result<T, ConvertError> {
    new(text).map_err(|source| ConvertError::Name { field, source })
}

/// A short text, checked.
fn word(field: &'static str, text: String) -> Result<String, ConvertError> {
    bounded(field, text.len(), limits::WORD_BYTES_MAX)?;
    Ok(text)
}

/// A job's metadata, checked for size.
fn metadata(field: &'static str, bytes: &[u8]) -> Result<Arc<[u8]>, ConvertError> {
    bounded(field, bytes.len(), limits::METADATA_BYTES_MAX)?;
    Ok(bytes.into())
}
