//! Explains why a job waits, with the functions that plan.

use std::collections::BTreeMap;
use std::fmt;

use atlas_types::{ClusterTime, Job, JobStatus, NodeId, Reason, Timestamp, Wait};
use chrono::DateTime;

use crate::cluster::{Cluster, NodeView};
use crate::describe::describe;
use crate::fit::{Dimension, Shortage, short_now};
use crate::plan::unsatisfiable;

/// For what a job waits, and how many go before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// For what.
    pub why: Why,
    /// Its place among the waiting jobs that ask for the same, from 1; none if it is not in a queue, or further back
    /// than [`Waiting::POSITION_MAX`].
    pub position: Option<usize>,
}

impl Waiting {
    /// Positions beyond this one are not counted.
    pub const POSITION_MAX: usize = 1_000;
}

/// For what a job waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// For nothing: it runs, or has ended.
    NotWaiting { status: JobStatus },
    /// For the next plan: a node has room for it.
    Turn,
    /// For the first node to register.
    NoNode,
    /// For room: nodes could run it, and all of them fall short now.
    NoRoom {
        /// How many nodes are registered.
        nodes: usize,
        /// How many of them fall short in what.
        short: BTreeMap<Dimension, usize>,
        /// The node with the fewest missing resources.
        closest: Closest,
    },
    /// For a node that is not there: none of those registered could ever run it.
    NeverSatisfiable {
        /// What it asks for.
        description: String,
    },
    /// For another job of its agent to end.
    Concurrency {
        /// How many run.
        running: u32,
        /// How many may.
        limit: u32,
    },
    /// For its backoff to pass.
    Backoff {
        /// When it has, by the wall clock.
        until: Timestamp,
    },
    /// For its time to come: it was submitted for later.
    Delayed {
        /// When it comes, by the wall clock.
        until: Timestamp,
    },
    /// For what it was parked for: any of these.
    Parked { waits: Vec<Wait> },
    /// For a person or a reconcile call: its last lease was lost and it must not run twice.
    InDoubt,
}

/// What would have to be different on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closest {
    pub node: NodeId,
    /// Its missing resources.
    pub short: Vec<Shortage>,
}

/// Says for what `job` waits.
///
/// Looks at every node where the job has no room: it answers a person about one job, plans do not call it.
pub fn explain<C: Cluster>(cluster: &C, job: &Job) -> Waiting {
    Waiting {
        why: why(cluster, job),
        position: cluster.ahead(job, Waiting::POSITION_MAX).filter(|&n| n < Waiting::POSITION_MAX).map(|n| n + 1),
    }
}

/// When the cluster's clock shows `until`, if it does not stand still before: people read no other clock than theirs.
fn by_the_wall(job: &Job, until: ClusterTime) -> Timestamp {
    let left = until.0.saturating_sub(job.queued_at.0);
    Timestamp(job.created_at.0.saturating_add(i64::try_from(left).unwrap_or(i64::MAX)))
}

fn why<C: Cluster>(cluster: &C, job: &Job) -> Why {
    match (job.status, job.reason, &job.spec) {
        (JobStatus::Pending, Reason::Backoff { until }, _) => return Why::Backoff { until: by_the_wall(job, until) },
        (JobStatus::Pending, Reason::Delayed { until }, _) => return Why::Delayed { until: by_the_wall(job, until) },
        (JobStatus::Pending, Reason::InDoubt, _) => return Why::InDoubt,
        (JobStatus::Pending, Reason::Parked, _) => {
            let waits = job.parked.as_ref().map(|parked| parked.waits.clone());
            return Why::Parked { waits: waits.unwrap_or_default() };
        }
        (JobStatus::Pending, _, Some(_)) => {}
        (status, ..) => return Why::NotWaiting { status },
    }
    let Some(spec) = &job.spec else { return Why::NotWaiting { status: job.status } };
    if let Some(limit) = spec.concurrency {
        let running = cluster.running(&job.namespace, &job.agent);
        if let Some(running) = running.filter(|running| running.taken() >= limit && !running.lends_to(job.depth())) {
            return Why::Concurrency { running: running.taken(), limit };
        }
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
        return Why::NeverSatisfiable { description: describe(&spec.demand) };
    }
    let lacks = short_now(&spec.demand, job.depth(), closest);
    let of_closest = lacks.iter().map(|dimension| Shortage::of(dimension, &spec.demand, closest)).collect();
    Why::NoRoom { nodes, short, closest: Closest { node: closest.node.id.clone(), short: of_closest } }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)?;
        match self.position {
            None | Some(0 | 1) => Ok(()),
            Some(2) => f.write_str("; 1 job is ahead of it"),
            Some(position) => write!(f, "; {} jobs are ahead of it", position - 1),
        }
    }
}

/// The earliest time stands for all of them, and the number of children for the children.
fn write_waits(f: &mut fmt::Formatter<'_>, waits: &[Wait]) -> fmt::Result {
    let mut things = Vec::new();
    let mut until: Option<Timestamp> = None;
    let mut children = Vec::new();
    for wait in waits {
        match *wait {
            Wait::Time { at } => until = Some(until.map_or(at, |earlier| earlier.min(at))),
            Wait::Child { job } => children.push(job),
            Wait::Message => things.push("a message".to_owned()),
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

fn rfc3339(time: Timestamp) -> String {
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
            Self::NeverSatisfiable { description } => {
                write!(f, "no registered worker can run it: {description}")
            }
            Self::Concurrency { running, limit } => {
                write!(f, "waiting for another job of its agent to end: {running} of at most {limit} are running")
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
            Self::InDoubt => f.write_str("in doubt: its lease was lost and it must not run twice; resolve it manually"),
        }
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::{JobId, StepKey};

    use super::*;

    #[test]
    fn a_parked_job_says_what_it_waits_for() {
        let said = |waits: &[Wait]| Why::Parked { waits: waits.to_vec() }.to_string();
        let time = |seconds: i64| Wait::Time { at: Timestamp(seconds * 1_000_000) };
        let child = |id| Wait::Child { job: JobId(id) };
        assert_eq!(said(&[time(9), time(5)]), "parked: waits until 1970-01-01T00:00:05Z");
        assert_eq!(said(&[Wait::Message, time(5)]), "parked: waits for a message, until 1970-01-01T00:00:05Z");
        assert_eq!(said(&[child(7)]), "parked: waits for the end of job-0000000000000007");
        let question = Wait::Answer { question: StepKey([7; 16]) };
        assert_eq!(
            said(&[child(7), question, child(8)]),
            "parked: waits for an answer to question 07070707070707070707070707070707 or the end of one of 2 spawned jobs"
        );
    }
}
