//! Which names an agent gets, by the rules and with the texts of Atlas for Python (compatibility §25.5).

use std::collections::{BTreeMap, BTreeSet};

use atlas_types::SecretText;

/// The prefix of environment variables that contain secrets, if nothing else is configured.
const PREFIX: &str = "ATLAS_SECRET_";

/// Why an agent does not get its secrets. Texts contain names, never values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("Secret '{0}' is not in the allowed secrets whitelist")]
    NotAllowed(String),
    #[error("Secret '{0}' not found")]
    NotFound(String),
}

/// The names that may be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rules {
    /// All.
    Any,
    /// These; an empty list allows none.
    Only(BTreeSet<String>),
}

impl Rules {
    /// The values of `names`. The first name that is not allowed or has no value is the error. An empty value is a value.
    pub fn resolve<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
        mut value: impl FnMut(&str) -> Option<SecretText>,
    ) -> Result<BTreeMap<String, SecretText>, ResolveError> {
        let mut one = |name: &str| {
            if let Self::Only(allowed) = self
                && !allowed.contains(name)
            {
                return Err(ResolveError::NotAllowed(name.to_owned()));
            }
            let value = value(name).ok_or_else(|| ResolveError::NotFound(name.to_owned()))?;
            Ok((name.to_owned(), value))
        };
        names.into_iter().map(&mut one).collect()
    }
}

/// The environment variable that contains a secret; without a prefix, that of Atlas for Python.
pub fn variable_of(prefix: Option<&str>, name: &str) -> String {
    format!("{}{name}", prefix.unwrap_or(PREFIX))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(rules: &Rules, names: &[&str], expected: &Expect) {
        let value = |name: &str| match name {
            "A" => Some(SecretText::new("va")),
            "B" => Some(SecretText::new("")),
            _ => None,
        };
        let found = rules.resolve(names.iter().copied(), value);
        expected.assert_eq(&match found {
            Ok(found) => {
                let shown = found.iter().map(|(name, value)| format!("{name}={}", value.expose()));
                shown.collect::<Vec<_>>().join(" ")
            }
            Err(error) => format!("error: {error}"),
        });
    }

    #[test]
    fn names_become_values() {
        let only = |names: &[&str]| Rules::Only(names.iter().map(|name| (*name).to_owned()).collect());
        check(&Rules::Any, &["A", "B"], &expect!["A=va B="]);
        check(&Rules::Any, &[], &expect![""]);
        check(&Rules::Any, &["A", "C"], &expect!["error: Secret 'C' not found"]);
        check(&only(&["A"]), &["A"], &expect!["A=va"]);
        check(&only(&["A"]), &["A", "B"], &expect!["error: Secret 'B' is not in the allowed secrets whitelist"]);
        check(&only(&[]), &["A"], &expect!["error: Secret 'A' is not in the allowed secrets whitelist"]);
        check(&only(&["C"]), &["C"], &expect!["error: Secret 'C' not found"]);
        check(&only(&[]), &[], &expect![""]);
    }

    #[test]
    fn variables_have_a_prefix() {
        assert_eq!(variable_of(None, "TOK"), "ATLAS_SECRET_TOK");
        assert_eq!(variable_of(Some("X_"), "TOK"), "X_TOK");
        assert_eq!(variable_of(Some(""), "TOK"), "TOK");
    }
}
