//! Asks whether a model can be reached, by a job that calls no model: the key goes the same way as for every call.

use std::time::Duration;

// The agent that asks. It is registered with the first probe.
use atlas_api::types::Job;
use atlas_model::{PROBE_AGENT as AGENT, PROBE_CONTRACT as CONTRACT};
use serde::Deserialize;
use serde_json::Value;

use super::check;
use crate::answers;
use crate::client::Client;
use crate::display::JobDisplay as _;
use crate::failure::Failure;

/// Longest wait: the provider has 5 s, and the job may have to wait for a worker.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a probe found.
#[derive(Debug, PartialEq)]
pub(super) enum Probed {
    Reachable {
        latency_ms: f64,
    },
    /// With the reason.
    Unreachable(String),
    /// Nothing is known, with the reason.
    Unknown(String),
}

/// The output of the agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Output {
    health: String,
    latency_ms: f64,
    error: String,
}

pub(super) async fn probe(client: &Client, name: &str) -> Result<Probed, Failure> {
    let input = serde_json::json!({"model": name});
    found(&check::job(client, AGENT, CONTRACT, input, TIMEOUT, None).await?)
}

fn found(job: &Value) -> Result<Probed, Failure> {
    let job: Job = answers::read(job)?;
    if job.status == "failed" {
        return Ok(Probed::Unreachable(job.error));
    }
    if job.status != "completed" {
        return Ok(Probed::Unknown(format!("the job {} is {}", job.id, job.standing())));
    }
    let Output { health, latency_ms, error } = answers::read(&job.output_data.unwrap_or_default())?;
    Ok(match health.as_str() {
        "reachable" => Probed::Reachable { latency_ms },
        "failed" => Probed::Unreachable(error),
        _ => Probed::Unknown("the protocol has no request that would show it".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_contract_calls_no_model() {
        let contract = atlas_contract::parse(CONTRACT.as_bytes()).expect("a contract");
        assert_eq!((contract.name.as_str(), contract.model.name.as_deref()), (AGENT, Some("{input.model}")));
        assert_eq!(contract.provider.llm.probe, Some(true));
        assert!(contract.warnings.is_empty());
    }

    #[test]
    fn the_end_of_the_job_says_what_was_found() {
        let job = |status: &str, output: Value, error: &str| {
            found(&json!({"id": "job-1", "status": status, "output_data": output, "error": error})).expect("a job")
        };
        let reachable = job("completed", json!({"health": "reachable", "latency_ms": 212.3}), "");
        assert_eq!(reachable, Probed::Reachable { latency_ms: 212.3 });
        let refused = job("completed", json!({"health": "failed", "error": "invalid key"}), "");
        assert_eq!(refused, Probed::Unreachable("invalid key".to_owned()));
        assert_eq!(job("failed", Value::Null, "no secret"), Probed::Unreachable("no secret".to_owned()));
        assert!(matches!(job("pending", Value::Null, ""), Probed::Unknown(why) if why == "the job job-1 is pending"));
    }
}
