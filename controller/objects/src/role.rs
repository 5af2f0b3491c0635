//! Roles: named sets of rights, besides those that every cluster has.

use std::collections::BTreeSet;

use atlas_access::{Right, Rights, built_in};
use atlas_types::{Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kind::{Kind, Refusal, Scope, View, read};

/// The document of a role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoleSpec {
    /// The words of the rights.
    pub rights: BTreeSet<String>,
}

impl RoleSpec {
    /// Reads the spec of a role.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    /// The rights. Words that only a newer program knows grant nothing here.
    pub fn rights(&self) -> Rights {
        let known: Vec<Right> = self.rights.iter().filter_map(|word| Right::of(word)).collect();
        Rights::of(&known)
    }
}

pub(crate) struct RoleKind;

impl Kind for RoleKind {
    fn name(&self) -> &'static str {
        "role"
    }

    fn about(&self) -> &'static str {
        "A set of rights that bindings grant, besides the roles viewer, submitter, operator and admin."
    }

    fn scope(&self) -> Scope {
        Scope::Cluster
    }

    fn level(&self) -> Level {
        level::ACCESS
    }

    fn right(&self) -> &'static str {
        "access.manage"
    }

    fn schema(&self) -> Value {
        let words: Vec<&str> =
            Right::ALL.into_iter().filter(|right| *right != Right::Public).map(Right::as_str).collect();
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["rights"],
            "properties": {
                "rights": {
                    "type": "array", "minItems": 1, "maxItems": words.len(), "items": { "enum": words },
                    "description": "What the role allows."
                }
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        if built_in(key.name.as_str()).is_some() {
            return Err(Refusal::new("metadata.name", "is that of a role which every cluster has"));
        }
        RoleSpec::read(spec).map(|_| ())
    }

    fn used_by(&self, view: &dyn View, key: &ObjectKey) -> Option<&'static str> {
        view.is_referenced(key).then_some("a binding")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::{check, key};

    #[test]
    fn documents() {
        check(
            "role",
            &[
                r#"{"rights":["jobs.read","jobs.submit"]}"#,
                r#"{"rights":["later.right"]}"#,
                r#"{"rights":"jobs.read"}"#,
                "{}",
            ],
            &expect![[r#"
                ok {"rights":["jobs.read","jobs.submit"]}
                ok {"rights":["later.right"]}
                ! `spec` cannot be read: invalid type: string "jobs.read", expected a sequence at line 1 column 21
                ! `spec` cannot be read: missing field `rights` at line 1 column 2
            "#]],
        );
        assert!(RoleKind.admit(&key("role", "admin"), br#"{"rights":[]}"#).is_err());
    }

    #[test]
    fn unknown_rights_grant_nothing() {
        let role = RoleSpec { rights: ["jobs.read", "later.right"].map(str::to_owned).into() };
        assert_eq!(role.rights(), Rights::of(&[Right::JobsRead]));
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = RoleSpec::read(include_bytes!("../golden/role.json")).expect("a spec");
        assert_eq!(spec, RoleSpec { rights: ["jobs.read".to_owned(), "metrics.read".to_owned()].into() });
    }
}
