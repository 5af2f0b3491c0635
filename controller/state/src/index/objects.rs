//! What objects add up to, and what the state reads of them: the limits of namespaces.

use atlas_objects::NamespaceSpec;
use atlas_types::{Namespace, Object};

use crate::map::Map;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Objects {
    pub(crate) count: u64,
    /// Bytes of specs, labels and statuses.
    pub(crate) bytes: u64,
    /// Namespaces that have an object.
    limits: Map<Namespace, NamespaceSpec>,
}

impl Objects {
    /// One object changed, appeared or went.
    pub(crate) fn change(&mut self, old: Option<&Object>, new: Option<&Object>) {
        self.count = self.count + u64::from(new.is_some()) - u64::from(old.is_some());
        self.bytes = self.bytes + new.map_or(0, Object::bytes) - old.map_or(0, Object::bytes);
        if let Some((namespace, _)) = old.and_then(limits) {
            self.limits.remove(&namespace);
        }
        if let Some((namespace, limits)) = new.and_then(limits) {
            self.limits.insert(namespace, limits);
        }
    }

    /// The limits of a namespace; none if it has no object.
    pub(crate) fn limits(&self, namespace: &Namespace) -> Option<&NamespaceSpec> {
        self.limits.get(namespace)
    }
}

/// The namespace that an object limits, and how.
fn limits(object: &Object) -> Option<(Namespace, NamespaceSpec)> {
    let namespace = (object.key.kind.as_str() == "namespace").then(|| Namespace::new(object.key.name.as_str()).ok());
    Some((namespace.flatten()?, NamespaceSpec::read(&object.spec).ok()?))
}
