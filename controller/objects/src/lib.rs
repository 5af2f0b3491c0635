//! The kinds of objects: the format of their documents, and which documents are refused.
//!
//! An object is a document that configures the cluster. This crate has one file per kind and the table of them. It is pure: doors
//! call it for good error messages, and `apply` calls it for the truth, with the same answer on every replica. What a kind refuses
//! here therefore belongs to a feature level. It does not know the table of objects, which belongs to `atlas-state`, nor who is
//! allowed to write.
//!
//! ```
//! use atlas_objects::{canonical, kind};
//! use atlas_types::ObjectKind;
//!
//! let namespace = kind(&ObjectKind::new("namespace").unwrap()).unwrap();
//! assert_eq!(namespace.name(), "namespace");
//! let spec = canonical(&serde_json::json!({ "jobs_pending_max": 10, "agents_max": 5 })).unwrap();
//! assert_eq!(spec, br#"{"agents_max":5,"jobs_pending_max":10}"#);
//! ```

mod attributes;
mod base;
mod binding;
mod canonical;
mod chain;
mod conversation;
mod enrollment;
mod issuer;
mod kind;
mod kinds;
mod knowledge;
mod mcp_server;
mod memory;
mod model;
mod namespace;
mod orchestrator;
mod pin;
mod policy;
mod role;
mod routing;
mod secret;
mod skill;
#[cfg(test)]
mod tests;
mod tier;
mod token;
mod trigger;
mod webhook;

pub use base::{
    BASE_WRITTEN_BYTES_MAX, BaseCollection, BaseSegment, BaseSpec, BaseVectors, REMOVED_MAX, ReadRule, SEGMENTS_MAX,
    VECTOR_SEGMENTS_MAX, VectorSegment,
};
pub use binding::{BindingSpec, GrantSpec};
pub use canonical::{CanonicalError, canonical, parse};
pub use chain::{ChainSpec, ChainStep};
pub use conversation::{ConversationSpec, Piece, TurnUnderWay};
pub use enrollment::EnrollmentSpec;
pub use issuer::IssuerSpec;
pub use kind::{Kind, REFERENCES_MAX, Reference, Refusal, Scope, View, check, check_among, check_references};
pub use kinds::{KINDS, kind};
pub use knowledge::KnowledgeSpec;
pub use memory::MemorySpec;
pub use model::{FALLBACKS_REACHED_MAX, with_fallbacks};
pub use namespace::{NamespaceSpec, RateSpec, Unsatisfiable};
pub use orchestrator::{ExternalSpec, OrchestratorSpec, RULES_MAX, RuleSpec};
pub use pin::PinSpec;
pub use policy::{PolicyAsk, PolicyRule, PolicySpec};
pub use role::RoleSpec;
pub use routing::{Fallback, ROUTING, RoutingSpec};
pub use secret::{SealedVersion, SecretProvider, SecretSpec, VERSIONS_MAX};
pub use skill::{SkillProgram, SkillSpec};
pub use tier::{TIERS, TierSpec, models_of_tier};
pub use token::TokenSpec;
pub use trigger::{
    CATCH_UP_MAX, FIRINGS_MAX, Firing, JITTER_MAX, MAPPED_MAX, OVERLAPS, REPLAY_WINDOW_MAX, SCHEMES, TRIGGER_TYPES,
    TriggerSpec, TriggerStatus,
};
pub use webhook::{EVENT_KINDS, WebhookSpec};
