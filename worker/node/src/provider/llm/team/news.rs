//! What calls about helpers learn. The records of the calls have it.

use atlas_supervisor::{AgentId, Escalation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PROJECT;
use crate::mailbox::Answer as Told;

/// What came of helpers since the call before.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::provider) struct News {
    /// In milliseconds since 1970.
    pub(super) now_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ended: Vec<Ended>,
    /// Their questions that wait for an answer, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) questions: Vec<Question>,
    /// The agent that the call names: how it takes a prompt, or why it cannot be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) found: Option<(String, Result<String, String>)>,
    /// Whether that agent has a variable for the folder of a project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) for_projects: bool,
}

/// A helper that ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ended {
    pub(super) id: String,
    /// Its text, or its error.
    pub(super) outcome: Result<String, String>,
}

/// A question of a helper, as the controller tells of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::provider) struct Question {
    escalation_id: String,
    from_agent_id: Option<String>,
    from_agent_name: Option<String>,
    question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    options: Option<Vec<String>>,
}

impl News {
    /// What is known at a time, in milliseconds since 1970.
    pub(in crate::provider) fn at(now_ms: u64) -> Self {
        Self { now_ms, ..Self::default() }
    }

    pub(in crate::provider) fn set_now(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    pub(in crate::provider) fn end(&mut self, id: &AgentId, told: Told) {
        let outcome = match told {
            Told::Completed(output) => Ok(text(&output)),
            Told::Failed(error) | Told::Refused(error) => Err(error),
        };
        self.ended.push(Ended { id: id.0.clone(), outcome });
    }

    pub(in crate::provider) fn set_questions(&mut self, questions: Vec<Question>) {
        self.questions = questions;
    }

    /// Notes what is known of an agent: its schema of inputs, or why it cannot be started.
    pub(in crate::provider) fn found(&mut self, agent: &str, schema: Result<Value, String>) {
        let variable = |schema: &Value| {
            schema.pointer("/properties/variables/properties").and_then(|all| all.get(PROJECT)).is_some()
        };
        self.for_projects = schema.as_ref().is_ok_and(variable);
        let member = schema.and_then(|schema| member(agent, &schema));
        self.found = Some((agent.to_owned(), member));
    }
}

impl Question {
    pub(super) fn escalation(self) -> Escalation {
        Escalation {
            id: self.escalation_id,
            from: AgentId(self.from_agent_id.unwrap_or_default()),
            agent: self.from_agent_name.unwrap_or_default(),
            question: self.question,
            options: self.options,
            // The controller closes those whose time is over.
            until_ms: u64::MAX,
        }
    }
}

/// The text of an output: that of its member `text` or `result`, or its JSON.
fn text(output: &[u8]) -> String {
    let value: Value = serde_json::from_slice(output).unwrap_or_default();
    let member = ["text", "result"].into_iter().find_map(|member| value.get(member).and_then(Value::as_str));
    member.or(value.as_str()).map_or_else(|| value.to_string(), str::to_owned)
}

/// The member of an input that takes a prompt: `message`, or the only required one, if it is a text.
fn member(agent: &str, schema: &Value) -> Result<String, String> {
    let takes = |member: &str| match schema.get("properties").and_then(|properties| properties.get(member)) {
        None => schema.get("properties").is_none(),
        Some(property) => property.get("type").is_none_or(|kind| kind == "string"),
    };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    match required[..] {
        [] | ["message"] if takes("message") => Ok("message".to_owned()),
        [one] if takes(one) => Ok(one.to_owned()),
        _ => Err(format!("the agent \"{agent}\" takes no prompt: its input needs {}", required.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, expected: Result<&str, &str>) {
        let found = member("a", schema);
        assert_eq!(found.as_ref().map(String::as_str).map_err(String::as_str), expected, "{schema}");
    }

    #[test]
    fn a_prompt_is_the_message_or_the_only_required_text() {
        check(&json!({"type": "object"}), Ok("message"));
        check(
            &json!({"properties": {"message": {"type": "string"}, "variables": {}}, "required": ["message"]}),
            Ok("message"),
        );
        check(&json!({"properties": {"text": {"type": "string"}}, "required": ["text"]}), Ok("text"));
        check(
            &json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]}),
            Err("the agent \"a\" takes no prompt: its input needs n"),
        );
        check(
            &json!({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}),
            Err("the agent \"a\" takes no prompt: its input needs a, b"),
        );
    }

    #[test]
    fn outputs_are_texts() {
        for (output, expected) in [
            (r#"{"text": "t", "state": {}}"#, "t"),
            (r#"{"result": "r"}"#, "r"),
            (r#""s""#, "s"),
            (r#"{"n": 1}"#, r#"{"n":1}"#),
        ] {
            assert_eq!(text(output.as_bytes()), expected);
        }
    }
}
