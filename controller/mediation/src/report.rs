//! What the comparison of two schemas found (compatibility §11.1).

use serde_json::{Map, Value, json};

/// How well an output fits an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The same fields.
    Identical,
    /// All required fields are there.
    Superset,
    /// The author's map has all required fields.
    Mappable,
    /// Fields have to be renamed or converted.
    Coercible,
    /// A model could do it.
    Semantic,
    Incompatible,
}

impl Level {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Superset => "superset",
            Self::Mappable => "mappable",
            Self::Coercible => "coercible",
            Self::Semantic => "semantic",
            Self::Incompatible => "incompatible",
        }
    }

    /// The name of its strategy.
    pub fn strategy(self) -> &'static str {
        match self {
            Self::Identical | Self::Superset => "direct",
            Self::Mappable => "mapped",
            Self::Coercible => "coerce",
            Self::Semantic => "llm_bridge",
            Self::Incompatible => "",
        }
    }
}

/// One change of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Coercion {
    Rename { source: String, target: String, similarity: f64 },
    Cast { source: String, target: String, from: &'static str, to: &'static str, similarity: f64 },
    Default { target: String, value: Value },
}

impl Coercion {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rename { .. } => "rename",
            Self::Cast { .. } => "cast",
            Self::Default { .. } => "default",
        }
    }

    /// The field that it produces.
    pub fn target(&self) -> &str {
        match self {
            Self::Rename { target, .. } | Self::Cast { target, .. } | Self::Default { target, .. } => target,
        }
    }

    /// The field that it reads; empty for a default.
    pub fn source(&self) -> &str {
        match self {
            Self::Rename { source, .. } | Self::Cast { source, .. } => source,
            Self::Default { .. } => "",
        }
    }

    /// What is particular to its kind, for reports.
    pub fn details(&self) -> Value {
        match self {
            Self::Rename { similarity, .. } => json!({"similarity": similarity}),
            Self::Cast { from, to, similarity, .. } => {
                json!({"from_type": from, "to_type": to, "similarity": similarity})
            }
            Self::Default { value, .. } => json!({ "value": value }),
        }
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub level: Level,
    /// Field of the target ← field of the source, or the author's map.
    pub mappings: Map<String, Value>,
    pub coercions: Vec<Coercion>,
    /// Required fields of the target without a source.
    pub unmapped_required: Vec<String>,
    /// Other fields of the target without a source.
    pub unmapped_optional: Vec<String>,
    /// From 0 to 1.
    pub confidence: f64,
    /// For people.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether there is a way without a model.
    pub fn can_bridge(&self) -> bool {
        self.level != Level::Incompatible
    }

    /// The report as JSON, under its names of today and of the first description of the interface.
    pub fn to_json(&self) -> Value {
        let coercions: Vec<Value> = self
            .coercions
            .iter()
            .map(|coercion| {
                json!({
                    "op_type": coercion.name(), "source_field": coercion.source(), "target_field": coercion.target(),
                    "details": coercion.details(),
                })
            })
            .collect();
        json!({
            "level": self.level.as_str(), "direct_mappings": self.mappings, "coercions": coercions,
            "unmapped_required": self.unmapped_required, "unmapped_optional": self.unmapped_optional,
            "confidence": self.confidence, "notes": self.notes, "can_bridge": self.can_bridge(),
            "compatible": self.can_bridge(), "strategy": self.level.strategy(), "field_mapping": self.mappings,
            "warnings": self.notes,
        })
    }
}
