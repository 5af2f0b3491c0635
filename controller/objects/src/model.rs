//! Models: where each is reached, what it costs and what it can do. The format of the spec is in `atlas-model`, because workers read it too.

mod schema;

use std::collections::BTreeSet;

use atlas_model::ModelSpec;
use atlas_types::{Level, Namespace, ObjectKey, ObjectKind, ObjectName, level};
use serde_json::Value;

use crate::kind::{Kind, Reference, Refusal, View};

/// Most models that can be reached from one over its fallbacks and theirs.
pub const FALLBACKS_REACHED_MAX: usize = 16;

const FALLBACKS: &str = "spec.fallbacks";

pub(crate) struct ModelKind;

impl Kind for ModelKind {
    fn name(&self) -> &'static str {
        "model"
    }

    fn about(&self) -> &'static str {
        "A model that agents use: where it is reached, its prices, its limits and what it can do."
    }

    fn level(&self) -> Level {
        level::MODELS
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        let spec = read(spec)?;
        for name in &spec.fallbacks {
            let fallback = key_in(&key.namespace, FALLBACKS, name)?;
            if fallback == *key {
                return Err(Refusal::new(FALLBACKS, "names the model itself"));
            }
        }
        Ok(())
    }

    fn references(&self, key: &ObjectKey, spec: &[u8]) -> Vec<Reference> {
        fallbacks(key, spec).into_iter().map(|key| Reference { field: FALLBACKS, key }).collect()
    }

    /// Follows the fallbacks. Before this change they had no cycle, so a new one contains this model.
    fn admit_among(&self, view: &dyn View, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        let mut reached = BTreeSet::new();
        let mut waiting = fallbacks(key, spec);
        while let Some(next) = waiting.pop() {
            if next == *key {
                return Err(Refusal::new(FALLBACKS, "leads back to the model itself"));
            }
            if !reached.insert(next.clone()) {
                continue;
            }
            if reached.len() > FALLBACKS_REACHED_MAX {
                let text = format!("leads to more than {FALLBACKS_REACHED_MAX} models");
                return Err(Refusal::new(FALLBACKS, text));
            }
            waiting.extend(view.spec_of(&next).into_iter().flat_map(|spec| fallbacks(&next, spec)));
        }
        Ok(())
    }

    fn used_by(&self, view: &dyn View, key: &ObjectKey) -> Option<&'static str> {
        view.is_referenced(key).then_some("a tier or as a fallback of another model")
    }
}

/// The model and its fallbacks in the order in which they are tried: each fallback is followed by its own, and none comes twice. At most
/// [`FALLBACKS_REACHED_MAX`] fallbacks; those that do not exist are left out.
pub fn with_fallbacks(view: &dyn View, key: &ObjectKey) -> Vec<ObjectKey> {
    let mut chosen: Vec<ObjectKey> = Vec::new();
    let mut waiting = vec![key.clone()];
    while let Some(next) = waiting.pop() {
        if chosen.contains(&next) {
            continue;
        }
        let Some(spec) = view.spec_of(&next) else { continue };
        waiting.extend(fallbacks(&next, spec).into_iter().rev());
        chosen.push(next);
        if chosen.len() > FALLBACKS_REACHED_MAX {
            break;
        }
    }
    chosen
}

/// The key of a model by its name in a spec.
pub(crate) fn key_in(namespace: &Namespace, field: &'static str, name: &str) -> Result<ObjectKey, Refusal> {
    let refused = |error: &dyn std::fmt::Display| Refusal::new(field, format!("has a name that is refused: {error}"));
    Ok(ObjectKey {
        namespace: namespace.clone(),
        kind: ObjectKind::new("model").map_err(|error| refused(&error))?,
        name: ObjectName::new(name).map_err(|error| refused(&error))?,
    })
}

fn read(spec: &[u8]) -> Result<ModelSpec, Refusal> {
    ModelSpec::read(spec).map_err(|error| Refusal::new(error.field, error.text))
}

fn fallbacks(key: &ObjectKey, spec: &[u8]) -> Vec<ObjectKey> {
    let names = read(spec).map(|spec| spec.fallbacks).unwrap_or_default();
    names.iter().filter_map(|name| key_in(&key.namespace, FALLBACKS, name).ok()).collect()
}

#[cfg(test)]
mod tests;
