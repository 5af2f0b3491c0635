//! Reads the members of one object of a document: types, required members and unknown ones.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::finding::member;
use crate::load::{LoadError, LoadErrorKind, Reading};
use crate::reducer::type_name;

/// The members of an object that are still to be read.
pub(crate) struct Fields<'d, 'r> {
    pub(crate) at: String,
    /// Whether numbers and booleans count as text, and null as absent. So it is outside of nodes.
    plain: bool,
    members: &'d Map<String, Value>,
    known: BTreeSet<&'static str>,
    missing: Vec<&'static str>,
    pub(crate) reading: &'r mut Reading<'d>,
}

impl<'d, 'r> Fields<'d, 'r> {
    /// The members of `value`. Null has none; any other value that is no object is an error.
    pub(crate) fn of(
        value: &'d Value,
        at: String,
        empty: &'d Map<String, Value>,
        reading: &'r mut Reading<'d>,
    ) -> Self {
        let members = value.as_object().unwrap_or_else(|| {
            if !value.is_null() {
                reading.wrong_type(&at, "an object", value);
            }
            empty
        });
        Self { at, plain: false, members, known: BTreeSet::new(), missing: Vec::new(), reading }
    }

    /// These members, where numbers and booleans count as text, and null as absent.
    pub(crate) fn plain(self) -> Self {
        Self { plain: true, ..self }
    }

    fn get(&mut self, name: &'static str) -> Option<&'d Value> {
        self.known.insert(name);
        self.members.get(name)
    }

    /// A member that may be absent or null, read by `read`.
    fn optional<T>(
        &mut self,
        name: &'static str,
        wants: &'static str,
        read: impl FnOnce(&'d Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(name).filter(|value| !value.is_null())?;
        self.read(name, wants, value, read)
    }

    /// A member that may be absent, but not null.
    fn present<T>(
        &mut self,
        name: &'static str,
        wants: &'static str,
        read: impl FnOnce(&'d Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(name).filter(|value| !self.plain || !value.is_null())?;
        self.read(name, wants, value, read)
    }

    fn read<T>(
        &mut self,
        name: &str,
        wants: &'static str,
        value: &'d Value,
        read: impl FnOnce(&'d Value) -> Option<T>,
    ) -> Option<T> {
        let found = read(value);
        if found.is_none() {
            self.reading.wrong_type(&member(&self.at, name), wants, value);
        }
        found
    }

    fn require(&mut self, name: &'static str) {
        if !self.members.contains_key(name) {
            self.missing.push(name);
        }
    }

    pub(crate) fn text_or_none(&mut self, name: &'static str) -> Option<String> {
        let read = if self.plain { scalar } else { text };
        self.optional(name, "text", read)
    }

    pub(crate) fn text_or(&mut self, name: &'static str, default: &str) -> String {
        let read = if self.plain { scalar } else { text };
        self.present(name, "text", read).unwrap_or_else(|| default.to_owned())
    }

    /// A text of a node that only people read. Numbers and booleans count as text, and null as empty.
    pub(crate) fn label(&mut self, name: &'static str) -> String {
        self.optional(name, "text", scalar).unwrap_or_default()
    }

    pub(crate) fn text(&mut self, name: &'static str) -> String {
        self.require(name);
        self.text_or(name, "")
    }

    pub(crate) fn number_or_none(&mut self, name: &'static str) -> Option<f64> {
        self.optional(name, "a number", Value::as_f64)
    }

    pub(crate) fn count_or_none(&mut self, name: &'static str) -> Option<u64> {
        self.optional(name, "a whole number that is not negative", Value::as_u64)
    }

    pub(crate) fn count_or(&mut self, name: &'static str, default: u64) -> u64 {
        self.present(name, "a whole number that is not negative", Value::as_u64).unwrap_or(default)
    }

    pub(crate) fn size_or_none(&mut self, name: &'static str) -> Option<usize> {
        self.optional(name, "a whole number that is not negative", size)
    }

    pub(crate) fn size_or(&mut self, name: &'static str, default: usize) -> usize {
        self.present(name, "a whole number that is not negative", size).unwrap_or(default)
    }

    pub(crate) fn flag_or(&mut self, name: &'static str, default: bool) -> bool {
        self.present(name, "true or false", Value::as_bool).unwrap_or(default)
    }

    pub(crate) fn texts_or_none(&mut self, name: &'static str) -> Option<Vec<String>> {
        self.optional(name, "a list of strings", texts)
    }

    pub(crate) fn texts_or_empty(&mut self, name: &'static str) -> Vec<String> {
        let read = if self.plain { scalars } else { texts };
        self.present(name, "a list of strings", read).unwrap_or_default()
    }

    pub(crate) fn texts(&mut self, name: &'static str) -> Vec<String> {
        self.require(name);
        self.texts_or_empty(name)
    }

    /// An object whose members are texts, in the order of the document.
    pub(crate) fn text_map_or_none(&mut self, name: &'static str) -> Option<Vec<(String, String)>> {
        self.optional(name, "an object of strings", text_map)
    }

    pub(crate) fn text_map(&mut self, name: &'static str) -> Vec<(String, String)> {
        self.require(name);
        self.present(name, "an object of strings", text_map).unwrap_or_default()
    }

    pub(crate) fn object_or_empty(&mut self, name: &'static str) -> Map<String, Value> {
        self.present(name, "an object", |value| value.as_object().cloned()).unwrap_or_default()
    }

    pub(crate) fn value_or_none(&mut self, name: &'static str) -> Option<&'d Value> {
        self.optional(name, "a value", Some)
    }

    /// A member as it is, if it is there.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<&'d Value> {
        self.get(name)
    }

    pub(crate) fn required_value(&mut self, name: &'static str) -> Option<&'d Value> {
        self.require(name);
        self.get(name)
    }

    /// Reports a member that has a type of ours, but not one of its values.
    pub(crate) fn wrong(&mut self, name: &str, wants: &'static str, value: &Value) {
        self.reading.wrong_type(&member(&self.at, name), wants, value);
    }

    /// Members that the format has and this platform ignores.
    pub(crate) fn unused(&mut self, names: &[&'static str], node: Option<&str>) {
        for name in names {
            if self.get(name).is_some_and(|value| !value.is_null()) {
                self.reading.unused(&member(&self.at, name), name, node);
            }
        }
    }

    /// Members that the format has and a run here could not follow.
    pub(crate) fn unsupported(&mut self, names: &[&'static str], node: Option<&str>) {
        for name in names {
            if self.get(name).is_some_and(|value| !value.is_null()) {
                self.reading.unsupported(&member(&self.at, name), name, node);
            }
        }
    }

    /// Reports missing and unknown members.
    pub(crate) fn finish(self, node: Option<&str>) {
        for name in self.missing {
            self.reading.errors.push(LoadError {
                kind: LoadErrorKind::MissingField { field: name },
                line: self.reading.line(&self.at),
                pointer: member(&self.at, name),
                suggestion: None,
            });
        }
        for name in self.members.keys().filter(|name| !self.known.contains(name.as_str())) {
            self.reading.unknown(&member(&self.at, name), name, &self.known, node);
        }
    }
}

fn size(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|size| usize::try_from(size).ok())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A text, or the text of a number or a boolean.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn scalars(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(scalar).collect()
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn text_map(value: &Value) -> Option<Vec<(String, String)>> {
    let members = value.as_object()?.iter();
    members.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// A type in messages, with its article.
pub(crate) fn a_type(value: &Value) -> &'static str {
    match type_name(value) {
        "null" => "null",
        "bool" => "true or false",
        "number" => "a number",
        "string" => "text",
        "array" => "a list",
        _ => "an object",
    }
}
