//! Statistics per agent from the events of jobs (compatibility §13.2), as shown by `/api/metrics`.
//!
//! Every controller counts alike: it takes the totals of its history, which includes what happened before its start and
//! what it missed, and adds the events that it sees. A job counts from the event that ended it, so a client that waited
//! for the job finds it counted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_history::Totals;
use atlas_state::State;
use atlas_types::{AgentName, Event, EventRecord, EventSeq, Job, JobChange, JobStatus, Micros, Timestamp};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// The number of latest latencies kept per agent.
const SAMPLES_MAX: usize = 1_000;
/// The most agents that are counted. Only unknown names can exceed this limit, and their jobs are not counted.
const AGENTS_MAX: usize = 10_000;
/// The window of `throughput_per_min`, in microseconds.
const WINDOW: i64 = 60_000_000;
/// The most job ends that are remembered for the window. At a higher rate the window covers only these ends.
const ENDS_MAX: usize = 100_000;
/// The most ended jobs that are kept until the history has them. It writes several times a second.
const RECENT_MAX: usize = 65_536;

/// The statistics of all agents. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    counts: Arc<Mutex<Counts>>,
    /// Told when events were missed.
    missed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Counts {
    agents: BTreeMap<AgentName, Agent>,
    /// Jobs that have not ended are counted by the state with this last event, and by later events.
    live_through: EventSeq,
    /// Ended jobs are counted up to this event.
    ended_through: EventSeq,
    /// Counted ends that the history may not have on disk.
    recent: VecDeque<(EventSeq, Arc<Job>)>,
    /// True while totals are read: no end is dropped from `recent`.
    is_reading: bool,
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

impl<'j> Transition<'j> {
    fn of(from: JobStatus, job: &'j Job, at: Timestamp) -> Self {
        Self {
            agent: &job.agent,
            from,
            to: job.status,
            warm: job.warm,
            retry: job.retry_count > 0,
            execution: job.execution,
            at,
        }
    }
}

/// The statistics of an agent, unless too many are counted.
fn entry<'a>(agents: &'a mut BTreeMap<AgentName, Agent>, name: &AgentName) -> Option<&'a mut Agent> {
    if !agents.contains_key(name) && agents.len() >= AGENTS_MAX {
        return None;
    }
    Some(agents.entry(name.clone()).or_default())
}

fn index(status: JobStatus) -> usize {
    JobStatus::ALL.iter().position(|known| *known == status).unwrap_or(0)
}

impl Stats {
    /// Completes when events were missed since the last time.
    pub(crate) async fn events_missed(&self) {
        self.missed.notified().await;
    }

    /// Counts the events of an entry. The history has all events up to `synced` on disk.
    pub fn record(&self, events: &[EventRecord], synced: EventSeq) {
        let counts = &mut *self.lock();
        if !counts.is_reading {
            let written = counts.recent.partition_point(|(event, _)| *event <= synced);
            counts.recent.drain(..written);
        }
        for event in events {
            let Event::Job { change, old_status, job } = &event.event else { continue };
            if *change == JobChange::Submitted || *old_status == job.status || job.is_system() {
                continue;
            }
            let Some(agent) = entry(&mut counts.agents, &job.agent) else { continue };
            if event.seq > counts.live_through {
                agent.left(*old_status);
                if !job.status.is_terminal() {
                    agent.by_status[index(job.status)] += 1;
                }
            }
            if job.status.is_terminal() && event.seq > counts.ended_through {
                counts.ended_through = event.seq;
                agent.ended(&Transition::of(*old_status, job, event.at));
                counts.recent.push_back((event.seq, Arc::clone(job)));
                let beyond = counts.recent.len().saturating_sub(RECENT_MAX);
                counts.recent.drain(..beyond);
            }
        }
    }

    /// Counts changes of jobs.
    pub fn count<'j>(&self, transitions: impl IntoIterator<Item = Transition<'j>>) {
        let mut counts = self.lock();
        for transition in transitions {
            if let Some(agent) = entry(&mut counts.agents, transition.agent) {
                agent.left(transition.from);
                if transition.to.is_terminal() {
                    agent.ended(&transition);
                } else {
                    agent.by_status[index(transition.to)] += 1;
                }
            }
        }
    }

    /// Counts the jobs of `state` that have not ended, in place of the events that led to it.
    pub fn missed(&self, state: &State) {
        {
            let counts = &mut *self.lock();
            for agent in counts.agents.values_mut() {
                (agent.by_status[index(JobStatus::Pending)], agent.by_status[index(JobStatus::Running)]) = (0, 0);
            }
            for job in state.live_jobs().filter(|job| !job.is_system()) {
                // A submission is not counted, so a job that waits counts from its second time.
                let is_counted = job.status == JobStatus::Running || job.attempt.0 > 0;
                if let (true, Some(agent)) = (is_counted, entry(&mut counts.agents, &job.agent)) {
                    agent.by_status[index(job.status)] += 1;
                }
            }
            counts.live_through = state.event_seq();
        }
        self.missed.notify_one();
    }

    /// Keeps the ends that [`Self::take`] needs while totals are read.
    pub(crate) fn begin(&self) {
        self.lock().is_reading = true;
    }

    /// Counts the ended jobs of `totals`, and those that ended after them.
    pub(crate) fn take(&self, totals: Totals) {
        let counts = &mut *self.lock();
        counts.is_reading = false;
        for agent in counts.agents.values_mut() {
            let [pending, running, ..] = agent.by_status;
            *agent = Agent { by_status: [pending, running, 0, 0, 0], ..Agent::default() };
        }
        for of in totals.agents {
            let Some(agent) = entry(&mut counts.agents, &of.agent) else { continue };
            agent.by_status[2..].copy_from_slice(&[of.completed, of.failed, of.cancelled]);
            (agent.warm_hits, agent.retries) = (of.warm, of.retries);
        }
        for end in totals.ends {
            if let Some(agent) = counts.agents.get_mut(&end.agent) {
                agent.measured(end.execution, end.at);
            }
        }
        for (_, job) in counts.recent.iter().filter(|(event, _)| *event > totals.through) {
            if let Some(agent) = counts.agents.get_mut(&job.agent) {
                agent.ended(&Transition::of(job.status, job, job.completed_at));
            }
        }
        counts.ended_through = counts.ended_through.max(totals.through);
    }

    /// The object of `/api/metrics`.
    pub fn all(&self, now: Timestamp) -> Value {
        let agents = &mut self.lock().agents;
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
    pub fn of(&self, name: &str, now: Timestamp) -> Option<Value> {
        let agents = &mut self.lock().agents;
        let agent = agents.iter_mut().find(|(known, _)| known.as_str() == name).map(|(_, agent)| agent)?;
        agent.forget(now);
        Some(agent.show())
    }

    /// The measured execution times of an agent's jobs in ascending order.
    pub fn durations(&self, agent: &AgentName) -> Vec<u64> {
        let mut sorted: Vec<u64> =
            self.lock().agents.get(agent).map(|agent| agent.samples.iter().copied().collect()).unwrap_or_default();
        sorted.sort_unstable();
        sorted
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    fn left(&mut self, status: JobStatus) {
        let old = &mut self.by_status[index(status)];
        *old = old.saturating_sub(1);
    }

    fn ended(&mut self, end: &Transition<'_>) {
        self.by_status[index(end.to)] += 1;
        if !matches!(end.to, JobStatus::Completed | JobStatus::Failed) {
            return;
        }
        // The rate refers to completed jobs. Counting warm jobs that failed could make it exceed 1 (spec D-24).
        self.warm_hits += u64::from(end.warm && end.to == JobStatus::Completed);
        self.retries += u64::from(end.retry);
        self.measured(end.execution, end.at);
    }

    fn measured(&mut self, execution: Micros, at: Timestamp) {
        if execution.0 > 0 {
            self.samples.push_back(execution.0);
            self.samples.drain(..self.samples.len().saturating_sub(SAMPLES_MAX));
        }
        self.ends.push_back(at);
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
