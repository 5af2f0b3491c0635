//! JSON Schema 2020-12 as contracts use it (compatibility §4): compiled once, checked many times, with the messages of Python's `jsonschema`.
//!
//! Whether a value is valid is decided by the `jsonschema` crate. This module owns the rest: which schemas are refused
//! because checking them could cost too much, patterns in Python's syntax (`pattern`), the order of the violations
//! (`order`) and their texts (`message`). Remote references and formats are never followed or asserted.

mod cost;
mod limits;
mod message;
mod multiple;
mod order;
mod pattern;
mod reference;
mod weight;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::Value;

use self::cost::Cost;
use self::reference::{Anchors, Root};
use crate::violation::Violation;

/// Most violations that one check reports.
pub const VIOLATIONS_MAX: usize = 100;

/// Steps after which a pattern with look-around or back-references gives up on a text.
const BACKTRACKS_MAX: usize = 20_000;

/// Above this many visits only the first violation is reported.
const LISTED_VISITS_MAX: u64 = 500_000;

/// Memory for one compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It says something that JSON Schema 2020-12 does not allow, or refers to what is not in it.
    #[error("at {pointer}: {problem}")]
    Invalid {
        /// Where in the schema.
        pointer: String,
        /// What is wrong.
        problem: String,
    },
    /// It is larger than we check.
    #[error("the schema has more than {max} {what}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// Most allowed.
        max: usize,
    },
}

/// A compiled schema. Cheap to share between threads.
#[derive(Debug)]
pub struct Validator {
    schema: Value,
    /// None for exactly `{"type": "object"}`, which accepts anything.
    compiled: Option<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    engine: jsonschema::Validator,
    anchors: Anchors,
    cost: Cost,
}

impl Validator {
    /// Checks and compiles a schema.
    ///
    /// Exactly `{"type": "object"}` accepts every value, not only objects (compatibility §4).
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        if accepts_anything(schema) {
            return Ok(Self { schema: schema.clone(), compiled: None });
        }
        limits::check(schema)?;
        let anchors = Anchors::of(schema);
        let cost = cost::of(Root { schema, anchors: &anchors })?;
        let translated = pattern::translate_schema(schema);
        // Patterns run in linear time; only a schema that needs more gets the engine that can backtrack.
        let linear = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX);
        let engine = match options().with_pattern_options(linear).build(&translated) {
            Ok(engine) => engine,
            Err(_) => {
                let backtracking =
                    PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX).size_limit(PATTERN_BYTES_MAX);
                let built = options().with_pattern_options(backtracking).build(&translated);
                built.map_err(|error| invalid(schema, &error))?
            }
        };
        Ok(Self { schema: schema.clone(), compiled: Some(Compiled { engine, anchors, cost }) })
    }

    /// The schema as it was given.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// True if the value fits; faster than [`Self::validate`], without the violations.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.compiled
            .as_ref()
            .is_none_or(|compiled| self.visits(compiled, value) <= cost::VISITS_MAX && compiled.engine.is_valid(value))
    }

    /// Checks a value: all violations in the order of the schema's keywords, depth first, with Python's texts.
    ///
    /// A value that would take too long to check is refused with the rule `limit`, and of a very large one only the
    /// first violation is told.
    pub fn validate(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let Some(compiled) = &self.compiled else { return Ok(()) };
        let errors = self.errors(compiled, value)?;
        if errors.is_empty() { Ok(()) } else { Err(message::violations(self.root(compiled), value, &errors)) }
    }

    /// Checks a value and says what is wrong in our own words, one line per member: for people at a terminal.
    ///
    /// ```
    /// # use atlas_contract::schema::Validator;
    /// let schema = serde_json::json!({
    ///     "type": "object", "properties": {"name": {"type": "string"}},
    ///     "required": ["name"], "additionalProperties": false,
    /// });
    /// let validator = Validator::compile(&schema).expect("a valid schema");
    /// let lines: Vec<_> = validator.explain(&serde_json::json!({"nme": "Ada"}))
    ///     .into_iter().map(|violation| format!("at {} {}", violation.pointer, violation.message)).collect();
    /// assert_eq!(lines, ["at / \"name\" is required", "at /nme not allowed here; did you mean \"name\"?"]);
    /// ```
    pub fn explain(&self, value: &Value) -> Vec<Violation> {
        let Some(compiled) = &self.compiled else { return Vec::new() };
        match self.errors(compiled, value) {
            Ok(errors) => message::explained(self.root(compiled), value, &errors),
            Err(violations) => violations,
        }
    }

    fn root<'a>(&'a self, compiled: &'a Compiled) -> Root<'a> {
        Root { schema: &self.schema, anchors: &compiled.anchors }
    }

    fn visits(&self, compiled: &Compiled, value: &Value) -> u64 {
        cost::visits(compiled.cost, self.root(compiled), value)
    }

    /// What the engine finds, in order; an error of ours when it is not asked.
    fn errors<'v>(&self, compiled: &'v Compiled, value: &'v Value) -> Result<Vec<ValidationError<'v>>, Vec<Violation>> {
        let engine = &compiled.engine;
        let visits = self.visits(compiled, value);
        if visits > cost::VISITS_MAX {
            return Err(vec![Violation {
                pointer: "/".to_owned(),
                rule: "limit".to_owned(),
                message: "the value takes too many steps to check".to_owned(),
                suggestion: None,
            }]);
        }
        if engine.is_valid(value) {
            return Ok(Vec::new());
        }
        if visits > LISTED_VISITS_MAX {
            // The engine gathers all errors at once, and each takes room.
            return Ok(engine.validate(value).err().into_iter().collect());
        }
        // The engine looks for a required name among the declared members alone where no others are allowed.
        let is_there = |error: &ValidationError<'_>| match error.kind() {
            ValidationErrorKind::Required { property } => {
                property.as_str().is_some_and(|name| error.instance().get(name).is_some())
            }
            _ => false,
        };
        let errors = engine.iter_errors(value).filter(|error| !is_there(error));
        Ok(order::sorted(self.root(compiled), value, errors))
    }
}

/// Exactly `{"type": "object"}`, also written as `{}`: no check at all.
fn accepts_anything(schema: &Value) -> bool {
    schema.as_object().is_some_and(|members| {
        members.is_empty() || members.len() == 1 && members.get("type").is_some_and(|kind| kind == "object")
    })
}

fn options<'i>() -> jsonschema::ValidationOptions<'i> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(false)
        .offline()
        .with_keyword("multipleOf", multiple::keyword)
}

fn invalid(schema: &Value, error: &ValidationError<'_>) -> SchemaError {
    let pointer = crate::violation::shown(error.instance_path().as_str());
    let problem = match error.instance_path().as_str() {
        "" => error.to_string(),
        path => message::invalid_schema(schema, path, error),
    };
    SchemaError::Invalid { pointer, problem }
}

#[cfg(test)]
mod tests;
