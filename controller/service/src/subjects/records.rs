//! Jobs as clients read them, and their questions.

use std::sync::Arc;
use std::time::Duration;

use atlas_types::{JobId, Question, QuestionId};
use serde_json::Value;

use crate::ids::is_run;
use crate::{
    Caller, Consistency, Error, JobQuery, QuestionQuery, Service, Shown, StepQuery, Steps, TraceQuery, Tree, View,
};

/// Jobs.
impl Service {
    /// One job.
    pub async fn job(&self, caller: &Caller, id: JobId, view: View, consistency: Consistency) -> Result<Shown, Error> {
        self.shared.records.job(caller, id, view, consistency).await
    }

    /// The id for a text: a complete id, or a prefix that no other job of the namespace shares.
    pub async fn job_id(&self, caller: &Caller, text: &str) -> Result<JobId, Error> {
        self.shared.job_id(caller, text).await
    }

    /// Jobs of the state and the history, newest first. Large payloads are not loaded; [`Self::load`] does that.
    pub async fn jobs(
        &self,
        caller: &Caller,
        query: &JobQuery,
        view: View,
        consistency: Consistency,
    ) -> Result<Vec<Shown>, Error> {
        self.shared.records.jobs(caller, query, view, consistency).await
    }

    /// Loads the payloads of a job that are not inline.
    pub async fn load(&self, shown: &mut Shown) -> Result<(), Error> {
        self.shared.records.load(shown).await
    }

    /// Waits until a job has ended, at most `timeout`, and returns the job (compatibility §6.3). In the full view, a
    /// job in doubt is returned at once as well, because its status does not change until an operator decides.
    pub async fn wait(&self, caller: &Caller, id: JobId, view: View, timeout: Duration) -> Result<Shown, Error> {
        self.shared.records.wait(caller, id, view, timeout).await
    }

    /// Like [`Self::wait`], for a job's retry family: waits until a member has ended that is not retried.
    pub async fn wait_family(&self, caller: &Caller, id: JobId, view: View, timeout: Duration) -> Result<Shown, Error> {
        self.shared.records.wait_family(caller, id, view, timeout).await
    }

    /// The tree of a job, as far as it is in the state: ended jobs leave the state after a while, together with their
    /// children.
    pub async fn tree(&self, caller: &Caller, id: JobId, consistency: Consistency) -> Result<Tree, Error> {
        self.shared.records.tree(caller, id, consistency).await
    }

    /// The recorded steps of a job, whether it runs, has ended, or is in the history only.
    pub async fn steps(
        &self,
        caller: &Caller,
        id: JobId,
        query: StepQuery,
        consistency: Consistency,
    ) -> Result<Steps, Error> {
        self.shared.records.steps(caller, id, query, consistency).await
    }

    /// Explains a job: why it waits, and what would start it.
    pub async fn explain(&self, caller: &Caller, id: JobId, consistency: Consistency) -> Result<Value, Error> {
        self.shared.records.explain(caller, id, consistency).await
    }

    /// The traces of the jobs that ended last, the latest first.
    pub async fn traces(
        &self,
        caller: &Caller,
        query: &TraceQuery,
        consistency: Consistency,
    ) -> Result<Vec<Value>, Error> {
        self.shared.records.traces(caller, query, consistency).await
    }

    /// The trace of a job; none for a job that is unknown, has not ended or was cancelled. For the id of a run of a chain, the trace
    /// of that.
    pub async fn trace(&self, caller: &Caller, id: &str, consistency: Consistency) -> Result<Value, Error> {
        if is_run(id) {
            return self.chain_trace(caller, id, consistency).await;
        }
        self.shared.records.trace(caller, id, consistency).await
    }
}

/// Questions.
impl Service {
    /// Questions of the caller's namespace, the oldest first.
    pub async fn questions(
        &self,
        caller: &Caller,
        query: &QuestionQuery,
        consistency: Consistency,
    ) -> Result<Vec<Arc<Question>>, Error> {
        self.shared.records.questions(caller, query, consistency).await
    }

    /// One question.
    pub async fn question(
        &self,
        caller: &Caller,
        id: QuestionId,
        consistency: Consistency,
    ) -> Result<Arc<Question>, Error> {
        self.shared.records.question(caller, id, consistency).await
    }

    /// Answers a question. A text that the answer stands for is accepted where `is_text` is set: the words of a person.
    pub async fn answer(
        &self,
        caller: &Caller,
        id: QuestionId,
        answer: &Value,
        is_text: bool,
    ) -> Result<Arc<Question>, Error> {
        self.shared.records.answer(caller, id, answer, is_text).await
    }

    /// Like [`Self::wait`] with the full view, but returns as well when the job or a job below it has an open question.
    pub async fn wait_or_asked(&self, caller: &Caller, id: JobId, timeout: Duration) -> Result<Shown, Error> {
        self.shared.records.wait_or_asked(caller, id, timeout).await
    }

    /// Waits until a job, or a job below it, has an open question, and returns the oldest of the first job that has one.
    pub async fn asked(&self, id: JobId) -> QuestionId {
        self.shared.records.asked(id).await
    }

    /// Like [`Self::asked`], for questions that the caller may answer.
    pub async fn asked_of(&self, caller: &Caller, id: JobId) -> QuestionId {
        self.shared.records.asked_of(caller, id).await
    }

    /// The open questions of a job and of those below it.
    pub async fn open_questions(&self, caller: &Caller, id: JobId) -> Result<Vec<Arc<Question>>, Error> {
        self.shared.records.open_questions(caller, id).await
    }

    /// The open questions of a job and of those below it that the caller may answer.
    pub async fn answerable(&self, caller: &Caller, id: JobId) -> Result<Vec<Arc<Question>>, Error> {
        self.shared.records.answerable(caller, id).await
    }

    /// Those of the questions that the caller may answer.
    pub fn of_caller(&self, caller: &Caller, questions: &[Arc<Question>]) -> Vec<Arc<Question>> {
        self.shared.records.of_caller(caller, questions)
    }
}
