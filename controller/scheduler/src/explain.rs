//! Explains why a job waits, with the functions that the planner uses.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use atlas_allocation::Free;
use atlas_types::{
    AgentName, ClusterTime, Demand, Job, JobStatus, Limit, LimitKey, NodeId, ObjectName, Rate, Reason, Timestamp,
    Version, Wait,
};
use chrono::DateTime;

use crate::choice::is_full;
use crate::cluster::{Cluster, NodeView};
use crate::describe::describe_fully;
use crate::fit::{Dimension, Shortage, short_now};
use crate::plan::{told, unsatisfiable};

/// Why a job waits, and how many jobs come before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitExplanation {
    /// The reason.
    pub why: Why,
    /// Its position among the waiting jobs of its class, from 1. None if it is not in a queue, or after
    /// [`WaitExplanation::POSITION_MAX`].
    pub position: Option<usize>,
    /// The number of waiting jobs of its class. None if it is not in a queue.
    pub class_len: Option<usize>,
}

impl WaitExplanation {
    /// Later positions are not counted.
    pub const POSITION_MAX: usize = 1_000;
}

/// Why a job waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It does not wait: it runs or has ended.
    NotWaiting { status: JobStatus },
    /// It waits for the next plan. A node has room for it.
    Turn,
    /// It waits for a run to carry it.
    NoRun,
    /// It waits for the first node to register.
    NoNode,
    /// It waits for free resources. Some nodes could run it, but none has room now.
    NoRoom {
        /// The number of registered nodes.
        nodes: usize,
        /// For each dimension, the number of nodes that do not have enough.
        short: BTreeMap<Dimension, usize>,
        /// The node with the fewest missing resources.
        closest: Closest,
    },
    /// No registered node could ever run it. It waits for another node.
    NeverSatisfiable {
        /// The description of its demand.
        description: String,
        /// What the node lacks that lacks the least.
        lacking: Option<Closest>,
    },
    /// It waits until another job of its agent ends.
    Concurrency {
        /// The number of running jobs.
        running: u32,
        /// The limit.
        limit: u32,
    },
    /// It waits until another job of its namespace ends.
    NamespaceLimit {
        /// The number of running jobs.
        running: u32,
        /// The limit.
        limit: u32,
    },
    /// It waits until another job with the same value of its agent's key ends.
    KeyLimit {
        /// The value.
        value: Arc<str>,
        /// The number of running jobs.
        running: u32,
        /// The limit.
        limit: u32,
    },
    /// It waits until a rate lets it start.
    Rate {
        /// What the rate counts.
        key: LimitKey,
        /// The rate.
        rate: Rate,
        /// When that is by the wall clock, if no job before it starts then.
        until: Timestamp,
    },
    /// The circuit of its agent version is open.
    Circuit {
        agent: AgentName,
        version: Version,
        /// The failures in a row.
        failures: u32,
        /// When the next job probes it, by the wall clock; none while one does.
        until: Option<Timestamp>,
    },
    /// It waits until its backoff ends.
    Backoff {
        /// The end of the backoff by the wall clock.
        until: Timestamp,
    },
    /// It was submitted for a later time.
    Delayed {
        /// That time by the wall clock.
        until: Timestamp,
    },
    /// It is parked and waits for any of these.
    Parked { waits: Vec<Wait> },
    /// It waits for the decision of the orchestrator.
    Routing,
    /// It waits for approvals.
    Approval {
        /// The policies and rules that still lack one.
        rules: Vec<(ObjectName, Arc<str>)>,
    },
    /// It waits for an operator or a reconcile call: its last lease was lost, and it must not run twice.
    InDoubt,
}

/// What would have to change on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closest {
    pub node: NodeId,
    /// Its missing resources.
    pub short: Vec<Shortage>,
}

/// Explains why `job` waits.
///
/// Checks every node if there is no room for the job. Used to answer a question about one job, not by plans.
pub fn explain<C: Cluster>(cluster: &C, job: &Job) -> WaitExplanation {
    WaitExplanation {
        why: why(cluster, job),
        position: cluster
            .ahead(job, WaitExplanation::POSITION_MAX)
            .filter(|&n| n < WaitExplanation::POSITION_MAX)
            .map(|n| n + 1),
        class_len: cluster.class_len(job),
    }
}

/// What a demand needs that no node has: of the node that lacks the least when it has no leases and all its GPUs work. None if some
/// node could run it, or there is none.
pub fn lacking<C: Cluster>(cluster: &C, demand: &Demand) -> Option<Closest> {
    let mut closest: Option<Closest> = None;
    for NodeView { node, .. } in cluster.nodes() {
        let free = Free::at_best(&node.inventory);
        let view = NodeView { node, free: &free };
        // What passes is not what it lacks.
        let lasts = |dimension: &Dimension| !matches!(dimension, Dimension::Availability | Dimension::Place);
        let short = short_now(demand, 0, view).iter().filter(lasts);
        let short: Vec<Shortage> = short.map(|dimension| Shortage::of(dimension, demand, view)).collect();
        if short.is_empty() {
            return None;
        }
        if closest.as_ref().is_none_or(|closest| short.len() < closest.short.len()) {
            closest = Some(Closest { node: node.id.clone(), short });
        }
    }
    closest
}

/// What holds the first job of a class back. The answer comes from the indexes: no node is read that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Brief {
    /// Nothing: it is placed by the next plan.
    Turn,
    NoNode,
    NoRoom,
    NeverSatisfiable,
    Concurrency,
    NamespaceLimit,
    KeyLimit,
    Rate,
    Circuit,
}

/// A shorter [`explain`] of a job that waits for a node.
pub fn brief<C: Cluster>(cluster: &C, job: &Job) -> Brief {
    let Some(spec) = &job.spec else { return Brief::NeverSatisfiable };
    if broken(cluster, job).is_some() {
        return Brief::Circuit;
    }
    match held_by_limit(cluster, job) {
        Some(Why::Concurrency { .. }) => return Brief::Concurrency,
        Some(Why::NamespaceLimit { .. }) => return Brief::NamespaceLimit,
        Some(Why::KeyLimit { .. }) => return Brief::KeyLimit,
        Some(Why::Rate { .. }) => return Brief::Rate,
        _ => {}
    }
    let fits = |view: NodeView<'_>| short_now(&spec.demand, job.depth(), view).is_empty();
    let lending = job.depth() > 0 && cluster.lending().any(fits);
    if lending || cluster.room(&spec.demand, crate::Strategy::BinPack).any(fits) {
        Brief::Turn
    } else if cluster.could_ever(&spec.demand) {
        Brief::NoRoom
    } else if cluster.nodes().next().is_some() {
        Brief::NeverSatisfiable
    } else {
        Brief::NoNode
    }
}

/// The open circuit of the job's agent version, if that lets no job start now.
fn broken<C: Cluster>(cluster: &C, job: &Job) -> Option<Why> {
    let circuit = cluster.circuit(job).filter(|circuit| !circuit.admits())?;
    let (agent, version) = (job.agent.clone(), job.pin.as_ref()?.version);
    let until = circuit.due().map(|due| by_the_wall(job, due));
    Some(Why::Circuit { agent, version, failures: circuit.failures, until })
}

/// The first limit that lets the job not start now, in the order in which a plan checks them: first all that count running jobs.
fn held_by_limit<C: Cluster>(cluster: &C, job: &Job) -> Option<Why> {
    let limits = cluster.limits(job);
    let full = limits.iter().find_map(|limit| {
        let (running, most) = is_full(limit, cluster.permits(&limit.key), job.depth())?;
        Some(match (&limit.key.agent, &limit.key.value) {
            (None, _) => Why::NamespaceLimit { running, limit: most },
            (Some(_), None) => Why::Concurrency { running, limit: most },
            (Some(_), Some(value)) => Why::KeyLimit { value: Arc::clone(value), running, limit: most },
        })
    });
    full.or_else(|| {
        let opens = |limit: Limit| limit.rate.map(|rate| (cluster.opens_at(&limit.key, rate), limit.key, rate));
        let (until, key, rate) = limits.into_iter().filter_map(opens).max()?;
        (until > cluster.now()).then(|| Why::Rate { key, rate, until: by_the_wall(job, until) })
    })
}

/// The wall-clock time at which the cluster's clock reaches `until`, unless the cluster's clock stops before. People
/// read wall-clock times.
pub(crate) fn by_the_wall(job: &Job, until: ClusterTime) -> Timestamp {
    let left = until.0.saturating_sub(job.queued_at.0);
    Timestamp(job.created_at.0.saturating_add(i64::try_from(left).unwrap_or(i64::MAX)))
}

fn why<C: Cluster>(cluster: &C, job: &Job) -> Why {
    match (job.status, job.reason, &job.spec) {
        (JobStatus::Pending, Reason::Backoff { until }, _) => return Why::Backoff { until: by_the_wall(job, until) },
        (JobStatus::Pending, Reason::Delayed { until }, _) => return Why::Delayed { until: by_the_wall(job, until) },
        (JobStatus::Pending, Reason::InDoubt, _) => return Why::InDoubt,
        (JobStatus::Pending, Reason::Routing { .. }, _) => return Why::Routing,
        (JobStatus::Pending, Reason::Approval, _) => {
            let approvals = job.approvals.iter().flat_map(|approvals| &approvals.all);
            let lacking = approvals.filter(|approval| approval.by.is_none());
            let rules = lacking.map(|approval| (approval.policy.clone(), Arc::clone(&approval.rule))).collect();
            return Why::Approval { rules };
        }
        (JobStatus::Pending, Reason::Parked, _) => {
            let waits = job.parked.as_ref().map(|parked| parked.waits.clone());
            return Why::Parked { waits: waits.unwrap_or_default() };
        }
        (JobStatus::Pending, _, Some(spec)) if spec.carried => return Why::NoRun,
        (JobStatus::Pending, _, Some(_)) => {}
        (status, ..) => return Why::NotWaiting { status },
    }
    let Some(spec) = &job.spec else { return Why::NotWaiting { status: job.status } };
    if let Some(why) = broken(cluster, job).or_else(|| held_by_limit(cluster, job)) {
        return why;
    }
    let mut nodes = 0;
    let mut short = BTreeMap::new();
    let mut closest: Option<(u32, NodeView<'_>)> = None;
    for view in cluster.nodes() {
        nodes += 1;
        let lacks = short_now(&spec.demand, job.depth(), view);
        if lacks.is_empty() {
            return Why::Turn;
        }
        for dimension in lacks.iter() {
            *short.entry(dimension).or_default() += 1;
        }
        if closest.as_ref().is_none_or(|(count, _)| lacks.count() < *count) {
            closest = Some((lacks.count(), view));
        }
    }
    let Some((_, closest)) = closest else { return Why::NoNode };
    if unsatisfiable(cluster, &spec.demand) {
        let description = describe_fully(&told(cluster, &spec.demand));
        return Why::NeverSatisfiable { description, lacking: lacking(cluster, &spec.demand) };
    }
    let lacks = short_now(&spec.demand, job.depth(), closest);
    let of_closest = lacks.iter().map(|dimension| Shortage::of(dimension, &spec.demand, closest)).collect();
    Why::NoRoom { nodes, short, closest: Closest { node: closest.node.id.clone(), short: of_closest } }
}

impl fmt::Display for WaitExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)?;
        match self.position {
            None | Some(0 | 1) => Ok(()),
            Some(2) => f.write_str("; 1 job is ahead of it"),
            Some(position) => write!(f, "; {} jobs are ahead of it", position - 1),
        }
    }
}

/// Writes the waits. Only the earliest time is shown, and only the number of children.
fn write_waits(f: &mut fmt::Formatter<'_>, waits: &[Wait]) -> fmt::Result {
    let mut things = Vec::new();
    let mut until: Option<Timestamp> = None;
    let mut children = Vec::new();
    for wait in waits {
        match *wait {
            Wait::Time { at } => until = Some(until.map_or(at, |earlier| earlier.min(at))),
            Wait::Child { job } => children.push(job),
            Wait::Message => things.push("a message".to_owned()),
            Wait::Question { id } => things.push(format!("an answer to {id}")),
            Wait::Answer { question } => things.push(format!("an answer to question {question}")),
        }
    }
    match children[..] {
        [] => {}
        [child] => things.push(format!("the end of {child}")),
        _ => things.push(format!("the end of one of {} spawned jobs", children.len())),
    }
    let separator = match things[..] {
        [] => " ",
        _ => ", ",
    };
    if !things.is_empty() {
        write!(f, " for {}", things.join(" or "))?;
    }
    until.map_or(Ok(()), |until| write!(f, "{separator}until {}", rfc3339(until)))
}

pub(crate) fn rfc3339(time: Timestamp) -> String {
    match DateTime::from_timestamp_micros(time.0) {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        None => "the end of time".to_owned(),
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWaiting { status } => write!(f, "not waiting: it is {}", status.as_str()),
            Self::Turn => f.write_str("ready to run: a node has capacity for it"),
            Self::NoRun => f.write_str("waiting for a run to begin"),
            Self::NoNode => f.write_str("waiting for a worker: none is registered"),
            Self::NoRoom { nodes, short, closest } => {
                write!(f, "waiting for capacity on {nodes} node{}: ", if *nodes == 1 { "" } else { "s" })?;
                for (i, (dimension, count)) in short.iter().enumerate() {
                    write!(f, "{}{count} {dimension}", if i == 0 { "" } else { ", " })?;
                }
                write!(f, "; closest is \"{}\": ", closest.node)?;
                for (i, shortage) in closest.short.iter().enumerate() {
                    write!(f, "{}{shortage}", if i == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            Self::NeverSatisfiable { description, lacking } => {
                write!(f, "no registered worker can run it: {description}")?;
                let Some(closest) = lacking else { return Ok(()) };
                let short: Vec<String> = closest.short.iter().map(ToString::to_string).collect();
                write!(f, "; closest is \"{}\": {}", closest.node, short.join(", "))
            }
            Self::Concurrency { running, limit } => {
                write!(f, "waiting for another job of its agent to end: {running} of at most {limit} are running")
            }
            Self::NamespaceLimit { running, limit } => {
                write!(f, "waiting for another job of its namespace to end: {running} of at most {limit} are running")
            }
            Self::KeyLimit { value, running, limit } => {
                write!(f, "waiting for another job for \"{value}\" to end: {running} of at most {limit} are running")
            }
            Self::Rate { key, rate, until } => {
                let counted = match (&key.agent, &key.value) {
                    (None, _) => "its namespace".to_owned(),
                    (Some(_), None) => "its agent".to_owned(),
                    (Some(_), Some(value)) => format!("jobs for \"{value}\""),
                };
                let (jobs, seconds) = (rate.jobs, rate.per.0 / 1_000_000);
                write!(f, "waiting until {} for the rate of {counted}: {jobs} in {seconds} s", rfc3339(*until))
            }
            Self::Circuit { agent, version, failures, until } => {
                let counted = if *failures == 1 {
                    "the last attempt".to_owned()
                } else {
                    format!("the last {failures} attempts")
                };
                write!(f, "waiting because {counted} of {agent} {version} failed: ")?;
                match until {
                    Some(until) => write!(f, "one job tries again at {}", rfc3339(*until)),
                    None => f.write_str("one job is trying again"),
                }
            }
            Self::Backoff { until } => {
                write!(f, "waiting until {} to be retried", rfc3339(*until))
            }
            Self::Delayed { until } => {
                write!(f, "waiting until {}, its earliest start", rfc3339(*until))
            }
            Self::Parked { waits } => {
                f.write_str("parked: waits")?;
                write_waits(f, waits)
            }
            Self::Routing => f.write_str("waiting for the decision of the orchestrator"),
            Self::Approval { rules } => {
                let rule =
                    |(policy, rule): &(ObjectName, Arc<str>)| format!("the rule \"{rule}\" of the policy \"{policy}\"");
                let rules: Vec<String> = rules.iter().map(rule).collect();
                write!(f, "waiting for an approval, demanded by {}", rules.join(" and "))
            }
            Self::InDoubt => f.write_str("in doubt: its lease was lost and it must not run twice; resolve it manually"),
        }
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::{JobId, StepKey};

    use super::*;
    use atlas_types::QuestionId;

    #[test]
    fn a_parked_job_says_what_it_waits_for() {
        let said = |waits: &[Wait]| Why::Parked { waits: waits.to_vec() }.to_string();
        let time = |seconds: i64| Wait::Time { at: Timestamp(seconds * 1_000_000) };
        let child = |id| Wait::Child { job: JobId(id) };
        assert_eq!(said(&[time(9), time(5)]), "parked: waits until 1970-01-01T00:00:05Z");
        assert_eq!(said(&[Wait::Message, time(5)]), "parked: waits for a message, until 1970-01-01T00:00:05Z");
        assert_eq!(said(&[child(7)]), "parked: waits for the end of job-0000000000000007");
        let asked = Wait::Question { id: QuestionId(9) };
        assert_eq!(said(&[asked]), "parked: waits for an answer to question-0000000000000009");
        let question = Wait::Answer { question: StepKey([7; 16]) };
        assert_eq!(
            said(&[child(7), question, child(8)]),
            "parked: waits for an answer to question 07070707070707070707070707070707 or the end of one of 2 spawned jobs"
        );
    }
}
