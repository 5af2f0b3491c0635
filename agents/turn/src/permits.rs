//! Permissions of tools: a call is made, refused, or made only after a person allowed it.

use std::collections::BTreeSet;

use atlas_model::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::record::QuestionEnd;
use crate::{Outcome, Settings};

/// What happens to the calls of some tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRule {
    /// A name, or the beginning of names before `*`.
    pub tool: String,
    pub action: ToolAction,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAction {
    Allow,
    /// A person is asked first.
    Ask,
    Deny,
}

impl ToolAction {
    /// The action of a word.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "allow" => Some(Self::Allow),
            "ask" => Some(Self::Ask),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

impl ToolRule {
    fn is_for(&self, tool: &str) -> bool {
        match self.tool.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => self.tool == tool,
        }
    }
}

impl Settings {
    /// What happens to calls of a tool: the first rule for it counts, and without one they are made. Questions to people need no
    /// permission.
    pub fn action(&self, tool: &str) -> ToolAction {
        if tool.starts_with("user__") {
            return ToolAction::Allow;
        }
        let rule = self.permissions.iter().find(|rule| rule.is_for(tool));
        rule.map_or(ToolAction::Allow, |rule| rule.action)
    }
}

/// The outcome of a call that is not made.
pub(crate) fn denied(tool: &str) -> Outcome {
    Outcome::error("PermissionError", format!("the agent may not call {tool}"))
}

/// The tool with which people are asked.
const ASK: &str = "user__ask";

const ONCE: &str = "allow";
const ALWAYS: &str = "allow for this job";
const NEVER: &str = "deny";

/// Most characters of the arguments in a question.
const SHOWN_MAX: usize = 500;

/// What people have allowed in one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permits {
    /// Tools that need no more questions.
    always: BTreeSet<String>,
    /// The calls that were allowed, by their ids and names.
    once: BTreeSet<(String, String)>,
}

impl Permits {
    /// Whether people have to be asked before a call.
    pub fn must_ask(&self, settings: &Settings, call: &ToolCall) -> bool {
        settings.action(&call.name) == ToolAction::Ask
            && !self.always.contains(&call.name)
            && !self.once.contains(&(call.id.clone(), call.name.clone()))
    }

    /// The question about a call, as a call to the tool that asks.
    pub fn question(call: &ToolCall) -> ToolCall {
        let arguments = call.arguments.to_string();
        let mut shown: String = arguments.chars().take(SHOWN_MAX).collect();
        if shown.len() < arguments.len() {
            shown.push('…');
        }
        let question = format!("The agent wants to call {} with {shown}. Allow it?", call.name);
        let arguments = json!({"question": question, "options": [ONCE, ALWAYS, NEVER]});
        ToolCall { id: call.id.clone(), name: ASK.to_owned(), arguments, opaque: Value::Null }
    }

    /// Takes the answer: none if the call may be made, or its outcome.
    pub fn answered(&mut self, call: &ToolCall, end: &QuestionEnd) -> Option<Outcome> {
        let answer = match end {
            QuestionEnd::Ended(result) => result.get("answer").and_then(Value::as_str),
            QuestionEnd::Refused(_) => None,
        };
        match answer {
            Some(ALWAYS) => {
                self.always.insert(call.name.clone());
                None
            }
            Some(ONCE) => {
                self.once.insert((call.id.clone(), call.name.clone()));
                None
            }
            Some(NEVER) => Some(refused(call, "a person did not allow the call")),
            Some(other) => Some(refused(call, &format!("a person did not allow the call, and says: {other}"))),
            None => Some(refused(call, "nobody allowed the call")),
        }
    }

    /// Forgets what was allowed for the calls of one round.
    pub fn end_round(&mut self) {
        self.once.clear();
    }
}

fn refused(call: &ToolCall, why: &str) -> Outcome {
    Outcome::error("PermissionError", format!("{} was not called: {why}", call.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(rules: &[(&str, ToolAction)]) -> Settings {
        let rule = |(tool, action): &(&str, ToolAction)| ToolRule { tool: (*tool).to_owned(), action: *action };
        Settings { permissions: rules.iter().map(rule).collect(), ..Settings::default() }
    }

    fn call(id: &str, name: &str) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: json!({"p": "é".repeat(600)}),
            opaque: Value::Null,
        }
    }

    #[test]
    fn the_first_rule_for_a_tool_counts() {
        let settings = settings(&[("fs_cat", ToolAction::Allow), ("fs_*", ToolAction::Ask), ("*", ToolAction::Deny)]);
        let actions = ["fs_cat", "fs_cat2", "fs_", "other", "user__ask"].map(|tool| settings.action(tool));
        let expected = [ToolAction::Allow, ToolAction::Ask, ToolAction::Ask, ToolAction::Deny, ToolAction::Allow];
        assert_eq!(actions, expected);
        assert_eq!(Settings::default().action("any"), ToolAction::Allow);
    }

    #[test]
    fn an_answer_counts_once_or_for_the_job() {
        let settings = settings(&[("*", ToolAction::Ask)]);
        let mut permits = Permits::default();
        let (one, two) = (call("1", "rm"), call("2", "rm"));
        let answer = |text: &str| QuestionEnd::Ended(json!({"answer": text}));
        assert!(permits.must_ask(&settings, &one));
        assert_eq!(permits.answered(&one, &answer(ONCE)), None);
        assert!(!permits.must_ask(&settings, &one) && permits.must_ask(&settings, &two));
        permits.end_round();
        assert!(permits.must_ask(&settings, &one));
        assert_eq!(permits.answered(&two, &answer(ALWAYS)), None);
        assert!(!permits.must_ask(&settings, &one) && permits.must_ask(&settings, &call("1", "mv")));
        for end in [
            answer(NEVER),
            answer("use mv"),
            QuestionEnd::Ended(json!({"error": "late"})),
            QuestionEnd::Refused("no".to_owned()),
        ] {
            assert!(matches!(permits.answered(&one, &end), Some(Outcome::Error { .. })), "{end:?}");
        }
    }

    #[test]
    fn a_question_shows_the_beginning_of_the_arguments() {
        let question = Permits::question(&call("1", "rm"));
        let text = question.arguments["question"].as_str().expect("a text");
        assert!(
            text.starts_with("The agent wants to call rm with {\"p\":\"éé") && text.ends_with("…. Allow it?"),
            "{text}"
        );
        assert!(text.chars().count() < 600);
    }
}
