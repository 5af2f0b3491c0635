//! The texts of violations as in Python's `jsonschema`, by keyword.

use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::Context;
use crate::python;

impl Context<'_> {
    /// The text of a violation of `rule`.
    pub(super) fn message(&self, rule: &str) -> String {
        let value = || python::repr(self.instance);
        let stated = self.stated();
        let limit = || python::repr(stated);
        let sized = |empty: &str, one: &str, otherwise: &str| match stated.as_f64() {
            Some(0.0) => format!("{} {empty}", value()),
            Some(1.0) => format!("{} {one}", value()),
            _ => format!("{} {otherwise}", value()),
        };
        match (rule, self.error.kind()) {
            (_, Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. }) => {
                format!("{} took too many steps to match {}", value(), limit())
            }
            ("required", Kind::Required { property }) => format!("{} is a required property", python::repr(property)),
            ("dependentRequired", Kind::Required { property }) => {
                let missing = property.as_str().unwrap_or_default();
                format!("{} is a dependency of {}", python::string(missing), python::string(&self.dependent(missing)))
            }
            ("type", _) => {
                let kinds = match stated {
                    Value::Array(kinds) => kinds.iter().map(python::repr).collect::<Vec<_>>().join(", "),
                    kind => python::repr(kind),
                };
                format!("{} is not of type {kinds}", value())
            }
            ("enum", _) => format!("{} is not one of {}", value(), limit()),
            ("const", _) => format!("{} was expected", limit()),
            ("minLength" | "minItems", _) => sized("is too short", "should be non-empty", "is too short"),
            ("maxLength" | "maxItems", _) => sized("is expected to be empty", "is too long", "is too long"),
            ("minProperties", _) => {
                let few = "does not have enough properties";
                sized(few, "should be non-empty", few)
            }
            ("maxProperties", _) => {
                let many = "has too many properties";
                sized("is expected to be empty", many, many)
            }
            ("minimum", _) => format!("{} is less than the minimum of {}", value(), limit()),
            ("maximum", _) => format!("{} is greater than the maximum of {}", value(), limit()),
            ("exclusiveMinimum", _) => format!("{} is less than or equal to the minimum of {}", value(), limit()),
            ("exclusiveMaximum", _) => format!("{} is greater than or equal to the maximum of {}", value(), limit()),
            ("multipleOf", _) => format!("{} is not a multiple of {}", value(), limit()),
            ("pattern", _) => format!("{} does not match {}", value(), limit()),
            ("uniqueItems", _) => format!("{} has non-unique elements", value()),
            ("additionalProperties", Kind::AdditionalProperties { unexpected }) => self.additional(unexpected),
            ("additionalProperties", Kind::FalseSchema) => self.additional(&self.unnamed_members()),
            ("unevaluatedProperties", Kind::FalseSchema) => {
                not_allowed("Unevaluated properties", &in_order(&self.unnamed_members()))
            }
            ("unevaluatedProperties", Kind::UnevaluatedProperties { unexpected }) => self.unevaluated(unexpected),
            ("unevaluatedItems", Kind::UnevaluatedItems { unexpected }) => {
                let read = |text: &String| {
                    serde_json::from_str(text).map_or_else(|_| text.clone(), |item| python::repr(&item))
                };
                not_allowed("Unevaluated items", &unexpected.iter().map(read).collect::<Vec<_>>())
            }
            ("oneOf", Kind::OneOfMultipleValid { .. }) => {
                format!("{} is valid under each of {}", value(), self.fitting_branches().join(", "))
            }
            ("oneOf" | "anyOf", _) => format!("{} is not valid under any of the given schemas", value()),
            ("not", _) => format!("{} should not be valid under {}", value(), limit()),
            ("contains", _) => format!("{} does not contain items matching the given schema", value()),
            ("minContains", _) => {
                let least = self.beside("minContains");
                let found = self.matching_items();
                format!("Too few items match the given schema (expected at least {least} but only {found} matched)")
            }
            ("maxContains", _) => {
                format!("Too many items match the given schema (expected at most {})", self.beside("maxContains"))
            }
            ("items", _) => self.extra_items(),
            ("false", _) => format!("False schema does not allow {}", value()),
            _ => self.error.to_string(),
        }
    }

    /// The value of another keyword in the same schema object.
    fn beside(&self, keyword: &str) -> String {
        self.holder.and_then(|schema| schema.get(keyword)).map(python::repr).unwrap_or_default()
    }

    /// The present member that requires the missing one.
    fn dependent(&self, missing: &str) -> String {
        if let Some(asking) = &self.detail {
            return asking.clone();
        }
        let asks = |names: &Value| names.as_array().is_some_and(|names| names.iter().any(|name| name == missing));
        let members = self.stated().as_object();
        let asking = members.and_then(|members| {
            members.iter().find(|(name, names)| self.instance.get(name.as_str()).is_some() && asks(names))
        });
        asking.map(|(name, _)| name.clone()).unwrap_or_default()
    }

    fn additional(&self, unexpected: &[String]) -> String {
        let names = in_order(unexpected);
        match self.holder.and_then(|schema| schema.get("patternProperties")).and_then(Value::as_object) {
            Some(patterns) => {
                let verb = if names.len() == 1 { "does" } else { "do" };
                let patterns = in_order(patterns.keys()).join(", ");
                format!("{} {verb} not match any of the regexes: {patterns}", names.join(", "))
            }
            None => not_allowed("Additional properties", &names),
        }
    }

    fn unevaluated(&self, unexpected: &[String]) -> String {
        if *self.stated() == Value::Bool(false) {
            return not_allowed("Unevaluated properties", &in_order(unexpected));
        }
        let names: Vec<String> = unexpected.iter().map(|name| python::string(name)).collect();
        let verb = if names.len() == 1 { "was" } else { "were" };
        format!(
            "Unevaluated properties are not valid under the given schema ({} {verb} unevaluated and invalid)",
            names.join(", ")
        )
    }

    /// The text for items beyond those in `prefixItems`.
    fn extra_items(&self) -> String {
        let allowed = self.holder.and_then(|schema| schema.get("prefixItems")).and_then(Value::as_array);
        let allowed = allowed.map_or(0, Vec::len);
        let extra = self.instance.as_array().and_then(|items| items.get(allowed..)).unwrap_or_default();
        let noun = if allowed == 1 { "item" } else { "items" };
        let rest = match extra {
            [only] => python::repr(only),
            extra => python::repr(&Value::Array(extra.to_vec())),
        };
        format!("Expected at most {allowed} {noun} but found {} extra: {rest}", extra.len())
    }
}

/// Names in quotes, sorted.
fn in_order<'n>(names: impl IntoIterator<Item = &'n String>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().map(|name| python::string(name)).collect();
    names.sort();
    names
}

/// `Additional properties are not allowed ('a', 'b' were unexpected)`.
fn not_allowed(what: &str, names: &[String]) -> String {
    let verb = if names.len() == 1 { "was" } else { "were" };
    format!("{what} are not allowed ({} {verb} unexpected)", names.join(", "))
}
