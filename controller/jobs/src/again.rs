//! Jobs: cancel, retry.

use atlas_desk::{Caller, Error, requests};
use atlas_registry::{RunAgain, unknown_agent};
use atlas_types::{
    CONVERSATION_METADATA, CancelJob, Command, FailureKind, Job, JobId, Outcome, QuestionRule, RequestId, RetryJob,
};

use crate::{Jobs, Submission, relations};

/// How an ended job runs again.
#[derive(Debug, Clone, Default)]
pub struct RetryRequest {
    /// After the recorded steps of the ended job.
    pub resume: bool,
    /// What happens to its questions to people; none for what happens to those of the ended job.
    pub questions: Option<QuestionRule>,
    /// The caller's name for the request.
    pub request_id: Option<RequestId>,
}

/// Cancelling and retrying. Decisions on jobs in doubt are in `resolve`.
impl Jobs {
    /// Cancels a pending job, or with `running` also a running one. False if there was nothing to cancel.
    pub async fn cancel(&self, caller: &Caller, id: JobId, running: bool) -> Result<bool, Error> {
        self.desk.may_control_job(caller, id).await?;
        self.cancel_for(caller, id, running).await
    }

    /// The same for what controls the job by itself: the run or the agent that made it.
    pub async fn cancel_for(&self, caller: &Caller, id: JobId, running: bool) -> Result<bool, Error> {
        let request = requests::of(caller, Command::CancelJob(CancelJob { job: id, running }));
        match self.desk.propose(request).await {
            Ok(Outcome::Cancelled { accepted }) => Ok(accepted),
            Ok(_) => Ok(true),
            // An ended job may have left the state. It is known, but cannot be cancelled.
            Err(Error::UnknownJob) => match self.desk.archived(&self.desk.read().await?, id).await? {
                Some(job) if job.namespace == caller.namespace => Ok(false),
                _ => Err(Error::UnknownJob),
            },
            Err(Error::WrongStatus { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Runs an ended job again, as a new job. One that resumes has the recorded steps of the ended job.
    pub async fn retry(&self, caller: &Caller, id: JobId, retry: RetryRequest) -> Result<JobId, Error> {
        let RetryRequest { resume, questions, .. } = &retry;
        let resume = *resume;
        self.desk.may_control_job(caller, id).await?;
        let state = self.desk.current().await?;
        if let Some(job) = state.job(id).filter(|job| job.namespace == caller.namespace) {
            if !job.status.is_terminal() {
                return Err(Error::WrongStatus { status: job.status });
            }
            let pinned = job.pin.as_ref().map(|pin| pin.version);
            let agent = pinned.and_then(|version| state.agent(&job.namespace, &job.agent, version));
            match (pinned, agent) {
                (_, Some(agent)) => match self.registry.may_run_again(caller, &state, job, agent, RESUMES).await {
                    Err(Error::ApprovalNeeded { .. }) if !resume => {
                        // A new job waits for its approval.
                        return self.submit_again(caller, job, retry).await;
                    }
                    answer => answer?,
                },
                (Some(version), None) => {
                    let version = version.to_string();
                    return Err(unknown_agent(&state, caller, job.agent.as_str(), Some(&version)));
                }
                (None, None) => {}
            }
            if lacked_agents(job) || was_denied(job) || !job.is_approved() {
                // An agent that was missing when the job was submitted may be registered now, a policy may have changed, and a job that was
                // not approved is asked about again.
                return self.submit_again(caller, job, retry).await;
            }
        }
        let new = JobId(self.desk.env.entropy.u64());
        let command = RetryJob { job: id, id: new, resume, questions: questions.clone() };
        let mut request = requests::of(caller, Command::RetryJob(command));
        if retry.request_id.is_some() {
            (request.origin.request_id, request.origin.body_hash) = (retry.request_id.clone(), body_hash(id, &retry));
        }
        match self.desk.propose(request).await {
            Ok(Outcome::Submitted { job, .. }) => Ok(job),
            Ok(_) => Ok(new),
            Err(Error::UnknownJob) => {
                // The job has left the state. A new independent job with the same content is submitted.
                let job = self
                    .desk
                    .archived(&self.desk.read().await?, id)
                    .await?
                    .filter(|job| job.namespace == caller.namespace);
                let job = job.ok_or(Error::UnknownJob)?;
                if resume && job.journal.is_some() {
                    return Err(Error::JournalGone);
                }
                self.submit_again(caller, &job, retry).await
            }
            Err(error) => Err(error),
        }
    }

    /// Submits a new independent job with the content of an ended one.
    async fn submit_again(&self, caller: &Caller, job: &Job, retry: RetryRequest) -> Result<JobId, Error> {
        let RetryRequest { questions, request_id, .. } = retry;
        let mut again = Submission { request_id, ..Submission::again(job, self.desk.bytes(&job.input).await?) };
        again.questions = questions.unwrap_or(again.questions);
        // The input of a turn has what was said before. The answer is not added: the turn has ended.
        let again = match conversation_of(job) {
            Some(name) => relations::in_conversation(again, &name),
            None => again,
        };
        self.submit_as(caller, &again, None).await
    }
}

/// A hash that differs between retries of different jobs, and between those that do not ask for the same.
fn body_hash(id: JobId, retry: &RetryRequest) -> u64 {
    let hash = id.derive(u64::MAX - u64::from(retry.resume));
    let rule = retry.questions.iter().map(|rule| rule.to_string()).collect::<String>();
    rule.bytes().fold(hash, |hash, byte| hash.derive(u64::from(byte))).0
}

/// The conversation of which a job was a turn.
fn conversation_of(job: &Job) -> Option<String> {
    let metadata: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&job.metadata).ok()?;
    Some(metadata.get(CONVERSATION_METADATA)?.as_str()?.to_owned())
}

/// What is said of a job that runs again with its recorded steps.
const RESUMES: RunAgain = RunAgain { name: "a job that resumes", changes: false };

/// True if a policy denied a job for which nobody waited. It has no version.
fn was_denied(job: &Job) -> bool {
    job.pin.is_none() && job.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Rejected)
}

/// True if a job failed because required agents were missing.
fn lacked_agents(job: &Job) -> bool {
    job.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Dependency)
}
