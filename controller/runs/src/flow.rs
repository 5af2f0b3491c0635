//! The extension of steps, under their key `atlas`: what they come after, conditions, retries, time limits, and what a failure means.

use std::fmt;

use atlas_expressions::{Expression, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What conditions are over: the input of the chain, the data that the step would get, and the steps so far.
pub const NAMES: [&str; 3] = ["input", "output", "steps"];
/// Most retries of a step.
const RETRIES_MAX: u64 = 10;
/// Least and most seconds of a time limit or a pause.
const SECONDS_MIN: f64 = 0.001;
const SECONDS_MAX: f64 = 7.0 * 86_400.0;
/// Most characters of a value that is shown.
const SHOWN_MAX: usize = 32;
/// Most steps that one comes after.
const AFTER_MAX: usize = 32;

/// What happens to the steps after one that has no output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Without {
    /// They get the data that the step would have got.
    Pass,
    /// They do not run either, up to one that comes after other steps as well.
    End,
    /// The run fails.
    Fail,
}

impl Without {
    fn named(word: &str) -> Option<Self> {
        [Self::Pass, Self::End, Self::Fail].into_iter().find(|without| without.as_str() == word)
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::End => "end",
            Self::Fail => "fail",
        }
    }
}

/// When a step runs, and what happens if it does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The numbers of the steps that it comes after; none for the beginning.
    pub after: Vec<usize>,
    /// It runs if this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What happens to those after it if the condition does not hold.
    pub otherwise: Without,
    /// What happens to those after it if it fails.
    pub on_failure: Without,
    /// How often it is tried again after a failure.
    pub max_retries: u32,
    /// Seconds before the first retry; each later pause is twice as long.
    pub backoff_base: f64,
    /// Most seconds of one try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// Why the extension of a step is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowError {
    /// The member.
    pub member: String,
    pub why: String,
}

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'atlas.{}' {}", self.member, self.why)
    }
}

fn refused<T>(member: &str, why: impl Into<String>) -> Result<T, FlowError> {
    Err(FlowError { member: member.to_owned(), why: why.into() })
}

impl Flow {
    /// A step without the extension comes after the one before.
    pub fn of_next(index: usize) -> Self {
        Self {
            after: index.checked_sub(1).into_iter().collect(),
            condition: None,
            otherwise: Without::Pass,
            on_failure: Without::Fail,
            max_retries: 0,
            backoff_base: 1.0,
            timeout: None,
        }
    }

    /// Reads the extension of the step at `index`; `names` are those of all steps before.
    pub fn read(index: usize, members: &Map<String, Value>, names: &[String]) -> Result<Self, FlowError> {
        let mut flow = Self::of_next(index);
        for (member, value) in members {
            match member.as_str() {
                "after" => flow.after = after(value, names)?,
                "if" => flow.condition = Some(condition(value)?),
                "otherwise" => match value.as_str().and_then(Without::named) {
                    Some(without) if without != Without::Fail => flow.otherwise = without,
                    _ => return refused(member, "must be pass or end"),
                },
                "on_failure" => match value.as_str().and_then(Without::named) {
                    Some(without) => flow.on_failure = without,
                    None => return refused(member, "must be fail, pass or end"),
                },
                "retry" => flow.read_retry(value)?,
                "timeout" => flow.timeout = Some(seconds("timeout", value)?),
                _ => return refused(member, "is not known"),
            }
        }
        Ok(flow)
    }

    fn read_retry(&mut self, value: &Value) -> Result<(), FlowError> {
        let Some(members) = value.as_object() else { return refused("retry", "must be an object") };
        for (member, value) in members {
            match member.as_str() {
                "max_retries" => match value.as_u64() {
                    Some(retries @ 0..=RETRIES_MAX) => self.max_retries = retries as u32,
                    _ => return refused("retry.max_retries", format!("must be between 0 and {RETRIES_MAX}")),
                },
                "backoff_base" => self.backoff_base = seconds("retry.backoff_base", value)?,
                _ => return refused(&format!("retry.{member}"), "is not known"),
            }
        }
        Ok(())
    }

    /// Seconds before it is tried again after so many tries.
    pub fn pause_s(&self, tries: u32) -> f64 {
        let doubled = f64::from(1_u32 << tries.saturating_sub(1).min(20));
        (self.backoff_base * doubled).min(SECONDS_MAX)
    }

    /// Whether its condition holds.
    pub fn holds(&self, input: &Value, output: &Value, steps: &Value) -> Result<bool, Problem> {
        let Some(condition) = &self.condition else { return Ok(true) };
        Expression::parse(condition, &NAMES)?.holds(&[("input", input), ("output", output), ("steps", steps)])
    }

    /// What a person reads about it, such as `if output.n > 1, 2 retries`.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        if let Some(condition) = &self.condition {
            words.push(format!("if {condition}"));
            if self.otherwise == Without::End {
                words.push("otherwise end".to_owned());
            }
        }
        if self.max_retries > 0 {
            words.push(format!("{} {}", self.max_retries, if self.max_retries == 1 { "retry" } else { "retries" }));
        }
        if let Some(timeout) = self.timeout {
            words.push(format!("timeout {timeout} s"));
        }
        if self.on_failure != Without::Fail {
            words.push(format!("on failure {}", self.on_failure.as_str()));
        }
        words.join(", ")
    }
}

fn condition(value: &Value) -> Result<String, FlowError> {
    let Some(text) = value.as_str() else { return refused("if", "must be a text") };
    match Expression::parse(text, &NAMES) {
        Ok(_) => Ok(text.to_owned()),
        Err(problem) => refused("if", format!("is refused: {problem}")),
    }
}

fn after(value: &Value, names: &[String]) -> Result<Vec<usize>, FlowError> {
    let Some(given) = value.as_array() else { return refused("after", "must be a list of names") };
    if given.len() > AFTER_MAX {
        return refused("after", format!("has more than {AFTER_MAX} names"));
    }
    let mut after = Vec::with_capacity(given.len());
    for name in given {
        let Some(name) = name.as_str() else { return refused("after", "must be a list of names") };
        let Some(number) = names.iter().position(|known| known == name) else {
            return refused("after", format!("names no step before this one: {name}"));
        };
        if after.contains(&number) {
            return refused("after", format!("names {name} twice"));
        }
        after.push(number);
    }
    Ok(after)
}

fn seconds(member: &str, value: &Value) -> Result<f64, FlowError> {
    // Stored documents have no fractions but their texts.
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    match number {
        Some(seconds) if (SECONDS_MIN..=SECONDS_MAX).contains(&seconds) => Ok(seconds),
        _ => {
            let found: String = value.to_string().chars().take(SHOWN_MAX).collect();
            refused(member, format!("is {found}; it must be from {SECONDS_MIN} to {SECONDS_MAX} seconds"))
        }
    }
}
