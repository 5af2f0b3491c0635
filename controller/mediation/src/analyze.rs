//! The comparison of two schemas (compatibility §11.2).

use serde_json::{Map, Value};

use crate::convert::{Type, fits, is_castable};
use crate::report::{Coercion, Level, Report};
use crate::similarity::similarity;

/// The least similarity of a rename.
const SIMILARITY_MIN: f64 = 0.5;

/// The confidence where nothing was renamed.
const CERTAIN: f64 = 0.9;

/// Compares the schema of an output with the schema of an input. `map` is the author's map of the step, target field to
/// path, field or value.
pub fn analyze(source: &Value, target: &Value, map: Option<&Map<String, Value>>) -> Report {
    Comparison::new(source, target).report(map)
}

/// The parts of both schemas that count.
struct Comparison<'a> {
    output: Vec<(&'a str, &'a Value)>,
    input: Vec<(&'a str, &'a Value)>,
    required: Vec<&'a str>,
}

impl<'a> Comparison<'a> {
    fn new(source: &'a Value, target: &'a Value) -> Self {
        let input = properties(target);
        let required = target.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        Self { output: properties(source), required: required.collect(), input }
    }

    fn report(&self, map: Option<&Map<String, Value>>) -> Report {
        if self.input.is_empty() {
            return self.done(Level::Identical, Map::new(), 1.0);
        }
        let direct: Map<String, Value> = self.same_named().map(|(name, ..)| (name.to_owned(), name.into())).collect();
        let all_fit = self.same_named().all(|(_, from, property)| fits(from, Type::of(property)));
        let is_covered = self.required.iter().all(|name| direct.contains_key(*name));
        if all_fit && direct.len() == self.output.len() && direct.len() == self.input.len() {
            return self.done(Level::Identical, direct, 1.0);
        }
        if all_fit && is_covered {
            return self.done(Level::Superset, direct, 1.0);
        }
        if let Some(map) = map.filter(|map| self.required.iter().all(|name| map.contains_key(*name))) {
            let notes = self.notes(map);
            return Report { notes, ..self.done(Level::Mappable, map.clone(), 0.95) };
        }
        let (mappings, coercions, open) = self.coercions();
        if open.is_empty() {
            let confidence = confidence(&coercions);
            return Report { coercions, ..self.done(Level::Coercible, mappings, confidence) };
        }
        let is_open = |kind: Type| matches!(kind, Type::String | Type::Object | Type::Array | Type::Unknown);
        let source_is_open = self.output.iter().any(|(_, property)| is_open(Type::of(property)));
        let target_is_open = self.required.iter().any(|name| is_open(self.target_type(name)));
        if source_is_open && target_is_open {
            let unmapped_required = self.required.iter().map(|name| (*name).to_owned()).collect();
            return Report { unmapped_required, ..self.done(Level::Semantic, direct, 0.5) };
        }
        let notes = vec!["No viable transformation path found".to_owned()];
        Report { notes, unmapped_required: open, ..self.done(Level::Incompatible, direct, 1.0) }
    }

    /// The fields that both sides have: name, type of the source, property of the target.
    fn same_named(&self) -> impl Iterator<Item = (&'a str, Type, &'a Value)> {
        self.input.iter().filter_map(|(name, property)| Some((*name, Type::of(self.output(name)?), *property)))
    }

    fn output(&self, name: &str) -> Option<&'a Value> {
        self.output.iter().find(|(other, _)| *other == name).map(|(_, property)| *property)
    }

    fn input(&self, name: &str) -> Option<&'a Value> {
        self.input.iter().find(|(other, _)| *other == name).map(|(_, property)| *property)
    }

    fn target_type(&self, name: &str) -> Type {
        self.input(name).map_or(Type::Unknown, Type::of)
    }

    /// The mapping with renamed and converted fields, the changes, and the required fields that stay open. The targets are
    /// tried in the order of `required`, the sources in the order of their schema.
    fn coercions(&self) -> (Map<String, Value>, Vec<Coercion>, Vec<String>) {
        let (mut mappings, mut coercions, mut open) = (Map::new(), Vec::new(), Vec::new());
        for (name, from, property) in self.same_named() {
            let to = Type::of(property);
            if !fits(from, to) && !is_castable(from, property) {
                continue;
            }
            mappings.insert(name.to_owned(), name.into());
            if !fits(from, to) {
                coercions.push(cast(name, name, from, to, 1.0));
            }
        }
        let mut used: Vec<&str> = self.same_named().map(|(name, ..)| name).collect();
        for target in self.required.iter().filter(|name| !mappings.contains_key(**name)).copied().collect::<Vec<_>>() {
            let Some((source, score)) = self.most_similar(target, &used) else {
                open.push(target.to_owned());
                continue;
            };
            let from = self.output(source).map_or(Type::Unknown, Type::of);
            let (property, to) = (self.input(target).unwrap_or(&Value::Null), self.target_type(target));
            if fits(from, to) && (from, to) != (Type::Integer, Type::Number) {
                let (source, target) = (source.to_owned(), target.to_owned());
                coercions.push(Coercion::Rename { source, target, similarity: score });
            } else if fits(from, to) || is_castable(from, property) {
                coercions.push(cast(source, target, from, to, score));
            } else {
                open.push(target.to_owned());
                continue;
            }
            mappings.insert(target.to_owned(), source.into());
            used.push(source);
        }
        open.retain(|target| match self.input(target).and_then(|property| property.get("default")) {
            Some(value) => {
                coercions.push(Coercion::Default { target: target.clone(), value: value.clone() });
                false
            }
            None => true,
        });
        (mappings, coercions, open)
    }

    /// The unused source with the highest score, if that is high enough; of several, the first.
    fn most_similar(&self, target: &str, used: &[&str]) -> Option<(&'a str, f64)> {
        let mut best: Option<(&str, f64)> = None;
        for (source, _) in self.output.iter().filter(|(source, _)| !used.contains(source)) {
            let score = similarity(source, target);
            if best.is_none_or(|(_, highest)| score > highest) {
                best = Some((source, score));
            }
        }
        best.filter(|(_, score)| *score >= SIMILARITY_MIN)
    }

    fn notes(&self, map: &Map<String, Value>) -> Vec<String> {
        let is_field = |value: &Value| value.as_str().is_some_and(|name| self.output(name).is_some());
        let entries = map.iter().filter(|(_, value)| !is_field(value));
        let note = |(target, value): (&String, &Value)| match value.as_str() {
            Some(path) if path.starts_with("$.") => format!("{target} is taken from the path {path}"),
            _ => format!("{target} is the fixed value {value}"),
        };
        entries.map(note).collect()
    }

    fn done(&self, level: Level, mappings: Map<String, Value>, confidence: f64) -> Report {
        let optional = self.input.iter().map(|(name, _)| *name).filter(|name| !self.required.contains(name));
        let unmapped = optional.filter(|name| !mappings.contains_key(*name)).map(str::to_owned);
        Report {
            level,
            unmapped_optional: unmapped.collect(),
            mappings,
            coercions: Vec::new(),
            unmapped_required: Vec::new(),
            confidence,
            notes: Vec::new(),
        }
    }
}

fn cast(source: &str, target: &str, from: Type, to: Type, similarity: f64) -> Coercion {
    let (source, target) = (source.to_owned(), target.to_owned());
    Coercion::Cast { source, target, from: from.as_str(), to: to.as_str(), similarity }
}

/// The lowest similarity of a rename, with two decimals.
fn confidence(coercions: &[Coercion]) -> f64 {
    let renamed = coercions.iter().filter(|coercion| coercion.source() != coercion.target());
    let scores = renamed.filter_map(|coercion| match coercion {
        Coercion::Rename { similarity, .. } | Coercion::Cast { similarity, .. } => Some(*similarity),
        Coercion::Default { .. } => None,
    });
    let lowest = scores.min_by(f64::total_cmp).unwrap_or(CERTAIN);
    (lowest * 100.0).round() / 100.0
}

/// The properties of a schema. A property that is no object declares nothing.
fn properties(schema: &Value) -> Vec<(&str, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, property)| (name.as_str(), property)).collect()
}
