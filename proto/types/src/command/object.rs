//! Commands about objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{EventSeq, Expect, ObjectKey, ObjectKind, ObjectName};

/// Makes an object or replaces its labels and its spec, in the namespace of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutObject {
    pub kind: ObjectKind,
    pub name: ObjectName,
    pub labels: BTreeMap<String, String>,
    /// Canonical JSON.
    pub spec: Arc<[u8]>,
    /// The version of the kind's format.
    pub spec_version: u32,
    pub expect: Expect,
}

/// Deletes an object of the namespace of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteObject {
    pub kind: ObjectKind,
    pub name: ObjectName,
    pub expect: Expect,
}

/// Replaces the status of objects, as a leader task saw them. Objects that changed since are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveObjects {
    pub observations: Vec<Observation>,
}

/// The status of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub key: ObjectKey,
    pub uid: EventSeq,
    /// The revision that was observed.
    pub revision: EventSeq,
    /// Canonical JSON.
    pub status: Arc<[u8]>,
}
