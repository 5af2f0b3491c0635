//! JSON Schema 2020-12 as contracts use it (compatibility §4), with the messages of Python's `jsonschema`. A schema is
//! compiled once and used for many checks.
//!
//! The `jsonschema` crate decides whether a value is valid. This module owns the rest: it refuses schemas whose checks
//! could cost too much, translates patterns from Python's syntax (`pattern`), and defines the order of the violations
//! (`order`) and their texts (`message`). Remote references are never followed, and formats are never asserted.

mod cost;
mod exact;
mod limits;
mod message;
mod multiple;
mod never;
mod order;
mod pattern;
mod reference;
mod weight;

pub(crate) use exact::is_integer;
pub use never::never;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::Value;

use self::cost::Cost;
use self::reference::{Anchors, Root};
use crate::violation::Violation;

/// Maximum number of violations that one check reports.
pub const VIOLATIONS_MAX: usize = 100;

/// Maximum number of backtracking steps of a pattern with look-around or back-references.
const BACKTRACKS_MAX: usize = 20_000;

/// If a check may need more visits than this, only the first violation is reported.
const LISTED_VISITS_MAX: u64 = 500_000;

/// Maximum memory of one compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema is not valid in JSON Schema 2020-12, or has a reference whose target is not in the schema.
    #[error("at {pointer}: {problem}")]
    Invalid {
        /// The location in the schema.
        pointer: String,
        /// A description of the problem.
        problem: String,
    },
    /// The schema exceeds a limit.
    #[error("the schema has more than {max} {what}")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}

/// A compiled schema, which threads can share.
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
        // The first engine matches patterns in linear time. The backtracking engine is used only for a schema with
        // patterns that the first one does not support.
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

    /// Whether the value is valid; faster than [`Self::validate`], because no violations are collected.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.compiled
            .as_ref()
            .is_none_or(|compiled| self.visits(compiled, value) <= cost::VISITS_MAX && compiled.engine.is_valid(value))
    }

    /// Checks a value: all violations in the order of the schema's keywords, depth first, with Python's texts.
    ///
    /// A value that would take too long to check is refused with the rule `limit`. For a very large value, only the
    /// first violation is reported.
    pub fn validate(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let Some(compiled) = &self.compiled else { return Ok(()) };
        let errors = self.errors(compiled, value)?;
        if errors.is_empty() { Ok(()) } else { Err(message::violations(self.root(compiled), value, &errors)) }
    }

    /// Checks a value and describes the violations in Atlas's own words, one line per member, for users at a terminal.
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

    /// The errors of the engine, sorted; a violation of the rule `limit` if the check would cost too much.
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
            // The engine collects all errors at once, which could need too much memory.
            return Ok(engine.validate(value).err().into_iter().collect());
        }
        // If no other members are allowed, the engine searches a required name only among the declared members, and can
        // report a member as missing that is present.
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

/// Whether the schema is exactly `{"type": "object"}` or `{}`; such a schema is not checked at all.
fn accepts_anything(schema: &Value) -> bool {
    schema.as_object().is_some_and(|members| {
        members.is_empty() || members.len() == 1 && members.get("type").is_some_and(|kind| kind == "object")
    })
}

fn options<'i>() -> jsonschema::ValidationOptions<'i> {
    let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(false).offline();
    exact::keywords(options.with_keyword("multipleOf", multiple::keyword))
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
