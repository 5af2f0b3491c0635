//! A job that must not run twice starts at most once, and no lease is run twice.

use atlas_sim::workload::Agent;

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct OnceIsOnce;

impl Invariant for OnceIsOnce {
    fn name(&self) -> &'static str {
        "B.7 once is once"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let Seen::ChildStarted { job, token, .. } = seen else { return Ok(()) };
        let Some(runs) = facts.runs.get(job) else { return Ok(()) };
        if runs.iter().filter(|run| run.token == *token).count() > 1 {
            return Err(format!("{job} ran again under token {token}"));
        }
        let agent = facts.newest.job(*job).map(|job| Agent::named(&job.agent));
        let once = matches!(agent, Some(Agent::Once | Agent::Fragile));
        if once && runs.len() > 1 { Err(format!("{job} ran twice, and must not")) } else { Ok(()) }
    }
}
