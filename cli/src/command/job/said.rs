//! Recorded steps of an agent with a model as what was said: answers, tool calls and what these returned.

use std::collections::VecDeque;

use atlas_api::types::JobStep;
use atlas_chat::{ToolUse, TranscriptEntry};
use atlas_model::Part;
use atlas_turn::record::{AnswerOutcome, ChildEnd, HelpOutcome, QuestionEnd, ServerRound, StopOutcome, UnusableAnswer};
use atlas_turn::{Outcome, ToolReturn};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads steps in their order. Calls and their results are in different steps, so it remembers the calls that have not returned.
#[derive(Debug, Default)]
pub(crate) struct StepReader {
    open: VecDeque<ToolUse>,
    /// What answers the calls of each tool.
    sources: Map<String, Value>,
    /// Whether the system text was seen; a fork has another one.
    has_system: bool,
}

impl StepReader {
    /// What one step says. A step that says nothing to people gives nothing.
    pub(crate) fn read(&mut self, step: &JobStep) -> Vec<TranscriptEntry> {
        match step.kind.as_str() {
            "start" => self.start(&step.outcome),
            "model" => self.answer(&step.outcome),
            "tools" => self.returned(&step.outcome),
            "child" => read::<ChildEnd>(&step.outcome).map_or_else(Vec::new, |end| match end {
                ChildEnd::Completed(value) => self.result(&Outcome::Value(value)),
                ChildEnd::Failed(why) | ChildEnd::Refused(why) => self.result(&Outcome::error("ToolError", why)),
            }),
            "question" => match (read::<QuestionEnd>(&step.outcome), self.asks_people()) {
                (Some(end), true) => self.result(&end.outcome()),
                // The permission to make the call: the call itself comes after it.
                (Some(_), false) => {
                    vec![TranscriptEntry::Note("people were asked whether the call may be made".to_owned())]
                }
                (None, _) => Vec::new(),
            },
            "effect" => match read::<HelpOutcome>(&step.outcome) {
                Some(HelpOutcome { result, .. }) => self.result(&Outcome::Value(result)),
                None => match read::<StopOutcome>(&step.outcome).and_then(|stop| stop.reminder) {
                    Some(reminder) => vec![TranscriptEntry::User { text: reminder, images: Vec::new() }],
                    None => Vec::new(),
                },
            },
            _ => Vec::new(),
        }
    }

    fn start(&mut self, outcome: &Value) -> Vec<TranscriptEntry> {
        if let Some(sources) = outcome["tools"].as_object() {
            self.sources = sources.clone();
        }
        let system = outcome["settings"]["system"].as_str().unwrap_or_default();
        if system.trim().is_empty() || std::mem::replace(&mut self.has_system, true) {
            return Vec::new();
        }
        vec![TranscriptEntry::System(system.to_owned())]
    }

    fn answer(&mut self, outcome: &Value) -> Vec<TranscriptEntry> {
        if let Some(UnusableAnswer { unusable, .. }) = read(outcome) {
            return vec![TranscriptEntry::Note(format!(
                "the model answered, and its answer could not be used: {unusable}"
            ))];
        }
        let Some(AnswerOutcome { answer, .. }) = read(outcome) else { return Vec::new() };
        let calls: Vec<ToolUse> = answer.parts.iter().filter_map(call).collect();
        self.open = calls.iter().cloned().collect();
        vec![TranscriptEntry::Assistant { text: answer.text(), calls }]
    }

    fn returned(&mut self, outcome: &Value) -> Vec<TranscriptEntry> {
        let returned = read::<Vec<ToolReturn>>(outcome);
        let returned = returned.or_else(|| Some(read::<ServerRound>(outcome)?.returned)).unwrap_or_default();
        returned.iter().map(|ToolReturn { call, outcome }| self.result_of(call, outcome)).collect()
    }

    /// The result of the first open call.
    fn result(&mut self, outcome: &Outcome) -> Vec<TranscriptEntry> {
        let Some(call) = self.open.front().map(|call| call.id.clone()) else { return Vec::new() };
        vec![self.result_of(&call, outcome)]
    }

    fn result_of(&mut self, id: &str, outcome: &Outcome) -> TranscriptEntry {
        let at = self.open.iter().position(|call| call.id == id);
        let name = at.and_then(|at| self.open.remove(at)).map(|call| call.name).unwrap_or_default();
        let (text, failed) = match outcome {
            Outcome::Value(Value::String(text)) => (text.clone(), false),
            Outcome::Value(value) => (value.to_string(), false),
            Outcome::Error { kind, text } => (format!("{kind}: {text}"), true),
        };
        TranscriptEntry::Result { call: id.to_owned(), name, text, failed }
    }

    /// Whether the first open call asks people.
    fn asks_people(&self) -> bool {
        self.open.front().and_then(|call| self.sources.get(&call.name)).is_some_and(|source| source == "user")
    }
}

fn call(part: &Part) -> Option<ToolUse> {
    let Part::ToolCall(call) = part else { return None };
    Some(ToolUse { id: call.id.clone(), name: call.name.clone(), arguments: call.arguments.clone() })
}

/// An outcome in a form; none if it has another one.
fn read<T: DeserializeOwned>(outcome: &Value) -> Option<T> {
    serde_json::from_value(outcome.clone()).ok()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn step(kind: &str, outcome: Value) -> JobStep {
        JobStep { kind: kind.to_owned(), outcome, ..JobStep::default() }
    }

    fn answer(parts: &Value) -> Value {
        let usage = json!({"input": 1, "output": 1});
        json!({"parts": parts, "stop": "end", "usage": usage, "model": "m", "id": null})
    }

    #[test]
    fn calls_and_their_results_are_in_order() {
        let call = |id: &str, name: &str| json!({"type": "tool_call", "id": id, "name": name, "arguments": {"x": 1}});
        let calls =
            json!([{"type": "text", "text": "I look."}, call("1", "ask"), call("2", "add"), call("3", "helper")]);
        let steps = [
            step("start", json!({"level": 1, "settings": {"system": "Be brief."}, "tools": {"ask": "user"}})),
            step("model", answer(&calls)),
            step("question", json!({"ended": {"answer": "yes"}})),
            step("question", json!({"ended": {"answer": "allow"}})),
            step("tools", json!([{"call": "2", "outcome": {"error": {"kind": "ValueError", "text": "too large"}}}])),
            step("child", json!({"completed": {"sum": 2}})),
            step("model", answer(&json!([{"type": "text", "text": "Two."}]))),
            step("model", json!({"unusable": "it is too large"})),
            step("sleep", Value::Null),
            step("tools", json!(5)),
        ];
        let mut reader = StepReader::default();
        let entries: Vec<TranscriptEntry> = steps.iter().flat_map(|step| reader.read(step)).collect();
        expect![[r#"
            # t

            ## System

            Be brief.

            ## Assistant

            I look.

            Calls `ask`:

            ```json
            {
              "x": 1
            }
            ```

            Calls `add`:

            ```json
            {
              "x": 1
            }
            ```

            Calls `helper`:

            ```json
            {
              "x": 1
            }
            ```

            `ask` returned:

            ```
            {"answer":"yes"}
            ```

            *people were asked whether the call may be made*

            `add` failed:

            ```
            ValueError: too large
            ```

            `helper` returned:

            ```
            {"sum":2}
            ```

            ## Assistant

            Two.

            *the model answered, and its answer could not be used: it is too large*
        "#]]
        .assert_eq(&atlas_chat::markdown("t", &entries));
    }
}
