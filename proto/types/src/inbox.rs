//! Messages to a job that it has not read, or read a short time ago.

use std::sync::Arc;

use crate::{Channel, Mail, MessageId, Payload, Principal, StepKey, Timestamp};

/// Most messages that a job has and has not read.
pub const INBOX_MESSAGES_MAX: u64 = 64;

/// Most bytes of these messages.
pub const INBOX_BYTES_MAX: u64 = 256 * 1_024;

/// How many ids of messages that a job has read are remembered, so that a repeat is not delivered again.
pub const INBOX_READ_MAX: usize = 64;

/// One message to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The sender's name for it.
    pub id: MessageId,
    /// The question that it answers: the key of the step that asks.
    pub answers: Option<StepKey>,
    /// What it is about.
    pub channel: Option<Channel>,
    /// What it says, JSON.
    pub payload: Payload,
    /// Who sent it.
    pub from: Principal,
    /// When it was delivered.
    pub at: Timestamp,
}

/// The messages to a job that has not ended. They are numbered from 0 in the order of their delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inbox {
    /// How many messages the job has read: the number of the first that it has not.
    pub read: u64,
    /// The ids of the last ones that it read, the oldest first.
    pub read_ids: Vec<MessageId>,
    /// Those that it has not read, by number.
    pub messages: Vec<Arc<Message>>,
}

impl Inbox {
    /// The number of the next message.
    pub fn next(&self) -> u64 {
        self.read + self.messages.len() as u64
    }

    /// Bytes of the messages that were not read.
    pub fn bytes(&self) -> u64 {
        self.messages.iter().map(|message| message.payload.inline_bytes()).sum()
    }

    /// The messages from a number on.
    pub fn from(&self, number: u64) -> &[Arc<Message>] {
        let read = usize::try_from(number.saturating_sub(self.read)).unwrap_or(usize::MAX);
        self.messages.get(read..).unwrap_or_default()
    }

    /// The messages from a number on, with the number of the first.
    pub fn mail(&self, number: u64) -> Mail {
        Mail { first: number.max(self.read), messages: self.from(number).to_vec() }
    }

    /// Drops the messages before a number and remembers their ids.
    pub fn take(&mut self, number: u64) {
        let count = usize::try_from(number.saturating_sub(self.read)).unwrap_or(usize::MAX).min(self.messages.len());
        self.read_ids.extend(self.messages.drain(..count).map(|message| message.id.clone()));
        self.read += count as u64;
        let forgotten = self.read_ids.len().saturating_sub(INBOX_READ_MAX);
        self.read_ids.drain(..forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str) -> Arc<Message> {
        let id = MessageId::new(id).expect("a name");
        let (answers, channel, at, from) = (None, None, Timestamp(1), Principal::local());
        Arc::new(Message { id, answers, channel, payload: Payload::inline(b"{}"), from, at })
    }

    #[test]
    fn what_was_read_leaves_only_its_id() {
        let mut inbox = Inbox::default();
        inbox.messages.extend((0..100).map(|number| message(&format!("m{number}"))));
        assert_eq!((inbox.next(), inbox.bytes(), inbox.from(98).len(), inbox.from(200).len()), (100, 200, 2, 0));
        inbox.take(3);
        inbox.take(2);
        let mail = |number| (inbox.mail(number).first, inbox.mail(number).messages.len());
        assert_eq!([mail(0), mail(98), mail(100)], [(3, 97), (98, 2), (100, 0)]);
        assert_eq!((inbox.read, inbox.next(), inbox.from(0).len()), (3, 100, 97));
        inbox.take(u64::MAX);
        assert_eq!((inbox.read, inbox.next(), inbox.read_ids.len()), (100, 100, INBOX_READ_MAX));
        assert_eq!(inbox.read_ids.last().map(MessageId::as_str), Some("m99"));
    }
}
