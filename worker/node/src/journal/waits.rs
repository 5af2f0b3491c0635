//! Waits of an agent with a journal. Each is a step: its outcome is recorded, and a later attempt replays it.
//!
//! A wait that lasts parks the job. The attempt ends then, and the next one waits again at the same step. It need not know
//! whether the attempt before parked or was lost.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use atlas_model::ToolCall as Asked;
use atlas_turn::record::QuestionEnd;
use atlas_types::{
    FencingToken, JobId, Message, Micros, Park, PayloadBody, SpawnStep, StepKey, StepKind, StepUsage, TEAM, Timestamp,
    Wait,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};

use super::{Journal, JournalError, Made};
use crate::attempt::{Asker as CallAsker, JournaledCall, Resumed, SlotEvent, SpawnCall, ToolCall};
use crate::mailbox::Answer;

/// A message that a job has read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Received {
    /// The sender's name for it.
    pub id: String,
    /// Who sent it.
    pub from: String,
    /// When it was delivered, in microseconds since 1970.
    pub at_us: i64,
    /// The question that it answers: the key of the step that asks, in hexadecimal digits.
    pub answers: Option<String>,
    /// What it says.
    pub body: Box<RawValue>,
}

/// A job that an agent spawns and waits for.
#[derive(Debug, Clone, Serialize)]
pub struct ChildCall {
    /// The agent that it is for.
    pub agent: String,
    /// Its input.
    pub input: Box<RawValue>,
    /// Higher runs first.
    pub priority: i64,
    /// Whether `agent` is the name of a skill.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skill: bool,
}

/// How a spawned job ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildEnd {
    /// Its output.
    Completed(Box<RawValue>),
    /// Its error.
    Failed(String),
    /// Why there is no such job.
    Refused(String),
}

/// How long an inbox is asked for another message: those that it has come at once.
const UNREAD_PATIENCE: Duration = Duration::from_millis(100);

/// What a refusal starts with that ends the job.
pub(crate) const UNATTENDED: &str = "E3044: ";

impl Journal {
    /// The time, which is the same in each attempt.
    pub async fn time(&mut self) -> Result<Timestamp, JournalError> {
        let wall = self.env.clock.wall().0;
        let outcome = self.step(StepKind::Effect, key("time", &()), || async move { made(&wall) }).await?;
        self.read_outcome(&outcome).map(Timestamp)
    }

    /// Waits until a time.
    pub async fn sleep(&mut self, until: Timestamp) -> Result<(), JournalError> {
        let key = key("sleep", &until.0);
        if self.finished(StepKind::Sleep, key).await?.is_some() {
            return Ok(());
        }
        if let Some(left) = self.left(until) {
            let over = self.env.clock.sleep(left);
            // If the leader says that the time has come, it has: its clock wakes the job.
            self.wait(vec![Wait::Time { at: until }], over).await?;
        }
        self.finish(StepKind::Sleep, key, &()).await?;
        Ok(())
    }

    /// Waits for the next message to the job, at most until a time. None if there is none by then.
    pub async fn receive(&mut self, until: Option<Timestamp>) -> Result<Option<Received>, JournalError> {
        let key = key("receive", &(self.messages_read, until.map(|until| until.0)));
        let outcome = match self.finished(StepKind::Effect, key).await? {
            Some(outcome) => outcome,
            None => {
                let message = self.next_message(self.messages_read, until).await?;
                let received = message.map(|message| self.received(&message)).transpose()?;
                self.finish(StepKind::Effect, key, &received).await?
            }
        };
        let received: Option<Received> = self.read_outcome(&outcome)?;
        self.messages_read += u64::from(received.is_some());
        Ok(received)
    }

    /// All messages that the job has now and has not read. The caller records them, and notes then that they are read. The job does
    /// not park meanwhile, because other work of it may go on.
    pub(crate) async fn unread(&mut self) -> Result<Vec<Received>, JournalError> {
        let mut unread = Vec::new();
        loop {
            let (answer, message) = oneshot::channel();
            let number = self.messages_read + unread.len() as u64;
            self.say(SlotEvent::Read { token: self.token, number, answer }).await?;
            tokio::select! {
                biased;
                message = message => {
                    let message = message.map_err(|_| JournalError::Stopped)?;
                    unread.push(self.received(&message)?);
                }
                () = self.env.clock.sleep(UNREAD_PATIENCE) => return Ok(unread),
            }
        }
    }

    /// Notes that recorded steps have read so many more messages.
    pub(crate) fn note_read(&mut self, read: u64) {
        self.messages_read += read;
    }

    /// Waits for the message of a number. What was not recorded as read stays in the inbox if the job is parked meanwhile.
    async fn next_message(
        &mut self,
        number: u64,
        until: Option<Timestamp>,
    ) -> Result<Option<Arc<Message>>, JournalError> {
        let (answer, mut message) = oneshot::channel();
        self.say(SlotEvent::Read { token: self.token, number, answer }).await?;
        let waits: Vec<_> = [Wait::Message].into_iter().chain(until.map(|at| Wait::Time { at })).collect();
        loop {
            let left = until.map(|until| self.left(until).unwrap_or_default());
            let clock = Arc::clone(&self.env.clock);
            let time = async move {
                match left {
                    Some(left) => clock.sleep(left).await,
                    None => pending().await,
                }
            };
            let over = async {
                tokio::select! {
                    biased;
                    message = &mut message => message.map(Some),
                    () = time => Ok(None),
                }
            };
            match self.wait(waits.clone(), over).await? {
                Some(message) => return message.map_err(|_| JournalError::Stopped),
                // Messages arrive before the leader's answer. Without one, it is the time that has come.
                None => match message.try_recv() {
                    Ok(message) => return Ok(Some(message)),
                    Err(_) if until.is_some() => return Ok(None),
                    Err(_) => {}
                },
            }
        }
    }

    fn received(&self, message: &Message) -> Result<Received, JournalError> {
        let body = match &message.payload.body {
            PayloadBody::Inline(bytes) => self.read_outcome(bytes)?,
            // No job has such a message.
            PayloadBody::Artifact { .. } => RawValue::NULL.to_owned(),
        };
        let (id, from) = (message.id.to_string(), message.from.to_string());
        Ok(Received { id, from, at_us: message.at.0, answers: message.answers.map(|key| key.to_string()), body })
    }

    /// Spawns a job, and waits for its end or the end of the last retry of it. A later attempt waits for the same job.
    pub async fn child(&mut self, call: ChildCall) -> Result<ChildEnd, JournalError> {
        let key = key("child", &call);
        let outcome = match self.finished(StepKind::Child, key).await? {
            Some(outcome) => outcome,
            None => {
                let end = match self.child_end(key, call).await? {
                    Answer::Completed(output) => ChildEnd::Completed(self.read_outcome(&output)?),
                    Answer::Failed(error) => ChildEnd::Failed(error),
                    Answer::Refused(why) => ChildEnd::Refused(why),
                };
                self.finish(StepKind::Child, key, &end).await?
            }
        };
        self.read_outcome(&outcome)
    }

    /// What begins waits whose results do not depend on their order.
    pub(crate) fn asker(&self) -> Asker {
        Asker { job: self.job, token: self.token, again: self.again, limit: self.limit, told: self.told.clone() }
    }

    async fn child_end(&mut self, key: StepKey, call: ChildCall) -> Result<Answer, JournalError> {
        let step = SpawnStep { number: self.next(), key };
        let Begun { wait, mut end } = self.asker().child(step, call).await?;
        self.answered(vec![wait], &mut end).await
    }

    /// Asks people a question with a tool of the platform, and waits for the answer. A later attempt waits for the same question.
    pub(crate) async fn question(&mut self, call: &Asked) -> Result<QuestionEnd, JournalError> {
        let key = StepKey(QuestionEnd::key(self.next(), call).0);
        let outcome = match self.finished(StepKind::Question, key).await? {
            Some(outcome) => outcome,
            None => {
                let end = match self.question_end(key, &call.name, &call.arguments).await? {
                    Answer::Completed(result) => QuestionEnd::Ended(self.read_outcome(&result)?),
                    Answer::Failed(why) | Answer::Refused(why) if why.starts_with(UNATTENDED) => {
                        return Err(JournalError::Unattended(why));
                    }
                    Answer::Failed(why) | Answer::Refused(why) => QuestionEnd::Refused(why),
                };
                self.finish(StepKind::Question, key, &end).await?
            }
        };
        self.read_outcome(&outcome)
    }

    async fn question_end(&mut self, key: StepKey, tool: &str, arguments: &Value) -> Result<Answer, JournalError> {
        let Begun { wait, mut end } = self.asker().question(key, tool, arguments).await?;
        self.answered(vec![wait], &mut end).await
    }

    /// Waits for the leader's answer about a child or a question.
    async fn answered(
        &mut self,
        waits: Vec<Wait>,
        end: &mut oneshot::Receiver<Answer>,
    ) -> Result<Answer, JournalError> {
        loop {
            match self.wait(waits.clone(), &mut *end).await? {
                Some(answer) => return answer.map_err(|_| JournalError::Stopped),
                // The leader does not know the child or the question yet, or the answer is on its way.
                None => match end.try_recv() {
                    Ok(answer) => return Ok(answer),
                    Err(oneshot::error::TryRecvError::Empty) => {}
                    Err(oneshot::error::TryRecvError::Closed) => return Err(JournalError::Stopped),
                },
            }
        }
    }

    /// Lets the job leave a node that drains, before a step that is not recorded.
    pub(crate) async fn may_leave(&mut self) -> Result<(), JournalError> {
        if self.next() > 0 {
            self.wait(Vec::new(), pending::<()>()).await?;
        }
        Ok(())
    }

    /// The recorded outcome of a wait. A job without recorded steps cannot park, so a wait is never the first step.
    async fn finished(&mut self, kind: StepKind, key: StepKey) -> Result<Option<Arc<[u8]>>, JournalError> {
        if self.next() == 0 {
            self.step(StepKind::Start, self::key("start", &()), || async { made(&()) }).await?;
        }
        self.recorded(kind, key).await
    }

    /// Records the outcome of a wait.
    async fn finish(
        &mut self,
        kind: StepKind,
        key: StepKey,
        outcome: &impl Serialize,
    ) -> Result<Arc<[u8]>, JournalError> {
        let Made { outcome, usage } = made(outcome)?;
        self.record(kind, key, outcome, usage).await
    }

    /// Waits for `over`. None if the leader says first that one of the waits is over. Does not return if the job is parked.
    pub(crate) async fn wait<T>(
        &mut self,
        waits: Vec<Wait>,
        over: impl Future<Output = T>,
    ) -> Result<Option<T>, JournalError> {
        self.wait_on((waits, Duration::ZERO), over).await
    }

    /// Goes on with a wait that has lasted for some time, so that the job is parked sooner.
    pub(crate) async fn wait_on<T>(
        &mut self,
        (waits, waited): (Vec<Wait>, Duration),
        over: impl Future<Output = T>,
    ) -> Result<Option<T>, JournalError> {
        if !self.parks {
            return Ok(if waits.is_empty() { None } else { Some(over.await) });
        }
        let lasted = self.env.clock.monotonic().saturating_sub(self.began);
        let used = Micros::from(lasted.saturating_sub(self.left_out));
        let park = Park { journal_length: self.next(), waits, used, read: self.messages_read };
        let (answer, mut resumed) = oneshot::channel();
        self.say(SlotEvent::Wait { token: self.token, park, waited, answer }).await?;
        let mut waiting = Waiting { told: self.told.clone(), token: self.token, ended: false };
        let over = tokio::select! {
            biased;
            resumed = &mut resumed => {
                waiting.ended = true;
                return continues(resumed).map(|()| None);
            }
            over = over => over,
        };
        waiting.ended = true;
        // The leader may have parked the job meanwhile.
        self.say(SlotEvent::WaitOver { token: self.token }).await?;
        continues(resumed.await).map(|()| Some(over))
    }

    async fn say(&self, event: SlotEvent) -> Result<(), JournalError> {
        self.told.send(event).await.map_err(|_| JournalError::Stopped)
    }

    fn read_outcome<T: DeserializeOwned>(&self, outcome: &[u8]) -> Result<T, JournalError> {
        serde_json::from_slice(outcome).map_err(|error| JournalError::Unreadable { step: self.next(), error })
    }

    /// How long it is until a time; none if it has come, here or at the leader.
    fn left(&self, until: Timestamp) -> Option<Duration> {
        let left = u64::try_from(until.0.saturating_sub(self.env.clock.wall().0)).ok().filter(|left| *left > 0);
        left.filter(|_| until > self.slept_until).map(Duration::from_micros)
    }
}

/// Begins waits of one attempt.
pub(crate) struct Asker {
    job: JobId,
    token: FencingToken,
    again: bool,
    limit: Micros,
    told: mpsc::Sender<SlotEvent>,
}

/// A wait, and where its end arrives.
pub(crate) struct Begun {
    pub(crate) wait: Wait,
    pub(crate) end: oneshot::Receiver<Answer>,
}

impl Asker {
    /// Spawns a job. A later attempt that spawns at the same step finds it.
    pub(crate) async fn child(&self, step: SpawnStep, call: ChildCall) -> Result<Begun, JournalError> {
        let ChildCall { agent, input, priority, skill } = call;
        let (answer, end) = oneshot::channel();
        let journaled = Some(JournaledCall { step, again: self.again, answer });
        // Longer than the attempt lives: its own limit ends the wait.
        let timeout = self.limit.as_duration();
        let call = SpawnCall { call: 0, agent, skill, input, priority, timeout, journaled };
        self.say(SlotEvent::Spawn { token: self.token, call }).await?;
        Ok(Begun { wait: Wait::Child { job: step.child(self.job) }, end })
    }

    /// Asks people. A later attempt that asks with the same key finds the question.
    pub(crate) async fn question(&self, key: StepKey, tool: &str, arguments: &Value) -> Result<Begun, JournalError> {
        let (answer, end) = oneshot::channel();
        let (tool, arguments) = (tool.to_owned(), arguments.to_string().into_bytes().into());
        let call = ToolCall { tool, arguments, key, again: self.again, asker: CallAsker::Journal(answer) };
        self.say(SlotEvent::Tool { token: self.token, call }).await?;
        Ok(Begun { wait: Wait::Question { id: key.question(self.job) }, end })
    }

    /// Waits for the message of a number, after the job has read all before that.
    pub(crate) async fn message(&self, number: u64) -> Result<oneshot::Receiver<Arc<Message>>, JournalError> {
        let (answer, message) = oneshot::channel();
        self.say(SlotEvent::Read { token: self.token, number, answer }).await?;
        Ok(message)
    }

    /// Cancels a spawned job, with the jobs below it. One that has ended stays as it is.
    pub(crate) async fn cancel(&self, step: SpawnStep) -> Result<(), JournalError> {
        let job = step.child(self.job).to_string();
        let begun = self.question(hashed(&("cancel", &job)), &format!("{TEAM}cancel"), &json!({ "job": job })).await?;
        begun.end.await.map(drop).map_err(|_| JournalError::Stopped)
    }

    async fn say(&self, event: SlotEvent) -> Result<(), JournalError> {
        self.told.send(event).await.map_err(|_| JournalError::Stopped)
    }
}

/// A wait that has begun. If the agent no longer waits, its job must not be parked.
struct Waiting {
    told: mpsc::Sender<SlotEvent>,
    token: FencingToken,
    ended: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.ended {
            // If there is no room, the job may be parked, and the next attempt continues at this step.
            let _ = self.told.try_send(SlotEvent::WaitOver { token: self.token });
        }
    }
}

/// Whether the attempt continues after a wait.
fn continues(resumed: Result<Resumed, oneshot::error::RecvError>) -> Result<(), JournalError> {
    match resumed {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(JournalError::NotParked { why }),
        Err(_) => Err(JournalError::Stopped),
    }
}

/// The key of a step.
fn key(what: &str, asked: &impl Serialize) -> StepKey {
    hashed(&(what, asked))
}

/// The hash of a request.
pub(crate) fn hashed(asked: &impl Serialize) -> StepKey {
    // What is asked always has a JSON form.
    let text = serde_json::to_vec(asked).unwrap_or_default();
    let hash: [u8; 32] = Sha256::digest(text).into();
    let mut key = [0; 16];
    key.copy_from_slice(&hash[..16]);
    StepKey(key)
}

/// An outcome that cost nothing.
pub(crate) fn made(outcome: &impl Serialize) -> Result<Made, JournalError> {
    let outcome = serde_json::to_vec(outcome).map_err(|error| JournalError::Unreadable { step: 0, error })?;
    Ok(Made { outcome, usage: StepUsage::default() })
}
