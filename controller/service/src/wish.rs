//! What an orchestrator wants for a job: as it answered (compatibility §9.1), or by the rules of a document.

mod rules;

use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::rules::{Facts, Rules, refusal_of};

/// The reason of a rejected job whose orchestrator gave none.
const REJECTED: &str = "Rejected by orchestrator";

/// Most characters of a reason.
const REASON_MAX: usize = 4_000;

/// A decision as an orchestrator made it, before the cluster looked at it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub(crate) struct Wish {
    #[serde(default)]
    pub(crate) action: String,
    #[serde(default)]
    pub(crate) agent_name: Option<String>,
    #[serde(default)]
    pub(crate) priority: Option<i64>,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// The rule that says so.
    #[serde(skip)]
    pub(crate) rule: Option<String>,
}

/// What is to become of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Will {
    Execute,
    Reject(String),
    Redirect(String),
}

impl Wish {
    /// What it means: an unknown action is one that allows the job, and so is a redirect to nowhere.
    pub(crate) fn will(&self) -> Will {
        match (self.action.as_str(), self.agent_name.as_deref().filter(|name| !name.is_empty())) {
            ("reject", _) => {
                let reason = self.reason.as_deref().unwrap_or(REJECTED);
                Will::Reject(reason.chars().take(REASON_MAX).collect())
            }
            ("redirect", Some(agent)) => Will::Redirect(agent.to_owned()),
            _ => Will::Execute,
        }
    }
}

/// The answers to `count` calls, in order: a decision, or why there is none.
pub(crate) fn read(output: &[u8], count: usize) -> Vec<Result<Wish, String>> {
    let wrong = |why: &str| Err(format!("the orchestrator's answer cannot be read: {why}"));
    let answers = serde_json::from_slice::<Value>(output).ok();
    let answers = answers.as_ref().and_then(|output| output.get("answers")?.as_array());
    let Some(answers) = answers.filter(|answers| answers.len() == count) else {
        return vec![wrong("it does not have one answer for each call"); count];
    };
    let one = |answer: &Value| match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(error.to_owned()),
        None => Wish::deserialize(answer).or_else(|error| wrong(&error.to_string())),
    };
    answers.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn will(answer: &str) -> Result<Will, String> {
        let output = format!(r#"{{"answers":[{answer}]}}"#);
        read(output.as_bytes(), 1).remove(0).map(|wish| wish.will())
    }

    #[test]
    fn actions_have_the_effects_of_atlas_for_python() {
        for allowed in [
            r#"{"action":"execute"}"#,
            r#"{"action":"allow"}"#,
            r#"{"action":"dance"}"#,
            "{}",
            r#"{"action":"redirect"}"#,
        ] {
            assert_eq!(will(allowed), Ok(Will::Execute), "{allowed}");
        }
        assert_eq!(will(r#"{"action":"redirect","agent_name":""}"#), Ok(Will::Execute));
        assert_eq!(will(r#"{"action":"redirect","agent_name":"b"}"#), Ok(Will::Redirect("b".into())));
        assert_eq!(will(r#"{"action":"execute","agent_name":"b"}"#), Ok(Will::Execute));
        assert_eq!(will(r#"{"action":"reject"}"#), Ok(Will::Reject("Rejected by orchestrator".into())));
        assert_eq!(will(r#"{"action":"reject","reason":"no"}"#), Ok(Will::Reject("no".into())));
    }

    #[test]
    fn other_answers_are_faults() {
        for fault in [r#"{"error":"ValueError: x"}"#, r#"{"action":1}"#, r#"{"priority":1.5}"#, "3"] {
            assert!(will(fault).is_err(), "{fault}");
        }
        for output in ["", "[]", r#"{"answers":[]}"#, r#"{"answers":[{},{}]}"#] {
            assert!(read(output.as_bytes(), 1)[0].is_err(), "{output}");
        }
        let long = format!(r#"{{"action":"reject","reason":"{}"}}"#, "x".repeat(9_999));
        assert_eq!(will(&long), Ok(Will::Reject("x".repeat(REASON_MAX))));
    }
}
