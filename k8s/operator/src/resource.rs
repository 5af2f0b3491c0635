//! A resource as the API server has it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kind::Kind;
use crate::problem::{Problem, Reason};

/// Names the namespace of the cluster in which an object is.
pub(crate) const NAMESPACE: &str = "atlas.dev/namespace";
/// `true` lets a resource take over an object that it did not make.
pub(crate) const ADOPT: &str = "atlas.dev/adopt";
/// `keep` leaves the object when its resource is deleted.
pub(crate) const DELETION: &str = "atlas.dev/deletion";
/// The label of objects that resources made: the namespace and name of the resource.
pub(crate) const OWNER: &str = "atlas.dev/resource";

/// Most bytes of a spec.
const SPEC_BYTES_MAX: usize = 1 << 20;

/// A resource.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    /// Its kind.
    pub(crate) kind: Kind,
    /// Its namespace in Kubernetes.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Counts the changes of its spec.
    pub(crate) generation: i64,
    /// What people noted.
    pub(crate) annotations: BTreeMap<String, String>,
    /// Its labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// What is wanted.
    pub(crate) spec: Value,
    /// What the operator said about it before.
    pub(crate) status: Value,
}

impl Resource {
    /// Reads a resource.
    pub(crate) fn read(kind: Kind, document: &Value) -> Result<Self, Problem> {
        let metadata = &document["metadata"];
        let text = |member: &str| metadata[member].as_str().unwrap_or_default().to_owned();
        let texts = |member: &str| -> BTreeMap<String, String> {
            let members = metadata[member].as_object().into_iter().flatten();
            members.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
        };
        let spec = document.get("spec").cloned().unwrap_or_default();
        // A namespace without limits needs no spec.
        let may_be_absent = kind == Kind::Namespace;
        if !(spec.is_object() || spec.is_null() && may_be_absent) {
            return Err(Problem::new(Reason::Invalid, "spec is not an object"));
        }
        if spec.to_string().len() > SPEC_BYTES_MAX {
            return Err(Problem::new(Reason::Invalid, format!("spec has more than {SPEC_BYTES_MAX} bytes")));
        }
        Ok(Self {
            kind,
            namespace: text("namespace"),
            name: text("name"),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            annotations: texts("annotations"),
            labels: texts("labels"),
            spec: if spec.is_null() { Value::Object(serde_json::Map::new()) } else { spec },
            status: document.get("status").cloned().unwrap_or_default(),
        })
    }

    /// What identifies it to people and in the label [`OWNER`].
    pub(crate) fn owner(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Whether it may take over an object that it did not make.
    pub(crate) fn adopts(&self) -> bool {
        self.annotations.get(ADOPT).is_some_and(|value| value == "true")
    }

    /// Whether its object stays when it is deleted.
    pub(crate) fn keeps(&self) -> bool {
        self.annotations.get(DELETION).is_some_and(|value| value == "keep")
    }

    /// The namespace of the cluster that it is about. Resources next to the operator may name one; those in another namespace of Kubernetes
    /// are in the cluster's namespace of the same name, so that rights in Kubernetes reach no further.
    pub(crate) fn place(&self, home: &str) -> Result<String, Problem> {
        let named = self.annotations.get(NAMESPACE);
        if self.namespace == home {
            return Ok(match self.kind {
                Kind::Namespace => "default".to_owned(),
                _ => named.cloned().unwrap_or_else(|| "default".to_owned()),
            });
        }
        if self.kind == Kind::Namespace {
            let message = format!("resources of the kind AtlasNamespace are accepted in the namespace {home} only");
            return Err(Problem::new(Reason::NotPermitted, message));
        }
        match named {
            Some(named) if *named != self.namespace => {
                let message = format!(
                    "the annotation {NAMESPACE} is \"{named}\", but a resource in the namespace {} is about the namespace of that name",
                    self.namespace
                );
                Err(Problem::new(Reason::NotPermitted, message))
            }
            _ => Ok(self.namespace.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(kind: Kind, namespace: &str, annotations: &Value) -> Resource {
        let metadata = json!({"namespace": namespace, "name": "a", "annotations": annotations});
        Resource::read(kind, &json!({"metadata": metadata, "spec": {}})).expect("a resource")
    }

    #[test]
    fn rights_in_kubernetes_reach_one_namespace() {
        let place = |kind, namespace: &str, annotations: Value| {
            resource(kind, namespace, &annotations).place("atlas").map_err(|problem| problem.reason.as_str())
        };
        assert_eq!(place(Kind::Chain, "atlas", json!({})), Ok("default".to_owned()));
        assert_eq!(place(Kind::Chain, "atlas", json!({NAMESPACE: "team-a"})), Ok("team-a".to_owned()));
        assert_eq!(place(Kind::Namespace, "atlas", json!({NAMESPACE: "team-a"})), Ok("default".to_owned()));
        assert_eq!(place(Kind::Chain, "team-a", json!({})), Ok("team-a".to_owned()));
        assert_eq!(place(Kind::Chain, "team-a", json!({NAMESPACE: "team-a"})), Ok("team-a".to_owned()));
        assert_eq!(place(Kind::Chain, "team-a", json!({NAMESPACE: "default"})), Err("NotPermitted"));
        assert_eq!(place(Kind::Namespace, "team-a", json!({})), Err("NotPermitted"));
    }

    #[test]
    fn what_is_no_resource_is_refused() {
        let read = |kind, document: Value| Resource::read(kind, &document).map_err(|problem| problem.message);
        assert_eq!(read(Kind::Chain, json!({})), Err("spec is not an object".to_owned()));
        assert_eq!(read(Kind::Chain, json!({"spec": []})), Err("spec is not an object".to_owned()));
        assert_eq!(read(Kind::Namespace, json!({})).expect("no limits").spec, json!({}));
        let large = json!({"spec": {"description": "x".repeat(SPEC_BYTES_MAX)}});
        assert_eq!(read(Kind::Chain, large), Err("spec has more than 1048576 bytes".to_owned()));
    }
}
