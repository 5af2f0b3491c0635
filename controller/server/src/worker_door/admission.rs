//! Admission of workers: the process is registered at this leader, and its node gets a session.

use std::sync::Arc;
use std::time::Duration;

use atlas_format::encode_steps;
use atlas_raft::{Leadership, ProposeError, ReadError};
use atlas_types::{
    Command, Door as By, Level, Namespace, NodeEpoch, NodeHealth, NodeId, Origin, Outcome, Payload, PayloadBody,
    Principal, RegisterNode, Request, level,
};
use atlas_wire::session::{Hello, ToWorker};
use bytes::Bytes;
use tonic::Status;

use super::Door;
use super::hub::{Excess, Stored};
use super::outbox::Outbox;

/// How long a hello waits until a leader is known. Otherwise the worker would have to try other controllers.
const LEADER_MAX: Duration = Duration::from_secs(3);

/// A worker that may be welcomed.
pub(super) struct Admitted {
    pub(super) epoch: NodeEpoch,
    /// The feature level of its process.
    pub(super) level: Level,
    /// Its whole inventory, where the cluster is too old to count all of it.
    pub(super) withheld: Option<RegisterNode>,
    /// Payloads that its welcome refers to by digest.
    pub(super) stored: Stored,
}

/// A process that asks for a session.
struct Wanted {
    process: RegisterNode,
    /// The epoch of its registration; none if it is not registered.
    epoch: Option<NodeEpoch>,
    /// See [`Admitted::withheld`].
    withheld: Option<RegisterNode>,
}

/// Why a session ends or does not start.
pub(super) enum Refusal {
    /// Another member leads, or no member does.
    NotLeader,
    /// Anything else.
    Status(Status),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<ProposeError> for Refusal {
    fn from(error: ProposeError) -> Self {
        match error {
            ProposeError::NotLeader { .. } => Self::NotLeader,
            ProposeError::Unknown | ProposeError::Overloaded | ProposeError::Stopped { .. } => {
                Self::Status(Status::unavailable(error.to_string()))
            }
            ProposeError::NoSpace => Self::Status(Status::resource_exhausted(error.to_string())),
        }
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotLeader { .. } => Self::NotLeader,
            ReadError::NoSession => Self::Status(Status::aborted(error.to_string())),
            ReadError::Overloaded | ReadError::Stopped { .. } => Self::Status(Status::unavailable(error.to_string())),
        }
    }
}

impl Door {
    /// Admits a worker. None if its stream ends meanwhile, because it must not displace a newer process of the same
    /// name.
    pub(super) async fn admit(
        &self,
        hello: Hello,
        (address, stream): (&Arc<str>, u64),
        out: &Outbox,
    ) -> Option<Result<Admitted, Refusal>> {
        let (node, level) = (hello.node.clone(), hello.level);
        let wanted = tokio::select! {
            biased;
            () = out.ended() => return None,
            wanted = self.wanted(hello, address) => wanted,
        };
        // Not given up half-way: a process that is registered without a session would count as alive for the whole length of one.
        let attached = match wanted {
            Ok(wanted) => self.attach(wanted, stream).await,
            Err(refusal) => return Some(Err(refusal)),
        };
        let (epoch, withheld) = match attached {
            Ok(attached) => attached,
            Err(refusal) => return Some(Err(refusal)),
        };
        let stored = tokio::select! {
            biased;
            () = out.ended() => None,
            stored = self.store_excess(&node) => Some(stored),
        };
        match stored {
            Some(Ok(stored)) => Some(Ok(Admitted { epoch, level, withheld, stored })),
            Some(Err(refusal)) => {
                self.broke(node, epoch, stream);
                Some(Err(refusal))
            }
            None => {
                self.broke(node, epoch, stream);
                None
            }
        }
    }

    /// Looks whether a process may have its name, at the leader.
    async fn wanted(&self, hello: Hello, address: &Arc<str>) -> Result<Wanted, Refusal> {
        let handle = self.service.handle();
        let mut leadership = handle.leadership();
        let known = leadership.wait_for(|now| !matches!(now, Leadership::Follower { leader: None }));
        let leads = tokio::select! {
            biased;
            known = known => known.is_ok_and(|now| matches!(*now, Leadership::Leader { .. })),
            () = self.env.clock.sleep(LEADER_MAX) => false,
        };
        if !leads {
            return Err(Refusal::NotLeader);
        }
        // The read is linearizable, because a deposed member would welcome the worker with leases that no longer exist.
        let state = tokio::select! {
            biased;
            state = handle.read_here() => state?,
            // A leader without a quorum may no longer be the leader.
            () = self.env.clock.sleep(LEADER_MAX) => return Err(Refusal::NotLeader),
        };
        if hello.level < state.level() {
            let text = format!("the cluster is at feature level {}, this worker at {}", state.level().0, hello.level.0);
            return Err(Status::failed_precondition(text).into());
        }
        self.check_rival(&hello, state.node(&hello.node).map(|known| &*known.node), address).await?;
        let Hello { node, boot_id, mut inventory, .. } = hello;
        let known_to_all = state.level() >= level::LLM_PLACES || inventory.llm_places == 0;
        let withheld =
            (!known_to_all).then(|| RegisterNode { node: node.clone(), boot_id, inventory: inventory.clone() });
        if withheld.is_some() {
            inventory.llm_places = 0;
        }
        let known = state.node(&node).map(|known| &*known.node).filter(|known| {
            known.boot_id == boot_id && *known.inventory == inventory && known.health == NodeHealth::Ready
        });
        let epoch = known.map(|known| known.epoch);
        Ok(Wanted { process: RegisterNode { node, boot_id, inventory }, epoch, withheld })
    }

    /// Registers the worker's process, unless the state already has this registration. A reconnect needs no log entry.
    async fn attach(&self, wanted: Wanted, stream: u64) -> Result<(NodeEpoch, Option<RegisterNode>), Refusal> {
        let Wanted { process, epoch, withheld } = wanted;
        let node = process.node.clone();
        let epoch = match epoch {
            Some(epoch) => epoch,
            None => self.register(process).await?,
        };
        self.service.handle().session_hello(node, epoch, stream).await?;
        Ok((epoch, withheld))
    }

    /// Stores inputs and steps that do not fit into the welcome as artifacts.
    async fn store_excess(&self, node: &NodeId) -> Result<Stored, Refusal> {
        let mut stored = Stored::default();
        let Excess { inputs, contexts, journals } = self.hub.without_room(node);
        for (job, input) in inputs {
            stored.inputs.insert(job, self.keep(Bytes::from_owner(input)).await?);
        }
        for (job, context) in contexts {
            stored.contexts.insert(job, self.keep(Bytes::from_owner(context)).await?);
        }
        for (job, journal) in journals {
            let body = self.keep(encode_steps(&journal.steps).into()).await?;
            stored.journals.insert(job, (journal.next(), Payload { key_id: 0, body }));
        }
        Ok(stored)
    }

    /// Stores bytes as an artifact on this controller only: the worker fetches it from here, and the state has the
    /// bytes inline.
    async fn keep(&self, bytes: Bytes) -> Result<PayloadBody, Refusal> {
        let size_bytes = bytes.len() as u64;
        let digest = self.service.artifacts().keep(bytes).await;
        let digest = digest.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(PayloadBody::Artifact { digest, size_bytes })
    }

    async fn register(&self, command: RegisterNode) -> Result<NodeEpoch, Refusal> {
        let origin = Origin {
            namespace: Namespace::default_namespace(),
            principal: Principal::cluster(),
            door: By::Worker,
            request_id: None,
            body_hash: 0,
            trace: None,
        };
        let request = Request { origin, command: Command::RegisterNode(command) };
        // Proposed at this leader only. At the next leader it could arrive after another process has taken the name
        // there.
        let outcomes = self.service.handle().propose_here(vec![request]).await?;
        match outcomes.into_iter().next() {
            Some(Ok(Outcome::NodeRegistered { epoch })) => Ok(epoch),
            Some(Err(rejection)) => Err(Status::resource_exhausted(rejection.to_string()).into()),
            Some(Ok(_)) | None => Err(Status::internal("the registration has no result").into()),
        }
    }

    pub(super) fn refuse(&self, out: &Outbox, refusal: Refusal) {
        match refusal {
            Refusal::NotLeader => {
                out.send(ToWorker::NotLeader { leader_address: self.leader_address() });
                out.finish();
            }
            Refusal::Status(status) => {
                tracing::debug!(%status, "a worker's stream was refused");
                out.fail(status);
            }
        }
    }
}
