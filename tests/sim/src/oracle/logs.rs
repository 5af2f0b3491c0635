//! What must hold of stored logs: the lines that were stored of an attempt stay, whatever attempt stores more.

use std::sync::Arc;

use atlas_types::{Job, Namespace};

use super::Oracle;
use crate::coverage::Coverage;
use crate::logs::read_log;

impl Oracle {
    /// Compares each stored log with what was stored before.
    pub(super) fn check_logs(&mut self, coverage: &mut Coverage) {
        let jobs = self.truth.state().jobs(&Namespace::default_namespace(), None, None);
        let logged: Vec<Arc<Job>> = jobs.filter(|job| job.stream.is_some()).cloned().collect();
        logged.iter().for_each(|job| self.check_log(job, coverage));
    }

    fn check_log(&mut self, job: &Job, coverage: &mut Coverage) {
        let log = job.stream.as_deref().map(read_log).unwrap_or_default();
        let known = self.logs.insert(job.id, log.clone()).unwrap_or_default();
        if known == log {
            return;
        }
        coverage.count("logs stored");
        if log.len() > 1 && known.len() < log.len() {
            coverage.count("logs of earlier attempts kept");
        }
        let kept = known.iter().all(|(token, count)| log.iter().any(|(now, lines)| now == token && lines >= count));
        let newest = log.last().map(|(token, _)| *token);
        let own = job.lease.as_ref().is_none_or(|lease| newest <= Some(lease.token));
        if !kept || !own || !log.is_sorted() {
            self.violate(format!("the log of {} was {known:?} and is {log:?}", job.id));
        }
    }
}
