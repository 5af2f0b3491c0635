//! Nodes and the leases they hold.

use std::collections::BTreeMap;

use atlas_types::{Digest, Lease, Node, NodeHealth, Rival};

use super::table::{DefaultIsAbsent, Field, table};
use super::{digest, enum_field};
use crate::{FormatError, proto};

enum_field!(NodeHealth, proto::NodeHealth, { Ready = Ready, Down = Down });

table! {
    "node": Node = Node {
        id = node_id,
        epoch = epoch,
        boot_id = boot_id,
        inventory = inventory,
        operator_labels = operator_labels,
        health = health,
        cordoned = cordoned,
        draining = draining,
        drain_until = drain_until_us,
        warm = warm,
        registered_at = registered_at_us,
        circuit = circuit via DefaultIsAbsent,
        rival = rival,
    }
}

/// Warm slots, which must come by rising digest.
impl Field<Vec<proto::WarmSlots>> for BTreeMap<Digest, u32> {
    fn write(&self) -> Vec<proto::WarmSlots> {
        let warm = |(digest, idle): (&Digest, &u32)| proto::WarmSlots { digest: digest.0.to_vec(), idle: *idle };
        self.iter().map(warm).collect()
    }

    fn read(field: &'static str, stored: Vec<proto::WarmSlots>) -> Result<Self, FormatError> {
        if !stored.is_sorted_by(|a, b| a.digest < b.digest) {
            return Err(FormatError::Order { field });
        }
        stored.into_iter().map(|slots| Ok((digest("warm.digest", &slots.digest)?, slots.idle))).collect()
    }
}

table! {
    "rival": Rival = Rival {
        address = address,
        holder = holder,
        at = at_us,
    }
}

table! {
    "lease": Lease = Lease {
        namespace = namespace,
        job = job_id,
        node = node_id,
        epoch = epoch,
        token = fencing_token,
        attempt = attempt,
        allocation = allocation,
        granted_at = granted_at_us,
        started = started,
    }
}
