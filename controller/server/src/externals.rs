//! The way to orchestrators outside of the cluster: gRPC on the loopback of this machine.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_service::{AskedJob, ExternalDecision, Externals};
use atlas_types::Namespace;
use atlas_wire::proto::orchestrator::v1 as proto;
use futures::future::{BoxFuture, FutureExt as _};
use proto::orchestrator_service_client::OrchestratorServiceClient;
use tonic::transport::Channel;

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a request: the inputs of 16 jobs.
const REQUEST_BYTES_MAX: usize = 64 << 20;
/// Most programs to which connections are kept.
const PROGRAMS_MAX: usize = 64;

pub(crate) struct Outside {
    env: Env,
    /// By address.
    channels: Mutex<BTreeMap<String, Channel>>,
}

impl Outside {
    pub(crate) fn new(env: Env) -> Self {
        Self { env, channels: Mutex::default() }
    }

    /// A connection that is opened with its first use, and again after a failure.
    fn channel(&self, address: &str) -> Result<Channel, String> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        if channels.len() >= PROGRAMS_MAX {
            channels.clear();
        }
        let channel = atlas_raft::peer_channel(&self.env, address).map_err(|error| error.to_string())?;
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }

    async fn asked(
        &self,
        address: &str,
        request: proto::DecideRequest,
        timeout: Duration,
    ) -> Result<Vec<ExternalDecision>, String> {
        let mut client = OrchestratorServiceClient::new(self.channel(address)?)
            .max_decoding_message_size(ANSWER_BYTES_MAX)
            .max_encoding_message_size(REQUEST_BYTES_MAX);
        let answer = tokio::select! {
            biased;
            answer = client.decide(request) => answer,
            () = self.env.clock.sleep(timeout) => {
                return Err(format!("the orchestrator at {address} did not answer in {} ms", timeout.as_millis()));
            }
        };
        let answer = answer.map_err(|status| {
            let text: String = status.message().chars().take(200).collect();
            format!("the orchestrator at {address} failed: {:?}: {text}", status.code())
        })?;
        Ok(answer.into_inner().decisions.into_iter().map(decision).collect())
    }
}

impl Externals for Outside {
    fn decide<'a>(
        &'a self,
        address: &'a str,
        namespace: &'a Namespace,
        jobs: Vec<AskedJob>,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<ExternalDecision>, String>> {
        let jobs = jobs.into_iter().map(told).collect();
        self.asked(address, proto::DecideRequest { namespace: namespace.to_string(), jobs }, timeout).boxed()
    }
}

fn told(asked: AskedJob) -> proto::Job {
    let AskedJob { job, input, agent } = asked;
    proto::Job {
        id: job.id.to_string(),
        agent_name: job.agent.to_string(),
        input_json: input,
        priority: job.priority,
        labels: job.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        metadata_json: job.metadata.to_vec().into(),
        agent_json: agent,
        retry_count: job.retry_count,
        principal: job.principal.to_string(),
    }
}

fn decision(found: proto::Decision) -> ExternalDecision {
    // A value of a newer program is one that allows the job, as for every orchestrator.
    let action = match proto::Action::try_from(found.action) {
        Ok(proto::Action::Reject) => "reject",
        Ok(proto::Action::Redirect) => "redirect",
        Ok(proto::Action::Unspecified | proto::Action::Allow) | Err(_) => "allow",
    };
    let proto::Decision { reason, agent_name, priority, rule, .. } = found;
    ExternalDecision { action, reason, agent_name, priority, rule }
}
