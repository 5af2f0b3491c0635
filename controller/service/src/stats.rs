//! Statistics per agent from the events of jobs (compatibility §13.2), as shown by `/api/metrics`.
//!
//! Counted by this controller since its start: jobs that ended earlier are not included.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_types::{AgentName, Event, EventRecord, JobChange, JobStatus, Micros, Timestamp};
use serde_json::{Map, Value, json};

/// The number of latest latencies kept per agent.
const SAMPLES_MAX: usize = 1_000;
/// The most agents that are counted. Only unknown names can exceed this limit, and their jobs are not counted.
const AGENTS_MAX: usize = 10_000;
/// The window of `throughput_per_min`, in microseconds.
const WINDOW: i64 = 60_000_000;
/// The most job ends that are remembered for the window. At a higher rate the window covers only these ends.
const ENDS_MAX: usize = 100_000;

/// The statistics of all agents. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    agents: Arc<Mutex<BTreeMap<AgentName, Agent>>>,
}

/// A change of a job's status, with the data for the statistics.
#[derive(Debug, Clone, Copy)]
pub struct Transition<'j> {
    pub agent: &'j AgentName,
    /// The previous status.
    pub from: JobStatus,
    /// The new status.
    pub to: JobStatus,
    /// Whether the job ran in a slot that was used before.
    pub warm: bool,
    /// Whether the job is a retry.
    pub retry: bool,
    /// How long the agent ran.
    pub execution: Micros,
    /// The time of the change.
    pub at: Timestamp,
}

#[derive(Debug, Default)]
struct Agent {
    /// In the order of [`JobStatus::ALL`].
    by_status: [u64; 5],
    /// Latencies in microseconds.
    samples: VecDeque<u64>,
    ends: VecDeque<Timestamp>,
    warm_hits: u64,
    retries: u64,
}

fn index(status: JobStatus) -> usize {
    JobStatus::ALL.iter().position(|known| *known == status).unwrap_or(0)
}

impl Stats {
    /// Counts the events of an entry.
    pub(crate) fn record(&self, events: &[EventRecord]) {
        self.count(events.iter().filter_map(|event| {
            let Event::Job { change, old_status, job } = &event.event else { return None };
            let moved = *change != JobChange::Submitted && *old_status != job.status && !job.is_system();
            moved.then_some(Transition {
                agent: &job.agent,
                from: *old_status,
                to: job.status,
                warm: job.warm,
                retry: job.retry_count > 0,
                execution: job.execution,
                at: event.at,
            })
        }));
    }

    /// Counts changes of jobs.
    pub fn count<'j>(&self, transitions: impl IntoIterator<Item = Transition<'j>>) {
        let mut agents = self.lock();
        for transition in transitions {
            if agents.contains_key(transition.agent) || agents.len() < AGENTS_MAX {
                agents.entry(transition.agent.clone()).or_default().changed(&transition);
            }
        }
    }

    /// The object of `/api/metrics`.
    pub fn all(&self, now: Timestamp) -> Value {
        let mut agents = self.lock();
        let mut total = Agent::default();
        let mut shown = Map::new();
        for (name, agent) in agents.iter_mut() {
            agent.forget(now);
            shown.insert(name.to_string(), agent.show());
            total.add(agent);
        }
        let global = json!({
            "total_jobs": total.total(),
            "error_rate": total.error_rate(),
            "retry_rate": rounded::<4>(total.retries as f64 / total.total().max(1) as f64),
            "warm_hit_rate": total.warm_hit_rate(),
            "throughput_per_min": total.ends.len(),
            "latency_p50_ms": total.percentile(50),
            "latency_p95_ms": total.percentile(95),
            "latency_p99_ms": total.percentile(99),
        });
        json!({ "global": global, "agents": shown })
    }

    /// The statistics of one agent.
    pub(crate) fn of(&self, name: &str, now: Timestamp) -> Option<Value> {
        let mut agents = self.lock();
        let agent = agents.iter_mut().find(|(known, _)| known.as_str() == name).map(|(_, agent)| agent)?;
        agent.forget(now);
        Some(agent.show())
    }

    /// The measured execution times of an agent's jobs in ascending order.
    pub(crate) fn durations(&self, agent: &AgentName) -> Vec<u64> {
        let mut sorted: Vec<u64> =
            self.lock().get(agent).map(|agent| agent.samples.iter().copied().collect()).unwrap_or_default();
        sorted.sort_unstable();
        sorted
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentName, Agent>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    fn changed(&mut self, transition: &Transition<'_>) {
        let old = &mut self.by_status[index(transition.from)];
        *old = old.saturating_sub(1);
        self.by_status[index(transition.to)] += 1;
        if !matches!(transition.to, JobStatus::Completed | JobStatus::Failed) {
            return;
        }
        // The rate refers to completed jobs. Counting warm jobs that failed could make it exceed 1 (spec D-24).
        self.warm_hits += u64::from(transition.warm && transition.to == JobStatus::Completed);
        self.retries += u64::from(transition.retry);
        if transition.execution.0 > 0 {
            self.samples.push_back(transition.execution.0);
            self.samples.drain(..self.samples.len().saturating_sub(SAMPLES_MAX));
        }
        self.ends.push_back(transition.at);
        self.ends.drain(..self.ends.len().saturating_sub(ENDS_MAX));
    }

    fn forget(&mut self, now: Timestamp) {
        let gone = self.ends.partition_point(|end| end.0 < now.0 - WINDOW);
        self.ends.drain(..gone);
    }

    fn add(&mut self, other: &Self) {
        for (sum, count) in self.by_status.iter_mut().zip(other.by_status) {
            *sum += count;
        }
        self.samples.extend(&other.samples);
        self.ends.extend(&other.ends);
        self.warm_hits += other.warm_hits;
        self.retries += other.retries;
    }

    fn total(&self) -> u64 {
        self.by_status.iter().sum()
    }

    fn error_rate(&self) -> f64 {
        rounded::<4>(self.by_status[index(JobStatus::Failed)] as f64 / self.total().max(1) as f64)
    }

    fn warm_hit_rate(&self) -> f64 {
        rounded::<4>(self.warm_hits as f64 / self.by_status[index(JobStatus::Completed)].max(1) as f64)
    }

    /// The sample at `min(⌊n·p/100⌋, n−1)` of the sorted ones, in milliseconds.
    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted: Vec<u64> = self.samples.iter().copied().collect();
        sorted.sort_unstable();
        let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        rounded::<2>(sorted.get(at).map_or(0.0, |micros| *micros as f64 / 1e3))
    }

    fn show(&self) -> Value {
        let by_status: Map<String, Value> = JobStatus::ALL
            .iter()
            .map(|status| (status.as_str().to_owned(), self.by_status[index(*status)].into()))
            .collect();
        json!({
            "jobs_by_status": by_status,
            "total_jobs": self.total(),
            "throughput_per_min": self.ends.len(),
            "latency_p50_ms": self.percentile(50),
            "latency_p95_ms": self.percentile(95),
            "latency_p99_ms": self.percentile(99),
            "error_rate": self.error_rate(),
            "warm_hit_rate": self.warm_hit_rate(),
            "total_retries": self.retries,
        })
    }
}

/// Rounds like Python: by the number's exact decimal notation, with ties to the even digit. Scaling the number first
/// would change it.
fn rounded<const DIGITS: usize>(number: f64) -> f64 {
    format!("{number:.DIGITS$}").parse().unwrap_or(number)
}

#[test]
fn numbers_are_rounded_as_python_rounds_them() {
    assert_eq!([0.125, 0.375, 12.345, 1.115, 2.675].map(rounded::<2>), [0.12, 0.38, 12.35, 1.11, 2.67]);
    assert_eq!([0.03125, 2.0 / 3.0, 1.0].map(rounded::<4>), [0.0312, 0.6667, 1.0]);
}
