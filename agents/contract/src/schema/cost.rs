//! Computes a bound on the cost of a check before the check.
//!
//! The engine has no step counter, and a small schema can be expensive: references that double at each step, recursion
//! with two branches, nested `unevaluatedProperties`. So the visits are counted first; a visit is a pair of a subschema
//! and a value. For a schema without recursion, they are counted at compile time; for a recursive schema, they are
//! counted for each value, with each distinct pair examined once. A string counts as several visits, by its length and
//! the weight of its pattern.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::SchemaError;
use super::reference::Root;
use super::weight;

/// Maximum number of visits of one check, less than a second on a slow machine.
pub(super) const VISITS_MAX: u64 = 5_000_000;

/// The product of text bytes and pattern positions that costs as much as one visit.
const STEPS_PER_VISIT: u64 = 16;

/// Maximum number of distinct pairs that are counted for one value.
const PAIRS_MAX: usize = 500_000;

/// Maximum nesting of subschemas, including references; the engine recurses once per level.
const DEPTH_MAX: usize = 256;

/// The cost of checks with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// The cost is bounded by the size of the input.
    Bounded {
        /// Maximum number of visits per value in the input.
        per_value: u64,
        /// Positions of all patterns, with references expanded.
        places: u64,
    },
    /// The schema refers to itself, so the cost depends on the input.
    Recursive,
}

/// The values to which a subschema applies, relative to the value of its parent.
enum Applies<'a> {
    Here(&'a Value),
    /// The member with this name.
    Member(&'a str, &'a Value),
    /// Any member or item; patterns for names are not evaluated here.
    Children(&'a Value),
}

/// The subschemas of one schema, and how many times those with [`Applies::Here`] are evaluated.
fn parts<'a>(root: Root<'a>, schema: &'a Map<String, Value>) -> (Vec<Applies<'a>>, u64) {
    let mut parts = Vec::new();
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                parts.extend(root.resolve(reference).map(Applies::Here));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => parts.extend(branches.iter().map(Applies::Here)),
            ("not" | "if" | "then" | "else", schema) => parts.push(Applies::Here(schema)),
            ("dependentSchemas", Value::Object(schemas)) => parts.extend(schemas.values().map(Applies::Here)),
            ("properties", Value::Object(schemas)) => {
                parts.extend(schemas.iter().map(|(name, schema)| Applies::Member(name, schema)));
            }
            ("patternProperties", Value::Object(schemas)) => parts.extend(schemas.values().map(Applies::Children)),
            ("prefixItems", Value::Array(schemas)) => parts.extend(schemas.iter().map(Applies::Children)),
            (
                "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "items"
                | "unevaluatedItems"
                | "contains",
                schema,
            ) => parts.push(Applies::Children(schema)),
            _ => {}
        }
    }
    // To find the unevaluated members, the engine evaluates all subschemas for the same value a second time.
    let again = schema.contains_key("unevaluatedProperties") || schema.contains_key("unevaluatedItems");
    (parts, if again { 2 } else { 1 })
}

/// The cost of one schema without its subschemas: each missing name can be a violation, and an enumeration is searched
/// linearly unless all its values are strings.
fn own(schema: &Map<String, Value>) -> u64 {
    let len = |names: &Value| names.as_array().map_or(0, Vec::len) as u64;
    let required = schema.get("required").map_or(0, len);
    let dependent = schema.get("dependentRequired").and_then(Value::as_object);
    let dependent: u64 = dependent.into_iter().flatten().map(|(_, names)| len(names)).sum();
    let options = schema.get("enum").and_then(Value::as_array).filter(|options| !options.iter().all(Value::is_string));
    // A comparison is far cheaper than a visit.
    1 + required + dependent + options.map_or(0, |options| options.len() as u64 / 16)
}

/// Computes the cost of a schema; refuses references that are nested too deeply.
pub(super) fn of(root: Root<'_>) -> Result<Cost, SchemaError> {
    let mut sizes = Sizes { root, known: HashMap::new() };
    let size = sizes.of(root.schema, 0)?;
    Ok(size.map_or(Cost::Recursive, |Size { visits, places }| Cost::Bounded { per_value: visits, places }))
}

/// The weights of the patterns of one schema without its subschemas: for strings, and for names of members.
fn patterns(schema: &Map<String, Value>) -> (u64, u64) {
    let texts = schema.get("pattern").and_then(Value::as_str).map_or(0, weight::of);
    let named = schema.get("patternProperties").and_then(Value::as_object);
    let named = named.into_iter().flatten().map(|(pattern, _)| weight::of(pattern));
    let names = schema.get("propertyNames").map_or(0, all_patterns);
    (texts, named.fold(names, u64::saturating_add))
}

/// The weight of all patterns inside a schema.
fn all_patterns(schema: &Value) -> u64 {
    let below = |values: &mut dyn Iterator<Item = &Value>| values.map(all_patterns).fold(0, u64::saturating_add);
    match schema {
        Value::Object(members) => {
            let own = members.get("pattern").and_then(Value::as_str).map_or(0, weight::of);
            own.saturating_add(below(&mut members.values()))
        }
        Value::Array(items) => below(&mut items.iter()),
        _ => 0,
    }
}

/// The cost, in visits, of matching patterns with `places` positions against `bytes` bytes.
fn reading(places: u64, bytes: u64) -> u64 {
    places.saturating_mul(bytes) / STEPS_PER_VISIT
}

/// The size of a subschema with all references expanded.
#[derive(Debug, Clone, Copy)]
struct Size {
    visits: u64,
    places: u64,
}

/// Computes the sizes of subschemas. `known` has none for a schema that is being measured or recursive.
struct Sizes<'a> {
    root: Root<'a>,
    known: HashMap<*const Value, Option<Size>>,
}

impl<'a> Sizes<'a> {
    fn of(&mut self, schema: &'a Value, depth: usize) -> Result<Option<Size>, SchemaError> {
        if depth > DEPTH_MAX {
            return Err(SchemaError::Limit { what: "subschemas inside each other", max: DEPTH_MAX });
        }
        let key: *const Value = schema;
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        self.known.insert(key, None);
        let mut size = Some(Size { visits: 1, places: 0 });
        if let Value::Object(members) = schema {
            let (texts, names) = patterns(members);
            size = Some(Size { visits: own(members), places: texts.saturating_add(names) });
            let (parts, times) = parts(self.root, members);
            for part in parts {
                let (below, times) = match part {
                    Applies::Here(schema) => (schema, times),
                    Applies::Member(_, schema) | Applies::Children(schema) => (schema, 1),
                };
                // Measured even if the total is already unknown, to check the depth.
                let below = self.of(below, depth + 1)?;
                size = size.zip(below).map(|(size, below)| Size {
                    visits: size.visits.saturating_add(below.visits.saturating_mul(times)),
                    places: size.places.saturating_add(below.places.saturating_mul(times)),
                });
            }
        }
        self.known.insert(key, size);
        Ok(size)
    }
}

/// A bound on the visits for checking `value`; if the bound exceeds [`VISITS_MAX`], any larger number.
pub(super) fn visits(cost: Cost, root: Root<'_>, value: &Value) -> u64 {
    if let Cost::Bounded { per_value, places } = cost {
        let texts = if places == 0 { 0 } else { reading(places, bytes(value)) };
        let bound = per_value.saturating_mul(values(value)).saturating_add(texts);
        if bound <= VISITS_MAX {
            return bound;
        }
    }
    let mut visits = Visits { root, known: HashMap::new(), patterns: HashMap::new() };
    visits.of(root.schema, value, 0).unwrap_or(u64::MAX)
}

fn values(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(values).sum::<u64>(),
        _ => 1,
    }
}

/// The total length of all strings and names in a value.
fn bytes(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(members) => names(members) + members.values().map(bytes).sum::<u64>(),
        _ => 0,
    }
}

fn names(members: &Map<String, Value>) -> u64 {
    members.keys().map(|name| name.len() as u64).sum()
}

/// The visits of each pair so far. A pair that is being counted is in the table with zero, because the engine stops at
/// it.
struct Visits<'a> {
    root: Root<'a>,
    known: HashMap<(*const Value, *const Value), u64>,
    patterns: HashMap<*const Value, (u64, u64)>,
}

impl<'a> Visits<'a> {
    /// Counts the visits of a pair; none if the counting itself costs too much.
    fn of(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> Option<u64> {
        let Value::Object(members) = schema else { return Some(1) };
        let key: (*const Value, *const Value) = (schema, value);
        if let Some(&known) = self.known.get(&key) {
            return Some(known);
        }
        if self.known.len() >= PAIRS_MAX || depth > 4 * DEPTH_MAX {
            return None;
        }
        self.known.insert(key, 0);
        let (parts, times) = parts(self.root, members);
        let patterns = *self.patterns.entry(key.0).or_insert_with(|| patterns(members));
        let read = match (value, patterns) {
            (Value::String(text), (places, _)) => reading(places, text.len() as u64),
            (Value::Object(found), (_, places)) if places > 0 => reading(places, names(found)),
            _ => 0,
        };
        let mut sum = own(members).saturating_add(read);
        for part in parts {
            match part {
                Applies::Here(schema) => {
                    let below = self.of(schema, value, depth + 1)?;
                    sum = sum.saturating_add(below.saturating_mul(times));
                }
                Applies::Member(name, schema) => {
                    if let Some(member) = value.get(name) {
                        sum = sum.saturating_add(self.of(schema, member, depth + 1)?);
                    }
                }
                Applies::Children(schema) => {
                    let children: Box<dyn Iterator<Item = &'a Value>> = match value {
                        Value::Array(items) => Box::new(items.iter()),
                        Value::Object(members) => Box::new(members.values()),
                        _ => continue,
                    };
                    for child in children {
                        sum = sum.saturating_add(self.of(schema, child, depth + 1)?);
                    }
                }
            }
        }
        self.known.insert(key, sum);
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::reference::Anchors;
    use super::*;

    fn cost_of(schema: &Value) -> Result<Cost, SchemaError> {
        of(Root { schema, anchors: &Anchors::of(schema) })
    }

    fn visits_of(cost: Cost, schema: &Value, value: &Value) -> u64 {
        visits(cost, Root { schema, anchors: &Anchors::of(schema) }, value)
    }

    /// Definitions `d0` to `dn`, each with two references to the next one.
    fn doubling(n: usize) -> Value {
        let mut definitions = Map::new();
        for i in 0..n {
            let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
            definitions.insert(format!("d{i}"), json!({"allOf": [next, next]}));
        }
        definitions.insert(format!("d{n}"), json!({"type": "string"}));
        json!({"$defs": definitions, "$ref": "#/$defs/d0"})
    }

    #[test]
    fn references_that_double_are_counted_written_out() {
        // The last definition costs one visit. Each other one costs one visit, plus two references with their targets.
        let steps = |n: u32| (0..n).fold(1, |below, _| 1 + 2 * (1 + below));
        assert_eq!(cost_of(&doubling(3)), Ok(Cost::Bounded { per_value: 1 + steps(3), places: 0 }));
        let deep = doubling(60);
        let cost = cost_of(&deep).expect("it is not too deep");
        assert!(visits_of(cost, &deep, &json!(1)) > VISITS_MAX);
    }

    #[test]
    fn recursion_costs_what_the_value_makes_of_it() {
        let node = json!({"$ref": "#"});
        let line = json!({"properties": {"next": node}});
        let tree = json!({"properties": {"next": {"allOf": [node, node]}}});
        let nested = (0..40).fold(json!(1), |below, _| json!({"next": below}));
        for (schema, bearable) in [(line, true), (tree, false)] {
            let cost = cost_of(&schema).expect("it is small");
            assert_eq!(cost, Cost::Recursive);
            assert_eq!(visits_of(cost, &schema, &nested) <= VISITS_MAX, bearable, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_only_names_itself_costs_nothing() {
        let schema = json!({"$ref": "#"});
        assert_eq!(visits_of(Cost::Recursive, &schema, &json!(1)), 1);
    }

    #[test]
    fn unevaluated_members_evaluate_twice_at_each_level() {
        let schema = (0..28).fold(json!({}), |below, _| json!({"unevaluatedProperties": false, "allOf": [below]}));
        let cost = cost_of(&schema).expect("it is not too deep");
        assert!(visits_of(cost, &schema, &json!({"a": 1})) > VISITS_MAX);
    }

    #[test]
    fn texts_cost_by_the_patterns_that_read_them() {
        let text = "ab".repeat(500_000);
        let bearable = |schema: &Value, value: &Value| {
            let cost = cost_of(schema).expect("it is small");
            visits_of(cost, schema, value) <= VISITS_MAX
        };
        let heavy = "(a|b)*a(a|b){2000}c";
        assert!(bearable(&json!({"pattern": r"^\S+$"}), &json!(text)));
        assert!(bearable(&json!({"pattern": heavy}), &json!("ab")));
        assert!(!bearable(&json!({"pattern": heavy}), &json!(text)));
        // Only strings that are matched against the pattern count.
        let member = json!({"properties": {"name": {"pattern": heavy}}});
        assert!(bearable(&member, &json!({"name": "ab", "text": text})));
        assert!(!bearable(&member, &json!({"name": text})));
        let names = Value::Object(Map::from_iter([(text.clone(), json!(1))]));
        assert!(!bearable(&json!({"patternProperties": {heavy: {}}}), &names));
        assert!(!bearable(&json!({"propertyNames": {"pattern": heavy}}), &names));
        assert!(bearable(&json!({"patternProperties": {heavy: {}}}), &json!({"a": text})));
    }

    #[test]
    fn a_long_chain_of_references_is_refused() {
        let mut definitions = Map::new();
        for i in 0..1_000 {
            definitions.insert(format!("d{i}"), json!({"$ref": format!("#/$defs/d{}", i + 1)}));
        }
        let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
        assert!(matches!(cost_of(&schema), Err(SchemaError::Limit { .. })));
    }
}
