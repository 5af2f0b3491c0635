//! Limits on the size of a schema, which bound the cost of compiling it and of checks with it.
//!
//! This module also refuses references that are not local, and identifiers inside the schema, which would change the
//! meaning of local references.

use serde_json::Value;

use super::SchemaError;
use crate::violation::member;

/// Maximum nesting of a schema.
const DEPTH_MAX: usize = 64;

/// Maximum number of values in a schema, including enum members.
const VALUES_MAX: usize = 20_000;

/// Maximum size of all texts in a schema.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Refuses a schema that is too large.
pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
    let mut size = Size { values: 0, text_bytes: 0 };
    size.add(schema, 0)?;
    local(schema, schema, "")
}

/// Keywords whose members are names chosen by the author, each with a schema.
pub(super) const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Keywords whose value is plain data, even if it looks like a schema.
pub(super) const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Refuses remote references and inner identifiers. The caller has already checked the depth.
fn local(root: &Value, schema: &Value, pointer: &str) -> Result<(), SchemaError> {
    let refused = |keyword: &str, problem: &str| {
        Err(SchemaError::Invalid { pointer: member(pointer, keyword), problem: problem.to_owned() })
    };
    match schema {
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| local(root, item, &member(pointer, &index.to_string())))
        }
        Value::Object(members) => members.iter().try_for_each(|(keyword, value)| match (keyword.as_str(), value) {
            ("$ref" | "$dynamicRef", Value::String(to)) if !to.starts_with('#') => {
                refused(keyword, "only references within the schema are supported")
            }
            ("$id", Value::String(_)) if !std::ptr::eq(root, schema) => {
                refused(keyword, "an identifier inside a schema is not supported")
            }
            (keyword, Value::Object(schemas)) if NAMED.contains(&keyword) => {
                let at = member(pointer, keyword);
                schemas.iter().try_for_each(|(name, schema)| local(root, schema, &member(&at, name)))
            }
            (keyword, _) if DATA.contains(&keyword) => Ok(()),
            (keyword, value) => local(root, value, &member(pointer, keyword)),
        }),
        _ => Ok(()),
    }
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
