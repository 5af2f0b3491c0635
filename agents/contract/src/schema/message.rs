//! The texts of a violation: Python's texts for clients (compatibility §4, `words`), Atlas's own for users at a
//! terminal.

mod plain;
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

/// The violations as Python's library lists them.
pub(super) fn violations(root: Root<'_>, value: &Value, errors: &[ValidationError<'_>]) -> Vec<Violation> {
    let mut seen = HashSet::new();
    let mut violations = Vec::new();
    for error in errors {
        let context = Context::of(root, value, error);
        if context.is_of_names() {
            // Python reports one violation per name.
            violations.extend(context.refused_names());
        } else {
            let violation = context.told();
            // Python reports all items beyond the last allowed one as a single violation.
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

/// The violations in Atlas's own words, with one line per unexpected member.
pub(super) fn explained(root: Root<'_>, value: &Value, errors: &[ValidationError<'_>]) -> Vec<Violation> {
    let mut lines = Vec::new();
    for error in errors.iter().take(VIOLATIONS_MAX) {
        let context = Context::of(root, value, error);
        let violation = context.violation();
        match error.kind() {
            Kind::Required { property } if violation.rule == "required" => {
                let name = property.as_str().unwrap_or_default();
                let slip = context.written_for(name).map(|slip| format!("; \"{slip}\" is not known here"));
                let message = format!("\"{name}\" is required{}", slip.unwrap_or_default());
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
            _ => match (context.impossible(), plain::of_the_only_form(error)) {
                (Some(plain), _) => lines.push(plain),
                (None, Some(inner)) => lines.extend(explained(root, value, inner)),
                (None, None) if matches!(error.kind(), Kind::OneOfNotValid { .. } | Kind::AnyOf { .. }) => {
                    let message = format!("{} has none of the possible forms", python::repr(context.instance));
                    lines.push(Violation { message, ..violation });
                }
                (None, None) => lines.push(violation),
            },
        }
        if lines.len() >= VIOLATIONS_MAX {
            break;
        }
    }
    lines.truncate(VIOLATIONS_MAX);
    lines
}

/// The engine's message for an invalid schema.
pub(super) fn invalid_schema(schema: &Value, path: &str, error: &ValidationError<'_>) -> String {
    match (error.kind(), schema.pointer(path)) {
        (Kind::Format { .. }, Some(found)) => format!("{} is not a supported pattern", python::repr(found)),
        _ => error.to_string(),
    }
}

/// Keywords whose value `false` is a violation of the whole object or array.
const ABOUT_MEMBERS: [&str; 4] = ["items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"];

/// An error, with the part of the schema and of the value that it concerns.
struct Context<'a> {
    error: &'a ValidationError<'a>,
    root: Root<'a>,
    /// The schema object that contains the violated keyword.
    holder: Option<&'a Value>,
    /// The keyword in the schema as written.
    keyword: String,
    /// The next part of the path: for `dependentRequired`, the member that requires others.
    detail: Option<String>,
    /// The value that the keyword was applied to.
    instance: &'a Value,
    pointer: String,
    /// The violated schema is that of one member: the last step of the path descends into the value.
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
            // `items: false` is a violation of the array.
            pointer.truncate(pointer.rfind('/').unwrap_or(0));
        }
        let instance = value.pointer(&pointer).unwrap_or(value);
        Self { error, root, holder, keyword, detail: path.next(), instance, pointer: shown(&pointer), of_member }
    }

    /// Whether `propertyNames: false` refuses all names of the object.
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

    /// The violation with Python's location: if the schema of a member is `false`, the violation is that of the
    /// enclosing value.
    fn told(&self) -> Violation {
        let mut violation = self.violation();
        if violation.rule == "false" && self.of_member {
            let end = violation.pointer.rfind('/').unwrap_or(0);
            violation.pointer = shown(&violation.pointer[..end]);
        }
        violation
    }

    /// The value of the violated keyword in the schema.
    fn stated(&self) -> &Value {
        self.holder.and_then(|schema| schema.get(&self.keyword)).unwrap_or(&Value::Null)
    }

    fn violation(&self) -> Violation {
        if let Kind::PropertyNames { error } = self.error.kind() {
            // Here the checked value is the name itself, and the inner error has the full path in the schema.
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

    /// The violated keyword among `contains`, `minContains` and `maxContains`, by the number of matching items.
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

    /// A validator for a part of the schema, for details that the engine's error does not have.
    fn probe(&self, part: &Value) -> Option<Validator> {
        let mut schema = match part {
            Value::Object(members) => members.clone(),
            // The schema `true` or `false`.
            part => [("allOf".to_owned(), Value::Array(vec![part.clone()]))].into_iter().collect(),
        };
        for shared in ["$defs", "definitions"] {
            if let Some(definitions) = self.root.schema.get(shared) {
                schema.entry(shared).or_insert_with(|| definitions.clone());
            }
        }
        Validator::compile(&Value::Object(schema)).ok()
    }

    /// The branches of `oneOf` that match, in Python's order: the first match comes last.
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

    /// The members that `properties` does not name, for an error in which the engine refuses all of them at once.
    fn unnamed_members(&self) -> Vec<String> {
        let named = self.holder.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
        let members = self.instance.as_object().into_iter().flat_map(|members| members.keys());
        members.filter(|name| !named.is_some_and(|named| named.contains_key(*name))).cloned().collect()
    }

    /// The unknown member that was probably meant to be this one, unless it is refused itself.
    fn written_for(&self, missing: &str) -> Option<String> {
        let is_open = self.holder?.get("additionalProperties") != Some(&Value::Bool(false));
        let unknown = self.unnamed_members().into_iter().filter(|_| is_open);
        unknown.into_iter().find(|name| nearest(name, [missing]).is_some())
    }

    /// An allowed member with a similar name.
    fn suggestion(&self, name: &str) -> Option<String> {
        let allowed = self.holder?.get("properties")?.as_object()?;
        let absent = allowed.keys().map(String::as_str).filter(|known| self.instance.get(known).is_none());
        nearest(name, absent).map(str::to_owned)
    }
}

/// A subschema by its name; a pattern is also found by its translation.
fn under<'a>(schemas: &'a Value, name: &str) -> Option<&'a Value> {
    let schemas = schemas.as_object()?;
    schemas
        .get(name)
        .or_else(|| schemas.iter().find(|(text, _)| super::pattern::translate(text) == name).map(|(_, schema)| schema))
}
