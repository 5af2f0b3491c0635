//! Tables of fields: a row gives both directions of a conversion, and the sample with which the tests try it.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{
    AgentName, Attempt, BootId, Channel, ClusterTime, Digest, EventSeq, FencingToken, JobId, MemberId, MessageId,
    Micros, Namespace, NodeEpoch, NodeId, ObjectKind, ObjectName, Principal, QuestionId, RequestId, RunId, Seq,
    StepKey, Timestamp,
};

use super::{fixed, labels_in, labels_out, name};
#[cfg(test)]
use crate::tests::{Draw, Sample};
use crate::{FormatError, proto};

/// A type that is stored in fields of the type `M`.
pub(crate) trait Field<M>: Sized {
    /// Outward.
    fn write(&self) -> M;
    /// Inward. An error names the field.
    fn read(field: &'static str, stored: M) -> Result<Self, FormatError>;
}

/// How a field is stored that is not stored as its type says.
pub(super) trait Rule<T, M> {
    /// Outward.
    fn write(value: &T) -> M;
    /// Inward. An error names the field.
    fn read(field: &'static str, stored: M) -> Result<T, FormatError>;
    /// Draws a value that can be stored so.
    #[cfg(test)]
    fn sample(draw: &mut Draw) -> T
    where
        T: Sample,
    {
        draw.value()
    }
}

/// The conversions of a struct. A row is a field, the field that stores it, and a [`Rule`] if its type does not say how; a `part` is a
/// struct whose fields are stored beside the others. `from` changes what is read before that.
macro_rules! table {
    (
        $name:literal: $ours:ident = $theirs:ident $(from $older:path)? {
            $($field:ident = $stored:ident $(via $rule:ty)?),* $(,)?
        }
        $(part $part:ident: $part_type:ident { $($inner:ident = $inner_stored:ident),* $(,)? })*
    ) => {
        impl From<&$ours> for $crate::proto::$theirs {
            fn from(value: &$ours) -> Self {
                Self {
                    $($stored: $crate::convert::table::written!(&value.$field $(, $rule)?),)*
                    $($($inner_stored: $crate::convert::table::written!(&value.$part.$inner),)*)*
                }
            }
        }

        impl TryFrom<$crate::proto::$theirs> for $ours {
            type Error = $crate::FormatError;

            fn try_from(message: $crate::proto::$theirs) -> Result<Self, $crate::FormatError> {
                $(let message = $older(message);)?
                Ok(Self {
                    $($field: $crate::convert::table::read!($name, message.$stored, $stored $(, $rule)?),)*
                    $($part: $part_type {
                        $($inner: $crate::convert::table::read!($name, message.$inner_stored, $inner_stored),)*
                    },)*
                })
            }
        }

        $crate::convert::table::message!($ours = $theirs);

        #[cfg(test)]
        impl $crate::tests::Sample for $ours {
            fn sample(draw: &mut $crate::tests::Draw) -> Self {
                Self {
                    $($field: $crate::convert::table::drawn!(draw, $theirs.$stored $(, $rule)?),)*
                    $($part: $part_type { $($inner: $crate::tests::Sample::sample(draw),)* },)*
                }
            }
        }
    };
}
pub(super) use table;

macro_rules! written {
    ($value:expr) => {
        $crate::convert::table::Field::write($value)
    };
    ($value:expr, $rule:ty) => {
        <$rule as $crate::convert::table::Rule<_, _>>::write($value)
    };
}
pub(super) use written;

macro_rules! read {
    ($name:literal, $value:expr, $stored:ident) => {
        $crate::convert::table::Field::read(concat!($name, ".", stringify!($stored)), $value)?
    };
    ($name:literal, $value:expr, $stored:ident, $rule:ty) => {
        <$rule as $crate::convert::table::Rule<_, _>>::read(concat!($name, ".", stringify!($stored)), $value)?
    };
}
pub(super) use read;

/// A sample of a field. Its rule is found by the type that stores it.
#[cfg(test)]
macro_rules! drawn {
    ($draw:ident, $theirs:ident.$stored:ident) => {
        $crate::tests::Sample::sample($draw)
    };
    ($draw:ident, $theirs:ident.$stored:ident, $rule:ty) => {
        $crate::convert::table::drawn_by::<$rule, _, $crate::proto::$theirs, _>($draw, |message| &message.$stored)
    };
}
#[cfg(test)]
pub(super) use drawn;

#[cfg(test)]
pub(super) fn drawn_by<R: Rule<T, M>, T: Sample, P, M>(draw: &mut Draw, _: fn(&P) -> &M) -> T {
    R::sample(draw)
}

/// Makes types with conversions fields: a message that must be there, and one that need not.
macro_rules! message {
    ($($ours:ident = $($theirs:ident)::+),+ $(,)?) => {$(
        impl $crate::convert::table::Field<$crate::proto::$($theirs)::+> for $ours {
            fn write(&self) -> $crate::proto::$($theirs)::+ {
                self.into()
            }

            fn read(_: &'static str, stored: $crate::proto::$($theirs)::+) -> Result<Self, $crate::FormatError> {
                stored.try_into()
            }
        }

        impl $crate::convert::table::Field<Option<$crate::proto::$($theirs)::+>> for $ours {
            fn write(&self) -> Option<$crate::proto::$($theirs)::+> {
                Some(self.into())
            }

            fn read(
                field: &'static str,
                stored: Option<$crate::proto::$($theirs)::+>,
            ) -> Result<Self, $crate::FormatError> {
                $crate::convert::required(field, stored)?.try_into()
            }
        }
    )+};
}
pub(super) use message;

macro_rules! plain {
    ($($plain:ty),*) => {$(
        impl Field<$plain> for $plain {
            fn write(&self) -> $plain {
                self.clone()
            }

            fn read(_: &'static str, stored: $plain) -> Result<Self, FormatError> {
                Ok(stored)
            }
        }
    )*};
}
plain!(bool, u32, u64, i64, String);

macro_rules! numbers {
    ($($number:ident: $inner:ty),* $(,)?) => {$(
        impl Field<$inner> for $number {
            fn write(&self) -> $inner {
                self.0
            }

            fn read(_: &'static str, stored: $inner) -> Result<Self, FormatError> {
                Ok(Self(stored))
            }
        }
    )*};
}
numbers! {
    Attempt: u32, ClusterTime: u64, EventSeq: u64, FencingToken: u64, JobId: u64, MemberId: u64, Micros: u64, NodeEpoch: u64,
    QuestionId: u64, RunId: u64, Seq: u64, Timestamp: i64,
}

macro_rules! names {
    ($($name:ident),* $(,)?) => {$(
        impl Field<String> for $name {
            fn write(&self) -> String {
                self.to_string()
            }

            fn read(field: &'static str, stored: String) -> Result<Self, FormatError> {
                name(field, &stored, Self::new)
            }
        }
    )*};
}
names!(AgentName, Channel, MessageId, Namespace, NodeId, ObjectKind, ObjectName, Principal, RequestId);

impl<const N: usize> Field<Vec<u8>> for [u8; N] {
    fn write(&self) -> Vec<u8> {
        self.to_vec()
    }

    fn read(field: &'static str, stored: Vec<u8>) -> Result<Self, FormatError> {
        fixed(field, &stored)
    }
}

macro_rules! widths {
    ($($wide:ident),*) => {$(
        impl Field<Vec<u8>> for $wide {
            fn write(&self) -> Vec<u8> {
                self.0.to_vec()
            }

            fn read(field: &'static str, stored: Vec<u8>) -> Result<Self, FormatError> {
                fixed(field, &stored).map(Self)
            }
        }
    )*};
}
widths!(Digest, StepKey);

impl Field<Vec<u8>> for u128 {
    fn write(&self) -> Vec<u8> {
        self.to_be_bytes().to_vec()
    }

    fn read(field: &'static str, stored: Vec<u8>) -> Result<Self, FormatError> {
        fixed(field, &stored).map(Self::from_be_bytes)
    }
}

impl Field<Vec<u8>> for BootId {
    fn write(&self) -> Vec<u8> {
        self.0.write()
    }

    fn read(field: &'static str, stored: Vec<u8>) -> Result<Self, FormatError> {
        Field::read(field, stored).map(Self)
    }
}

impl Field<u32> for u8 {
    fn write(&self) -> u32 {
        (*self).into()
    }

    fn read(field: &'static str, stored: u32) -> Result<Self, FormatError> {
        Self::try_from(stored).map_err(|_| FormatError::Value { field, found: stored.into() })
    }
}

impl Field<Vec<u8>> for Arc<[u8]> {
    fn write(&self) -> Vec<u8> {
        self.to_vec()
    }

    fn read(_: &'static str, stored: Vec<u8>) -> Result<Self, FormatError> {
        Ok(stored.into())
    }
}

impl Field<String> for Arc<str> {
    fn write(&self) -> String {
        self.as_ref().to_owned()
    }

    fn read(_: &'static str, stored: String) -> Result<Self, FormatError> {
        Ok(stored.into())
    }
}

impl Field<Vec<proto::Label>> for BTreeMap<String, String> {
    fn write(&self) -> Vec<proto::Label> {
        labels_out(self)
    }

    fn read(field: &'static str, stored: Vec<proto::Label>) -> Result<Self, FormatError> {
        labels_in(field, stored)
    }
}

impl<T: Field<M>, M> Field<M> for Arc<T> {
    fn write(&self) -> M {
        T::write(self)
    }

    fn read(field: &'static str, stored: M) -> Result<Self, FormatError> {
        T::read(field, stored).map(Self::new)
    }
}

impl<T: Field<M>, M> Field<M> for Box<T> {
    fn write(&self) -> M {
        T::write(self)
    }

    fn read(field: &'static str, stored: M) -> Result<Self, FormatError> {
        T::read(field, stored).map(Self::new)
    }
}

impl<T: Field<M>, M> Field<Option<M>> for Option<T> {
    fn write(&self) -> Option<M> {
        self.as_ref().map(T::write)
    }

    fn read(field: &'static str, stored: Option<M>) -> Result<Self, FormatError> {
        stored.map(|stored| T::read(field, stored)).transpose()
    }
}

impl<T: Field<M>, M> Field<Vec<M>> for Vec<T> {
    fn write(&self) -> Vec<M> {
        self.iter().map(T::write).collect()
    }

    fn read(field: &'static str, stored: Vec<M>) -> Result<Self, FormatError> {
        stored.into_iter().map(|stored| T::read(field, stored)).collect()
    }
}

/// None is stored as nothing: an empty text, no bytes.
pub(super) struct EmptyIsNone;

impl<T: Field<M>, M: Default + PartialEq> Rule<Option<T>, M> for EmptyIsNone {
    fn write(value: &Option<T>) -> M {
        value.as_ref().map(T::write).unwrap_or_default()
    }

    fn read(field: &'static str, stored: M) -> Result<Option<T>, FormatError> {
        if stored == M::default() { Ok(None) } else { T::read(field, stored).map(Some) }
    }

    #[cfg(test)]
    fn sample(draw: &mut Draw) -> Option<T>
    where
        Option<T>: Sample,
    {
        draw.value::<Option<T>>().filter(|value| value.write() != M::default())
    }
}

/// The default is not stored.
pub(super) struct DefaultIsAbsent;

impl<T: Field<M> + Default + PartialEq, M> Rule<T, Option<M>> for DefaultIsAbsent {
    fn write(value: &T) -> Option<M> {
        (*value != T::default()).then(|| T::write(value))
    }

    fn read(field: &'static str, stored: Option<M>) -> Result<T, FormatError> {
        stored.map_or_else(|| Ok(T::default()), |stored| T::read(field, stored))
    }
}

/// One number is not stored: the one that older programs meant.
pub(super) struct Unless<const N: u32>;

impl<const N: u32> Rule<u32, Option<u32>> for Unless<N> {
    fn write(value: &u32) -> Option<u32> {
        (*value != N).then_some(*value)
    }

    fn read(_: &'static str, stored: Option<u32>) -> Result<u32, FormatError> {
        Ok(stored.unwrap_or(N))
    }
}

/// [`Unless`] for a wide number.
pub(super) struct UnlessWide<const N: u64>;

impl<const N: u64> Rule<u64, Option<u64>> for UnlessWide<N> {
    fn write(value: &u64) -> Option<u64> {
        (*value != N).then_some(*value)
    }

    fn read(_: &'static str, stored: Option<u64>) -> Result<u64, FormatError> {
        Ok(stored.unwrap_or(N))
    }
}

/// The opposite is stored.
pub(super) struct Opposite;

impl Rule<bool, bool> for Opposite {
    fn write(value: &bool) -> bool {
        !value
    }

    fn read(_: &'static str, stored: bool) -> Result<bool, FormatError> {
        Ok(!stored)
    }
}
