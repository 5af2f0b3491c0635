//! The texts of a violation: Python's for clients (compatibility §4, `words`), our own for people at a terminal.

mod words;

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::order::segments;
use super::reference::Root;
use super::{VIOLATIONS_MAX, Validator};
use crate::python;
use crate::violation::{Violation, member, nearest, shown};

/// One violation an error, as Python's library would list them.
pub(super) fn violations(root: Root<'_>, value: &Value, errors: &[ValidationError<'_>]) -> Vec<Violation> {
    let mut seen = HashSet::new();
    let mut violations = Vec::new();
    for error in errors {
        let context = Context::of(root, value, error);
        if context.is_of_names() {
            // Each name is a violation.
            violations.extend(context.refused_names());
        } else {
            let violation = context.told();
            // Items beyond the last allowed one are one violation, not one each.
            if violation.rule != "items" || seen.insert(violation.pointer.clone()) {
                violations.push(violation);
            }
        }
        if violations.len() >= VIOLATIONS_MAX {
            violations.truncate(VIOLATIONS_MAX);
            break;
        }
    }
    violations
}

/// In our own words, an unexpected member as a line of its own.
pub(super) fn explained(root: Root<'_>, value: &Value, errors: &[ValidationError<'_>]) -> Vec<Violation> {
    let mut lines = Vec::new();
    for error in errors.iter().take(VIOLATIONS_MAX) {
        let context = Context::of(root, value, error);
        let violation = context.violation();
        match error.kind() {
            Kind::Required { property } if violation.rule == "required" => {
                let message = format!("\"{}\" is required", property.as_str().unwrap_or_default());
                lines.push(Violation { message, ..violation });
            }
            Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } | Kind::FalseSchema
                if violation.rule.ends_with("Properties") =>
            {
                for name in context.unexpected().iter().take(VIOLATIONS_MAX - lines.len().min(VIOLATIONS_MAX)) {
                    let suggestion = context.suggestion(name);
                    let message = match &suggestion {
                        Some(meant) => format!("not allowed here; did you mean \"{meant}\"?"),
                        None => "not allowed here".to_owned(),
                    };
                    let pointer = member(&violation.pointer, name);
                    lines.push(Violation { pointer, rule: violation.rule.clone(), message, suggestion });
                }
            }
            _ => lines.push(violation),
        }
    }
    lines.truncate(VIOLATIONS_MAX);
    lines
}

/// What the compiler says of a schema that is none, with the place in the schema.
pub(super) fn invalid_schema(schema: &Value, path: &str, error: &ValidationError<'_>) -> String {
    match (error.kind(), schema.pointer(path)) {
        (Kind::Format { .. }, Some(found)) => format!("{} is not a supported pattern", python::repr(found)),
        _ => error.to_string(),
    }
}

/// Keywords whose value `false` is said of the whole object or array.
const ABOUT_MEMBERS: [&str; 4] = ["items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"];

/// An error with the part of the schema and of the value that it is about.
struct Context<'a> {
    error: &'a ValidationError<'a>,
    root: Root<'a>,
    /// The schema object that holds the broken keyword.
    holder: Option<&'a Value>,
    /// The keyword in the schema as written.
    keyword: String,
    /// What follows it in the path: for `dependentRequired` the member that asks.
    detail: Option<String>,
    /// The value that the keyword was applied to.
    instance: &'a Value,
    pointer: String,
    /// The schema that was broken is that of one member: the last step of the path led into the value.
    of_member: bool,
}

impl<'a> Context<'a> {
    fn of(root: Root<'a>, value: &'a Value, error: &'a ValidationError<'a>) -> Self {
        let mut holder = Some(root.schema);
        let mut keyword = String::new();
        let mut of_member = false;
        let mut path = segments(error.evaluation_path()).into_iter().peekable();
        while let Some(part) = path.next() {
            let below = holder.and_then(|schema| schema.get(&part));
            of_member = matches!(part.as_str(), "properties" | "patternProperties" | "prefixItems");
            match part.as_str() {
                "$ref" | "$dynamicRef" if path.peek().is_some() => {
                    holder = below.and_then(Value::as_str).and_then(|reference| root.resolve(reference));
                }
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" if path.peek().is_some() => {
                    let name = path.next().unwrap_or_default();
                    holder = below.and_then(|schemas| under(schemas, &name));
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" if path.peek().is_some() => {
                    let index = path.next().and_then(|index| index.parse::<usize>().ok()).unwrap_or_default();
                    holder = below.and_then(|schemas| schemas.get(index));
                }
                "items"
                | "additionalProperties"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else"
                    if path.peek().is_some() =>
                {
                    holder = below;
                }
                _ => {
                    keyword = part;
                    break;
                }
            }
        }
        let mut pointer = error.instance_path().as_str().to_owned();
        if keyword == "items" && matches!(error.kind(), Kind::FalseSchema) {
            // `items: false` is said of the array.
            pointer.truncate(pointer.rfind('/').unwrap_or(0));
        }
        let instance = value.pointer(&pointer).unwrap_or(value);
        Self { error, root, holder, keyword, detail: path.next(), instance, pointer: shown(&pointer), of_member }
    }

    /// Whether it is said of all names of an object that there may be none.
    fn is_of_names(&self) -> bool {
        self.keyword == "propertyNames" && matches!(self.error.kind(), Kind::FalseSchema)
    }

    fn refused_names(&self) -> impl Iterator<Item = Violation> {
        let violation = self.violation();
        let names = self.instance.as_object().into_iter().flat_map(|members| members.keys()).take(VIOLATIONS_MAX);
        names.map(move |name| {
            let message = format!("False schema does not allow {}", python::string(name));
            Violation { message, ..violation.clone() }
        })
    }

    /// The violation where Python's library places it: a member whose schema is `false` is said of what holds it.
    fn told(&self) -> Violation {
        let mut violation = self.violation();
        if violation.rule == "false" && self.of_member {
            let end = violation.pointer.rfind('/').unwrap_or(0);
            violation.pointer = shown(&violation.pointer[..end]);
        }
        violation
    }

    /// The limit or list that the broken keyword states.
    fn stated(&self) -> &Value {
        self.holder.and_then(|schema| schema.get(&self.keyword)).unwrap_or(&Value::Null)
    }

    fn violation(&self) -> Violation {
        if let Kind::PropertyNames { error } = self.error.kind() {
            // The name itself is the value that was checked; the path in the schema is the whole one.
            let name = error.instance().clone().into_owned();
            let inner = Context::of(self.root, &name, error).violation();
            return Violation { pointer: self.pointer.clone(), ..inner };
        }
        let rule = self.rule();
        let message = self.message(&rule);
        Violation { pointer: self.pointer.clone(), rule, message, suggestion: None }
    }

    fn rule(&self) -> String {
        match self.error.kind() {
            Kind::FalseSchema if !ABOUT_MEMBERS.contains(&self.keyword.as_str()) => "false".to_owned(),
            Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => "pattern".to_owned(),
            Kind::Contains => self.contains_rule().to_owned(),
            _ if self.keyword.is_empty() => self.error.kind().keyword().to_owned(),
            _ => self.keyword.clone(),
        }
    }

    /// Which of the three keywords around `contains` is broken depends on how many items match.
    fn contains_rule(&self) -> &'static str {
        let Some(holder) = self.holder else { return "contains" };
        let limit = |name| holder.get(name).and_then(Value::as_f64);
        match self.matching_items() {
            found if limit("maxContains").is_some_and(|most| found as f64 > most) => "maxContains",
            0 => "contains",
            _ => "minContains",
        }
    }

    fn matching_items(&self) -> usize {
        let Some(wanted) = self.holder.and_then(|schema| schema.get("contains")) else { return 0 };
        let Some(fits) = self.probe(wanted) else { return 0 };
        self.instance.as_array().into_iter().flatten().filter(|item| fits.is_valid(item)).count()
    }

    /// A validator for a part of the schema, to say more about an error than the engine does.
    fn probe(&self, part: &Value) -> Option<Validator> {
        let mut schema = match part {
            Value::Object(members) => members.clone(),
            // A schema that is `true` or `false`.
            part => [("allOf".to_owned(), Value::Array(vec![part.clone()]))].into_iter().collect(),
        };
        for shared in ["$defs", "definitions"] {
            if let Some(definitions) = self.root.schema.get(shared) {
                schema.entry(shared).or_insert_with(|| definitions.clone());
            }
        }
        Validator::compile(&Value::Object(schema)).ok()
    }

    /// The branches of `oneOf` that fit: the later ones first, as Python lists them.
    fn fitting_branches(&self) -> Vec<String> {
        let branches = self.stated().as_array().into_iter().flatten();
        let fits = |branch: &&Value| self.probe(branch).is_some_and(|validator| validator.is_valid(self.instance));
        let mut fitting: Vec<String> = branches.filter(fits).map(python::repr).collect();
        if !fitting.is_empty() {
            fitting.rotate_left(1);
        }
        fitting
    }

    /// The members that are not allowed.
    fn unexpected(&self) -> Vec<String> {
        match self.error.kind() {
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                unexpected.clone()
            }
            _ => self.unnamed_members(),
        }
    }

    /// The members that no other keyword beside this one names, when the engine refused all of them at once.
    fn unnamed_members(&self) -> Vec<String> {
        let named = self.holder.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let members = self.instance.as_object().into_iter().flat_map(|members| members.keys());
        members.filter(|name| !named.is_some_and(|named| named.contains_key(*name))).cloned().collect()
    }

    /// The allowed member that an unexpected one was probably meant to be.
    fn suggestion(&self, name: &str) -> Option<String> {
        let allowed = self.holder?.get("properties")?.as_object()?;
        let absent = allowed.keys().map(String::as_str).filter(|known| self.instance.get(known).is_none());
        nearest(name, absent).map(str::to_owned)
    }
}

/// A subschema by its name; patterns are found by their translation too.
fn under<'a>(schemas: &'a Value, name: &str) -> Option<&'a Value> {
    let schemas = schemas.as_object()?;
    schemas
        .get(name)
        .or_else(|| schemas.iter().find(|(text, _)| super::pattern::translate(text) == name).map(|(_, schema)| schema))
}
