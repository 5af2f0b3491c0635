//! Orchestrators that are programs outside of the cluster.

use std::sync::Arc;

use atlas_state::State;
use atlas_types::{Job, Micros};
use bytes::Bytes;

use crate::wish::Wish;
use crate::{AskedJob, Error, ExternalDecision, Service};

/// Most bytes of what a program says a decision follows from.
const RULE_BYTES_MAX: usize = 100;

impl Service {
    /// What a program wants for each job.
    pub(super) async fn asked_outside(
        &self,
        state: &State,
        address: &str,
        jobs: &[Arc<Job>],
        timeout: Micros,
    ) -> Result<Vec<Result<Wish, String>>, Error> {
        let Some(namespace) = jobs.first().map(|job| job.namespace.clone()) else { return Ok(Vec::new()) };
        let mut asked = Vec::with_capacity(jobs.len());
        for job in jobs {
            let agent = match job.pin.as_ref().and_then(|pin| state.agent(&job.namespace, &job.agent, pin.version)) {
                Some(agent) => self.shared.registry.contract(agent).await?.value.to_string().into(),
                None => Bytes::new(),
            };
            asked.push(AskedJob { job: Arc::clone(job), input: self.bytes(&job.input).await?, agent });
        }
        let found = self.shared.externals.decide(address, &namespace, asked, timeout.as_duration()).await;
        Ok(match found {
            Ok(found) if found.len() == jobs.len() => found.into_iter().map(|found| Ok(wish(found))).collect(),
            Ok(found) => {
                let why = format!("the orchestrator made {} decisions on {} jobs", found.len(), jobs.len());
                vec![Err(why); jobs.len()]
            }
            Err(why) => vec![Err(why); jobs.len()],
        })
    }
}

fn wish(found: ExternalDecision) -> Wish {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let end = found.rule.floor_char_boundary(RULE_BYTES_MAX.min(found.rule.len()));
    Wish {
        action: found.action.to_owned(),
        agent_name: some(found.agent_name),
        priority: found.priority,
        reason: some(found.reason),
        rule: some(found.rule.get(..end).unwrap_or_default().to_owned()),
    }
}
