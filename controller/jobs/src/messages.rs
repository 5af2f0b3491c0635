//! Messages to jobs: put into the job's inbox, whether it runs, waits or is parked.

use atlas_desk::{Caller, Error, json, requests};
use atlas_types::{Channel, Command, DeliverMessage, INLINE_BYTES_MAX, JobId, MessageId, Outcome, Payload, StepKey};
use bytes::Bytes;

use crate::Jobs;

/// A message as its sender gives it.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The sender's name for it; one is drawn if there is none.
    pub id: Option<MessageId>,
    /// The question that it answers.
    pub answers: Option<StepKey>,
    /// What it is about.
    pub channel: Option<Channel>,
    /// JSON.
    pub body: Bytes,
}

impl Jobs {
    /// Sends a message to a job that has not ended, and tells its id and whether the job had it before.
    pub async fn send_message(
        &self,
        caller: &Caller,
        job: JobId,
        message: NewMessage,
    ) -> Result<(MessageId, bool), Error> {
        self.desk.may_control_job(caller, job).await?;
        self.send_message_for(caller, job, message).await
    }

    /// The same for an agent that writes to its team.
    pub async fn send_message_for(
        &self,
        caller: &Caller,
        job: JobId,
        message: NewMessage,
    ) -> Result<(MessageId, bool), Error> {
        let NewMessage { id, answers, channel, body } = message;
        let body = json::mended("a message", body);
        json::check(&body).map_err(|error| Error::Malformed(error.to_string()))?;
        if body.len() > INLINE_BYTES_MAX {
            return Err(Error::TooLarge { what: "the message", limit: INLINE_BYTES_MAX as u64 });
        }
        let id = match id {
            Some(id) => id,
            None => MessageId::new(&format!("msg-{:016x}", self.desk.env.entropy.u64()))?,
        };
        let deliver = DeliverMessage { job, id: id.clone(), answers, channel, payload: Payload::inline(&body) };
        match self.desk.propose(requests::of(caller, Command::DeliverMessage(deliver))).await {
            Ok(Outcome::Delivered { repeated }) => Ok((id, repeated)),
            // A leader of another version may answer in a way that this one does not know.
            Ok(_) => Err(Error::OutcomeUnknown),
            // An ended job may have left the state already.
            Err(Error::UnknownJob) => match self.desk.archived(&self.desk.read().await?, job).await? {
                Some(job) if job.namespace == caller.namespace => Err(Error::WrongStatus { status: job.status }),
                _ => Err(Error::UnknownJob),
            },
            Err(error) => Err(error),
        }
    }
}
