//! Jobs in words.

use atlas_api::types::{Job, JobRoute};
use serde_json::Value;

use crate::words;

/// What people are told about a job.
pub(crate) trait JobDisplay {
    /// The error text. If the text is unclear by itself, the type of the exception precedes it (`KeyError: 'missing'`).
    /// The code of the error precedes it, if it has one.
    /// If the error concerns a place in the output, or has a reason besides its text, that follows: `5 is not of type 'string' (at /a: type)`.
    fn error_text(&self) -> String;

    /// The code of its error: the one that Atlas added, otherwise the one with which the text begins.
    fn error_code(&self) -> Option<&str>;

    /// The error text without its code.
    fn error_sentence(&self) -> String;

    /// Whether it failed because a model call could have exceeded its budget.
    fn is_over_budget(&self) -> bool;

    /// Whether the status is final: completed, failed or cancelled.
    fn is_terminal(&self) -> bool;

    /// `hello 0.1.0`; a job of an unknown agent has no version.
    fn agent(&self) -> String;

    /// The status; for a job that is not final, also the reason.
    fn standing(&self) -> String;

    /// From submission to the latest grant.
    fn queued_ms(&self) -> f64;

    /// `2 of 3`: the attempts that count, and how many may. One that ended because the job was parked does not count: the job goes on in it.
    fn attempts(&self) -> String;

    /// The model that answered it, if one did. Prepared answers say so.
    fn model(&self) -> Option<&str>;

    /// Its price for people; empty if it cost nothing.
    fn cost(&self) -> String;

    /// From submission to the end.
    fn total_ms(&self) -> f64;
}

impl JobDisplay for Job {
    fn error_text(&self) -> String {
        let text = self.error_sentence();
        self.error_code().map_or_else(|| text.clone(), |code| format!("{code}: {text}"))
    }

    fn error_code(&self) -> Option<&str> {
        let added = self.metadata.get("_error_code").and_then(Value::as_str).filter(|code| !code.is_empty());
        added.or_else(|| coded(&self.error).map(|(code, _)| code))
    }

    fn error_sentence(&self) -> String {
        let added = |name: &str| self.metadata.get(name).and_then(Value::as_str);
        let text = coded(&self.error).map_or(self.error.as_str(), |(_, text)| text);
        let error = match added("_error_type") {
            Some(kind) if text.is_empty() => kind.to_owned(),
            Some(kind) if text.starts_with('\'') || !text.contains(char::is_alphabetic) => format!("{kind}: {text}"),
            _ => text.to_owned(),
        };
        match (added("_error_at"), added("_error_why")) {
            (Some(place), _) => format!("{error} (at {place})"),
            (None, Some(why)) => format!("{error} ({why})"),
            (None, None) => error,
        }
    }

    fn is_over_budget(&self) -> bool {
        self.error_code() == Some("E3203")
    }

    fn is_terminal(&self) -> bool {
        ["completed", "failed", "cancelled"].contains(&self.status.as_str())
    }

    fn agent(&self) -> String {
        format!("{} {}", self.agent_name, self.agent_version).trim_end().to_owned()
    }

    fn standing(&self) -> String {
        if self.is_terminal() || self.reason.is_empty() || self.reason == self.status {
            return self.status.clone();
        }
        format!("{}: {}", self.status, self.reason)
    }

    fn queued_ms(&self) -> f64 {
        (self.started_at - self.created_at) * 1000.0
    }

    fn attempts(&self) -> String {
        let counted = self.attempt.saturating_sub(self.parks);
        let begun = if self.reason == "parked" { counted + 1 } else { counted };
        format!("{} of {}", begun.max(1), self.max_attempts)
    }

    fn model(&self) -> Option<&str> {
        let model = self.metadata.get("_trace_model").and_then(Value::as_str).filter(|model| !model.is_empty())?;
        Some(if model == "mock" { "mock (no model configured)" } else { model })
    }

    fn cost(&self) -> String {
        if self.cost_usd > 0.0 { words::dollars(self.cost_usd) } else { String::new() }
    }

    fn total_ms(&self) -> f64 {
        (self.completed_at - self.created_at) * 1000.0
    }
}

/// The code with which a text begins, and the rest: `E3044: nobody is there to answer`.
fn coded(text: &str) -> Option<(&str, &str)> {
    let (code, rest) = text.split_once(": ")?;
    let digits = code.strip_prefix('E')?;
    (digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some((code, rest))
}

/// What people are told about a decision of an orchestrator.
pub(crate) trait RouteDisplay {
    /// `redirected from echo by the rule "long"`; none while nothing is decided.
    fn words(&self) -> Option<String>;
}

impl RouteDisplay for JobRoute {
    fn words(&self) -> Option<String> {
        let action = match self.action.as_str() {
            "undecided" | "" => return None,
            "redirect" => format!("redirected from {}", self.asked_agent),
            "reject" => "rejected".to_owned(),
            _ => "allowed".to_owned(),
        };
        Some(match (self.rule.as_str(), self.decider.as_str()) {
            ("", "deadline") => format!("{action} by the fall-back: the orchestrator was late"),
            ("", "fault") => format!("{action} by the fall-back: the orchestrator failed"),
            ("", "default") => format!("{action} by the default orchestrator"),
            ("", _) => format!("{action} by the orchestrator"),
            (rule, _) => format!("{action} by the rule \"{rule}\""),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parks_are_no_attempts() {
        for (attempt, parks, reason, expected) in [
            (1, 0, "running", "1 of 3"),
            (1, 1, "parked", "1 of 3"),
            (3, 2, "running", "1 of 3"),
            (2, 0, "lost", "2 of 3"),
            (3, 1, "running", "2 of 3"),
            (3, 2, "parked", "2 of 3"),
        ] {
            let job = Job { attempt, parks, reason: reason.to_owned(), max_attempts: 3, ..Job::default() };
            assert_eq!(job.attempts(), expected, "{attempt} {parks} {reason}");
        }
    }
}
