//! What a worker asks for an agent with helpers: which agents there are, messages within its team, and the questions of its helpers
//! (compatibility §33). An agent of a team is known by `agent_NAME_DIGITS`, with the first digits of its job's id.

use std::sync::Arc;

use atlas_records::open_below;
use atlas_state::State;
use atlas_types::{AskKind, Job, JobId, MessageId, Question, StepKey};
use bytes::Bytes;
use serde_json::{Value, json};

use super::{Call, NoResult};
use crate::{Consistency, Error, NewMessage, Service};

impl Service {
    /// Answers the worker of a job of a team.
    pub(super) async fn team(&self, call: &Call<'_>, job: &Job, key: StepKey, what: &str) -> Result<Value, NoResult> {
        let leads = job.spec.as_ref().is_some_and(|spec| spec.spawns);
        match what {
            "send" => self.team_send(call, job, key).await,
            _ if !leads => Err(NoResult::Refused("this agent may not start helpers".to_owned())),
            "find" => self.team_find(call).await,
            "cancel" => self.team_cancel(call, job).await,
            "questions" => {
                let state = self.shared.current().await?;
                Ok(questions(&state, job.id).iter().map(|question| shown(&state, question)).collect())
            }
            "asked" => {
                self.shared.records.helper_asked(job.id).await;
                Ok(json!({}))
            }
            "reply" => self.team_reply(call, job).await,
            _ => Err(NoResult::Refused(format!("Unknown tool: {}", call.tool))),
        }
    }

    /// What an agent is that may be started as a helper.
    async fn team_find(&self, call: &Call<'_>) -> Result<Value, NoResult> {
        let name = call.text("agent");
        match self.agent(&call.caller, name, None, Consistency::Linearizable).await {
            Ok(shown) => Ok(json!({"input_schema": shown.contract.value.get("input_schema")})),
            Err(Error::UnknownAgent { .. }) => Err(NoResult::Refused(format!("there is no agent \"{name}\""))),
            Err(error) => Err(error.into()),
        }
    }

    /// Cancels a helper, with the jobs below it.
    async fn team_cancel(&self, call: &Call<'_>, job: &Job) -> Result<Value, NoResult> {
        let state = self.shared.current().await?;
        let helper = call.text("job").parse().ok().and_then(|id: JobId| state.job(id));
        let Some(mut helper) = helper.filter(|helper| is_child(helper, job.id)) else {
            return Ok(json!({"cancelled": false}));
        };
        while let Some(next) = helper.successor.and_then(|next| state.job(next)) {
            helper = next;
        }
        match self.shared.jobs.cancel_for(&call.caller, helper.id, true).await {
            Ok(cancelled) => Ok(json!({"cancelled": cancelled})),
            Err(Error::UnknownJob | Error::WrongStatus { .. }) => Ok(json!({"cancelled": false})),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts a message into the inbox of another agent of the team. Its id is that of the step that sends it, so a repeat is no second one.
    async fn team_send(&self, call: &Call<'_>, job: &Job, key: StepKey) -> Result<Value, NoResult> {
        let state = self.shared.current().await?;
        let to = call.text("id");
        let Some(receiver) = teammate(&state, job, to) else {
            let text = format!("No agent found with id '{to}'. Agent may not exist or may have already completed.");
            return Ok(failed(&text));
        };
        let body = json!({"from": name_in_team(job), "content": call.text("message")}).to_string();
        let id = MessageId::new(&format!("team-{key}")).map_err(Error::from)?;
        let message = NewMessage { id: Some(id), answers: None, channel: None, body: Bytes::from(body) };
        match self.shared.jobs.send_message_for(&call.caller, receiver, message).await {
            // One that has finished, and was not collected yet, does not read it any more.
            Ok(_) | Err(Error::WrongStatus { .. }) => {
                Ok(json!({"status": "ok", "message": format!("Message delivered to agent '{to}'")}))
            }
            Err(error @ (Error::NoLeader | Error::Overloaded)) => Err(error.into()),
            Err(error) => Ok(failed(&format!("The message to '{to}' was not delivered: {error}"))),
        }
    }

    /// Answers the question of a helper. A person may be faster.
    async fn team_reply(&self, call: &Call<'_>, job: &Job) -> Result<Value, NoResult> {
        let state = self.shared.current().await?;
        let id = call.text("escalation_id");
        let question = questions(&state, job.id).into_iter().find(|question| escalation(question) == id);
        let gone = || {
            let text = "It may have already been replied to or timed out.";
            Ok(failed(&format!("No pending escalation found with id '{id}'. {text}")))
        };
        let Some(question) = question else { return gone() };
        let reply = Value::String(call.text("reply").to_owned());
        match self.shared.records.answer_for(&call.caller, question.id, &reply, true).await {
            Ok(_) => {
                let agent = state.job(question.job).map(|job| job.agent.to_string()).unwrap_or_default();
                let message = format!("Reply sent to agent '{agent}' for escalation '{id}'");
                Ok(json!({"status": "ok", "message": message, "original_question": text_of(&question)}))
            }
            Err(Error::QuestionClosed(_) | Error::UnknownQuestion) => gone(),
            Err(Error::AnswerRefused(why)) => Ok(failed(&format!("The reply does not fit the question: {why}"))),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the agent that spawned a job answers its questions.
    pub(super) async fn has_supervisor(&self, job: &Job) -> Result<bool, Error> {
        let state = self.shared.current().await?;
        let parent = job.spawned.and_then(|spawned| state.job(spawned.by));
        let version = parent.and_then(|parent| {
            let pin = parent.pin.as_ref()?;
            state.agent(&parent.namespace, &parent.agent, pin.version)
        });
        let Some(version) = version else { return Ok(false) };
        let contract = self.shared.registry.contract(version).await?;
        let provider = |member: &str| contract.value.pointer(&format!("/provider/{member}"));
        // A graph says so if one of its nodes has the tool for it.
        Ok(provider("type").is_some_and(|kind| kind == "normal")
            || provider("answers_helpers") == Some(&Value::Bool(true)))
    }
}

fn failed(message: &str) -> Value {
    json!({"status": "error", "message": message})
}

fn is_child(job: &Job, parent: JobId) -> bool {
    job.spawned.is_some_and(|spawned| spawned.by == parent)
}

/// The open questions of the jobs below a job, the oldest first.
fn questions(state: &State, job: JobId) -> Vec<Arc<Question>> {
    let mut questions = open_below(state, job);
    // What a policy asks is not for an agent to answer.
    questions.retain(|question| question.job != job && question.rule.is_none());
    questions.sort_by_key(|question| question.asked);
    questions
}

/// The id of a question, as agents know it.
fn escalation(question: &Question) -> String {
    format!("esc_{}", question.id.short())
}

fn text_of(question: &Question) -> String {
    let kind = match &question.ask.kind {
        AskKind::Choose { many: true, .. } => "checkbox",
        AskKind::Choose { .. } | AskKind::Approve { .. } => "ask",
        AskKind::Confirm => "confirm",
        AskKind::Text | AskKind::Form { .. } => "input",
    };
    format!("[{kind}] {}", question.ask.prompt)
}

fn shown(state: &State, question: &Question) -> Value {
    let job = state.job(question.job);
    let mut shown = json!({
        "escalation_id": escalation(question),
        "from_agent_id": job.map(|job| helper_id(job)),
        "from_agent_name": job.map(|job| job.agent.as_str()),
        "question": text_of(question),
    });
    let options = question.ask.kind.options();
    if !options.is_empty() {
        shown["options"] = options.iter().map(|option| json!(**option)).collect();
    }
    shown
}

/// How a helper is known to its team. A retry has the id of the first job.
fn helper_id(job: &Job) -> String {
    format!("agent_{}_{}", job.agent, job.original.unwrap_or(job.id).short())
}

/// The first agent of a team has its name alone.
fn name_in_team(job: &Job) -> String {
    if job.spawned.is_some() { helper_id(job) } else { job.agent.to_string() }
}

/// The job of a helper, of an agent beside this one, or of its parent.
fn teammate(state: &State, job: &Job, to: &str) -> Option<JobId> {
    let parent = job.spawned.and_then(|spawned| state.job(spawned.by));
    if let Some(parent) = parent
        && (to == "parent" || to == name_in_team(parent))
    {
        return Some(parent.id);
    }
    let beside = parent.into_iter().flat_map(|parent| state.children(parent.id));
    let known = state.children(job.id).chain(beside);
    // Of a job and its retries, the last is the one that works.
    known.filter(|known| helper_id(known) == to).max_by_key(|known| known.retry_count).map(|known| known.id)
}
