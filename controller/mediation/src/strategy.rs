//! The strategies (compatibility §11.4 and §11.7).

use serde_json::{Map, Value};

use crate::analyze::analyze;
use crate::convert::cast;
use crate::path::Context;
use crate::report::{Coercion, Level, Report};

/// What to mediate.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The schema of the output.
    pub source: &'a Value,
    /// The schema of the input.
    pub target: &'a Value,
    /// The author's map of the step.
    pub map: Option<&'a Map<String, Value>>,
    /// What paths refer to.
    pub context: &'a Context,
}

/// The outcome of a mediation that is possible.
#[derive(Debug, Clone, PartialEq)]
pub enum MediationResult {
    /// The input of the next step; its own validation follows.
    Data(Map<String, Value>),
    /// A model has to convert the data: [`Bridge`](crate::Bridge).
    NeedsModel,
}

/// Why a mediation is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MediationError {
    #[error("Schemas are incompatible: No viable transformation path found")]
    Incompatible,
    #[error("Strategy '{strategy}' failed: {why}")]
    Failed { strategy: &'static str, why: String },
    /// The level needs a model, and there is none.
    #[error("No strategy available for compatibility level: {0}")]
    NoStrategy(&'static str),
}

/// Converts an output to the input of the next step.
pub fn mediate(plan: Plan<'_>, data: &Map<String, Value>) -> (Report, Result<MediationResult, MediationError>) {
    let report = analyze(plan.source, plan.target, plan.map);
    let strategy = report.level.strategy();
    let outcome = match report.level {
        Level::Identical | Level::Superset => Ok(MediationResult::Data(direct(plan.target, data))),
        Level::Mappable => Ok(MediationResult::Data(mapped(&report.mappings, plan.context, data))),
        Level::Coercible => coerce(plan.target, &report, data)
            .map(MediationResult::Data)
            .map_err(|why| MediationError::Failed { strategy, why }),
        Level::Semantic => Ok(MediationResult::NeedsModel),
        Level::Incompatible => Err(MediationError::Incompatible),
    };
    (report, outcome)
}

/// The fields that the target has; all, if it lists none.
fn direct(target: &Value, data: &Map<String, Value>) -> Map<String, Value> {
    let properties = target.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty());
    let wanted = |name: &String| properties.is_none_or(|properties| properties.contains_key(name));
    data.iter().filter(|(name, _)| wanted(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The fields that an author's map gives: from paths, from fields of `data`, or as fixed values. What a path does not find is left out.
pub fn mapped(map: &Map<String, Value>, context: &Context, data: &Map<String, Value>) -> Map<String, Value> {
    let whole = Value::Object(data.clone());
    let value = |expression: &Value| match expression.as_str() {
        Some(path) if path.starts_with("$.") => context.resolve(path, &whole),
        Some(name) => Some(data.get(name).unwrap_or(expression).clone()),
        None => Some(expression.clone()),
    };
    map.iter().filter_map(|(target, expression)| Some((target.clone(), value(expression)?))).collect()
}

fn coerce(target: &Value, report: &Report, data: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let is_required = |name: &str| {
        target.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|other| other == name))
    };
    let casts: Vec<&str> = (report.coercions.iter())
        .filter(|coercion| matches!(coercion, Coercion::Cast { .. }))
        .map(Coercion::target)
        .collect();
    let mut input = Map::new();
    for (name, source) in &report.mappings {
        let Some(value) = source.as_str().and_then(|source| data.get(source)) else { continue };
        if !casts.contains(&name.as_str()) {
            input.insert(name.clone(), value.clone());
            continue;
        }
        match cast(value, &target["properties"][name]) {
            Ok(value) => {
                input.insert(name.clone(), value);
            }
            Err(why) if is_required(name) => return Err(format!("field '{name}': {why}")),
            // Nothing needs it.
            Err(_) => {}
        }
    }
    for coercion in &report.coercions {
        if let Coercion::Default { target, value } = coercion
            && !input.contains_key(target)
        {
            input.insert(target.clone(), value.clone());
        }
    }
    Ok(input)
}

#[cfg(test)]
mod tests;
