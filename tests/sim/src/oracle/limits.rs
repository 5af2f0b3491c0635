//! Limits of agents, counted from events: how often jobs start, and how many run at once for one value of a key.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{Job, LimitKey, Rate};

use super::Oracle;
use crate::coverage::Coverage;

impl Oracle {
    /// A job starts. In the time of each of its rates no more jobs started than that and its burst say.
    pub(super) fn check_rates(&mut self, job: &Arc<Job>, coverage: &mut Coverage) {
        // A job that fails without a run, for want of an approval, is seen to start and takes no token.
        let starts = job.lease.is_some() && !job.has_parked();
        let Some(spec) = job.spec.as_ref().filter(|_| starts) else { return };
        let of_agent = LimitKey { namespace: job.namespace.clone(), agent: Some(job.agent.clone()), value: None };
        if let Some(rate) = spec.rate {
            self.started(of_agent.clone(), rate, coverage);
        }
        if let (Some(rate), Some(value)) = (spec.per_key.as_ref().and_then(|keys| keys.rate), job.labels.get("k")) {
            self.started(LimitKey { value: Some(value.as_str().into()), ..of_agent }, rate, coverage);
        }
    }

    fn started(&mut self, key: LimitKey, rate: Rate, coverage: &mut Coverage) {
        let now = self.truth.state().clock();
        let starts = self.starts.entry(key).or_default();
        starts.retain(|start| now.since(*start) < rate.per);
        starts.push(now);
        let (found, most) = (starts.len() as u64, u64::from(rate.jobs) + u64::from(rate.burst) - 1);
        if found > most {
            self.violate(format!("{found} jobs started within the time of {rate:?}"));
        }
        if found == most && most > 1 {
            coverage.count("rates used up");
        }
    }

    /// Of the jobs that count for one value of a key, no more run than may.
    pub(super) fn check_keys(&mut self, coverage: &mut Coverage) {
        let state = self.truth.state();
        let mut running = BTreeMap::<_, (u32, u32)>::new();
        for job in state.nodes().flat_map(|node| node.leases()).filter_map(|(_, job)| state.job(job)) {
            let limit = job.spec.as_ref().and_then(|spec| spec.per_key.as_ref()?.concurrency);
            if let (Some(limit), Some(value)) = (limit, job.labels.get("k")) {
                running.entry((job.agent.clone(), value.clone())).or_insert((0, limit)).0 += 1;
            }
        }
        for ((agent, value), (running, most)) in running {
            if running > most {
                self.violate(format!("{running} jobs of {agent} run for {value}, at most {most} may"));
            }
            if running == most {
                coverage.count("keys at their limit");
            }
        }
    }
}
