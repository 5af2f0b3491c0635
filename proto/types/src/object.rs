//! Objects: documents that configure the cluster. One record serves all kinds; `atlas-objects` knows what each kind means.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{EventSeq, JobId, Namespace, ObjectKind, ObjectName, Principal, Timestamp, label_bytes};

/// Most bytes of an object's spec.
pub const SPEC_BYTES_MAX: usize = 64 << 10;

/// Most bytes of an object's status.
pub const STATUS_BYTES_MAX: usize = 4 << 10;

/// The label of an object with the job that wrote it: erasing the job erases it.
pub const JOB_LABEL: &str = "atlas.job";

/// Where an object is in the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub namespace: Namespace,
    pub kind: ObjectKind,
    pub name: ObjectName,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub key: ObjectKey,
    /// The event that made it: another object of the same name, made after this one was deleted, has another.
    pub uid: EventSeq,
    /// The event of the last change of its spec or its labels.
    pub revision: EventSeq,
    pub labels: Arc<BTreeMap<String, String>>,
    /// What its author wants, as canonical JSON.
    pub spec: Arc<[u8]>,
    /// The version of the kind's format in which the spec is written.
    pub spec_version: u32,
    pub created: Timestamp,
    /// The time of the revision.
    pub updated: Timestamp,
    /// Who asked for the revision.
    pub by: Principal,
    /// What the cluster says about it, as canonical JSON; empty if nothing. No revision counts it.
    pub status: Arc<[u8]>,
}

impl Object {
    /// The job that wrote it; none if it was no job.
    pub fn writer(&self) -> Option<JobId> {
        self.labels.get(JOB_LABEL)?.parse().ok()
    }

    /// Bytes of what clients and leader tasks wrote into it.
    pub fn bytes(&self) -> u64 {
        (self.spec.len() + self.status.len()) as u64 + label_bytes(&self.labels)
    }
}

/// What the writer of an object expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there.
    Any,
    /// No object of that name.
    Absent,
    /// This revision.
    Revision(EventSeq),
}
