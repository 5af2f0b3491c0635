//! Attributes of spans and log lines, and what messages with metrics say of themselves.

use opentelemetry::{InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_proto::tonic::common::v1 as proto;

/// The longest text of an attribute.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// A text, shortened.
pub(crate) fn text(text: &str) -> String {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// An attribute with a text.
pub(crate) fn word(key: &'static str, value: &str) -> KeyValue {
    KeyValue::new(key, StringValue::from(text(value)))
}

/// An attribute with a number.
pub(crate) fn count(key: &'static str, value: u64) -> KeyValue {
    KeyValue::new(key, Value::I64(whole(value)))
}

/// A number as OTLP has them.
pub(crate) fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// An attribute with a fraction.
pub(crate) fn share(key: &'static str, value: f64) -> KeyValue {
    KeyValue::new(key, Value::F64(value))
}

/// An attribute that is true or false.
pub(crate) fn flag(key: &'static str, value: bool) -> KeyValue {
    KeyValue::new(key, Value::Bool(value))
}

/// What records.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("atlas").with_version(env!("CARGO_PKG_VERSION")).build()
}

/// An attribute of a metric.
pub(crate) fn label(key: &str, value: &str) -> proto::KeyValue {
    let value = proto::AnyValue { value: Some(proto::any_value::Value::StringValue(text(value))) };
    proto::KeyValue { key: key.to_owned(), value: Some(value), ..proto::KeyValue::default() }
}
