//! Bindings: the roles of a principal. The name of the object is that of the principal.

use std::collections::BTreeMap;

use atlas_access::built_in;
use atlas_types::{Level, Namespace, ObjectKey, ObjectKind, ObjectName, Principal, level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::attributes::{attributes_schema, check_attributes};
use crate::kind::{Kind, REFERENCES_MAX, Reference, Refusal, Scope, read};

/// Most grants of one principal.
const GRANTS_MAX: usize = 64;

/// The document of a binding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BindingSpec {
    /// What the principal is granted.
    pub grants: Vec<GrantSpec>,
    /// What is known of it besides its name, such as its team.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Vec<String>>,
}

/// One grant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct GrantSpec {
    /// The namespace in which it counts; none for the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The role.
    pub role: String,
}

impl BindingSpec {
    /// Reads the spec of a binding.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }
}

/// The roles of grants that are objects, each once.
fn roles(grants: &[GrantSpec]) -> Vec<&str> {
    let mut roles: Vec<&str> =
        grants.iter().map(|grant| grant.role.as_str()).filter(|role| built_in(role).is_none()).collect();
    roles.sort_unstable();
    roles.dedup();
    roles
}

/// The JSON Schema of grants.
pub(crate) fn grants_schema(description: &str) -> Value {
    json!({
        "type": "array", "maxItems": GRANTS_MAX, "description": description,
        "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["role"],
            "properties": {
                "role": {
                    "type": "string", "minLength": 1, "maxLength": 253,
                    "description": "viewer, submitter, operator, admin, or the name of a role."
                },
                "namespace": {
                    "type": ["string", "null"], "minLength": 1, "maxLength": 63,
                    "description": "The namespace in which it counts; the whole cluster by default."
                }
            }
        }
    })
}

/// Refuses grants that are too many, or that name what cannot be a role or a namespace.
pub(crate) fn check_grants(grants: &[GrantSpec]) -> Result<(), Refusal> {
    if grants.len() > GRANTS_MAX {
        return Err(Refusal::new("spec.grants", format!("has more than {GRANTS_MAX} items")));
    }
    for GrantSpec { namespace, role } in grants {
        let refused = |error| Refusal::new("spec.grants", format!("is refused: {error}"));
        namespace.as_deref().map(Namespace::new).transpose().map_err(refused)?;
        ObjectName::new(role).map_err(refused)?;
    }
    match roles(grants).len() <= REFERENCES_MAX {
        true => Ok(()),
        false => Err(Refusal::new("spec.grants", format!("names more than {REFERENCES_MAX} roles"))),
    }
}

/// The roles that grants name, which exist as long as the object does.
pub(crate) fn references_of(grants: &[GrantSpec]) -> Vec<Reference> {
    let Ok(kind) = ObjectKind::new("role") else { return Vec::new() };
    let key = |role: &str| {
        let name = ObjectName::new(role).ok()?;
        Some(ObjectKey { namespace: Namespace::default_namespace(), kind: kind.clone(), name })
    };
    let references = roles(grants).into_iter().filter_map(key).map(|key| Reference { field: "spec.grants", key });
    references.take(REFERENCES_MAX).collect()
}

pub(crate) struct BindingKind;

impl Kind for BindingKind {
    fn name(&self) -> &'static str {
        "binding"
    }

    fn about(&self) -> &'static str {
        "The roles of the principal that has the object's name."
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
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["grants"],
            "properties": {
                "grants": grants_schema("The roles, each in a namespace or in the whole cluster."),
                "attributes": attributes_schema("What is known of the principal besides its name, such as `team: [people]`; rules of document bases compare it.")
            }
        })
    }

    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        Principal::new(key.name.as_str())
            .map_err(|error| Refusal::new("metadata.name", format!("is refused: {error}")))?;
        let spec = BindingSpec::read(spec)?;
        check_attributes(&spec.attributes)?;
        check_grants(&spec.grants)
    }

    fn references(&self, _: &ObjectKey, spec: &[u8]) -> Vec<Reference> {
        BindingSpec::read(spec).map(|spec| references_of(&spec.grants)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::{check, key};

    #[test]
    fn documents() {
        let many: Vec<String> = (0..17).map(|at| format!(r#"{{"role":"r{at}"}}"#)).collect();
        check(
            "binding",
            &[
                r#"{"grants":[{"namespace":"team-a","role":"submitter"},{"role":"viewer"}]}"#,
                r#"{"grants":[]}"#,
                r#"{"grants":[{"role":""}]}"#,
                r#"{"grants":[{"namespace":"../x","role":"viewer"}]}"#,
                r#"{"grants":[{"namespace":"team-a"}]}"#,
                &format!(r#"{{"grants":[{}]}}"#, many.join(",")),
                "{}",
                r#"{"attributes":{"team":["people","law"]},"grants":[]}"#,
                r#"{"attributes":{"team":[]},"grants":[]}"#,
                r#"{"attributes":{"principal":["root"]},"grants":[]}"#,
                r#"{"attributes":{"a.b":["x"]},"grants":[]}"#,
            ],
            &expect![[r#"
                ok {"grants":[{"namespace":"team-a","role":"submitter"},{"role":"viewer"}]}
                ok {"grants":[]}
                ! `spec.grants` is refused: an object name has 1 to 253 bytes, this one has 0
                ! `spec.grants` is refused: a namespace must not contain "/"
                ! `spec` cannot be read: missing field `role` at line 1 column 33
                ! `spec.grants` names more than 16 roles
                ! `spec` cannot be read: missing field `grants` at line 1 column 2
                ok {"attributes":{"team":["people","law"]},"grants":[]}
                ! `spec.attributes` has no value, more than 16, or one of more than 256 bytes under "team"
                ! `spec.attributes` names "principal", which is known of every caller
                ! `spec.attributes` has a name with other characters than letters, digits, - and _, or with more than 63
            "#]],
        );
    }

    #[test]
    fn roles_of_a_cluster_are_references() {
        let spec = br#"{"grants":[{"role":"auditor"},{"role":"viewer"},{"namespace":"a","role":"auditor"}]}"#;
        let references = BindingKind.references(&key("binding", "ann"), spec);
        let names: Vec<&str> = references.iter().map(|reference| reference.key.name.as_str()).collect();
        assert_eq!(names, ["auditor"]);
    }

    #[test]
    fn the_golden_document_reads_as_ever() {
        let spec = BindingSpec::read(include_bytes!("../golden/binding.json")).expect("a spec");
        let grant = |namespace: Option<&str>, role: &str| GrantSpec {
            namespace: namespace.map(str::to_owned),
            role: role.to_owned(),
        };
        let grants = vec![grant(Some("team-a"), "operator"), grant(None, "viewer")];
        assert_eq!(spec, BindingSpec { grants, ..BindingSpec::default() });
    }
}
