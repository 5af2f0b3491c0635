//! Objects as clients get them.

use std::sync::Arc;

use atlas_api::types::{self, ObjectMetadata};
use atlas_types::{EventSeq, Object};
use serde_json::Value;

/// An object as clients get it, and its revision.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownObject {
    pub value: types::Object,
    pub revision: EventSeq,
}

/// An object with its revision, without what nobody may read.
pub fn with_revision(object: &Arc<Object>) -> ShownObject {
    ShownObject { value: shown(object), revision: object.revision }
}

/// An object without what nobody may read.
pub fn shown(object: &Object) -> types::Object {
    types::Object {
        kind: object.key.kind.as_str().to_owned(),
        metadata: ObjectMetadata {
            name: object.key.name.as_str().to_owned(),
            namespace: object.key.namespace.as_str().to_owned(),
            labels: (*object.labels).clone(),
            uid: object.uid.0,
            revision: object.revision.0,
            created_at: seconds(object.created),
            updated_at: seconds(object.updated),
            updated_by: object.by.as_str().to_owned(),
        },
        spec: shown_spec(object),
        status: serde_json::from_slice(&object.status).unwrap_or_default(),
    }
}

/// The spec of an object without what nobody may read.
pub fn shown_spec(object: &Object) -> Value {
    let mut spec = serde_json::from_slice::<Value>(&object.spec).unwrap_or_default();
    if let Some(kind) = atlas_objects::kind(&object.key.kind) {
        kind.shown(&mut spec);
    }
    spec
}

fn seconds(time: atlas_types::Timestamp) -> f64 {
    time.0 as f64 / 1e6
}
