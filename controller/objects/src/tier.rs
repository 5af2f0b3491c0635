//! Tiers: which model the agents of a namespace get that ask for `fast`, `balanced` or `powerful` in their contracts.

use atlas_types::{Level, Namespace, ObjectKey, ObjectKind, ObjectName, level};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kind::{Kind, Reference, Refusal, View, read};
use crate::model;

/// The tiers, as contracts name them.
pub const TIERS: [&str; 3] = ["fast", "balanced", "powerful"];

/// The model of a tier. A tier without an object has the model of its own name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TierSpec {
    /// The name of a model in the same namespace.
    pub model: String,
}

impl TierSpec {
    /// Reads the spec of a tier.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }
}

/// The models for agents of a namespace that ask for a tier: the model of the tier, then its fallbacks in the order in which they are
/// tried. Empty if the namespace has no model for the tier.
pub fn models_of_tier(view: &dyn View, namespace: &Namespace, tier: &str) -> Vec<ObjectKey> {
    let mapped = || {
        let key = ObjectKey {
            namespace: namespace.clone(),
            kind: ObjectKind::new("tier").ok()?,
            name: ObjectName::new(tier).ok()?,
        };
        TierSpec::read(view.spec_of(&key)?).ok()
    };
    let name = mapped().map_or_else(|| tier.to_owned(), |spec| spec.model);
    let key = model::key_in(namespace, "spec.model", &name);
    key.map_or_else(|_| Vec::new(), |key| model::with_fallbacks(view, &key))
}

pub(crate) struct TierKind;

impl Kind for TierKind {
    fn name(&self) -> &'static str {
        "tier"
    }

    fn about(&self) -> &'static str {
        "The model for agents that ask for `fast`, `balanced` or `powerful`; without an object, a tier has the model of its own name."
    }

    fn level(&self) -> Level {
        level::MODELS
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["model"],
            "properties": {
                "model": {
                    "type": "string", "minLength": 1, "maxLength": 253,
                    "description": "The name of a model in the same namespace."
                }
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        if !TIERS.contains(&key.name.as_str()) {
            return Err(Refusal::new("metadata.name", format!("is one of {}", TIERS.join(", "))));
        }
        model::key_in(&key.namespace, "spec.model", &TierSpec::read(spec)?.model).map(|_| ())
    }

    fn references(&self, key: &ObjectKey, spec: &[u8]) -> Vec<Reference> {
        let named = TierSpec::read(spec).and_then(|spec| model::key_in(&key.namespace, "spec.model", &spec.model));
        named.into_iter().map(|key| Reference { field: "spec.model", key }).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tests::key;

    struct Specs(BTreeMap<ObjectKey, &'static [u8]>);

    impl View for Specs {
        fn content_of(&self, _: &Namespace) -> Option<&'static str> {
            None
        }

        fn spec_of(&self, key: &ObjectKey) -> Option<&[u8]> {
            self.0.get(key).copied()
        }

        fn is_referenced(&self, _: &ObjectKey) -> bool {
            false
        }
    }

    #[test]
    fn a_tier_without_an_object_has_the_model_of_its_name() {
        let view = Specs(BTreeMap::from([
            (key("model", "fast"), br#"{"name":"m","provider":"openai"}"#.as_slice()),
            (key("model", "large"), br#"{"fallbacks":["fast"],"name":"m","provider":"openai"}"#),
            (key("tier", "powerful"), br#"{"model":"large"}"#),
        ]));
        let models = |namespace: &str, tier: &str| {
            let found = models_of_tier(&view, &Namespace::new(namespace).expect("a name"), tier);
            found.iter().map(|key| key.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(models("default", "fast"), ["fast"]);
        assert_eq!(models("default", "powerful"), ["large", "fast"]);
        assert_eq!((models("default", "balanced"), models("team", "fast")), (vec![], vec![]));
        assert_eq!(models("default", "a/b"), Vec::<String>::new());
    }

    #[test]
    fn documents() {
        let check = |name: &str, spec: &str| {
            crate::check(&TierKind, &key("tier", name), spec.as_bytes()).map_err(|refusal| refusal.field)
        };
        assert_eq!(check("fast", r#"{"model":"m"}"#), Ok(()));
        assert_eq!(check("powerful", r#"{"later":1,"model":"m"}"#), Ok(()));
        assert_eq!(check("slow", r#"{"model":"m"}"#), Err("metadata.name"));
        assert_eq!(check("fast", r#"{"model":"a/b"}"#), Err("spec.model"));
        assert_eq!(check("fast", "{}"), Err("spec"));
    }

    #[test]
    fn a_tier_names_one_model_of_its_namespace() {
        let tier = key("tier", "fast");
        let expected = [Reference { field: "spec.model", key: key("model", "m") }];
        assert_eq!(TierKind.references(&tier, br#"{"model":"m"}"#), expected);
        assert_eq!(TierKind.references(&tier, br#"{"model":""}"#), []);
    }
}
