//! Why a job waits, since when, when it will start, and what would start it now.

use std::cell::RefCell;
use std::collections::BTreeMap;

use atlas_desk::{Caller, Consistency, Error};
use atlas_duty::{Ask, Change, Counterfactual, More, Why};
use atlas_platform::Stats;
use atlas_state::State;
use atlas_types::{AgentName, FailureKind, Job, JobId, JobStatus, Timestamp, Wait};
use serde_json::{Map, Value, json};

use crate::Records;
use crate::view::{reason_word, waiting};

impl Records {
    /// Explains a job. What would start it is the planner's answer on the state that was read; estimates come from the durations
    /// that this controller has measured since its start.
    pub async fn explain(&self, caller: &Caller, id: JobId, consistency: Consistency) -> Result<Value, Error> {
        let state = self.desk.state(consistency).await?;
        let job = self.desk.job_in(caller, &state, id).await?;
        let now = self.desk.env.clock.wall();
        if let Some(sentence) = self.model_wait(&state, &job).await {
            let mut shown = explained(&state, &self.stats, &job, now);
            shown["waiting_for"] = sentence.into();
            return Ok(shown);
        }
        // Each is many plans. Two at a time leave the other cores to those that plan for real.
        let _permit = self.explanations.acquire().await.map_err(|_| Error::Internal)?;
        let stats = self.stats.clone();
        let explained = self.desk.env.spawn_blocking("explain-job", move || explained(&state, &stats, &job, now));
        explained.join().await.map_err(|_| Error::Internal)
    }
}

fn explained(state: &State, stats: &Stats, job: &Job, now: Timestamp) -> Value {
    let seconds = |time: Timestamp| time.0 as f64 / 1e6;
    let (word, sentence) = match waiting(state, job) {
        Some(waiting) => waiting,
        None if job.status.is_terminal() => ("", String::new()),
        None => (reason_word(job.reason), String::new()),
    };
    let mut shown = json!({
        "id": job.id.to_string(), "status": job.status.as_str(), "reason": word, "waiting_for": sentence,
        "since": seconds(job.created_at), "starts_if": [],
    });
    if job.status != JobStatus::Pending {
        let failed = job.failure.as_ref().map(|failure| failure.kind);
        let demand = job.spec.as_ref().filter(|_| failed == Some(FailureKind::Unsatisfiable)).map(|spec| &spec.demand);
        if let Some(closest) = demand.and_then(|demand| atlas_duty::lacking(state, demand)) {
            let short: Vec<String> = closest.short.iter().map(ToString::to_string).collect();
            shown["lacking"] = json!({ "node": closest.node.as_str(), "short": short });
        }
        return shown;
    }
    let planned = atlas_duty::explain(state, job);
    if let Some(position) = planned.position {
        shown["position"] = position.into();
    }
    if let Some(class_len) = planned.class_len {
        shown["class_jobs"] = class_len.into();
    }
    let ends = Ends { stats, now, known: RefCell::default() };
    let found = atlas_duty::counterfactuals(state, job, &|running| ends.rank(running));
    shown["estimate"] = estimate(state, job, &ends, (&planned.why, &found));
    shown["starts_if"] = found.iter().map(|found| counterfactual(state, job, found)).collect();
    shown
}

/// The expected ends of running jobs.
struct Ends<'s> {
    stats: &'s Stats,
    now: Timestamp,
    /// Measured durations by agent, sorted.
    known: RefCell<BTreeMap<AgentName, Vec<u64>>>,
}

/// Microseconds until a job ends: with 10 %, 50 % and 90 % probability.
type Left = [u64; 3];

impl Ends<'_> {
    fn elapsed(&self, job: &Job) -> u64 {
        let since_start = u64::try_from(self.now.0.saturating_sub(job.started_at.0)).unwrap_or(0);
        since_start.saturating_sub(job.warmup.0)
    }

    /// The time left, from the durations of the agent's jobs that ran longer than this one has run. None if there are none.
    fn left(&self, job: &Job) -> Option<Left> {
        self.left_after(&job.agent, self.elapsed(job))
    }

    fn left_after(&self, agent: &AgentName, elapsed: u64) -> Option<Left> {
        let mut known = self.known.borrow_mut();
        let durations = known.entry(agent.clone()).or_insert_with(|| self.stats.durations(agent));
        let longer = &durations[durations.partition_point(|duration| *duration <= elapsed)..];
        let share = |percent: usize| longer.get(longer.len() * percent / 100).map(|duration| duration - elapsed);
        Some([share(10)?, share(50)?, share(90)?])
    }

    /// Known ends first, then the oldest jobs.
    fn rank(&self, job: &Job) -> u64 {
        let unknown = || (u64::MAX / 2).saturating_add_signed(job.started_at.0);
        self.left(job).map_or_else(unknown, |[_, median, _]| median)
    }
}

/// When the job starts if nothing but time passes. Nothing is told of jobs of other namespaces.
fn estimate(state: &State, asked: &Job, ends: &Ends<'_>, (why, found): (&Why, &[Counterfactual])) -> Value {
    let known = |left: Left| {
        let [low, seconds, high] = left.map(|micros| micros as f64 / 1e6);
        json!({ "known": true, "seconds": seconds, "seconds_low": low, "seconds_high": high })
    };
    let unknown = |says: &str| json!({ "known": false, "says": says });
    if *why == Why::Turn && found.is_empty() {
        return known([0; 3]);
    }
    if let Some([Change::Time { until } | Change::Rate { until, .. } | Change::Probe { until }]) =
        found.first().map(|found| &found.changes[..])
    {
        return known([u64::try_from(until.0.saturating_sub(ends.now.0)).unwrap_or(0); 3]);
    }
    let Some(jobs) = found.iter().find_map(Counterfactual::ends) else {
        return unknown("it does not wait for a running job");
    };
    let mut latest = [0; 3];
    for job in jobs.iter().filter_map(|job| state.job(*job)) {
        let Some(left) = ends.left(job) else {
            let text = match ends.stats.durations(&job.agent).is_empty() {
                _ if job.namespace != asked.namespace => "nothing is known of a job of another namespace".to_owned(),
                true => format!("no job of agent \"{}\" has ended since this controller started", job.agent),
                false => format!("{} has run longer than all measured jobs of its agent", job.id),
            };
            return unknown(&text);
        };
        latest = [0, 1, 2].map(|at| latest[at].max(left[at]));
    }
    known(latest)
}

/// A counterfactual as the API shows it. Jobs of other namespaces are counted and not named.
fn counterfactual(state: &State, asked: &Job, found: &Counterfactual) -> Value {
    let own = |job: &JobId| state.job(*job).is_some_and(|job| job.namespace == asked.namespace);
    let mut says = Vec::new();
    let mut changes = Vec::new();
    for change in &found.changes {
        let Change::End { jobs } = change else {
            says.push(if *change == Change::Wake { waking(asked) } else { change.to_string() });
            changes.push(shown(change));
            continue;
        };
        let mut named: Vec<String> = jobs.iter().filter(|job| own(job)).map(ToString::to_string).collect();
        let others = jobs.len() - named.len();
        let mut change = json!({ "kind": "end", "jobs": named });
        if others > 0 {
            change["other_jobs"] = others.into();
            named.push(format!("{others} job{} of other namespaces", if others == 1 { "" } else { "s" }));
        }
        says.push(format!("{} end{}", named.join(" and "), if jobs.len() == 1 { "s" } else { "" }));
        changes.push(change);
    }
    json!({ "says": says.join(", and "), "changes": changes })
}

/// What wakes a parked job: `question-5d1b… is answered or a message arrives`.
fn waking(job: &Job) -> String {
    let waits = job.parked.iter().flat_map(|parked| &parked.waits);
    let things = waits.filter_map(|wait| match wait {
        Wait::Time { .. } => None,
        Wait::Child { job } => Some(format!("{job} ends")),
        Wait::Message => Some("a message arrives".to_owned()),
        Wait::Question { id } => Some(format!("{id} is answered")),
        Wait::Answer { question } => Some(format!("{question} is answered")),
    });
    let things: Vec<String> = things.collect();
    if things.is_empty() { Change::Wake.to_string() } else { things.join(" or ") }
}

fn shown(change: &Change) -> Value {
    match change {
        Change::Time { until } => json!({ "kind": "time", "until": until.0 as f64 / 1e6 }),
        Change::Wake => json!({ "kind": "wake" }),
        Change::Allow => json!({ "kind": "allow" }),
        Change::Approve => json!({ "kind": "approve" }),
        Change::Resolve => json!({ "kind": "resolve" }),
        Change::End { jobs } => json!({ "kind": "end", "jobs": jobs.iter().map(JobId::to_string).collect::<Vec<_>>() }),
        Change::OthersWait => json!({ "kind": "others_wait" }),
        Change::Priority { at_least } => json!({ "kind": "priority", "at_least": at_least }),
        Change::Limit { at_least } => json!({ "kind": "limit", "at_least": at_least }),
        Change::NamespaceLimit { at_least } => json!({ "kind": "namespace_limit", "at_least": at_least }),
        Change::KeyLimit { at_least } => json!({ "kind": "key_limit", "at_least": at_least }),
        Change::Rate { until, .. } => json!({ "kind": "rate", "until": until.0 as f64 / 1e6 }),
        Change::Resume { agent, version } => {
            json!({ "kind": "resume", "agent": agent.as_str(), "version": version.to_string() })
        }
        Change::Probe { until } => json!({ "kind": "probe", "until": until.0 as f64 / 1e6 }),
        Change::Open { node, now } => json!({ "kind": "open", "node": node.as_str(), "now": now.as_str() }),
        Change::Label { node, labels } => json!({ "kind": "label", "node": node.as_str(), "labels": labels }),
        Change::Room { node, more } => {
            let mut shown = Map::new();
            shown.insert("kind".to_owned(), "room".into());
            shown.insert("node".to_owned(), node.as_str().into());
            more.iter().for_each(|more| room(&mut shown, *more));
            Value::Object(shown)
        }
        Change::Register { demand } => json!({
            "kind": "register", "node": demand.node.as_ref().map(|node| node.as_str()), "cores": demand.cores,
            "memory_bytes": demand.memory_bytes, "gpus": demand.gpus, "vram_bytes": demand.vram_bytes,
            "architecture": demand.architecture.map(|architecture| architecture.as_str()), "devices": demand.devices,
            "labels": demand.labels,
        }),
        Change::Ask { at_most } => match *at_most {
            Ask::Cores(cores) => json!({ "kind": "ask", "cores": cores }),
            Ask::MemoryBytes(bytes) => json!({ "kind": "ask", "memory_bytes": bytes }),
            Ask::VramBytes(bytes) => json!({ "kind": "ask", "vram_bytes": bytes }),
        },
    }
}

/// Adds one amount to a change of the kind `room`.
fn room(shown: &mut Map<String, Value>, more: More) {
    let (name, value): (_, Value) = match more {
        More::Places(places) => ("places", places.into()),
        More::Cores(cores) => ("cores", cores.into()),
        More::MemoryBytes(bytes) => ("memory_bytes", bytes.into()),
        More::Gpus { count, vram_bytes } => {
            shown.insert("vram_bytes".to_owned(), vram_bytes.into());
            ("gpus", count.into())
        }
        More::VramBytes { gpu, bytes } => {
            let on = shown.entry("vram_bytes_on").or_insert_with(|| json!({}));
            on[gpu.to_string()] = bytes.into();
            return;
        }
    };
    shown.insert(name.to_owned(), value);
}

#[cfg(test)]
mod tests;
