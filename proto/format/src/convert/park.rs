//! What parked jobs wait for, and their messages.

use std::sync::Arc;

use atlas_types::{
    ClusterTime, FencingToken, Inbox, JobId, Message, MessageId, Parked, Principal, QuestionId, StepKey, Timestamp,
    Wait,
};

use super::{fixed, name, required};
use crate::proto::wait::Kind;
use crate::{FormatError, proto};

impl From<&Parked> for proto::Parked {
    fn from(parked: &Parked) -> Self {
        Self { waits: waits_out(&parked.waits), due_us: parked.due.map(|due| due.0), fencing_token: parked.token.0 }
    }
}

impl TryFrom<proto::Parked> for Parked {
    type Error = FormatError;

    fn try_from(parked: proto::Parked) -> Result<Self, FormatError> {
        let (due, token) = (parked.due_us.map(ClusterTime), FencingToken(parked.fencing_token));
        Ok(Self { waits: waits_in(parked.waits)?, due, token })
    }
}

/// Waits, outward.
pub(super) fn waits_out(waits: &[Wait]) -> Vec<proto::Wait> {
    let kind = |wait: &Wait| match wait {
        Wait::Time { at } => Kind::UntilUs(at.0),
        Wait::Child { job } => Kind::ChildJobId(job.0),
        Wait::Message => Kind::Message(proto::AnyMessage {}),
        Wait::Answer { question } => Kind::Answer(question.0.to_vec()),
        Wait::Question { id } => Kind::QuestionId(id.0),
    };
    waits.iter().map(|wait| proto::Wait { kind: Some(kind(wait)) }).collect()
}

/// Waits, inward.
pub(super) fn waits_in(waits: Vec<proto::Wait>) -> Result<Vec<Wait>, FormatError> {
    let wait = |wait: proto::Wait| {
        Ok(match required("wait.kind", wait.kind)? {
            Kind::UntilUs(at) => Wait::Time { at: Timestamp(at) },
            Kind::ChildJobId(job) => Wait::Child { job: JobId(job) },
            Kind::Message(proto::AnyMessage {}) => Wait::Message,
            Kind::Answer(key) => Wait::Answer { question: StepKey(fixed("wait.answer", &key)?) },
            Kind::QuestionId(id) => Wait::Question { id: QuestionId(id) },
        })
    };
    waits.into_iter().map(wait).collect()
}

impl From<&Inbox> for proto::Inbox {
    fn from(inbox: &Inbox) -> Self {
        let message = |message: &Arc<Message>| proto::InboxMessage {
            message_id: message.id.to_string(),
            answers: question_out(message.answers),
            payload: Some((&message.payload).into()),
            principal: message.from.to_string(),
            at_us: message.at.0,
        };
        Self {
            read: inbox.read,
            read_ids: inbox.read_ids.iter().map(MessageId::to_string).collect(),
            messages: inbox.messages.iter().map(message).collect(),
        }
    }
}

impl TryFrom<proto::Inbox> for Inbox {
    type Error = FormatError;

    fn try_from(inbox: proto::Inbox) -> Result<Self, FormatError> {
        let message = |message: proto::InboxMessage| {
            Ok(Arc::new(Message {
                id: message_id("inbox_message.message_id", &message.message_id)?,
                answers: question_in("inbox_message.answers", &message.answers)?,
                payload: required("inbox_message.payload", message.payload)?.try_into()?,
                from: name("inbox_message.principal", &message.principal, Principal::new)?,
                at: Timestamp(message.at_us),
            }))
        };
        let read_ids = inbox.read_ids.iter().map(|id| message_id("inbox.read_ids", id));
        Ok(Self {
            read: inbox.read,
            read_ids: read_ids.collect::<Result<_, FormatError>>()?,
            messages: inbox.messages.into_iter().map(message).collect::<Result<_, FormatError>>()?,
        })
    }
}

pub(crate) fn message_id(field: &'static str, text: &str) -> Result<MessageId, FormatError> {
    name(field, text, MessageId::new)
}

/// The key of a question, outward: empty for none.
pub(super) fn question_out(key: Option<StepKey>) -> Vec<u8> {
    key.map_or_else(Vec::new, |key| key.0.to_vec())
}

/// The key of a question, inward.
pub(super) fn question_in(field: &'static str, key: &[u8]) -> Result<Option<StepKey>, FormatError> {
    if key.is_empty() { Ok(None) } else { Ok(Some(StepKey(fixed(field, key)?))) }
}
