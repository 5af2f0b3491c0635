//! Nodes, and the circuits of nodes and agents, in words.

use atlas_api::types::{Circuit, Node, Rival};

use crate::words;

/// How long a refused worker counts as one that still asks, in seconds: it asks every few seconds, and the cluster notes it once per minute.
const RIVAL_LASTS: f64 = 180.0;

/// What people are told about a node.
pub(crate) trait NodeDisplay {
    /// Jobs of `llm` agents that it runs.
    fn llm_running(&self) -> u64;

    /// Jobs that run a process, idle slots and the bound of the former.
    fn slots(&self) -> String;

    /// Jobs of `llm` agents that it runs, and their bound.
    fn llm(&self) -> String;
}

impl NodeDisplay for Node {
    fn llm_running(&self) -> u64 {
        self.llm_places.saturating_sub(self.llm_places_free)
    }

    fn slots(&self) -> String {
        format!("{}/{}/{}", self.running.saturating_sub(self.llm_running()), self.warm, self.places)
    }

    fn llm(&self) -> String {
        format!("{}/{}", self.llm_running(), self.llm_places)
    }
}

/// What people are told about a worker that was refused.
pub(crate) trait RivalDisplay {
    /// Whether it still asked a short time ago.
    fn is_recent(&self, now: f64) -> bool;
}

impl RivalDisplay for Rival {
    fn is_recent(&self, now: f64) -> bool {
        now - self.at < RIVAL_LASTS
    }
}

/// What people are told about a circuit.
pub(crate) trait CircuitDisplay {
    /// The sentence about an open one.
    fn sentence(&self) -> Option<String>;
}

impl CircuitDisplay for Circuit {
    fn sentence(&self) -> Option<String> {
        self.since?;
        let failures = words::count(self.failures, "failure");
        let next = match &*self.state {
            "half_open" => "one job probes it".to_owned(),
            _ => format!("one job probes it after {}", words::age(self.pause_s.unwrap_or_default() as f64)),
        };
        Some(format!("open after {failures} in a row; {next}"))
    }
}
