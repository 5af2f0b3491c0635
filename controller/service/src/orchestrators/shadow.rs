//! Compares what a candidate would have decided with what was decided. Pure.

use std::sync::Arc;

use atlas_types::{Job, JobStatus, RouteAction, Timestamp};
use serde::{Deserialize, Serialize};

use crate::wish::{Will, Wish};

/// Most samples of disagreement that are kept: the latest.
const SAMPLES_MAX: usize = 5;

/// Most characters of an agent's name in a sample.
const NAME_MAX: usize = 40;

/// How often a candidate agreed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Comparison {
    /// The candidate.
    candidate: String,
    /// Jobs about which it was asked.
    asked: u64,
    /// Those about which it would have decided the same.
    agreed: u64,
    /// Those about which it failed to decide.
    faults: u64,
    /// The latest on which it would have decided otherwise.
    samples: Vec<Sample>,
}

/// A job on which a candidate would have decided otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Sample {
    job: String,
    agent: String,
    decided: String,
    candidate: String,
}

/// A job, and what was decided about it.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    job: String,
    agent: String,
    decided: String,
}

impl Subject {
    pub(super) fn of(job: &Job) -> Self {
        let asked = job.route.as_ref().map_or(&job.agent, |route| &route.asked);
        Self { job: job.id.to_string(), agent: short(asked.as_str()), decided: decided(job) }
    }
}

impl Comparison {
    /// That of a candidate: another one begins anew.
    pub(super) fn of(self, candidate: &str) -> Self {
        if self.candidate == candidate { self } else { Self { candidate: candidate.to_owned(), ..Self::default() } }
    }

    /// Counts what a candidate would have decided about a job.
    pub(super) fn note(&mut self, subject: &Subject, wish: &Result<Wish, String>) {
        self.asked += 1;
        let Ok(wish) = wish else {
            self.faults += 1;
            return;
        };
        let candidate = wished(wish);
        let Subject { job, agent, decided } = subject.clone();
        if decided == candidate {
            self.agreed += 1;
            return;
        }
        let sample = Sample { job, agent, decided, candidate };
        self.samples.push(sample);
        if self.samples.len() > SAMPLES_MAX {
            self.samples.remove(0);
        }
    }
}

/// A job that ended, as it was when it was decided on.
pub(super) fn as_asked(job: &Job) -> Arc<Job> {
    let route = job.route.as_deref();
    Arc::new(Job {
        agent: route.map_or_else(|| job.agent.clone(), |route| route.asked.clone()),
        status: JobStatus::Pending,
        output: None,
        failure: None,
        started_at: Timestamp::NOT_YET,
        completed_at: Timestamp::NOT_YET,
        ..job.clone()
    })
}

fn decided(job: &Job) -> String {
    let Some(route) = &job.route else { return words("execute", None, None) };
    match route.action {
        RouteAction::Reject => words("reject", None, route.priority),
        RouteAction::Redirect => words("redirect", Some(job.agent.as_str()), route.priority),
        RouteAction::Execute | RouteAction::Undecided => words("execute", None, route.priority),
    }
}

fn wished(wish: &Wish) -> String {
    match wish.will() {
        Will::Execute => words("execute", None, wish.priority),
        Will::Reject(_) => words("reject", None, wish.priority),
        Will::Redirect(agent) => words("redirect", Some(&agent), wish.priority),
    }
}

fn words(action: &str, agent: Option<&str>, priority: Option<i64>) -> String {
    let agent = agent.map_or_else(String::new, |agent| format!(" {}", short(agent)));
    let priority = priority.map_or_else(String::new, |priority| format!(" priority {priority}"));
    format!("{action}{agent}{priority}")
}

fn short(name: &str) -> String {
    name.chars().take(NAME_MAX).collect()
}

#[cfg(test)]
mod tests {
    use atlas_types::STATUS_BYTES_MAX;

    use super::*;

    fn subject() -> Subject {
        Subject {
            job: "job-000000000000000a".to_owned(),
            agent: "echo".to_owned(),
            decided: words("execute", None, None),
        }
    }

    fn wish(text: &str) -> Result<Wish, String> {
        crate::wish::read(format!(r#"{{"answers":[{text}]}}"#).as_bytes(), 1).remove(0)
    }

    #[test]
    fn a_candidate_is_compared_with_what_was_decided() {
        let job = subject();
        let mut comparison = Comparison::default().of("new");
        for answer in [
            r#"{"action":"allow"}"#,
            r#"{"action":"reject"}"#,
            r#"{"action":"execute","priority":2}"#,
            r#"{"error":"x"}"#,
        ] {
            comparison.note(&job, &wish(answer));
        }
        assert_eq!((comparison.asked, comparison.agreed, comparison.faults), (4, 1, 1));
        let would: Vec<_> = comparison.samples.iter().map(|sample| sample.candidate.as_str()).collect();
        assert_eq!(would, ["reject", "execute priority 2"]);
        assert_eq!(comparison.clone().of("new"), comparison);
        assert_eq!(comparison.of("other").asked, 0);
    }

    #[test]
    fn a_comparison_fits_into_a_status() {
        let job = Subject { agent: "\u{1F980}".repeat(NAME_MAX), ..subject() };
        let mut comparison = Comparison::default().of(&"\u{1F980}".repeat(255));
        let long = format!(
            r#"{{"action":"redirect","agent_name":"{}","priority":-9223372036854775808}}"#,
            "\u{1F980}".repeat(255)
        );
        for _ in 0..20 {
            comparison.note(&job, &wish(&long));
        }
        assert_eq!(comparison.samples.len(), SAMPLES_MAX);
        assert!(serde_json::to_vec(&comparison).expect("JSON").len() < STATUS_BYTES_MAX - 256);
    }
}
