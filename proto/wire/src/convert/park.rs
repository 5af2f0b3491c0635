//! Parks, and the messages to running jobs.

use std::sync::Arc;

use atlas_types::{
    Channel, FencingToken, INBOX_BYTES_MAX, INBOX_MESSAGES_MAX, JobId, Mail, Message, MessageId, Park, ParkResult,
    Principal, QuestionId, StepKey, WAITS_MAX, Wait,
};
use bytes::Bytes;

use super::time::{duration_in, duration_out, timestamp_in, timestamp_out};
use super::{ConvertError, bounded, fixed, name, required};
use crate::limits::TEXT_BYTES_MAX;
use crate::proto::worker::v1 as pb;
use crate::session::{ToLeader, ToWorker};

pub(super) fn park_out(number: u64, job: JobId, token: FencingToken, park: Park) -> pb::Park {
    let Park { journal_length, waits, used, read } = park;
    let waits = waits.into_iter().map(pb::Wait::from).collect();
    let (job_id, fencing_token, used) = (job.0, token.0, Some(duration_out(used)));
    pb::Park { number, job_id, fencing_token, journal_length, waits, used, read }
}

pub(super) fn park_in(frame: pb::Park) -> Result<ToLeader, ConvertError> {
    bounded("park.waits", frame.waits.len(), WAITS_MAX as usize)?;
    let park = Park {
        journal_length: frame.journal_length,
        waits: frame.waits.into_iter().map(Wait::try_from).collect::<Result<_, _>>()?,
        used: duration_in("park.used", frame.used)?,
        read: frame.read,
    };
    let (job, token) = (JobId(frame.job_id), FencingToken(frame.fencing_token));
    Ok(ToLeader::Park { number: frame.number, job, token, park })
}

impl From<Wait> for pb::Wait {
    fn from(wait: Wait) -> Self {
        use pb::wait::Kind;
        let kind = match wait {
            Wait::Time { at } => Kind::Until(timestamp_out(at)),
            Wait::Child { job } => Kind::ChildJobId(job.0),
            Wait::Message => Kind::Message(pb::AnyMessage {}),
            Wait::Answer { question } => Kind::Answer(key_out(question)),
            Wait::Question { id } => Kind::QuestionId(id.0),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<pb::Wait> for Wait {
    type Error = ConvertError;

    fn try_from(wait: pb::Wait) -> Result<Self, ConvertError> {
        use pb::wait::Kind;
        Ok(match required("wait.kind", wait.kind)? {
            Kind::Until(at) => Self::Time { at: timestamp_in("wait.until", Some(at))? },
            Kind::ChildJobId(job) => Self::Child { job: JobId(job) },
            Kind::Message(pb::AnyMessage {}) => Self::Message,
            Kind::Answer(key) => Self::Answer { question: key_in("wait.answer", &key)? },
            Kind::QuestionId(id) => Self::Question { id: QuestionId(id) },
        })
    }
}

pub(super) fn park_ack_out(number: u64, result: ParkResult) -> pb::ParkAck {
    let (result, refusal) = match result {
        ParkResult::Parked => (pb::ParkResult::Parked, String::new()),
        ParkResult::Ready => (pb::ParkResult::Ready, String::new()),
        ParkResult::Fenced => (pb::ParkResult::Fenced, String::new()),
        ParkResult::Busy => (pb::ParkResult::Busy, String::new()),
        ParkResult::Refused { why } => (pb::ParkResult::Refused, why),
    };
    pb::ParkAck { number, result: result.into(), refusal }
}

pub(super) fn park_ack_in(ack: pb::ParkAck) -> Result<ToWorker, ConvertError> {
    let result = match pb::ParkResult::try_from(ack.result).unwrap_or_default() {
        pb::ParkResult::Unspecified => {
            return Err(ConvertError::Value { field: "park_ack.result", found: ack.result.into() });
        }
        pb::ParkResult::Parked => ParkResult::Parked,
        pb::ParkResult::Ready => ParkResult::Ready,
        pb::ParkResult::Fenced => ParkResult::Fenced,
        pb::ParkResult::Busy => ParkResult::Busy,
        pb::ParkResult::Refused => {
            bounded("park_ack.refusal", ack.refusal.len(), TEXT_BYTES_MAX)?;
            ParkResult::Refused { why: ack.refusal }
        }
    };
    Ok(ToWorker::ParkAck { number: ack.number, result })
}

pub(super) fn messages_out(job: JobId, token: FencingToken, mail: &Mail) -> pb::Messages {
    pb::Messages { job_id: job.0, fencing_token: token.0, mail: Some(mail.into()) }
}

pub(super) fn messages_in(frame: pb::Messages) -> Result<ToWorker, ConvertError> {
    let mail = required("messages.mail", frame.mail)?.try_into()?;
    Ok(ToWorker::Messages { job: JobId(frame.job_id), token: FencingToken(frame.fencing_token), mail })
}

impl From<&Mail> for pb::Mail {
    fn from(mail: &Mail) -> Self {
        let message = |message: &Arc<Message>| pb::InboxMessage {
            id: message.id.to_string(),
            answers: message.answers.map(key_out).unwrap_or_default(),
            channel: message.channel.as_ref().map(Channel::to_string),
            payload: Some(message.payload.clone().into()),
            principal: message.from.to_string(),
            at: Some(timestamp_out(message.at)),
        };
        Self { first: mail.first, messages: mail.messages.iter().map(message).collect() }
    }
}

impl TryFrom<pb::Mail> for Mail {
    type Error = ConvertError;

    fn try_from(mail: pb::Mail) -> Result<Self, ConvertError> {
        bounded("mail.messages", mail.messages.len(), INBOX_MESSAGES_MAX as usize)?;
        let messages = mail.messages.into_iter().map(message_in).collect::<Result<Vec<_>, _>>()?;
        let mail = Self { first: mail.first, messages };
        bounded("mail.messages", usize::try_from(mail.bytes()).unwrap_or(usize::MAX), INBOX_BYTES_MAX as usize)?;
        Ok(mail)
    }
}

fn message_in(message: pb::InboxMessage) -> Result<Arc<Message>, ConvertError> {
    let channel = message.channel.as_deref().map(|text| name("inbox_message.channel", text, Channel::new));
    let answers = (!message.answers.is_empty()).then(|| key_in("inbox_message.answers", &message.answers));
    Ok(Arc::new(Message {
        id: name("inbox_message.id", &message.id, MessageId::new)?,
        answers: answers.transpose()?,
        channel: channel.transpose()?,
        payload: required("inbox_message.payload", message.payload)?.try_into()?,
        from: name("inbox_message.principal", &message.principal, Principal::new)?,
        at: timestamp_in("inbox_message.at", message.at)?,
    }))
}

fn key_out(key: StepKey) -> Bytes {
    Bytes::copy_from_slice(&key.0)
}

fn key_in(field: &'static str, key: &[u8]) -> Result<StepKey, ConvertError> {
    fixed(field, key).map(StepKey)
}
