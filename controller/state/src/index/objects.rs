//! What objects add up to, the objects of each kind, and what the state reads of them: the limits of namespaces, and which objects
//! others name.

use atlas_objects::{NamespaceSpec, RoutingSpec};
use atlas_types::{EventSeq, Namespace, Object, ObjectKey, ObjectKind};

use crate::map::Map;

/// The orchestrator that a namespace selected, other than the default one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    /// The revision of the selection: it rises with each change of it.
    pub revision: EventSeq,
    /// The name of the orchestrator.
    pub orchestrator: String,
    /// The whole selection.
    pub spec: RoutingSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Objects {
    pub(crate) count: u64,
    /// Bytes of specs, labels and statuses.
    pub(crate) bytes: u64,
    /// The objects of each kind in all namespaces, by uid.
    keys: Map<ObjectKind, Map<EventSeq, ObjectKey>>,
    /// Namespaces that have an object.
    limits: Map<Namespace, NamespaceSpec>,
    /// Namespaces with another orchestrator than the default one.
    routings: Map<Namespace, Routing>,
    /// Objects that others name, and how often they do.
    references: Map<ObjectKey, u64>,
}

impl Objects {
    /// One object changed, appeared or went.
    pub(crate) fn change(&mut self, old: Option<&Object>, new: Option<&Object>) {
        self.count = self.count + u64::from(new.is_some()) - u64::from(old.is_some());
        self.bytes = self.bytes + new.map_or(0, Object::bytes) - old.map_or(0, Object::bytes);
        if old.map(|old| old.uid) != new.map(|new| new.uid) {
            old.into_iter().for_each(|old| self.remove_key(old));
            if let Some(new) = new {
                self.keys.entry(new.key.kind.clone()).or_default().insert(new.uid, new.key.clone());
            }
        }
        if let Some((namespace, _)) = old.and_then(limits) {
            self.limits.remove(&namespace);
        }
        if let Some((namespace, limits)) = new.and_then(limits) {
            self.limits.insert(namespace, limits);
        }
        if let Some(old) = old.filter(|object| routing(object).is_some()) {
            self.routings.remove(&old.key.namespace);
        }
        if let Some((new, routing)) = new.and_then(|object| Some((object, routing(object)?))) {
            self.routings.insert(new.key.namespace.clone(), routing);
        }
        for key in old.into_iter().flat_map(references) {
            match self.references.get(&key).copied().unwrap_or(0) {
                0 | 1 => self.references.remove(&key),
                count => self.references.insert(key, count - 1),
            };
        }
        for key in new.into_iter().flat_map(references) {
            let count = self.references.get(&key).copied().unwrap_or(0);
            self.references.insert(key, count + 1);
        }
    }

    /// Whether another object names this one.
    pub(crate) fn is_referenced(&self, key: &ObjectKey) -> bool {
        self.references.contains_key(key)
    }

    /// The selected orchestrator of a namespace; none if it is the default one.
    pub(crate) fn routing(&self, namespace: &Namespace) -> Option<&Routing> {
        self.routings.get(namespace)
    }

    fn remove_key(&mut self, object: &Object) {
        let Some(keys) = self.keys.get_mut(&object.key.kind) else { return };
        keys.remove(&object.uid);
        if keys.is_empty() {
            self.keys.remove(&object.key.kind);
        }
    }

    /// The keys of the objects of a kind, the oldest object first.
    pub(crate) fn keys<'a>(&'a self, kind: &ObjectKind) -> impl Iterator<Item = &'a ObjectKey> + use<'a> {
        self.keys.get(kind).into_iter().flat_map(|keys| keys.values())
    }

    /// The limits of a namespace; none if it has no object.
    pub(crate) fn limits(&self, namespace: &Namespace) -> Option<&NamespaceSpec> {
        self.limits.get(namespace)
    }

    /// The limits of all namespaces.
    pub(crate) fn all_limits(&self) -> impl Iterator<Item = (&Namespace, &NamespaceSpec)> {
        self.limits.iter()
    }
}

/// The namespace that an object limits, and how.
fn limits(object: &Object) -> Option<(Namespace, NamespaceSpec)> {
    let namespace = (object.key.kind.as_str() == "namespace").then(|| Namespace::new(object.key.name.as_str()).ok());
    Some((namespace.flatten()?, NamespaceSpec::read(&object.spec).ok()?))
}

/// The orchestrator that an object selects.
fn routing(object: &Object) -> Option<Routing> {
    if object.key.kind.as_str() != "routing" {
        return None;
    }
    let spec = RoutingSpec::read(&object.spec).ok()?;
    let orchestrator = spec.orchestrator.clone()?;
    Some(Routing { revision: object.revision, orchestrator, spec })
}

/// The objects that an object names.
fn references(object: &Object) -> impl Iterator<Item = ObjectKey> {
    let kind = atlas_objects::kind(&object.key.kind);
    let found = kind.map(|kind| kind.references(&object.key, &object.spec)).unwrap_or_default();
    found.into_iter().map(|reference| reference.key)
}
