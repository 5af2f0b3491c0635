//! Questions to the user: asked directly by the first agent, passed up by its helpers.

use serde_json::{Value, json};

use crate::escalation::Escalation;
use crate::limits::QUESTIONS_MAX;
use crate::tree::{Answer, Call, Refused, Tree, WaitCause, refused, text};

/// A kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionKind {
    /// One of some options, or a text of one's own.
    Choice,
    /// Yes or no.
    Confirm,
    /// A text.
    Input,
    /// Any of some options.
    Several,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Empty if it was not passed up.
    pub id: String,
    /// What kind of answer it needs.
    pub kind: QuestionKind,
    /// The question itself.
    pub text: String,
    /// Empty for kinds without options.
    pub options: Vec<String>,
    /// How long the agent waits.
    pub timeout_ms: u64,
    /// When it stops waiting, in milliseconds since 1970.
    pub until_ms: u64,
}

impl Question {
    /// The result of the tool for a reply.
    pub fn result(&self, reply: &str) -> Value {
        match self.kind {
            QuestionKind::Several => json!({"answers": several(reply)}),
            QuestionKind::Choice | QuestionKind::Confirm | QuestionKind::Input => json!({"answer": reply}),
        }
    }
}

/// Several answers in one reply: a list in JSON, or texts between commas.
fn several(reply: &str) -> Vec<String> {
    serde_json::from_str::<Vec<String>>(reply)
        .unwrap_or_else(|_| reply.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect())
}

/// Options, as a list or as a text that is a list in JSON. What is no text in it does not count.
fn options(arguments: &Value) -> Result<Vec<String>, Refused> {
    let required = "'options' is required and must be an array of strings";
    let list = match arguments.get("options") {
        Some(Value::Array(list)) => list.clone(),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Array(list)) => list,
            _ => return refused("'options' is a text that is no JSON array. Give an array, as in [\"yes\", \"no\"]."),
        },
        _ => return refused(required),
    };
    Ok(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

impl Tree {
    pub(crate) fn user(&mut self, call: Call<'_>, action: &str) -> Result<Answer, Refused> {
        let kind = match action {
            "ask" => QuestionKind::Choice,
            "confirm" => QuestionKind::Confirm,
            "input" => QuestionKind::Input,
            "checkbox" => QuestionKind::Several,
            _ => return refused(format!("there is no tool \"{}\"", call.name)),
        };
        let asked = text(call.arguments, "question")?.to_owned();
        let given = call.arguments.get("options").is_some();
        let member = self.member(call.caller)?;
        let (from, agent) = (call.caller.clone(), member.name.clone());
        let timeout_ms = member.settings.escalation_timeout_ms;
        let until_ms = call.now_ms.saturating_add(timeout_ms);
        if member.depth == 0 {
            let options = if matches!(kind, QuestionKind::Choice | QuestionKind::Several) {
                options(call.arguments)?
            } else {
                Vec::new()
            };
            return Ok(Answer::Ask(Question { id: String::new(), kind, text: asked, options, timeout_ms, until_ms }));
        }
        let options = if given { Some(options(call.arguments)?) } else { None };
        if self.escalations.len() >= QUESTIONS_MAX {
            return refused(format!("{QUESTIONS_MAX} questions wait for answers already"));
        }
        let id = format!("esc_{}", self.digits());
        let question = format!("[{action}] {asked}");
        self.escalations.add(Escalation { id: id.clone(), from, agent, question, options: options.clone(), until_ms });
        let options = options.unwrap_or_default();
        Ok(Answer::Wait(WaitCause::Reply(Question { id, kind, text: asked, options, timeout_ms, until_ms })))
    }
}
