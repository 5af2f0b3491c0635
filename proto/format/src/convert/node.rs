//! Nodes and the leases they hold.

use std::sync::Arc;

use atlas_types::{
    Attempt, BootId, ClusterTime, Digest, FencingToken, JobId, Lease, Namespace, Node, NodeEpoch, NodeHealth, NodeId,
    Rival, Timestamp,
};

use super::circuit::{circuit_in, circuit_out};
use super::{EnumField as _, digest, enum_field, fixed, labels_in, labels_out, name, required};
use crate::{FormatError, proto};

enum_field!(NodeHealth, proto::NodeHealth, { Ready = Ready, Down = Down });

impl From<&Node> for proto::Node {
    fn from(node: &Node) -> Self {
        let warm = |(digest, idle): (&Digest, &u32)| proto::WarmSlots { digest: digest.0.to_vec(), idle: *idle };
        Self {
            node_id: node.id.to_string(),
            epoch: node.epoch.0,
            boot_id: node.boot_id.0.to_be_bytes().to_vec(),
            inventory: Some((&node.inventory).into()),
            health: proto::NodeHealth::from(node.health).into(),
            cordoned: node.cordoned,
            draining: node.draining,
            warm: node.warm.iter().map(warm).collect(),
            registered_at_us: node.registered_at.0,
            drain_until_us: node.drain_until.map(|until| until.0),
            operator_labels: labels_out(&node.operator_labels),
            circuit: circuit_out(node.circuit),
            rival: node.rival.as_deref().map(rival_out),
        }
    }
}

impl TryFrom<proto::Node> for Node {
    type Error = FormatError;

    fn try_from(node: proto::Node) -> Result<Self, FormatError> {
        if !node.warm.is_sorted_by(|a, b| a.digest < b.digest) {
            return Err(FormatError::Order { field: "node.warm" });
        }
        let warm = |slots: proto::WarmSlots| Ok((digest("warm.digest", &slots.digest)?, slots.idle));
        Ok(Self {
            id: name("node.node_id", &node.node_id, NodeId::new)?,
            epoch: NodeEpoch(node.epoch),
            boot_id: boot_id("node.boot_id", &node.boot_id)?,
            inventory: required("node.inventory", node.inventory)?.try_into()?,
            operator_labels: labels_in("node.operator_labels", node.operator_labels)?,
            health: NodeHealth::read("node.health", node.health)?,
            cordoned: node.cordoned,
            draining: node.draining,
            drain_until: node.drain_until_us.map(ClusterTime),
            warm: node.warm.into_iter().map(warm).collect::<Result<_, FormatError>>()?,
            registered_at: Timestamp(node.registered_at_us),
            circuit: circuit_in(node.circuit)?,
            rival: node.rival.map(rival_in).map(Arc::new),
        })
    }
}

fn rival_out(rival: &Rival) -> proto::Rival {
    proto::Rival { address: rival.address.to_string(), holder: rival.holder.to_string(), at_us: rival.at.0 }
}

fn rival_in(rival: proto::Rival) -> Rival {
    Rival { address: rival.address.into(), holder: rival.holder.into(), at: Timestamp(rival.at_us) }
}

/// A boot id of exactly 16 bytes.
pub(super) fn boot_id(field: &'static str, bytes: &[u8]) -> Result<BootId, FormatError> {
    fixed(field, bytes).map(|bytes| BootId(u128::from_be_bytes(bytes)))
}

impl From<&Lease> for proto::Lease {
    fn from(lease: &Lease) -> Self {
        Self {
            namespace: lease.namespace.to_string(),
            job_id: lease.job.0,
            node_id: lease.node.to_string(),
            epoch: lease.epoch.0,
            fencing_token: lease.token.0,
            attempt: lease.attempt.0,
            allocation: Some((&lease.allocation).into()),
            granted_at_us: lease.granted_at.0,
            started: lease.started,
        }
    }
}

impl TryFrom<proto::Lease> for Lease {
    type Error = FormatError;

    fn try_from(lease: proto::Lease) -> Result<Self, FormatError> {
        Ok(Self {
            namespace: name("lease.namespace", &lease.namespace, Namespace::new)?,
            job: JobId(lease.job_id),
            node: name("lease.node_id", &lease.node_id, NodeId::new)?,
            epoch: NodeEpoch(lease.epoch),
            token: FencingToken(lease.fencing_token),
            attempt: Attempt(lease.attempt),
            allocation: required("lease.allocation", lease.allocation)?.try_into()?,
            granted_at: ClusterTime(lease.granted_at_us),
            started: lease.started,
        })
    }
}
