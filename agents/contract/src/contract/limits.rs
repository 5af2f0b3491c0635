//! What makes no sense but is accepted by Atlas for Python: negative numbers, times in which nothing can run, bounds beside the block
//! `permissions`, which bind nobody, and Python packages that pip would refuse. They are refused when an agent is registered, and accepted
//! in agents that are registered already.

use super::{Contract, ContractError, keys, parse};
use crate::check_pip_requirement;
use crate::document::Wrapped;
use crate::violation::Violation;
use crate::yaml;

/// Members that are times or counts, by their pointer below `/agent/`.
const AMOUNTS: [&str; 7] = [
    "retry/max_retries",
    "retry/backoff_base",
    "permissions/max_memory_mb",
    "permissions/max_cpu_seconds",
    "execution_timeout",
    "queue_timeout",
    "startup_timeout",
];

/// Reads the contract of an agent that is offered: [`parse`] and [`Contract::check_offered`]. If rules are broken, negative numbers are
/// reported together with the other violations.
pub fn parse_offered(text: &[u8]) -> Result<Contract, ContractError> {
    match parse(text) {
        Ok(contract) => contract.check_offered().map(|()| contract),
        Err(ContractError::Rules { mut violations, mut plain }) => {
            let negative = negative_in(text, &violations);
            // Without words of their own, all violations are those of the rules.
            if !plain.is_empty() {
                plain.extend(negative.iter().cloned());
            }
            violations.extend(negative);
            Err(ContractError::Rules { violations, plain })
        }
        Err(error) => Err(error),
    }
}

/// Negative numbers in a document that breaks other rules, without those that are among its violations.
fn negative_in(text: &[u8], known: &[Violation]) -> Vec<Violation> {
    let document = yaml::load_document(text, yaml::Budget::default()).ok();
    let Some(document) = document.and_then(|document| Wrapped::new(document, "agent").ok()) else { return Vec::new() };
    let negative = |place: &&str| {
        let number = document.value.pointer(&format!("/agent/{place}"))?;
        number.as_f64().filter(|number| *number < 0.0).map(|_| violation(place, number))
    };
    let found = AMOUNTS.iter().filter_map(negative);
    found.filter(|found| known.iter().all(|known| known.pointer != found.pointer)).collect()
}

fn violation(place: &str, value: impl std::fmt::Display) -> Violation {
    Violation {
        pointer: format!("/agent/{place}"),
        rule: "minimum".to_owned(),
        message: format!("{value} is less than the minimum of 0"),
        suggestion: None,
    }
}

/// The shortest time limit of a program, in seconds.
const TIME_MIN: f64 = 0.001;

/// A time limit that ends before anything has begun. A negative one is refused as such.
fn too_short(place: &str, seconds: f64) -> Option<Violation> {
    // With 0 an attempt times out at once, as in Atlas for Python; its users wrote it on purpose.
    (seconds > 0.0 && seconds < TIME_MIN).then(|| Violation {
        pointer: format!("/agent/{place}"),
        rule: "minimum".to_owned(),
        message: format!("{seconds} is less than the minimum of {TIME_MIN} seconds: no job could run"),
        suggestion: None,
    })
}

impl Contract {
    /// Refuses negative times and counts, times in which nothing can run, misplaced bounds, and requirements of packages that pip would
    /// refuse.
    pub fn check_offered(&self) -> Result<(), ContractError> {
        let seconds = |value: Option<f64>| value.filter(|value| *value < 0.0).map(|value| value.to_string());
        let count = |value: i64| (value < 0).then(|| value.to_string());
        let negative = [
            count(self.retry.max_retries),
            seconds(Some(self.retry.backoff_base)),
            count(self.permissions.max_memory_mb),
            count(self.permissions.max_cpu_seconds),
            seconds(Some(self.execution_timeout)),
            seconds(self.queue_timeout),
            seconds(self.startup_timeout),
        ];
        let found = AMOUNTS.into_iter().zip(negative);
        let mut violations: Vec<Violation> =
            found.filter_map(|(place, value)| Some(violation(place, value?))).collect();
        let times = [("execution_timeout", Some(self.execution_timeout)), ("startup_timeout", self.startup_timeout)];
        violations.extend(times.into_iter().filter_map(|(place, seconds)| too_short(place, seconds?)));
        violations.extend(self.warnings.iter().filter(|warning| keys::is_misplaced(warning)).map(|warning| {
            Violation {
                pointer: warning.path.clone(),
                rule: "place".to_owned(),
                message: format!("it binds nobody here; {}", warning.hint.as_deref().unwrap_or_default()),
                suggestion: None,
            }
        }));
        let packages = self.packages.iter().flatten().enumerate();
        violations.extend(packages.filter_map(|(index, entry)| {
            let why = check_pip_requirement(entry).err()?;
            Some(Violation {
                pointer: format!("/agent/dependencies/packages/{index}"),
                rule: "format".to_owned(),
                message: format!("{entry:?} is no Python package that pip can install: {why}"),
                suggestion: None,
            })
        }));
        if violations.is_empty() { Ok(()) } else { Err(ContractError::Rules { violations, plain: Vec::new() }) }
    }
}
