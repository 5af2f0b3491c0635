//! A provider that answers from a file, for agents without a model and for tests. Nothing is sent.
//!
//! The file is a list of rules. The first rule that matches and is not used up answers:
//!
//! ```yaml
//! - match: "*"                        # everything
//!   times: 1                          # without it, as often as it matches
//!   error: { kind: rate_limited, message: slow down, retry_after_seconds: 1 }
//! - match: weather                    # a piece of the last text of the user
//!   tool_calls:
//!     - { name: weather, arguments: { city: Bern } }
//! - match: { round: 2 }               # the second request of the conversation; also `text` and `regex`
//!   delay_seconds: 0.2
//!   text: The sun shines.
//!   usage: { input: 120, output: 9 }  # without it, an estimate
//! - match: { regex: 'my name is (\w+)', system: 'Answer in (\w+)' }  # `system` is an expression for the system text
//!   text: "Hello {regex.1}, in {system.1}."  # what groups matched; `result` is an expression for the last result of a tool
//! ```
//!
//! What a group matched is put in as it is: a piece of JSON text keeps its escapes, so that it fits into JSON again.
//!
//! A script keeps no memory between calls: what earlier requests of a conversation used up follows from its messages. So an
//! attempt that continues the work of another one gets the same answers.

mod fill;
mod read;
#[cfg(test)]
mod tests;

use std::time::Duration;

use atlas_model::{Answer, CallError, CallErrorKind, Message, Part, Request, Role, Stop, Usage, estimate};
use regex::Regex;
use serde_json::{Map, Value};

use crate::Event;
use crate::assembly::Assembly;

use fill::Groups;

pub use read::ScriptError;

/// The name that answers give as their model.
pub const MODEL: &str = "mock";

/// Rules in their order.
#[derive(Debug, Clone)]
pub struct Script {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    condition: Condition,
    /// How often it answers. None: always.
    times: Option<u32>,
    delay: Duration,
    reply: Reply,
}

/// All members that are given must hold.
#[derive(Debug, Clone, Default)]
struct Condition {
    text: Option<String>,
    regex: Option<Regex>,
    round: Option<u32>,
    system: Option<Regex>,
    result: Option<Regex>,
}

/// What a condition looks at.
struct Seen<'r> {
    system: &'r str,
    /// The last text of the user.
    text: String,
    /// What the tool returned that was called last.
    result: Option<&'r str>,
    round: u32,
}

#[derive(Debug, Clone)]
enum Reply {
    Answer { text: String, calls: Vec<Call>, stop: Option<Stop>, usage: Option<Usage> },
    Error(CallError),
}

#[derive(Debug, Clone)]
struct Call {
    id: String,
    name: String,
    arguments: Value,
}

/// What a script answers, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedAnswer {
    /// How long the provider would have taken.
    pub delay: Duration,
    /// The pieces and the answer, in the order of a stream; without pieces if the request asked for none.
    pub result: Result<Vec<Event>, CallError>,
}

impl Script {
    /// Reads a script.
    pub fn parse(yaml: &[u8]) -> Result<Self, ScriptError> {
        Ok(Self { rules: read::rules(yaml)? })
    }

    /// The answer to a request. `tries` counts the earlier tries of the same call, each of which got an error.
    pub fn call(&self, request: &Request, tries: u32) -> ScriptedAnswer {
        let Some(rule) = self.choose(request, tries) else {
            let round = rounds(&request.messages) + 1;
            let text: String = last_text(&request.messages).chars().take(80).collect();
            let message = format!("no rule of the script matches request {round} with the text {text:?}");
            let result = Err(CallError::new(CallErrorKind::Request, message));
            return ScriptedAnswer { delay: Duration::ZERO, result };
        };
        let seen = Seen::of(&request.system, &request.messages);
        ScriptedAnswer { delay: rule.delay, result: rule.reply.events(request, &rule.condition.groups(&seen)) }
    }

    fn choose(&self, request: &Request, tries: u32) -> Option<&Rule> {
        let (system, messages) = (request.system.as_str(), &request.messages);
        let mut used = vec![0_u32; self.rules.len()];
        // Earlier requests of the conversation got an answer in the end, after all errors of the rules that matched them.
        for (at, _) in messages.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant) {
            while let Some(rule) = self.next(system, &messages[..at], &used) {
                match (&self.rules[rule].reply, self.rules[rule].times) {
                    (Reply::Error(_), Some(times)) => used[rule] = times,
                    _ => {
                        used[rule] = used[rule].saturating_add(1);
                        break;
                    }
                }
            }
        }
        for _ in 0..tries {
            let rule = self.next(system, messages, &used)?;
            used[rule] = used[rule].saturating_add(1);
        }
        self.next(system, messages, &used).map(|rule| &self.rules[rule])
    }

    fn next(&self, system: &str, messages: &[Message], used: &[u32]) -> Option<usize> {
        let seen = Seen::of(system, messages);
        let fits =
            |(rule, used): (&Rule, &u32)| rule.times.is_none_or(|times| *used < times) && rule.condition.holds(&seen);
        self.rules.iter().zip(used).position(fits)
    }
}

impl<'r> Seen<'r> {
    fn of(system: &'r str, messages: &'r [Message]) -> Self {
        Self { system, text: last_text(messages), result: last_result(messages), round: rounds(messages) + 1 }
    }
}

impl Condition {
    fn holds(&self, seen: &Seen<'_>) -> bool {
        self.text.as_ref().is_none_or(|piece| seen.text.contains(piece.as_str()))
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(&seen.text))
            && self.round.is_none_or(|wanted| wanted == seen.round)
            && self.system.as_ref().is_none_or(|regex| regex.is_match(seen.system))
            && self.result.as_ref().is_none_or(|regex| seen.result.is_some_and(|result| regex.is_match(result)))
    }

    /// What the groups of the expressions matched.
    fn groups<'s>(&self, seen: &'s Seen<'_>) -> Groups<'s> {
        let of = |regex: &Option<Regex>, text: Option<&'s str>| {
            regex.as_ref().zip(text).and_then(|(regex, text)| regex.captures(text))
        };
        Groups {
            regex: of(&self.regex, Some(&seen.text)),
            system: of(&self.system, Some(seen.system)),
            result: of(&self.result, seen.result),
        }
    }
}

impl Reply {
    fn events(&self, request: &Request, groups: &Groups<'_>) -> Result<Vec<Event>, CallError> {
        let (text, calls, stop, usage) = match self {
            Self::Error(error) => return Err(error.clone()),
            Self::Answer { text, calls, stop, usage } => (text, calls, stop, usage),
        };
        let mut assembly = Assembly::new(request.messages.len());
        let mut events = Vec::new();
        for piece in groups.text(text).split_inclusive(' ') {
            assembly.text(piece, &mut events)?;
        }
        for call in calls {
            let index = assembly.begin_call(&call.id, &call.name, &mut events)?;
            match groups.value(&call.arguments) {
                Value::String(text) => assembly.arguments(index, &text, &mut events)?,
                value => assembly.parsed_arguments(index, value, &mut events)?,
            }
        }
        if !request.stream {
            events.clear();
        }
        let parts = assembly.finish()?;
        let message = Message { role: Role::Assistant, parts };
        let estimated = || {
            let output = Request { messages: vec![message.clone()].into(), ..Request::default() };
            Usage { input: estimate::request(request), output: estimate::request(&output), ..Usage::default() }
        };
        let usage = usage.unwrap_or_else(estimated);
        let stop = stop.clone().unwrap_or(if calls.is_empty() { Stop::End } else { Stop::Tools });
        let (model, raw) = (MODEL.to_owned(), Map::new());
        events.push(Event::Answer(Box::new(Answer { parts: message.parts, stop, usage, model, id: None, raw })));
        Ok(events)
    }
}

/// The last text of the user, which is not the result of a tool.
fn last_text(messages: &[Message]) -> String {
    let texts = messages.iter().rev().filter(|message| message.role == Role::User).map(Message::text);
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// The result of the tool that returned last, if the model has not answered since.
fn last_result(messages: &[Message]) -> Option<&str> {
    let parts = messages.last().filter(|message| message.role == Role::User)?.parts.iter().rev();
    parts
        .into_iter()
        .find_map(|part| if let Part::ToolResult(result) = part { Some(result.content.as_str()) } else { None })
}

/// The requests that were answered.
fn rounds(messages: &[Message]) -> u32 {
    let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
    u32::try_from(answers).unwrap_or(u32::MAX - 1)
}
