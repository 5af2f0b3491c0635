//! Attributes of spans, metrics and logs.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// The longest text of an attribute.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// A text, shortened.
pub(crate) fn text(text: &str) -> AnyValue {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    AnyValue { value: Some(Value::StringValue(text[..end].to_owned())) }
}

/// An attribute with a text.
pub(crate) fn word(key: &str, value: &str) -> KeyValue {
    attribute(key, text(value))
}

/// An attribute with a number.
pub(crate) fn count(key: &str, value: u64) -> KeyValue {
    attribute(key, AnyValue { value: Some(Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX))) })
}

/// An attribute with a fraction.
pub(crate) fn share(key: &str, value: f64) -> KeyValue {
    attribute(key, AnyValue { value: Some(Value::DoubleValue(value)) })
}

/// An attribute that is true or false.
pub(crate) fn flag(key: &str, value: bool) -> KeyValue {
    attribute(key, AnyValue { value: Some(Value::BoolValue(value)) })
}

pub(crate) fn attribute(key: &str, value: AnyValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

/// What sends: the program.
pub(crate) fn resource(attributes: &[(String, String)]) -> Resource {
    let attributes = attributes.iter().map(|(key, value)| word(key, value)).collect();
    Resource { attributes, ..Resource::default() }
}

/// What records.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "atlas".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Default::default()
    }
}
