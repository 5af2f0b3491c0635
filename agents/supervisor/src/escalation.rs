//! Questions of helpers, which are passed up to the first agent of the tree.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::tree::{AgentId, Answer, Refused, Tree, WaitCause, error, text};
use crate::user::Question;

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// `esc_1a2b3c4d`.
    pub id: String,
    /// Who asked.
    pub from: AgentId,
    /// The name of its agent.
    pub agent: String,
    /// With the kind of question in brackets before it.
    pub question: String,
    /// Possible answers; none if any text is one.
    pub options: Option<Vec<String>>,
    /// When the helper stops waiting, in milliseconds since 1970.
    pub until_ms: u64,
}

/// The questions of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Escalations {
    /// By their number, which is the order in which they were asked.
    pending: BTreeMap<u64, Escalation>,
    /// Replies that the helper has not taken yet.
    replies: BTreeMap<String, (AgentId, String)>,
    asked: u64,
}

impl Escalations {
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn add(&mut self, escalation: Escalation) {
        self.asked += 1;
        self.pending.insert(self.asked, escalation);
    }

    /// All questions as the model sees them; none if there are none.
    pub(crate) fn pending(&self) -> Option<Value> {
        let shown = |one: &Escalation| {
            let mut shown = json!({
                "escalation_id": one.id, "from_agent_id": one.from.0, "from_agent_name": one.agent, "question": one.question,
            });
            if let Some(options) = &one.options {
                shown["options"] = json!(options);
            }
            shown
        };
        (!self.pending.is_empty()).then(|| self.pending.values().map(shown).collect())
    }

    fn take(&mut self, id: &str) -> Option<Escalation> {
        let number = self.pending.iter().find(|(_, one)| one.id == id).map(|(number, _)| *number)?;
        self.pending.remove(&number)
    }

    /// The questions and replies of a helper that is gone.
    pub(crate) fn forget(&mut self, id: &AgentId) {
        self.pending.retain(|_, one| one.from != *id);
        self.replies.retain(|_, (from, _)| from != id);
    }

    /// The answer of a question, if there is one or its time is over.
    pub(crate) fn resume(&mut self, question: Question, now_ms: u64) -> Answer {
        if let Some((_, reply)) = self.replies.remove(&question.id) {
            return Answer::Now(question.result(&reply));
        }
        if now_ms >= question.until_ms {
            self.expire(now_ms);
            let seconds = question.timeout_ms / 1000;
            return Answer::Now(unanswered(&format!("No answer within {seconds} seconds")));
        }
        if !self.pending.values().any(|one| one.id == question.id) {
            return Answer::Now(unanswered("The question was withdrawn"));
        }
        Answer::Wait(WaitCause::Reply(question))
    }

    /// Forgets the questions whose time is over. Nobody has to answer them any more.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        self.pending.retain(|_, one| one.until_ms > now_ms);
    }
}

fn unanswered(why: &str) -> Value {
    json!({"error": why, "fallback": "Use your own judgment and go on"})
}

impl Tree {
    /// The questions that wait for an answer, the oldest first.
    pub fn questions(&self) -> impl Iterator<Item = &Escalation> {
        self.escalations.pending.values()
    }

    /// Replaces the questions that wait for an answer, where something else keeps them. The oldest is the first.
    pub fn set_questions(&mut self, questions: Vec<Escalation>) {
        self.escalations = Escalations::default();
        questions.into_iter().for_each(|question| self.escalations.add(question));
    }

    /// Answers a question. A person can do so as well as an agent; the first answer wins. False if it was answered or given up.
    pub fn answer(&mut self, id: &str, reply: &str) -> bool {
        let Some(Escalation { id, from, .. }) = self.escalations.take(id) else { return false };
        self.escalations.replies.insert(id, (from, reply.to_owned()));
        true
    }

    pub(crate) fn reply(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let (id, reply) = (text(arguments, "escalation_id")?, text(arguments, "reply")?);
        let Some(Escalation { agent, question, .. }) = self.questions().find(|one| one.id == id).cloned() else {
            return Ok(error(format!(
                "No pending escalation found with id '{id}'. It may have already been replied to or timed out."
            )));
        };
        self.answer(id, reply);
        let message = format!("Reply sent to agent '{agent}' for escalation '{id}'");
        Ok(json!({"status": "ok", "message": message, "original_question": question}))
    }

    /// What the first agent gets with the results of a round of tools while questions wait: the name of a tool that was never
    /// called, and its result.
    pub fn notification(&self) -> Option<(&'static str, Value)> {
        let instruction = "Child agents are BLOCKED waiting for your reply. Call agent__reply_escalation for each pending escalation to \
                           unblock them.";
        let pending = self.escalations.pending()?;
        Some(("__escalation_notification", json!({"pending_escalations": pending, "instruction": instruction})))
    }
}
