//! Conversions between messages and shared types. Outward (`From`) never fails; inward (`TryFrom`) says which field is missing or wrong.

use std::collections::BTreeMap;

use atlas_types::{Digest, IdError};

use crate::{FormatError, proto};

mod agent;
mod approval;
mod circuit;
mod command;
mod config;
mod evidence;
mod hardware;
mod job;
mod journal;
mod member;
mod node;
mod object;
mod origin;
mod outcome;
mod park;
mod question;
mod route;
pub(crate) mod run;
pub(crate) mod table;
mod trigger;
mod value;

/// A field that must be there.
pub(crate) fn required<T>(field: &'static str, value: Option<T>) -> Result<T, FormatError> {
    value.ok_or(FormatError::Missing { field })
}

/// Bytes of a fixed width.
pub(crate) fn fixed<const N: usize>(field: &'static str, bytes: &[u8]) -> Result<[u8; N], FormatError> {
    bytes.try_into().map_err(|_| FormatError::Width { field, found: bytes.len(), wanted: N })
}

/// A digest of exactly 32 bytes.
fn digest(field: &'static str, bytes: &[u8]) -> Result<Digest, FormatError> {
    fixed(field, bytes).map(Digest)
}

/// A name, by the constructor of its type.
pub(crate) fn name<T>(field: &'static str, text: &str, new: fn(&str) -> Result<T, IdError>) -> Result<T, FormatError> {
    new(text).map_err(|source| FormatError::Name { field, source })
}

fn labels_out(labels: &BTreeMap<String, String>) -> Vec<proto::Label> {
    labels.iter().map(|(key, value)| proto::Label { key: key.clone(), value: value.clone() }).collect()
}

/// Labels, which must come by rising key: another order would make equal values of unequal bytes.
fn labels_in(field: &'static str, labels: Vec<proto::Label>) -> Result<BTreeMap<String, String>, FormatError> {
    if !labels.is_sorted_by(|a, b| a.key < b.key) {
        return Err(FormatError::Order { field });
    }
    Ok(labels.into_iter().map(|label| (label.key, label.value)).collect())
}

/// An enum on both sides, value by value.
macro_rules! enum_field {
    ($shared:ty, $message:ty, { $($ours:ident = $theirs:ident),* $(,)? }) => {
        impl From<$shared> for $message {
            fn from(value: $shared) -> Self {
                match value {
                    $(<$shared>::$ours => Self::$theirs,)*
                }
            }
        }

        impl $crate::convert::table::Field<i32> for $shared {
            fn write(&self) -> i32 {
                <$message>::from(*self).into()
            }

            fn read(field: &'static str, found: i32) -> Result<Self, $crate::FormatError> {
                match <$message>::try_from(found).unwrap_or(<$message>::Unspecified) {
                    <$message>::Unspecified => Err($crate::FormatError::Value { field, found: found.into() }),
                    $(<$message>::$theirs => Ok(Self::$ours),)*
                }
            }
        }

        #[cfg(test)]
        impl $crate::tests::Sample for $shared {
            fn sample(draw: &mut $crate::tests::Draw) -> Self {
                draw.pick(&[$(<$shared>::$ours),*])
            }
        }
    };
}
use enum_field;
