//! Changes that would start a waiting job, each one concrete enough to be made.

use std::collections::BTreeMap;
use std::fmt;

use atlas_types::{AgentName, Demand, JobId, Micros, NodeId, Timestamp, Version};

use crate::describe::{describe_fully, gigabytes};

/// Changes that together start a waiting job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterfactual {
    /// All of them are needed.
    pub changes: Vec<Change>,
}

impl Counterfactual {
    /// The jobs that must end, if nothing else has to happen.
    pub fn ends(&self) -> Option<&[JobId]> {
        match &self.changes[..] {
            [Change::End { jobs }] => Some(jobs),
            _ => None,
        }
    }
}

/// One change of the cluster, or of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A time comes.
    Time { until: Timestamp },
    /// One of the things comes that the parked job waits for.
    Wake,
    /// The orchestrator allows the job.
    Allow,
    /// The job gets the approvals that policies demand.
    Approve,
    /// An operator resolves the job as not done.
    Resolve,
    /// These running jobs end.
    End { jobs: Vec<JobId> },
    /// No job of another namespace starts before it.
    OthersWait,
    /// The job has at least this priority.
    Priority { at_least: i64 },
    /// At least this many jobs of the job's agent may run at once.
    Limit { at_least: u32 },
    /// At least this many jobs of the job's namespace may run at once.
    NamespaceLimit { at_least: u32 },
    /// At least this many jobs with the same value of the agent's key may run at once.
    KeyLimit { at_least: u32 },
    /// The rates that hold for the job let it start.
    Rate { until: Timestamp, wait: Micros },
    /// An operator closes the circuit of the job's agent version.
    Resume { agent: AgentName, version: Version },
    /// The pause of that circuit ends, and the job probes it.
    Probe { until: Timestamp },
    /// A node accepts leases.
    Open { node: NodeId, now: Ineligibility },
    /// A node has these labels.
    Label { node: NodeId, labels: BTreeMap<String, String> },
    /// A node has more free resources.
    Room { node: NodeId, more: Vec<More> },
    /// One more node registers that satisfies this demand.
    Register { demand: Demand },
    /// The job asks for at most this much.
    Ask { at_most: Ask },
}

/// Why a node accepts no leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ineligibility {
    Down,
    Draining,
    Cordoned,
    /// Its circuit is open.
    Failing,
}

impl Ineligibility {
    /// The word in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Draining => "draining",
            Self::Cordoned => "cordoned",
            Self::Failing => "failing",
        }
    }
}

/// Free resources that a node would need in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    Places(u32),
    Cores(u32),
    MemoryBytes(u64),
    /// Memory of the GPU with this index.
    VramBytes {
        gpu: u32,
        bytes: u64,
    },
    /// Free GPUs, each with this much free memory; 0 for any.
    Gpus {
        count: u32,
        vram_bytes: u64,
    },
}

/// An amount that a contract states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Cores(u32),
    MemoryBytes(u64),
    VramBytes(u64),
}

/// Joins with commas and a last `and`.
fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn count(number: u32, noun: &str) -> String {
    format!("{number} more {noun}{}", if number == 1 { "" } else { "s" })
}

impl fmt::Display for Counterfactual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<String> = self.changes.iter().map(ToString::to_string).collect();
        f.write_str(&list(&changes))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time { until } => write!(f, "it is {}", crate::explain::rfc3339(*until)),
            Self::Wake => f.write_str("what it waits for comes"),
            Self::Allow => f.write_str("the orchestrator allows it"),
            Self::Approve => f.write_str("it is approved"),
            Self::Resolve => f.write_str("an operator resolves it as not done"),
            Self::End { jobs } => {
                let names: Vec<String> = jobs.iter().map(ToString::to_string).collect();
                write!(f, "{} end{}", list(&names), if jobs.len() == 1 { "s" } else { "" })
            }
            Self::OthersWait => f.write_str("no job of another namespace starts before it"),
            Self::Priority { at_least } => write!(f, "its priority is at least {at_least}"),
            Self::Limit { at_least } => write!(f, "its agent may run {at_least} jobs at once"),
            Self::NamespaceLimit { at_least } => write!(f, "its namespace may run {at_least} jobs at once"),
            Self::KeyLimit { at_least } => write!(f, "its agent may run {at_least} jobs for its key at once"),
            Self::Rate { until, .. } => write!(f, "it is {}", crate::explain::rfc3339(*until)),
            Self::Resume { agent, version } => write!(f, "an operator resumes {agent} {version}"),
            Self::Probe { until } => write!(f, "it is {}", crate::explain::rfc3339(*until)),
            Self::Open { node, now } => match now {
                Ineligibility::Failing => write!(f, "an operator resumes node \"{node}\""),
                Ineligibility::Down => write!(f, "node \"{node}\" comes back"),
                Ineligibility::Draining | Ineligibility::Cordoned => write!(f, "node \"{node}\" is uncordoned"),
            },
            Self::Label { node, labels } => {
                let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let plural = if pairs.len() == 1 { "" } else { "s" };
                write!(f, "node \"{node}\" gets the label{plural} {}", list(&pairs))
            }
            Self::Room { node, more } => {
                let more: Vec<String> = more.iter().map(ToString::to_string).collect();
                write!(f, "node \"{node}\" has {} free", list(&more))
            }
            Self::Register { demand } => {
                let needed = describe_fully(&Demand { node: None, ..demand.clone() });
                let with = if needed == "default" { String::new() } else { format!(" with: {needed}") };
                match &demand.node {
                    Some(node) => write!(f, "a worker \"{node}\" joins{with}"),
                    None if with.is_empty() => f.write_str("any other worker joins"),
                    None => write!(f, "another worker joins{with}"),
                }
            }
            Self::Ask { at_most } => write!(f, "its agent asks for {at_most}"),
        }
    }
}

impl fmt::Display for More {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match *self {
            Self::Places(places) => count(places, "concurrency permit"),
            Self::Cores(cores) => count(cores, "core"),
            Self::MemoryBytes(bytes) => format!("{} more memory", gigabytes(bytes)),
            Self::VramBytes { gpu, bytes } => format!("{} more VRAM on GPU {gpu}", gigabytes(bytes)),
            Self::Gpus { count: number, vram_bytes: 0 } => count(number, "GPU"),
            Self::Gpus { count: number, vram_bytes } => {
                format!("{} with {} VRAM", count(number, "GPU"), gigabytes(vram_bytes))
            }
        })
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Cores(cores) => write!(f, "at most {cores} core{}", if cores == 1 { "" } else { "s" }),
            Self::MemoryBytes(bytes) => write!(f, "at most {} memory", gigabytes(bytes)),
            Self::VramBytes(bytes) => write!(f, "at most {} VRAM", gigabytes(bytes)),
        }
    }
}
