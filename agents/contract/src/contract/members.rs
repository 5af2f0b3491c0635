//! Reads the members of a checked mapping, and converts those whose type the rules do not check.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::python;
use crate::violation::{Violation, member};

/// The members of a mapping; a missing or null mapping counts as empty.
#[derive(Clone, Copy)]
pub(super) struct Members<'a>(Option<&'a Map<String, Value>>);

impl<'a> Members<'a> {
    pub(super) fn of(value: Option<&'a Value>) -> Self {
        Self(value.and_then(Value::as_object))
    }

    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.and_then(|members| members.get(name))
    }

    pub(super) fn members(self, name: &str) -> Self {
        Self::of(self.get(name))
    }

    pub(super) fn text(self, name: &str, default: &str) -> String {
        self.get(name).and_then(Value::as_str).unwrap_or(default).to_owned()
    }

    pub(super) fn flag(self, name: &str, default: bool) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// An integer; a float without a fraction counts as an integer, as in JSON Schema.
    pub(super) fn amount(self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
    }

    pub(super) fn texts(self, name: &str) -> Option<Vec<String>> {
        let items = self.get(name)?.as_array()?;
        Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    pub(super) fn map(self, name: &str) -> Option<BTreeMap<String, String>> {
        let members = self.get(name)?.as_object()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(members.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect())
    }
}

/// Collects the values that cannot be converted.
#[derive(Default)]
pub(super) struct Conversions {
    pub(super) violations: Vec<Violation>,
}

impl Conversions {
    pub(super) fn wrong(&mut self, pointer: &str, message: String) {
        self.violations.push(Violation {
            pointer: pointer.to_owned(),
            rule: "conversion".to_owned(),
            message,
            suggestion: None,
        });
    }

    /// Adds a violation for a word that its key does not allow. In Atlas for Python, this is a `ValueError` and not a
    /// conversion error.
    pub(super) fn value(&mut self, pointer: &str, message: String) {
        let (pointer, rule) = (pointer.to_owned(), "value".to_owned());
        self.violations.push(Violation { pointer, rule, message, suggestion: None });
    }

    fn take<T>(&mut self, at: &str, value: &Value, what: &str, convert: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let converted = convert(value);
        if converted.is_none() {
            self.wrong(at, format!("{} is not {what}", python::repr(value)));
        }
        converted
    }

    pub(super) fn int(&mut self, members: Members<'_>, at: &str, name: &str, default: i64) -> i64 {
        let Some(value) = members.get(name) else { return default };
        self.take(&member(at, name), value, "a whole number", python::int).unwrap_or(default)
    }

    pub(super) fn seconds(&mut self, members: Members<'_>, at: &str, name: &str) -> Option<f64> {
        let value = members.get(name)?;
        self.take(&member(at, name), value, "a number of seconds", python::number::float)
    }

    pub(super) fn flag(&mut self, members: Members<'_>, at: &str, name: &str) -> bool {
        match members.get(name) {
            None | Some(Value::Null) => false,
            Some(value) => self.take(&member(at, name), value, "true or false", Value::as_bool).unwrap_or_default(),
        }
    }

    pub(super) fn text(&mut self, members: Members<'_>, at: &str, name: &str) -> String {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match members.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(value) => self.take(&member(at, name), value, "text", text).unwrap_or_default(),
        }
    }

    pub(super) fn texts(&mut self, members: Members<'_>, at: &str, name: &str) -> Option<Vec<String>> {
        let value = members.get(name)?;
        let all = |value: &Value| {
            let items = value.as_array()?;
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
        };
        self.take(&member(at, name), value, "a list of text", all)
    }

    /// A mapping that the rules do not check; a missing member, null and any empty value count as an empty mapping.
    pub(super) fn mapping<'a>(&mut self, agent: Members<'a>, name: &str) -> Members<'a> {
        match agent.get(name) {
            None | Some(Value::Object(_)) => agent.members(name),
            Some(value) if python::is_false(value) => Members(None),
            Some(value) => {
                self.wrong(&member("/agent", name), format!("{} is not a mapping", python::repr(value)));
                Members(None)
            }
        }
    }
}
