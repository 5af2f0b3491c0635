//! The table of all kinds. No kind knows it.

use atlas_types::ObjectKind;

use crate::kind::Kind;
use crate::{
    base, binding, chain, conversation, enrollment, issuer, knowledge, mcp_server, memory, model, namespace,
    orchestrator, pin, policy, role, routing, secret, skill, tier, token, trigger, webhook,
};

/// All kinds, by name.
pub const KINDS: [&dyn Kind; 22] = [
    &base::BaseKind,
    &binding::BindingKind,
    &chain::ChainKind,
    &conversation::ConversationKind,
    &enrollment::EnrollmentKind,
    &issuer::IssuerKind,
    &knowledge::KnowledgeKind,
    &mcp_server::McpServerKind,
    &memory::MemoryKind,
    &model::ModelKind,
    &namespace::NamespaceKind,
    &orchestrator::OrchestratorKind,
    &pin::PinKind,
    &policy::PolicyKind,
    &role::RoleKind,
    &routing::RoutingKind,
    &secret::SecretKind,
    &skill::SkillKind,
    &tier::TierKind,
    &token::TokenKind,
    &trigger::TriggerKind,
    &webhook::WebhookKind,
];

/// The kind of a word.
pub fn kind(name: &ObjectKind) -> Option<&'static dyn Kind> {
    KINDS.into_iter().find(|kind| kind.name() == name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_described() {
        assert!(KINDS.is_sorted_by(|a, b| a.name() < b.name()));
        for kind in KINDS {
            let name = ObjectKind::new(kind.name()).expect("a word");
            assert_eq!(super::kind(&name).map(Kind::name), Some(kind.name()));
            assert!(kind.about().ends_with('.'), "{}", kind.name());
            assert!(atlas_access::Right::of(kind.right()).is_some(), "{}", kind.name());
            let schema = kind.schema();
            assert_eq!(schema["additionalProperties"], false, "doors refuse unknown members of {}", kind.name());
            for (member, property) in schema["properties"].as_object().expect("members") {
                assert!(property["description"].is_string(), "{}: {member} has no sentence", kind.name());
            }
        }
        assert!(kind(&ObjectKind::new("gizmo").expect("a word")).is_none());
    }
}
