//! Circuits, judged from events: one opens only after enough failures in a row, and then starts one probe at a time, after a pause.

use std::sync::Arc;

use atlas_types::{Circuit, ClusterTime, FailureKind, FencingToken, Job, JobChange, JobStatus, Micros, NodeId};

use super::Oracle;
use crate::coverage::Coverage;
use crate::workload::{FAILURES_MAX, NODE_FAILURES_MAX};

/// What has a circuit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Guarded {
    Agent(String),
    Node(NodeId),
}

/// One circuit as the events show it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    failures: u32,
    open: bool,
    pause: Micros,
    /// Nothing may start before.
    free_at: ClusterTime,
    probe: Option<FencingToken>,
}

impl Oracle {
    /// An agent version or a node changed. The end of the attempt that was the reason is told after this.
    pub(super) fn circuit_changed(&mut self, of: &Guarded, circuit: &Circuit, coverage: &mut Coverage) {
        let now = self.truth.state().clock();
        let most = match of {
            Guarded::Agent(_) => FAILURES_MAX,
            Guarded::Node(_) => NODE_FAILURES_MAX,
        };
        let seen = self.circuits.entry(of.clone()).or_default();
        let opens = circuit.open.is_some() && !seen.open;
        if circuit.open.is_none() {
            // Other changes of a node leave its failures as they are.
            if circuit.failures == 0 {
                *seen = Seen::default();
            }
        } else if opens {
            let failures = seen.failures + 1;
            *seen = Seen { open: true, pause: Circuit::PAUSE, free_at: now.plus(Circuit::PAUSE), ..Seen::default() };
            coverage.count(if matches!(of, Guarded::Agent(_)) { "circuits of agents" } else { "circuits of nodes" });
            if failures < most {
                self.violate(format!("the circuit of {of:?} opened after {failures} failures"));
            }
        }
    }

    /// An attempt started or ended. `live` is the lease that it had before.
    pub(super) fn check_circuits(
        &mut self,
        change: JobChange,
        job: &Arc<Job>,
        (node, live): (Option<NodeId>, Option<FencingToken>),
        coverage: &mut Coverage,
    ) {
        let of_agent = job.spec.as_ref().is_some_and(|spec| spec.failures_max.is_some());
        let agent = of_agent.then(|| Guarded::Agent(job.agent.to_string()));
        for of in agent.into_iter().chain(node.map(Guarded::Node)) {
            match (change, live) {
                (JobChange::Granted, _) => self.circuit_started(&of, job, coverage),
                (JobChange::Ended | JobChange::Lost | JobChange::Parked, Some(token)) => {
                    self.circuit_stopped(of, token, change, job)
                }
                _ => {}
            }
        }
    }

    fn circuit_started(&mut self, of: &Guarded, job: &Job, coverage: &mut Coverage) {
        let now = self.truth.state().clock();
        let Some(lease) = &job.lease else { return };
        let Some(seen) = self.circuits.get_mut(of).filter(|seen| seen.open) else { return };
        let wrong = seen.probe.is_some() || now < seen.free_at;
        seen.probe = Some(lease.token);
        coverage.count("circuits probed");
        if wrong {
            self.violate(format!("{} started although the circuit of {of:?} is open", job.id));
        }
    }

    fn circuit_stopped(&mut self, of: Guarded, token: FencingToken, change: JobChange, job: &Job) {
        let now = self.truth.state().clock();
        let failure = job.failure.as_ref().map(|failure| failure.kind).filter(|_| job.status == JobStatus::Failed);
        let is_node = matches!(of, Guarded::Node(_));
        let seen = self.circuits.entry(of).or_default();
        let ended = change == JobChange::Ended;
        let failed = match failure {
            None => (job.status == JobStatus::Completed).then_some(false),
            Some(FailureKind::Internal) => is_node.then_some(true),
            Some(FailureKind::Agent | FailureKind::OutputInvalid) => Some(!is_node),
            Some(FailureKind::Timeout | FailureKind::NoAgent | FailureKind::Startup) => (!is_node).then_some(true),
            Some(_) => None,
        };
        let failed = failed.filter(|_| ended);
        if seen.open {
            if seen.probe != Some(token) {
                return;
            }
            seen.probe = None;
            if failed == Some(true) {
                seen.pause = Micros(2 * seen.pause.0).min(Circuit::PAUSE_MAX);
            }
            seen.free_at = now.plus(seen.pause);
        } else if let Some(failed) = failed {
            seen.failures = if failed { seen.failures + 1 } else { 0 };
        }
    }
}
