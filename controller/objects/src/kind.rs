//! What a kind is, and what is asked of every kind.

use atlas_types::{Digest, Level, Namespace, ObjectKey};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::canonical::parse;

/// Most objects that one object names.
pub const REFERENCES_MAX: usize = 16;

/// Where objects of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the namespace `default`: their names are unique in the cluster.
    Cluster,
    /// In any namespace.
    Namespace,
}

impl Scope {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Namespace => "namespace",
        }
    }
}

/// Why a document is refused. The field is part of the answer of every replica; the text is for people, and only doors show it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {text}")]
pub struct Refusal {
    /// The member that is refused, such as `spec.url`.
    pub field: &'static str,
    /// What is wrong with it, a sentence without its subject.
    pub text: String,
}

impl Refusal {
    pub(crate) fn new(field: &'static str, text: impl Into<String>) -> Self {
        Self { field, text: text.into() }
    }
}

/// What a kind may ask of the state.
pub trait View {
    /// What is in a namespace, in words; none if it is empty.
    fn content_of(&self, namespace: &Namespace) -> Option<&'static str>;
    /// The canonical spec of an object; none if there is no such object.
    fn spec_of(&self, key: &ObjectKey) -> Option<&[u8]>;
    /// Whether another object names it ([`Kind::references`]).
    fn is_referenced(&self, key: &ObjectKey) -> bool;
}

/// An object that a spec names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The member that names it, such as `spec.model`.
    pub field: &'static str,
    /// The named object.
    pub key: ObjectKey,
}

/// A kind of object. Answers depend on the arguments alone.
pub trait Kind: Sync {
    /// Its word.
    fn name(&self) -> &'static str;
    /// What its objects are for: one sentence.
    fn about(&self) -> &'static str;
    /// Where its objects are.
    fn scope(&self) -> Scope {
        Scope::Namespace
    }
    /// The feature level that knows it.
    fn level(&self) -> Level;
    /// The version of its format that this program writes.
    fn spec_version(&self) -> u32 {
        1
    }
    /// The right that writing such an object needs.
    fn right(&self) -> &'static str {
        "objects.write"
    }
    /// The JSON Schema of its spec. Doors check it, so it may refuse members that a newer program knows.
    fn schema(&self) -> Value;
    /// Refuses a canonical spec that means nothing. Unknown members are accepted: a newer program wrote them.
    fn admit(&self, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal>;
    /// The objects that a canonical spec names, at most [`REFERENCES_MAX`]. They exist as long as the object does.
    fn references(&self, _key: &ObjectKey, _spec: &[u8]) -> Vec<Reference> {
        Vec::new()
    }
    /// Refuses a canonical spec because of other objects. Its references are known to exist.
    fn admit_among(&self, _view: &dyn View, _key: &ObjectKey, _spec: &[u8]) -> Result<(), Refusal> {
        Ok(())
    }
    /// The artifacts that a canonical spec names. They are kept as long as the object names them.
    fn artifacts(&self, _spec: &[u8]) -> Vec<Digest> {
        Vec::new()
    }
    /// Refuses a canonical spec at doors alone, without its [`Self::kept`] members: the state accepts it, because older programs have written such
    /// ones.
    fn admit_written(&self, _spec: &[u8]) -> Result<(), Refusal> {
        Ok(())
    }
    /// Members that only the cluster writes: doors ignore what clients send in them, and keep what is stored.
    fn kept(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether agents write such objects by themselves. However many they write, there is room for what configures the cluster.
    fn is_for_agents(&self) -> bool {
        false
    }
    /// Changes a spec that the schema accepts to the form in which it is stored.
    fn normalise(&self, _spec: &mut Value) {}
    /// Removes what nobody may read from a spec, and undoes [`Self::normalise`].
    fn shown(&self, _spec: &mut Value) {}
    /// What uses an object, in words; it can be deleted once there is none.
    fn used_by(&self, _view: &dyn View, _key: &ObjectKey) -> Option<&'static str> {
        None
    }
}

/// Refuses a document in the wrong place, one that is not a canonical JSON object, and one that its kind refuses.
pub fn check(kind: &dyn Kind, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
    if kind.scope() == Scope::Cluster && key.namespace != Namespace::default_namespace() {
        return Err(Refusal::new("metadata.namespace", format!("is not used by objects of the kind {}", kind.name())));
    }
    let value = parse(spec).map_err(|error| Refusal::new("spec", format!("cannot be read: {error}")))?;
    if !value.is_object() {
        return Err(Refusal::new("spec", "is not an object"));
    }
    kind.admit(key, spec)
}

/// Refuses a document that [`check`] accepted because of other objects: one that names an object which does not exist, and one that
/// its kind refuses.
pub fn check_among(kind: &dyn Kind, view: &dyn View, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
    check_references(kind, view, key, spec)?;
    kind.admit_among(view, key, spec)
}

/// Refuses a document that names an object which does not exist.
pub fn check_references(kind: &dyn Kind, view: &dyn View, key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
    let references = kind.references(key, spec);
    let missing = references.into_iter().find(|reference| view.spec_of(&reference.key).is_none());
    let Some(Reference { field, key }) = missing else { return Ok(()) };
    Err(Refusal::new(field, format!("names the {} \"{}\", which does not exist", key.kind, key.name)))
}

/// Reads the typed spec of a kind.
pub(crate) fn read<T: DeserializeOwned>(spec: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(spec).map_err(|error| Refusal::new("spec", format!("cannot be read: {error}")))
}
