//! Sorts violations as Python's library does: in the order of the schema's keywords, depth first.
//!
//! The engine evaluates in another order, but each error has the path of keywords at which it was found. Following
//! that path through the schema as written gives every step a rank, and the ranks give the order.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;
use serde_json::Value;

use super::reference::Root;

/// Sorts errors by the order of the keywords in the schema.
pub(super) fn sorted<'e>(
    root: Root<'_>,
    value: &Value,
    errors: impl Iterator<Item = ValidationError<'e>>,
) -> Vec<ValidationError<'e>> {
    let mut ranked: Vec<(Vec<usize>, ValidationError<'e>)> =
        errors.map(|error| (rank(root, value, &error), error)).collect();
    ranked.sort_by(|(left, _), (right, _)| left.cmp(right));
    ranked.into_iter().map(|(_, error)| error).collect()
}

/// The parts of a JSON pointer.
pub(super) fn segments(location: &Location) -> Vec<String> {
    location.as_str().split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

/// A position on the path: a subschema and the value to which it applies.
struct Walk<'a> {
    root: Root<'a>,
    schema: &'a Value,
    value: &'a Value,
    members: std::vec::IntoIter<String>,
    rank: Vec<usize>,
}

fn rank(root: Root<'_>, value: &Value, error: &ValidationError<'_>) -> Vec<usize> {
    let mut members = segments(error.instance_path());
    let mut path = segments(error.evaluation_path());
    if let ValidationErrorKind::PropertyNames { error } = error.kind() {
        // The violation concerns a name; the walk continues below the keyword as if the name were a member.
        path = segments(error.evaluation_path());
        members.extend(error.instance().as_str().map(str::to_owned));
    }
    let mut path = path.into_iter();
    let mut walk = Walk { root, schema: root.schema, value, members: members.into_iter(), rank: Vec::new() };
    while let Some(keyword) = path.next() {
        if walk.step(&keyword, &mut path).is_none() {
            break;
        }
    }
    if let ValidationErrorKind::Required { property } = error.kind() {
        let names = walk.schema.get("required").and_then(Value::as_array);
        walk.rank.extend(names.and_then(|names| names.iter().position(|name| name == property)));
    }
    walk.rank
}

impl<'a> Walk<'a> {
    /// Follows one keyword; none if the path ends there or has an unknown keyword.
    fn step(&mut self, keyword: &str, path: &mut impl Iterator<Item = String>) -> Option<()> {
        // Python evaluates these as part of another keyword.
        let read_by = match keyword {
            "then" | "else" => "if",
            "minContains" | "maxContains" => "contains",
            keyword => keyword,
        };
        let position = self.schema.as_object()?.keys().position(|key| key == read_by)?;
        self.rank.push(position);
        let below = self.schema.get(keyword)?;
        match keyword {
            "properties" => {
                self.named(below, &path.next()?)?;
                self.descend()
            }
            "patternProperties" => {
                let translated = path.next()?;
                let (position, schema) = below
                    .as_object()?
                    .iter()
                    .enumerate()
                    .find(|(_, (text, _))| super::pattern::translate(text) == translated)
                    .map(|(position, (_, schema))| (position, schema))?;
                self.rank.push(position);
                self.schema = schema;
                self.descend()
            }
            "dependentSchemas" => self.named(below, &path.next()?),
            "allOf" | "anyOf" | "oneOf" => self.indexed(below, &path.next()?),
            "prefixItems" => {
                self.indexed(below, &path.next()?)?;
                self.descend()
            }
            "items" | "additionalProperties" | "unevaluatedItems" | "unevaluatedProperties" => {
                self.schema = below;
                self.descend()
            }
            "propertyNames" => {
                self.schema = below;
                self.descend()
            }
            "not" | "if" | "then" | "else" => {
                self.schema = below;
                Some(())
            }
            "$ref" | "$dynamicRef" => {
                self.schema = self.root.resolve(below.as_str()?)?;
                Some(())
            }
            _ => None,
        }
    }

    fn named(&mut self, schemas: &'a Value, name: &str) -> Option<()> {
        let schemas = schemas.as_object()?;
        self.rank.push(schemas.keys().position(|key| key == name)?);
        self.schema = schemas.get(name)?;
        Some(())
    }

    fn indexed(&mut self, schemas: &'a Value, index: &str) -> Option<()> {
        let index = index.parse().ok()?;
        self.rank.push(index);
        self.schema = schemas.get(index)?;
        Some(())
    }

    /// Descends to the member of the value in the next part of the instance's path.
    fn descend(&mut self) -> Option<()> {
        let name = self.members.next()?;
        let (position, value) = match self.value {
            Value::Object(members) => (members.keys().position(|key| *key == name)?, members.get(&name)?),
            Value::Array(items) => {
                let index = name.parse().ok()?;
                (index, items.get(index)?)
            }
            _ => return None,
        };
        self.rank.push(position);
        self.value = value;
        Some(())
    }
}
