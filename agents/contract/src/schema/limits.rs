//! Bounds on a schema, so that neither compiling it nor checking with it can cost more than a value is worth.

use serde_json::Value;

use super::SchemaError;

/// Deepest nesting of a schema.
const DEPTH_MAX: usize = 64;

/// Most values in a schema, enum members included.
const VALUES_MAX: usize = 20_000;

/// Most bytes of text in a schema.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Refuses a schema that is too large.
pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
    let mut size = Size { values: 0, text_bytes: 0 };
    size.add(schema, 0)
}

struct Size {
    values: usize,
    text_bytes: usize,
}

impl Size {
    fn add(&mut self, value: &Value, depth: usize) -> Result<(), SchemaError> {
        let within = |found: usize, max: usize, what| {
            if found > max { Err(SchemaError::Limit { what, max }) } else { Ok(()) }
        };
        self.values += 1;
        within(depth, DEPTH_MAX, "levels")?;
        within(self.values, VALUES_MAX, "values")?;
        match value {
            Value::String(text) => self.text_bytes += text.len(),
            Value::Array(items) => items.iter().try_for_each(|item| self.add(item, depth + 1))?,
            Value::Object(members) => {
                for (name, member) in members {
                    self.text_bytes += name.len();
                    self.add(member, depth + 1)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        within(self.text_bytes, TEXT_BYTES_MAX, "bytes of text")
    }
}
