//! Commands about objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{EventSeq, Expect, ObjectKey, ObjectKind, ObjectName, StartRun, SubmitJob, Timestamp};

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

/// What makes a trigger fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FiredBy {
    /// Its time has come.
    Schedule,
    /// A person asked for it.
    Request,
    /// Its address was called.
    Webhook,
    /// A person asked for a time that has passed.
    Backfill,
}

impl FiredBy {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Request => "request",
            Self::Webhook => "webhook",
            Self::Backfill => "backfill",
        }
    }
}

/// What a trigger starts when it fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerStart {
    /// A job of its agent.
    Job(Box<SubmitJob>),
    /// A run of its chain.
    Run(Box<StartRun>),
}

impl TriggerStart {
    /// The id of what is started, as clients see it.
    pub fn id(&self) -> String {
        match self {
            Self::Job(job) => job.id.to_string(),
            Self::Run(run) => run.id.shown(),
        }
    }
}

/// A trigger fires: its job or run is started and its status says so, or neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FireTrigger {
    /// The trigger, in the namespace of the request.
    pub name: ObjectName,
    pub uid: EventSeq,
    /// The revision from which the start was made.
    pub revision: EventSeq,
    pub by: FiredBy,
    /// The time for which it fires. By schedule it is the planned one: each is fired once.
    pub tick: Timestamp,
    /// When it fires next; [`Timestamp::NOT_YET`] if never.
    pub next: Timestamp,
    /// Times between this one and the next that are left out.
    pub missed: u64,
    /// What is started; none for a time that is skipped.
    pub start: Option<TriggerStart>,
}
