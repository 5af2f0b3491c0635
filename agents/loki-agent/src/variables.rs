//! Variables: values that whoever starts an agent can give.

use serde_json::Value;

use crate::read::{ConfigError, Reader};

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// In texts, `{{name}}` stands for the value.
    pub name: String,
    /// What a person is told who has to give a value.
    pub description: String,
    /// Without one, a value is required.
    pub default: Option<String>,
}

impl Variable {
    /// Reads a definition. `prefix` stands before the names of its members in errors.
    pub(crate) fn read(document: &Value, prefix: &str) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(document, prefix)?;
        Ok(Self {
            name: reader.required("name")?,
            description: reader.required("description")?,
            default: reader.text("default")?,
        })
    }
}
