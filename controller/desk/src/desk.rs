//! The desk itself. It reads the state, proposes changes and records them, and stores payloads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_artifacts::{ArtifactError, Artifacts, Peers};
use atlas_audit::Record;
use atlas_env::Env;
use atlas_history::History;
use atlas_raft::{Answers, Handle, Leadership, Room};
use atlas_state::State;
use atlas_telemetry::Metrics;
use atlas_types::{Digest, EventSeq, Outcome, Payload, PayloadBody, Request, RequestId};
use bytes::Bytes;

use crate::{Audit, Error};

/// Limits of the doors. Each is an option of the controller.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most jobs in one list.
    pub list_max: usize,
    /// The largest package that may be registered.
    pub package_bytes_max: u64,
    /// The number of recent events in memory for readers that are nearly up to date.
    pub events_recent_max: usize,
    /// How long after its last observation a model is asked again whether it can be reached; none for never.
    pub models_probed_every: Option<Duration>,
    /// How long after its last turn a conversation is kept that is not of a connection; none for ever.
    pub conversations_kept: Option<Duration>,
    /// How long a job that continues a conversation waits for the turns before it, before it is refused.
    pub turn_wait_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            list_max: 1_000,
            package_bytes_max: 10 << 20,
            events_recent_max: 8_192,
            models_probed_every: Some(Duration::from_secs(300)),
            conversations_kept: Some(Duration::from_secs(30 * 24 * 3_600)),
            turn_wait_max: Duration::from_secs(20),
        }
    }
}

/// The required freshness of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consistency {
    /// The answer reflects every write that was acknowledged before the request.
    #[default]
    Linearizable,
    /// The state as this controller has applied it.
    Stale,
}

/// What only the leader knows is not known here any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this member does not lead")]
pub struct LeadershipLost;

/// What every subject stands on.
pub struct Desk {
    /// The log and the state.
    pub handle: Handle,
    /// Ended jobs and events.
    pub history: Arc<dyn History>,
    /// Packages and large payloads.
    pub artifacts: Artifacts,
    /// The stores of the other members.
    pub peers: Arc<dyn Peers>,
    /// Instruments.
    pub metrics: Metrics,
    /// Bounds.
    pub limits: Limits,
    /// The machine.
    pub env: Env,
    /// The records of who did what.
    pub audit: Audit,
    /// Where the history stands still, if it does.
    pub standstill: Standstill,
}

/// How far the history was when it did not catch up in time.
#[derive(Debug, Default)]
pub struct Standstill(pub(crate) Mutex<Option<EventSeq>>);

/// The time limit for confirmation by a majority, after which the caller gets an error.
const MAJORITY_MAX: Duration = Duration::from_secs(10);

/// Reading.
impl Desk {
    /// The state with the required freshness.
    pub async fn state(&self, consistency: Consistency) -> Result<State, Error> {
        match consistency {
            Consistency::Linearizable => self.read().await,
            Consistency::Stale => Ok(self.handle.applied()),
        }
    }

    /// The state with everything that was acknowledged before the call.
    pub async fn read(&self) -> Result<State, Error> {
        let read = tokio::time::timeout(MAJORITY_MAX, self.handle.read()).await;
        Ok(read.map_err(|_| Error::NoLeader)??)
    }

    /// The state for preparing a proposal. At the leader its own state is enough, because `apply` compares the proposal
    /// with it. Elsewhere the state includes everything acknowledged so far.
    pub async fn current(&self) -> Result<State, Error> {
        if matches!(*self.handle.leadership().borrow(), Leadership::Leader { .. }) {
            return Ok(self.handle.applied());
        }
        self.read().await
    }

    /// The real time in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.env.clock.wall().0 / 1_000).unwrap_or(0)
    }

    /// What seals one value: random bytes.
    pub fn nonce(&self) -> [u8; 24] {
        let mut nonce = [0; 24];
        for part in nonce.chunks_mut(8) {
            part.copy_from_slice(&self.env.entropy.u64().to_le_bytes());
        }
        nonce
    }
}

/// Proposing.
impl Desk {
    /// Proposes one command and waits until its outcome is final.
    pub async fn propose(&self, request: Request) -> Result<Outcome, Error> {
        let outcomes = self.propose_all(vec![request]).await?;
        // One request has one outcome. A leader that returns none is treated as if its answer was lost.
        outcomes.into_iter().next().ok_or(Error::OutcomeUnknown)?.map_err(Error::from)
    }

    /// Records approvals that nobody gave. Returns when the records are durable, or after a while.
    pub async fn record_unanswered(&self, records: Vec<Record>) {
        self.audit.unanswered(records).await;
    }

    /// Proposes requests. Each without a request id gets one, so that it can be repeated after a change of leadership.
    pub async fn propose_all(&self, mut requests: Vec<Request>) -> Result<Answers, Error> {
        if !self.handle.is_alone() {
            for request in requests.iter_mut().filter(|request| request.origin.request_id.is_none()) {
                request.origin.request_id = Some(RequestId::generated(self.env.entropy.u128()));
            }
        }
        let recording = self.audit.begin(&requests)?;
        let propose = async {
            let proposed = tokio::time::timeout(MAJORITY_MAX, self.handle.propose(requests)).await;
            Ok(proposed.map_err(|_| Error::OutcomeUnknown)??)
        };
        // Boxed, because the future of each operation contains this one.
        Box::pin(recording.with(propose)).await
    }
}

/// Payloads.
impl Desk {
    /// Refuses to store data of clients when the disk is nearly full.
    pub fn check_room(&self) -> Result<(), ArtifactError> {
        if self.handle.disk().borrow().room == Room::Ample {
            return Ok(());
        }
        Err(ArtifactError::Directory { doing: "write to", source: std::io::ErrorKind::StorageFull.into() })
    }

    /// Makes a payload from JSON bytes: inline if small, otherwise stored as an artifact first.
    pub async fn payload(&self, bytes: Bytes) -> Result<Payload, Error> {
        if bytes.len() <= atlas_types::INLINE_BYTES_MAX {
            return Ok(Payload::inline(&bytes));
        }
        self.artifact_of(bytes).await
    }

    /// Bytes as an artifact, however few they are.
    pub async fn artifact_of(&self, bytes: Bytes) -> Result<Payload, Error> {
        let size_bytes = bytes.len() as u64;
        self.check_room().map_err(|error| Error::storing("the payload", error))?;
        let stored = self.artifacts.store(bytes).await;
        let digest = stored.map_err(|error| Error::storing("the payload", error))?;
        self.metrics.artifact_bytes.inc_by(size_bytes);
        Ok(Payload { key_id: 0, body: PayloadBody::Artifact { digest, size_bytes } })
    }

    /// The bytes of a payload.
    pub async fn bytes(&self, payload: &Payload) -> Result<Bytes, Error> {
        match &payload.body {
            PayloadBody::Inline(bytes) => Ok(Bytes::copy_from_slice(bytes)),
            PayloadBody::Artifact { digest, .. } => self.artifact(*digest).await,
        }
    }

    /// The bytes of an artifact.
    pub async fn artifact(&self, digest: Digest) -> Result<Bytes, Error> {
        self.artifacts.read(digest).await.map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "could not read an artifact");
            Error::Artifact(error)
        })
    }
}
