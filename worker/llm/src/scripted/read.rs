//! Reads scripts, strictly: a member that is not known is a typing error.

use std::time::Duration;

use atlas_contract::{nearest, yaml};
use atlas_model::{CallError, CallErrorKind, Stop, Usage};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::{Call, Condition, Reply, Rule};
use crate::bounds::CALLS_MAX;

/// Maximum number of rules.
const RULES_MAX: usize = 1000;
/// Maximum size of a compiled expression.
const REGEX_BYTES_MAX: usize = 256 << 10;
/// Maximum delay of an answer.
const DELAY_MAX: Duration = Duration::from_secs(3600);

/// Why a script was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It is not YAML, or exceeds a bound.
    #[error("the script is not readable YAML")]
    Yaml(#[source] yaml::YamlError),
    /// It is no list, or too long.
    #[error("a script is a list of at most {RULES_MAX} rules")]
    NoList,
    /// A rule is wrong. Rules count from 1.
    #[error("rule {rule}: {problem}")]
    Rule { rule: usize, problem: String },
}

type Read<T> = Result<T, String>;

pub(super) fn rules(text: &[u8]) -> Result<Vec<Rule>, ScriptError> {
    let document = yaml::load(text, yaml::Budget::default()).map_err(ScriptError::Yaml)?;
    let list = document.as_array().filter(|list| list.len() <= RULES_MAX).ok_or(ScriptError::NoList)?;
    let read =
        |(at, value): (usize, &Value)| rule(value).map_err(|problem| ScriptError::Rule { rule: at + 1, problem });
    list.iter().enumerate().map(read).collect()
}

fn rule(value: &Value) -> Read<Rule> {
    let known = ["match", "times", "delay_seconds", "text", "tool_calls", "error", "stop", "usage"];
    let members = object(value, "a rule", &known)?;
    let condition = condition(members.get("match").ok_or("the member \"match\" is missing")?)?;
    let times = members.get("times").map(|times| number(times, "times")).transpose()?;
    let delay = members.get("delay_seconds").map_or(Ok(Duration::ZERO), |value| seconds(value, "delay_seconds"))?;
    Ok(Rule { condition, times, delay, reply: reply(members)? })
}

fn condition(value: &Value) -> Read<Condition> {
    if let Some(text) = value.as_str() {
        let text = (text != "*").then(|| text.to_owned());
        return Ok(Condition { text, ..Condition::default() });
    }
    let members = object(value, "match", &["text", "regex", "round", "system", "result"])?;
    let text = members.get("text").map(|text| string(text, "match.text")).transpose()?;
    let regex = |name: &str| members.get(name).map(|value| regex(value, &format!("match.{name}"))).transpose();
    let (regex, system, result) = (regex("regex")?, regex("system")?, regex("result")?);
    let round = members.get("round").map(|round| number(round, "match.round")).transpose()?;
    Ok(Condition { text, regex, round, system, result })
}

fn regex(value: &Value, what: &str) -> Read<Regex> {
    let text = string(value, what)?;
    let built = RegexBuilder::new(&text).size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX).build();
    built.map_err(|error| format!("{what} is not an expression: {error}"))
}

fn reply(members: &Map<String, Value>) -> Read<Reply> {
    if let Some(error) = members.get("error") {
        if members.contains_key("text") || members.contains_key("tool_calls") {
            return Err("a rule has either \"error\", or \"text\" and \"tool_calls\"".to_owned());
        }
        return Ok(Reply::Error(call_error(error)?));
    }
    let text = members.get("text").map(|text| string(text, "text")).transpose()?;
    let calls = members.get("tool_calls").map(calls).transpose()?;
    if text.is_none() && calls.is_none() {
        return Err("one of the members \"text\", \"tool_calls\" and \"error\" is missing".to_owned());
    }
    let stop = members.get("stop").map(stop).transpose()?;
    let usage = members.get("usage").map(usage).transpose()?;
    Ok(Reply::Answer { text: text.unwrap_or_default(), calls: calls.unwrap_or_default(), stop, usage })
}

fn calls(value: &Value) -> Read<Vec<Call>> {
    let list = value.as_array().filter(|list| list.len() <= CALLS_MAX);
    list.ok_or_else(|| format!("tool_calls is a list of at most {CALLS_MAX} calls"))?.iter().map(call).collect()
}

fn call(value: &Value) -> Read<Call> {
    let members = object(value, "a call", &["id", "name", "arguments"])?;
    let text = |name: &str| members.get(name).map(|value| string(value, name)).transpose();
    let name = text("name")?.filter(|name| !name.is_empty()).ok_or("a call has no name")?;
    let arguments = members.get("arguments").cloned().unwrap_or(Value::Null);
    Ok(Call { id: text("id")?.unwrap_or_default(), name, arguments })
}

fn call_error(value: &Value) -> Read<CallError> {
    if let Some(message) = value.as_str() {
        return Ok(CallError::new(CallErrorKind::Provider, message));
    }
    let members = object(value, "error", &["kind", "message", "status", "retry_after_seconds"])?;
    let name = members.get("kind").map_or(Ok("provider".to_owned()), |kind| string(kind, "error.kind"))?;
    let kind = CallErrorKind::ALL.into_iter().find(|kind| kind.name() == name);
    let names = CallErrorKind::ALL.map(CallErrorKind::name).join(", ");
    let kind = kind.ok_or_else(|| format!("error.kind is {name:?} and not one of {names}"))?;
    let message = members.get("message").map_or(Ok(name), |message| string(message, "error.message"))?;
    let status = members.get("status").map(|status| number(status, "error.status")).transpose()?;
    let status = status.map(|status| u16::try_from(status).map_err(|_| "error.status is too large")).transpose()?;
    let after = members.get("retry_after_seconds");
    let retry_after = after.map(|after| seconds(after, "error.retry_after_seconds")).transpose()?;
    Ok(CallError { status, retry_after, ..CallError::new(kind, message) })
}

fn stop(value: &Value) -> Read<Stop> {
    Ok(match string(value, "stop")?.as_str() {
        "end" => Stop::End,
        "length" => Stop::Length,
        "tools" => Stop::Tools,
        "text" => Stop::Text,
        "refused" => Stop::Refused,
        other => Stop::Other(other.to_owned()),
    })
}

fn usage(value: &Value) -> Read<Usage> {
    let members = object(value, "usage", &["input", "output", "cache_read", "cache_write", "reasoning"])?;
    let count = |name: &str| members.get(name).map_or(Ok(0), |value| number(value, name).map(u64::from));
    Ok(Usage {
        input: count("input")?,
        output: count("output")?,
        cache_read: count("cache_read")?,
        cache_write: count("cache_write")?,
        reasoning: count("reasoning")?,
    })
}

fn object<'a>(value: &'a Value, what: &str, known: &[&str]) -> Read<&'a Map<String, Value>> {
    let members = value.as_object().ok_or_else(|| format!("{what} is not a mapping"))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(members),
        Some(name) => Err(match nearest(name, known.iter().copied()) {
            Some(near) => format!("{what} has an unknown member {name:?}; did you mean {near:?}?"),
            None => format!("{what} has an unknown member {name:?}"),
        }),
    }
}

fn string(value: &Value, what: &str) -> Read<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{what} is not a text"))
}

fn number(value: &Value, what: &str) -> Read<u32> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("{what} is not a whole number from 0 on"))
}

fn seconds(value: &Value, what: &str) -> Read<Duration> {
    let duration = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let duration = duration.filter(|duration| *duration <= DELAY_MAX);
    duration.ok_or_else(|| format!("{what} is not a number of seconds from 0 to {}", DELAY_MAX.as_secs()))
}
