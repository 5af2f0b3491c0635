//! Circuits of agent versions and nodes as the API shows them.

use atlas_types::{Circuit, Probe};
use serde_json::{Value, json};

/// `closed`, `open` while nothing starts, or `half_open` while one job probes it or may.
pub fn shown(circuit: &Circuit) -> Value {
    let state = match circuit.open.map(|open| open.probe) {
        None => "closed",
        Some(Probe::At(_)) => "open",
        Some(Probe::Ready | Probe::Runs(_)) => "half_open",
    };
    json!({
        "state": state,
        "failures": circuit.failures,
        "since": circuit.open.map(|open| open.since.as_unix_seconds()),
        "pause_s": circuit.open.map(|open| open.pause.0 / 1_000_000),
    })
}
