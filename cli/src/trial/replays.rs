//! Lost attempts of durable agents: each test of one is repeated with the first recorded steps as its record, once for each step.
//!
//! A fork of the job is what a later attempt is: a new process that is told what was recorded, and asks for the rest. So a program that
//! does something else the second time is found before it is deployed.

use atlas_api::types::{Job, JobStep};
use atlas_contract::Eval;
use atlas_contract::fixture::Mismatch;
use serde_json::json;

use super::{Case, Trial, differing};
use crate::answers;
use crate::ending;
use crate::failure::Failure;
use crate::words;

/// The most repetitions of one test. Of more steps, some are left out, evenly.
const REPETITIONS_MAX: usize = 32;

/// How many steps are asked for at once, which is all that a test has.
const STEPS_MAX: &str = "1000";

/// What came of the repetitions of one test.
pub(super) struct Replayed {
    /// How many there were.
    pub(super) count: usize,
    /// The first one that ended in another way.
    pub(super) mismatch: Option<Mismatch>,
}

impl Trial {
    /// Repeats a job that has completed, as if its attempt had been lost after each recorded step.
    pub(super) async fn replay(&self, job: &Job, case: &Case, evals: Option<&Eval>) -> Result<Replayed, Failure> {
        let query = [("limit", STEPS_MAX)];
        let steps = self.client.get(&["api", "jobs", &job.id, "steps"], &query).await?;
        let steps: Vec<JobStep> = answers::read(&steps)?;
        // A replay that could not go on names the line, so it says more than another output.
        let (mut count, mut other_output) = (0, None);
        for boundary in boundaries(&steps) {
            let fork = self.client.post(&["api", "jobs", &job.id, "fork"], &[], &json!({"steps": boundary})).await?;
            let id = fork["id"].as_str().ok_or_else(|| Failure::answer("a fork is answered with an id"))?;
            let again: Job = answers::read(&ending::wait(&self.client, id, None, None).await?)?;
            count += 1;
            if again.status != job.status {
                let expected = format!("the same end if the attempt is lost after {}", shown(&steps, boundary));
                let actual = format!("the job {}: {}", again.status, again.error);
                return Ok(Replayed { count, mismatch: Some(Mismatch { expected, actual }) });
            }
            if other_output.is_none()
                && let Some(Mismatch { expected, actual }) = differing(case, evals, &again)
            {
                let expected = format!("{expected}, also if the attempt is lost after {}", shown(&steps, boundary));
                other_output = Some(Mismatch { expected, actual });
            }
        }
        Ok(Replayed { count, mismatch: other_output })
    }
}

/// After how many steps an attempt is lost: after each that is the end of something, while nothing is under way that must not be done twice.
fn boundaries(steps: &[JobStep]) -> Vec<usize> {
    // What was only begun is in doubt, and a question to people.
    let mut begun: Vec<Option<&str>> = Vec::new();
    let mut ends = Vec::new();
    for step in steps {
        match step.kind.as_str() {
            "start" => continue,
            "intent" => {
                // A later one of the same step takes the place of the first.
                if step.outcome["attempt"].as_u64().unwrap_or(1) <= 1 {
                    begun.push(step.outcome["tools"][0].as_str());
                }
                continue;
            }
            "code" => {
                let name = step.outcome["name"].as_str();
                // A long list has no room for all outcomes.
                let place = name.and_then(|_| begun.iter().position(|begun| *begun == name));
                let place = place.or_else(|| {
                    let is_it = begun.len() == 1 && (name.is_none() || begun[0].is_none());
                    is_it.then_some(0)
                });
                if let Some(place) = place {
                    begun.remove(place);
                }
            }
            _ => {}
        }
        if begun.is_empty() {
            ends.push(step.step as usize + 1);
        }
    }
    let Some(most) = ends.len().checked_sub(1).filter(|_| ends.len() > REPETITIONS_MAX) else { return ends };
    // The last one has the whole record, and is never left out.
    (0..REPETITIONS_MAX)
        .map(|place| ends[most - (REPETITIONS_MAX - 1 - place) * most / (REPETITIONS_MAX - 1)])
        .collect()
}

/// `step 3 of 5, charge`.
fn shown(steps: &[JobStep], boundary: usize) -> String {
    let last = &steps[boundary - 1];
    let name = last.outcome["name"].as_str().filter(|name| !name.is_empty()).unwrap_or(&last.kind);
    format!("step {boundary} of {}, {name}", steps.len())
}

/// What the line of a test says of its repetitions.
pub(crate) fn told(count: usize) -> String {
    format!("the same after each of {}", words::count(count as u64, "lost attempt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(kinds: &[&str]) -> Vec<JobStep> {
        let step = |(place, kind): (usize, &&str)| JobStep {
            step: place as u64,
            kind: (*kind).to_owned(),
            outcome: json!({"call": "step:charge:00:1", "name": "charge"}),
            ..JobStep::default()
        };
        kinds.iter().enumerate().map(step).collect()
    }

    #[test]
    fn attempts_are_lost_where_something_has_ended() {
        assert_eq!(boundaries(&steps(&["start", "code", "intent", "code", "sleep"])), [2, 4, 5]);
        assert!(boundaries(&steps(&["start"])).is_empty());
    }

    #[test]
    fn no_attempt_is_lost_while_something_is_under_way_that_must_not_be_done_twice() {
        let mut found = steps(&["start", "intent", "code", "sleep", "code", "code"]);
        found[1].outcome = json!({"attempt": 1, "tools": ["charge"]});
        found[2].outcome = json!({"name": "load"});
        assert_eq!(boundaries(&found), [5, 6]);
        for step in &mut found[1..] {
            step.outcome = json!(null);
        }
        assert_eq!(boundaries(&found), [3, 4, 5, 6]);
    }

    #[test]
    fn of_many_steps_some_are_left_out_and_never_the_last() {
        let found = boundaries(&steps(&["code"; 100]));
        assert_eq!(found.len(), REPETITIONS_MAX);
        assert_eq!((found.first(), found.last()), (Some(&1), Some(&100)));
        assert!(found.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn a_place_in_the_record_has_a_name() {
        assert_eq!(shown(&steps(&["start", "code"]), 2), "step 2 of 2, charge");
    }
}
