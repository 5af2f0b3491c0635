//! Numbers that make no sense but are accepted by Atlas for Python. They are refused when an agent is registered, and
//! accepted in agents that are registered already.

use super::{Contract, ContractError};
use crate::violation::Violation;

impl Contract {
    /// Refuses negative times and counts.
    pub fn check_limits(&self) -> Result<(), ContractError> {
        let seconds = |value: Option<f64>| value.filter(|value| *value < 0.0).map(|value| value.to_string());
        let count = |value: i64| (value < 0).then(|| value.to_string());
        let negative = [
            ("retry/max_retries", count(self.retry.max_retries)),
            ("retry/backoff_base", seconds(Some(self.retry.backoff_base))),
            ("permissions/max_memory_mb", count(self.permissions.max_memory_mb)),
            ("permissions/max_cpu_seconds", count(self.permissions.max_cpu_seconds)),
            ("execution_timeout", seconds(Some(self.execution_timeout))),
            ("queue_timeout", seconds(self.queue_timeout)),
            ("startup_timeout", seconds(self.startup_timeout)),
        ];
        let violation = |(place, value): (&str, Option<String>)| {
            Some(Violation {
                pointer: format!("/agent/{place}"),
                rule: "minimum".to_owned(),
                message: format!("{} is less than the minimum of 0", value?),
                suggestion: None,
            })
        };
        let violations: Vec<Violation> = negative.into_iter().filter_map(violation).collect();
        if violations.is_empty() { Ok(()) } else { Err(ContractError::Rules { violations }) }
    }
}
