//! The helper of all scripts: events in, effects out as text.

use std::fmt::Write;

use atlas_model::{Answer, CallError, CallErrorKind, Message, Part, Role, Stop, Tool, ToolCall, Usage};
use expect_test::Expect;
use serde_json::{Map, Value, json};

use crate::{Checks, Effect, Event, OfferedTool, Outcome, Problem, Settings, ToolReturn, Turn};

/// Runs a script and compares the effects, with the messages that each request adds.
pub(super) fn check(settings: Settings, events: Vec<Event>, expected: &Expect) {
    let mut turn = Turn::new(settings);
    let (mut text, mut seen) = (String::new(), 0);
    for event in events {
        for effect in turn.step(event, &Typed) {
            match effect {
                Effect::Call { .. } => {
                    let _ = writeln!(text, "call");
                    for message in &turn.request().messages[seen..] {
                        let _ = writeln!(text, "  {}", shown(message));
                    }
                    seen = turn.messages().len();
                }
                Effect::Tools { calls, parallel, .. } => {
                    let calls: Vec<String> = calls.iter().map(call).collect();
                    let at_once = if parallel > 1 { format!(" ({parallel} at once)") } else { String::new() };
                    let _ = writeln!(text, "tools{at_once}: {}", calls.join(", "));
                }
                Effect::Stop { .. } => text.push_str("stop\n"),
                Effect::Warn(warning) => drop(writeln!(text, "warn: {warning:?}")),
                Effect::Finish { output, end } => drop(writeln!(text, "finish ({end:?}): {output}")),
                Effect::Fail(failure) => drop(writeln!(text, "fail: {failure}")),
            }
        }
    }
    expected.assert_eq(&text);
}

/// Accepts objects without the member `bad`, whose schema would be `false`.
pub(super) struct Typed;

impl Checks for Typed {
    fn arguments(&self, _: usize, arguments: &Value) -> Vec<Problem> {
        let problem = || Problem { pointer: "/bad".to_owned(), message: "not allowed".to_owned() };
        arguments.get("bad").map(|_| problem()).into_iter().collect()
    }

    fn output(&self, output: &Value) -> Vec<Problem> {
        self.arguments(0, output)
    }
}

fn shown(message: &Message) -> String {
    let role = if message.role == Role::User { "user" } else { "assistant" };
    let part = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::Image(image) => format!("<{}>", image.mime),
        Part::ToolCall(tool) => call(tool),
        Part::ToolResult(result) => {
            format!("{}{} = {}", result.call, if result.error { "!" } else { "" }, result.content)
        }
        Part::Reasoning { text, .. } => format!("({text})"),
    };
    format!("{role}: {}", message.parts.iter().map(part).collect::<Vec<_>>().join(" | "))
}

fn call(call: &ToolCall) -> String {
    format!("{} {}{}", call.id, call.name, call.arguments)
}

pub(super) fn with_tools(names: &[&str]) -> Settings {
    let offered = |name: &&str| {
        let schema = json!({"type": "object"});
        let tool = Tool { name: name.replace('.', "_"), description: format!("Tool: {name}"), input_schema: schema };
        OfferedTool { name: (*name).to_owned(), tool }
    };
    Settings { model: "m".to_owned(), tools: names.iter().map(offered).collect(), ..Settings::default() }
}

pub(super) fn start(input: Value) -> Event {
    Event::Started { input, images: Vec::new(), said: Vec::new() }
}

pub(super) fn answer(parts: Vec<Part>) -> Event {
    let usage = Usage { input: 10, output: 2, ..Usage::default() };
    let (stop, model) = (Stop::End, "m-1".to_owned());
    Event::Answered(Box::new(Answer { parts, stop, usage, model, id: None, raw: Map::new() }))
}

pub(super) fn text(text: &str) -> Part {
    Part::Text { text: text.to_owned() }
}

pub(super) fn says(said: &str) -> Event {
    answer(vec![text(said)])
}

pub(super) fn tool(id: &str, name: &str, arguments: Value) -> Part {
    Part::ToolCall(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments, opaque: Value::Null })
}

pub(super) fn calls(calls: &[(&str, &str, Value)]) -> Event {
    answer(calls.iter().map(|(id, name, arguments)| tool(id, name, arguments.clone())).collect())
}

pub(super) fn returned(values: &[(&str, Value)]) -> Event {
    let one =
        |(call, value): &(&str, Value)| ToolReturn { call: (*call).to_owned(), outcome: Outcome::Value(value.clone()) };
    Event::Returned(values.iter().map(one).collect())
}

pub(super) fn failed(call: &str, kind: &str, text: &str) -> Event {
    Event::Returned(vec![ToolReturn { call: call.to_owned(), outcome: Outcome::error(kind, text) }])
}

pub(super) fn refused(message: &str) -> Event {
    let (status, message) = (Some(429), message.to_owned());
    Event::Failed(CallError { kind: CallErrorKind::RateLimited, status, message, retry_after: None })
}
