//! The messages of a durable program. They are read in their order. One that no waiting call takes is put aside in the journal, so that it
//! does not keep later ones, or the park of the job, waiting.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atlas_durable::{CallOutcome, CallRecord};
use atlas_types::{Message, PayloadBody, StepKind, StepUsage, Wait};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Notify, oneshot};

use super::call::{Carried, End, Inner, ended};
use super::lock;
use crate::journal::{JournalError, hashed, made};

/// The most messages that are put aside at a time.
const KEPT_MAX: usize = 1_024;

/// Of how many calls it is known which message they have taken, in case that the program gives it up.
const GIVEN_MAX: usize = 64;

/// What the record of a message begins with that was put aside.
const ASIDE: &[u8] = br#"{"aside":"#;

/// A message that was put aside, as it is recorded.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Aside {
    /// Its number.
    pub(super) aside: u64,
    /// The job that it was sent to.
    pub(super) of: String,
    pub(super) message: Kept,
}

/// Which message one is. Those of jobs whose record this one goes on with come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MessagePlace {
    pub(super) is_own: bool,
    of: String,
    number: u64,
}

impl MessagePlace {
    pub(super) fn new(of: String, number: u64, job: &str) -> Self {
        Self { is_own: of == job, of, number }
    }

    /// That of the message which a call has taken.
    pub(super) fn of(record: &CallRecord, job: &str) -> Option<Self> {
        let of = record.of.clone().unwrap_or_else(|| job.to_owned());
        record.message.map(|number| Self::new(of, number, job))
    }
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
    place: MessagePlace,
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
    /// Messages that were put aside.
    kept: BTreeMap<MessagePlace, Kept>,
    /// What the latest calls have taken.
    given: BTreeMap<u64, (MessagePlace, Kept)>,
    /// The number of the next message.
    next: u64,
    /// The calls that wait, in their order.
    waiting: BTreeMap<u64, (String, oneshot::Sender<Given>)>,
}

impl Inbox {
    pub(super) fn new(kept: BTreeMap<MessagePlace, Kept>, next: u64) -> Self {
        let state = State { kept, given: BTreeMap::new(), next, waiting: BTreeMap::new() };
        Self { state: Mutex::new(state), waits: Notify::new() }
    }

    /// A call has taken a message.
    pub(super) fn note_given(&self, call: u64, place: MessagePlace, message: Kept) {
        let mut state = lock(&self.state);
        state.kept.remove(&place);
        state.given.insert(call, (place, message));
        if state.given.len() > GIVEN_MAX {
            state.given.pop_first();
        }
    }

    /// The program has given up a call before it got the message, which is for another call then.
    pub(super) fn give_back(&self, call: u64) {
        let mut state = lock(&self.state);
        if let Some((place, message)) = state.given.remove(&call) {
            state.kept.insert(place, message);
        }
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
            let found = state.kept.iter().find(|(_, message)| message.is_for(&call.name));
            let found = found.map(|(place, _)| place.clone());
            found.and_then(|place| state.kept.remove(&place).map(|message| (place, message)))
        };
        if let Some((place, message)) = taken {
            let record = self.record_of_message(call, (&place, &message)).await?;
            let bytes = self.bytes_of(&record)?;
            self.book.record(StepKind::Effect, call.key, bytes, self.usage(call)).await?;
            self.is_ahead.store(true, Ordering::Relaxed);
            self.inbox.note_given(call.call, place, message);
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
                () = call.forgotten.notified() => true,
                given = &mut given => return (given.ok(), false),
                () = self.sleep_until(until) => false,
            };
            lock(&self.inbox.state).waiting.remove(&call.call);
            // A message may have been given at the same time. A call that is given up leaves it.
            (given.try_recv().ok().filter(|_| !is_forgotten), is_forgotten)
        };
        let (given, is_forgotten) = self.book.wait(waits, over).await;
        match given {
            Some(Given { place, message, recorded }) => {
                let record = self.record_of_message(call, (&place, &message)).await?;
                let bytes = self.bytes_of(&record)?;
                self.book.record_read(StepKind::Effect, call.key, bytes, self.usage(call)).await?;
                self.is_ahead.store(true, Ordering::Relaxed);
                self.inbox.note_given(call.call, place, message);
                // If nobody hears it, the attempt is over.
                let _ = recorded.send(());
                Ok(ended(record))
            }
            None if is_forgotten => Ok(End::Forgotten),
            None => self.record(call, StepKind::Effect, CallOutcome::null()).await,
        }
    }

    async fn record_of_message(
        &self,
        call: &Carried,
        (place, message): (&MessagePlace, &Kept),
    ) -> Result<CallRecord, JournalError> {
        let value = to_raw_value(message).map_err(|error| JournalError::Unreadable { step: 0, error })?;
        let record = self.record_of(call, CallOutcome::Value(value)).await;
        Ok(CallRecord { message: Some(place.number), of: Some(place.of.clone()), ..record })
    }

    /// Reads the messages of the job while calls wait for some. Ends only with an error.
    pub(super) async fn read_messages(&self) -> Result<std::convert::Infallible, JournalError> {
        let job = self.job.to_string();
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
                    let place = MessagePlace::new(job.clone(), number, &job);
                    let given = Given { place, message: message.clone(), recorded };
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
                    if lock(&self.inbox.state).kept.len() >= KEPT_MAX {
                        return Err(JournalError::TooMuch(format!(
                            "{KEPT_MAX} messages to the job are of channels that it does not read; let it receive them, or send them to another job"
                        )));
                    }
                    let _working = self.book.begin().await?;
                    let aside = Aside { aside: number, of: job.clone(), message: message.clone() };
                    let outcome = made(&aside)?.outcome;
                    self.note_bytes(outcome.len())?;
                    let key = hashed(&("aside", &job, number));
                    self.book.record_read(StepKind::Effect, key, outcome, StepUsage::default()).await?;
                    lock(&self.inbox.state).kept.insert(MessagePlace::new(job.clone(), number, &job), message);
                }
            }
            lock(&self.inbox.state).next = number + 1;
        }
    }
}
