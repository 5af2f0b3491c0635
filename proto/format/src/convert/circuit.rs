//! Circuits of agent versions and nodes. One without failures is not written.

use atlas_types::{Circuit, ClusterTime, FencingToken, Micros, Open, Probe, Timestamp};

use super::table::{message, table};
use crate::{FormatError, proto};

table! {
    "circuit": Circuit = Circuit {
        failures = failures,
        package = package,
        several = several,
        open = open,
    }
}

impl From<&Open> for proto::OpenCircuit {
    fn from(Open { since, pause, probe }: &Open) -> Self {
        let (probe_at_us, probe_token) = match probe {
            Probe::At(due) => (Some(due.0), None),
            Probe::Ready => (None, None),
            Probe::Runs(token) => (None, Some(token.0)),
        };
        Self { since_us: since.0, pause_us: pause.0, probe_at_us, probe_token }
    }
}

impl TryFrom<proto::OpenCircuit> for Open {
    type Error = FormatError;

    fn try_from(open: proto::OpenCircuit) -> Result<Self, FormatError> {
        let probe = match (open.probe_at_us, open.probe_token) {
            (Some(due), None) => Probe::At(ClusterTime(due)),
            (None, None) => Probe::Ready,
            (None, Some(token)) => Probe::Runs(FencingToken(token)),
            (Some(_), Some(token)) => {
                return Err(FormatError::Value { field: "circuit.open.probe_token", found: token.cast_signed() });
            }
        };
        Ok(Self { since: Timestamp(open.since_us), pause: Micros(open.pause_us), probe })
    }
}

message!(Open = OpenCircuit);
