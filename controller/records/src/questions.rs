//! Questions of jobs to people: listed, answered, and awaited by the attempt that asks and by whoever watches a job.

mod answer;

use std::sync::Arc;
use std::time::Duration;

use atlas_api::Questions as QuestionOperation;
use atlas_desk::{Caller, Consistency, Error, requests};
use atlas_identity::is_granted;
use atlas_state::State;
use atlas_types::{
    ANSWER_BYTES_MAX, AnswerQuestion, Ask, AskKind, AskQuestion, AskingRule, Command, EventSeq, Job, JobId, Question,
    QuestionEnd, QuestionId, Timestamp,
};
use serde_json::{Value, json};

use crate::{Records, Shown, View};

/// The most jobs below a job in which questions are looked for.
const JOBS_MAX: usize = 1_000;

/// Selects questions.
#[derive(Debug, Clone, Default)]
pub struct QuestionQuery {
    /// Questions that have ended as well, of jobs that are still in the state.
    pub ended: bool,
    /// Only those of a job and of the jobs below it.
    pub job: Option<JobId>,
    /// Only those asked after this event.
    pub after: EventSeq,
    /// The most questions to return.
    pub limit: usize,
}

/// Reading and answering.
impl Records {
    /// Questions of the caller's namespace, the oldest first.
    pub async fn questions(
        &self,
        caller: &Caller,
        query: &QuestionQuery,
        consistency: Consistency,
    ) -> Result<Vec<Arc<Question>>, Error> {
        let state = self.desk.state(consistency).await?;
        let admits = |question: &&Arc<Question>| query.ended || question.is_open();
        let limit = query.limit.clamp(1, self.desk.limits.list_max);
        let Some(job) = query.job else {
            let found = state.questions(&caller.namespace, !query.ended, query.after);
            return Ok(found.take(limit).cloned().collect());
        };
        self.desk.job_in(caller, &state, job).await?;
        let mut found: Vec<_> =
            below(&state, job).iter().flat_map(|job| state.questions_of(*job)).filter(admits).cloned().collect();
        found.retain(|question| question.asked > query.after);
        found.sort_by_key(|question| question.asked);
        found.truncate(limit);
        Ok(found)
    }

    /// One question.
    pub async fn question(
        &self,
        caller: &Caller,
        id: QuestionId,
        consistency: Consistency,
    ) -> Result<Arc<Question>, Error> {
        question_in(caller, &self.desk.state(consistency).await?, id)
    }

    /// Answers a question. A text that the answer stands for is accepted where `is_text` is set: the words of a person.
    pub async fn answer(
        &self,
        caller: &Caller,
        id: QuestionId,
        answer: &Value,
        is_text: bool,
    ) -> Result<Arc<Question>, Error> {
        caller.may(QuestionOperation::AnswerQuestion.id())?;
        self.answer_for(caller, id, answer, is_text).await
    }

    /// The same for an agent that answers its helpers.
    pub async fn answer_for(
        &self,
        caller: &Caller,
        id: QuestionId,
        answer: &Value,
        is_text: bool,
    ) -> Result<Arc<Question>, Error> {
        let state = self.desk.current().await?;
        let question = question_in(caller, &state, id)?;
        if question.rule.as_ref().is_some_and(|rule| !has_role(&state, caller, rule)) {
            return Err(Error::NotAnswerer);
        }
        if answer.to_string().len() > ANSWER_BYTES_MAX {
            return Err(Error::TooLarge { what: "the answer", limit: ANSWER_BYTES_MAX as u64 });
        }
        let fitted = match answer.as_str().filter(|_| is_text) {
            _ if question.rule.is_some() => answer::approval(answer),
            Some(text) => answer::from_text(&question.ask, text),
            None => answer::fitted(&question.ask, answer),
        };
        let answer = fitted.map_err(Error::AnswerRefused)?.to_string().into_bytes().into();
        let command = Command::AnswerQuestion(AnswerQuestion { question: id, answer });
        match self.desk.propose(requests::of(caller, command)).await {
            Ok(_) => question_in(caller, &self.desk.current().await?, id),
            Err(Error::QuestionClosed(_)) => {
                let how = question_in(caller, &self.desk.current().await?, id)
                    .map_or("cancelled", |question| question.status());
                Err(Error::QuestionClosed(how))
            }
            Err(error) => Err(error),
        }
    }

    /// Like [`Self::wait`] with the full view, but returns as well when the job or a job below it has an open question.
    pub async fn wait_or_asked(&self, caller: &Caller, id: JobId, timeout: Duration) -> Result<Shown, Error> {
        tokio::select! {
            biased;
            ended = self.wait(caller, id, View::Full, timeout) => ended,
            _ = self.asked(id) => self.job(caller, id, View::Full, Consistency::Linearizable).await,
        }
    }

    /// Waits until a job, or a job below it, has an open question, and returns the oldest of the first job that has one.
    pub async fn asked(&self, id: JobId) -> QuestionId {
        self.asked_that(id, |_, _| true).await
    }

    /// Like [`Self::asked`], for questions that the caller may answer.
    pub async fn asked_of(&self, caller: &Caller, id: JobId) -> QuestionId {
        self.asked_that(id, |state, question| may_answer(state, caller, question)).await
    }

    async fn asked_that(&self, id: JobId, wanted: impl Fn(&State, &Question) -> bool) -> QuestionId {
        let mut signal = self.questions.subscribe();
        loop {
            let state = self.desk.handle.applied();
            let found = open_below(&state, id).into_iter().find(|question| wanted(&state, question));
            if let Some(question) = found {
                return question.id;
            }
            if signal.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Waits until a job below another one asks.
    pub async fn helper_asked(&self, id: JobId) {
        let mut signal = self.questions.subscribe();
        let is_of_helper = |question: &Arc<Question>| question.job != id && question.rule.is_none();
        while !open_below(&self.desk.handle.applied(), id).iter().any(is_of_helper) {
            if signal.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// The open questions of a job and of those below it.
    pub async fn open_questions(&self, caller: &Caller, id: JobId) -> Result<Vec<Arc<Question>>, Error> {
        let state = self.desk.current().await?;
        self.desk.job_in(caller, &state, id).await?;
        Ok(open_below(&state, id))
    }

    /// The open questions of a job and of those below it that the caller may answer.
    pub async fn answerable(&self, caller: &Caller, id: JobId) -> Result<Vec<Arc<Question>>, Error> {
        let mut open = self.open_questions(caller, id).await?;
        let state = self.desk.handle.applied();
        open.retain(|question| may_answer(&state, caller, question));
        Ok(open)
    }

    /// Those of the questions that the caller may answer.
    pub fn of_caller(&self, caller: &Caller, questions: &[Arc<Question>]) -> Vec<Arc<Question>> {
        let state = self.desk.handle.applied();
        questions.iter().filter(|question| may_answer(&state, caller, question)).cloned().collect()
    }

    /// Waits until a question has ended.
    pub async fn question_end(&self, id: QuestionId) -> Result<Arc<Question>, Error> {
        let mut signal = self.questions.subscribe();
        let mut state = self.desk.current().await?;
        loop {
            match state.question(id) {
                Some(question) if !question.is_open() => return Ok(Arc::clone(question)),
                Some(_) => {}
                None => return Err(Error::UnknownQuestion),
            }
            signal.changed().await.map_err(|_| Error::NoLeader)?;
            state = self.desk.handle.applied();
        }
    }

    /// Asks a question for the attempt that holds the job's lease. A repeat changes nothing.
    pub async fn ask(&self, caller: &Caller, command: AskQuestion) -> Result<QuestionId, Error> {
        let id = command.id();
        self.desk.propose(requests::of(caller, Command::AskQuestion(command))).await.map(|_| id)
    }
}

/// Whether a caller may answer a question.
fn may_answer(state: &State, caller: &Caller, question: &Question) -> bool {
    if caller.may(QuestionOperation::AnswerQuestion.id()).is_err() {
        return false;
    }
    let is_named = question.ask.answerers.is_empty() || question.ask.answerers.contains(&caller.principal);
    let submitted = || state.job(question.job).is_some_and(|job| job.principal == caller.principal);
    let admits = |rule: &Arc<AskingRule>| (rule.own || !submitted()) && has_role(state, caller, rule);
    is_named && question.rule.as_ref().is_none_or(admits)
}

/// Whether a caller has the role that the rule of a policy asks for. While authentication is off, everybody has every role.
fn has_role(state: &State, caller: &Caller, rule: &AskingRule) -> bool {
    let Some(role) = &rule.role else { return true };
    !caller.is_authenticated() || is_granted(state, &caller.principal, &caller.namespace, role.as_str())
}

/// The answer that a rule of a job gives to a question.
pub fn ruled(ask: &Ask, text: &str) -> Result<Value, String> {
    answer::from_text(ask, text)
}

fn question_in(caller: &Caller, state: &State, id: QuestionId) -> Result<Arc<Question>, Error> {
    let found = state.question(id).filter(|question| question.namespace == caller.namespace);
    found.cloned().ok_or(Error::UnknownQuestion)
}

/// A job and the jobs below it, up to a bound.
fn below(state: &State, job: JobId) -> Vec<JobId> {
    let mut jobs = vec![job];
    let mut next = 0;
    while let Some(job) = jobs.get(next).copied() {
        next += 1;
        let left = JOBS_MAX.saturating_sub(jobs.len());
        jobs.extend(state.children(job).take(left).map(|child| child.id));
    }
    jobs
}

/// The open questions of a job and of those below it, the oldest first for each job.
pub fn open_below(state: &State, job: JobId) -> Vec<Arc<Question>> {
    let active = |job: &&Arc<Job>| !job.status.is_terminal();
    if state.questions_open() == 0 || state.job(job).filter(active).is_none() {
        return Vec::new();
    }
    let open = |job: JobId| state.questions_of(job).filter(|question| question.is_open()).cloned();
    below(state, job).into_iter().flat_map(open).collect()
}

/// Who may answer the question of a policy, in words.
fn who(ask: &Ask, rule: &AskingRule) -> String {
    let names: Vec<&str> = ask.answerers.iter().map(|name| name.as_str()).collect();
    let mut who = match &rule.role {
        Some(role) => format!("whoever has the role \"{role}\""),
        None if names.is_empty() => "whoever has the right questions.answer".to_owned(),
        None => names.join(", "),
    };
    if !rule.own {
        who += ", except whoever submitted the job";
    }
    who
}

/// The open questions of policies, as the JSON of their job names them.
pub(crate) fn approvals_needed(questions: &[Arc<Question>]) -> Vec<Value> {
    let shown = |question: &Arc<Question>| {
        let who = who(&question.ask, question.rule.as_ref()?);
        Some(json!({ "question": question.id.to_string(), "job": question.job.to_string(), "who": who }))
    };
    questions.iter().filter_map(shown).collect()
}

/// A question as JSON.
pub fn shown(question: &Question) -> Value {
    let Question { ask, .. } = question;
    let seconds = |time: Timestamp| if time == Timestamp::NOT_YET { Value::Null } else { json!(time.0 as f64 / 1e6) };
    let json_text = |bytes: &Arc<[u8]>| serde_json::from_slice(bytes).unwrap_or(Value::Null);
    let options = match &ask.kind {
        AskKind::Approve { options, .. } => answer::approvals(options),
        kind => kind.options().to_vec(),
    };
    let (many, other) = match ask.kind {
        AskKind::Approve { other, .. } => (false, other),
        AskKind::Choose { many, other, .. } => (many, other),
        AskKind::Confirm | AskKind::Text | AskKind::Form { .. } => (false, false),
    };
    let by = match &question.end {
        Some(QuestionEnd::Answered { by, .. }) => by.as_str(),
        _ => "",
    };
    let mut value = json!({
        "id": question.id.to_string(),
        "job": question.job.to_string(),
        "step": question.step,
        "number": question.asked.0,
        "kind": ask.kind.as_str(),
        "prompt": &*ask.prompt,
        "options": options.iter().map(|option| &**option).collect::<Vec<_>>(),
        "many": many,
        "other": other,
        "answerers": ask.answerers.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
        "status": question.status(),
        "asked_at": seconds(question.asked_at),
        "deadline": question.deadline().map_or(Value::Null, seconds),
        "answer": question.answer().map_or(Value::Null, json_text),
        "answered_by": by,
        "ended_at": seconds(question.ended_at),
    });
    if let Some(rule) = &question.rule {
        let role = rule.role.as_ref().map_or("", |role| role.as_str());
        value["approval"] = json!({
            "policy": rule.policy.as_str(),
            "rule": &*rule.rule,
            "role": role,
            "self": rule.own,
            "who": who(ask, rule),
        });
    }
    if let AskKind::Form { schema } = &ask.kind {
        value["schema"] = json_text(schema);
    }
    if let Some(default) = &ask.default {
        value["default"] = json_text(default);
    }
    value
}
