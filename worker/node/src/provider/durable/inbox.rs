//! The messages of a durable program. They are read in their order. One that no waiting call takes is put aside in the journal, so that it
//! does not keep later ones, or the park of the job, waiting.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use atlas_durable::{CallRecord, Outcome};
use atlas_types::{Message, PayloadBody, StepKind, StepUsage, Wait};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Notify, oneshot};

use super::call::{Carried, End, Inner, ended};
use super::lock;
use crate::journal::{JournalError, hashed, made};

/// What the record of a message begins with that was put aside.
const ASIDE: &[u8] = br#"{"aside":"#;

/// A message that was put aside, as it is recorded.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Aside {
    /// Its number.
    pub(super) aside: u64,
    pub(super) message: Kept,
}

/// A message as a program gets it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    id: String,
    from: String,
    at_us: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    body: Box<RawValue>,
}

impl Aside {
    /// Reads the outcome of a step. None for those of other steps.
    pub(super) fn read(outcome: &[u8]) -> Option<Result<Self, serde_json::Error>> {
        outcome.starts_with(ASIDE).then(|| serde_json::from_slice(outcome))
    }
}

impl Kept {
    fn of(message: &Message) -> Self {
        let body = match &message.payload.body {
            PayloadBody::Inline(bytes) => serde_json::from_slice(bytes).ok(),
            // No job has such a message.
            PayloadBody::Artifact { .. } => None,
        };
        Self {
            id: message.id.to_string(),
            from: message.from.to_string(),
            at_us: message.at.0,
            channel: message.channel.as_ref().map(ToString::to_string),
            body: body.unwrap_or_else(|| RawValue::NULL.to_owned()),
        }
    }

    /// Whether a call takes it that waits for a channel; one that names none takes all.
    fn is_for(&self, channel: &str) -> bool {
        channel.is_empty() || self.channel.as_deref() == Some(channel)
    }
}

/// A message for a call. The next one is read once this one is recorded.
struct Given {
    number: u64,
    message: Kept,
    recorded: oneshot::Sender<()>,
}

/// The messages of a job, and the calls that wait for one.
pub(super) struct Inbox {
    state: Mutex<State>,
    /// Told when a call begins to wait.
    waits: Notify,
}

struct State {
    /// Messages that were put aside, by their numbers.
    kept: BTreeMap<u64, Kept>,
    /// The number of the next message.
    next: u64,
    /// The calls that wait, in their order.
    waiting: BTreeMap<u64, (String, oneshot::Sender<Given>)>,
}

impl Inbox {
    pub(super) fn new(kept: BTreeMap<u64, Kept>, next: u64) -> Self {
        Self { state: Mutex::new(State { kept, next, waiting: BTreeMap::new() }), waits: Notify::new() }
    }

    fn is_awaited(&self) -> bool {
        !lock(&self.state).waiting.is_empty()
    }
}

impl Inner {
    /// Waits for a message of the channel that the call names, at most for a time. One that was put aside comes first.
    pub(super) async fn receive(&self, call: &Carried, for_us: Option<i64>) -> Result<End, JournalError> {
        let _working = self.book.begin().await?;
        let taken = {
            let mut state = lock(&self.inbox.state);
            let found = state.kept.iter().find(|(_, message)| message.is_for(&call.name)).map(|(number, _)| *number);
            found.and_then(|number| Some((number, state.kept.remove(&number)?)))
        };
        if let Some((number, message)) = taken {
            let record = self.record_of_message(call, Some((number, &message))).await?;
            let bytes = self.bytes_of(&record)?;
            self.book.record(StepKind::Effect, call.key, bytes, StepUsage::default()).await?;
            return Ok(ended(record));
        }
        let until = match for_us {
            Some(us) => Some(self.until(call, Duration::from_micros(us.try_into().unwrap_or_default())).await?),
            None => None,
        };
        let (give, mut given) = oneshot::channel();
        lock(&self.inbox.state).waiting.insert(call.call, (call.name.clone(), give));
        self.inbox.waits.notify_one();
        let waits = [Wait::Message].into_iter().chain(until.map(|at| Wait::Time { at })).collect();
        let over = async {
            let is_forgotten = tokio::select! {
                biased;
                given = &mut given => return (given.ok(), false),
                () = call.forgotten.notified() => true,
                () = self.sleep_until(until) => false,
            };
            // A message may have been given at the same time.
            lock(&self.inbox.state).waiting.remove(&call.call);
            (given.try_recv().ok(), is_forgotten)
        };
        let (given, is_forgotten) = self.book.wait(waits, over).await;
        match given {
            Some(Given { number, message, recorded }) => {
                let record = self.record_of_message(call, Some((number, &message))).await?;
                let bytes = self.bytes_of(&record)?;
                self.book.record_read(StepKind::Effect, call.key, bytes).await?;
                // If nobody hears it, the attempt is over.
                let _ = recorded.send(());
                Ok(ended(record))
            }
            None if is_forgotten => Ok(End::Forgotten),
            None => self.record(call, StepKind::Effect, Outcome::null()).await,
        }
    }

    async fn record_of_message(
        &self,
        call: &Carried,
        message: Option<(u64, &Kept)>,
    ) -> Result<CallRecord, JournalError> {
        let value = message.map(|(_, message)| to_raw_value(message)).transpose();
        let value = value.map_err(|error| JournalError::Unreadable { step: 0, error })?;
        let record = self.record_of(call, value.map_or_else(Outcome::null, Outcome::Value)).await;
        Ok(CallRecord { message: message.map(|(number, _)| number), ..record })
    }

    /// Reads the messages of the job while calls wait for some. Ends only with an error.
    pub(super) async fn read_messages(&self) -> Result<std::convert::Infallible, JournalError> {
        let mut unread: Option<(u64, Kept)> = None;
        loop {
            while !self.inbox.is_awaited() {
                self.inbox.waits.notified().await;
            }
            let (number, message) = match unread.take() {
                Some(unread) => unread,
                None => {
                    let number = lock(&self.inbox.state).next;
                    let message = self.book.asker().message(number).await?;
                    let message = message.await.map_err(|_| JournalError::Stopped)?;
                    (number, Kept::of(&message))
                }
            };
            let waiting = {
                let mut state = lock(&self.inbox.state);
                let found = state.waiting.iter().find(|(_, (channel, _))| message.is_for(channel));
                let found = found.map(|(call, _)| *call);
                found.and_then(|call| state.waiting.remove(&call)).map(|(_, give)| give).ok_or(state.waiting.is_empty())
            };
            match waiting {
                Ok(give) => {
                    let (recorded, told) = oneshot::channel();
                    let given = Given { number, message: message.clone(), recorded };
                    let is_read = give.send(given).is_ok() && told.await.is_ok();
                    if !is_read {
                        unread = Some((number, message));
                        continue;
                    }
                }
                // Nobody waits any more: it stays where it is.
                Err(true) => {
                    unread = Some((number, message));
                    continue;
                }
                Err(false) => {
                    let _working = self.book.begin().await?;
                    let aside = Aside { aside: number, message: message.clone() };
                    let outcome = made(&aside)?.outcome;
                    self.book.record_read(StepKind::Effect, hashed(&("aside", number)), outcome).await?;
                    lock(&self.inbox.state).kept.insert(number, message);
                }
            }
            lock(&self.inbox.state).next = number + 1;
        }
    }
}
