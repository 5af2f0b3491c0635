//! Circuits of agent versions and nodes. One without failures is not written.

use atlas_types::{Circuit, ClusterTime, FencingToken, Micros, Open, Probe, Timestamp};

use super::digest;
use crate::{FormatError, proto};

pub(super) fn circuit_out(circuit: Circuit) -> Option<proto::Circuit> {
    let Circuit { failures, package, several, open } = circuit;
    (circuit != Circuit::default()).then(|| proto::Circuit {
        failures,
        package: package.map(|package| package.0.to_vec()),
        several,
        open: open.map(Into::into),
    })
}

pub(super) fn circuit_in(circuit: Option<proto::Circuit>) -> Result<Circuit, FormatError> {
    let Some(proto::Circuit { failures, package, several, open }) = circuit else { return Ok(Circuit::default()) };
    let package = package.map(|package| digest("circuit.package", &package)).transpose()?;
    Ok(Circuit { failures, package, several, open: open.map(Open::try_from).transpose()? })
}

impl From<Open> for proto::OpenCircuit {
    fn from(Open { since, pause, probe }: Open) -> Self {
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
