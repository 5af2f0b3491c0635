//! What parked jobs wait for, and their messages.

use atlas_types::{Inbox, JobId, Message, Parked, QuestionId, StepKey, Timestamp, Wait};

use super::table::{EmptyIsNone, message, table};
use super::{fixed, required};
use crate::proto::wait::Kind;
use crate::{FormatError, proto};

table! {
    "parked": Parked = Parked {
        waits = waits,
        due = due_us,
        token = fencing_token,
    }
}

impl From<&Wait> for proto::Wait {
    fn from(wait: &Wait) -> Self {
        let kind = match wait {
            Wait::Time { at } => Kind::UntilUs(at.0),
            Wait::Child { job } => Kind::ChildJobId(job.0),
            Wait::Message => Kind::Message(proto::AnyMessage {}),
            Wait::Answer { question } => Kind::Answer(question.0.to_vec()),
            Wait::Question { id } => Kind::QuestionId(id.0),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<proto::Wait> for Wait {
    type Error = FormatError;

    fn try_from(wait: proto::Wait) -> Result<Self, FormatError> {
        Ok(match required("wait.kind", wait.kind)? {
            Kind::UntilUs(at) => Self::Time { at: Timestamp(at) },
            Kind::ChildJobId(job) => Self::Child { job: JobId(job) },
            Kind::Message(proto::AnyMessage {}) => Self::Message,
            Kind::Answer(key) => Self::Answer { question: StepKey(fixed("wait.answer", &key)?) },
            Kind::QuestionId(id) => Self::Question { id: QuestionId(id) },
        })
    }
}

message!(Wait = Wait);

table! {
    "inbox": Inbox = Inbox {
        read = read,
        read_ids = read_ids,
        messages = messages,
    }
}

table! {
    "inbox_message": Message = InboxMessage {
        id = message_id,
        answers = answers via EmptyIsNone,
        channel = channel,
        payload = payload,
        from = principal,
        at = at_us,
    }
}
