//! Reading the members of a document.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// Why a document is no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is not a map.
    #[error("a configuration is a map of names and values, and this is {got}")]
    NotAMap {
        /// What it is.
        got: &'static str,
    },
    /// A member is missing.
    #[error("\"{field}\" is required")]
    Missing {
        /// Its name.
        field: String,
    },
    /// A member has another type.
    #[error("\"{field}\" must be {expected}, and is {got}")]
    Type {
        /// Its name.
        field: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        got: &'static str,
    },
    /// Chunks repeat as much as they have.
    #[error("\"rag_chunk_overlap\" is {overlap}, and must be less than \"rag_chunk_size\", which is {size}")]
    Overlap {
        /// What they repeat, in bytes.
        overlap: u64,
        /// What they have, in bytes.
        size: u64,
    },
    /// A template has no place for a part of the prompt.
    #[error("\"rag_template\" has no {missing}; it needs __INPUT__ and __CONTEXT__, and can have __SOURCES__")]
    Template {
        /// The placeholder.
        missing: &'static str,
    },
    /// A list is too long.
    #[error("\"{field}\" has {count} items, more than {most}")]
    Limit {
        /// Its name.
        field: String,
        /// How many it has.
        count: usize,
        /// How many are allowed.
        most: usize,
    },
}

/// Most items of a list.
const ITEMS_MAX: usize = 1000;

/// A map whose members are read one by one.
pub(crate) struct Reader<'d> {
    members: &'d Map<String, Value>,
    /// What stands before the names of members in errors.
    prefix: String,
    read: Vec<&'static str>,
}

impl<'d> Reader<'d> {
    pub(crate) fn new(document: &'d Value, prefix: &str) -> Result<Self, ConfigError> {
        match document {
            Value::Object(members) => Ok(Self { members, prefix: prefix.to_owned(), read: Vec::new() }),
            other => Err(ConfigError::NotAMap { got: kind(other) }),
        }
    }

    /// A member; none if it is missing or null.
    pub(crate) fn get(&mut self, name: &'static str) -> Option<&'d Value> {
        if !self.read.contains(&name) {
            self.read.push(name);
        }
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn typed<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        convert: impl FnOnce(&'d Value) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let field = format!("{}{name}", self.prefix);
        convert(value).map(Some).ok_or_else(|| ConfigError::Type { field, expected, got: kind(value) })
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, ConfigError> {
        self.typed(name, "a text", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn required(&mut self, name: &'static str) -> Result<String, ConfigError> {
        let field = format!("{}{name}", self.prefix);
        self.text(name)?.ok_or(ConfigError::Missing { field })
    }

    pub(crate) fn truth(&mut self, name: &'static str) -> Result<Option<bool>, ConfigError> {
        self.typed(name, "true or false", Value::as_bool)
    }

    pub(crate) fn number(&mut self, name: &'static str) -> Result<Option<f64>, ConfigError> {
        self.typed(name, "a number", Value::as_f64)
    }

    pub(crate) fn count<N: TryFrom<u64>>(&mut self, name: &'static str) -> Result<Option<N>, ConfigError> {
        self.typed(name, "a whole number from 0", |value| N::try_from(value.as_u64()?).ok())
    }

    /// A whole number of a range.
    pub(crate) fn range(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
        expected: &'static str,
    ) -> Result<Option<u64>, ConfigError> {
        self.typed(name, expected, |value| value.as_u64().filter(|number| range.contains(number)))
    }

    pub(crate) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, ConfigError> {
        let texts = self.list(name)?.iter().map(|item| item.as_str().map(str::to_owned));
        let field = format!("{}{name}", self.prefix);
        texts.collect::<Option<_>>().ok_or(ConfigError::Type {
            field,
            expected: "a list of strings",
            got: "another list",
        })
    }

    pub(crate) fn list(&mut self, name: &'static str) -> Result<&'d [Value], ConfigError> {
        let list = self.typed(name, "a list", |value| value.as_array().map(Vec::as_slice))?.unwrap_or_default();
        if list.len() > ITEMS_MAX {
            let field = format!("{}{name}", self.prefix);
            return Err(ConfigError::Limit { field, count: list.len(), most: ITEMS_MAX });
        }
        Ok(list)
    }

    /// The names that were read.
    pub(crate) fn names(&self) -> &[&'static str] {
        &self.read
    }

    /// The names that were not read.
    pub(crate) fn unknown(self) -> Vec<String> {
        self.members.keys().filter(|name| !self.read.contains(&name.as_str())).cloned().collect()
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
