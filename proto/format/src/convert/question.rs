//! Questions of jobs to people.

use std::sync::Arc;

use atlas_types::{Ask, AskKind, AskQuestion, Micros, Principal, Question, QuestionEnd, QuestionRule};

use super::table::{Field, message, table};
use super::{name, required};
use crate::proto::question_end::Kind;
use crate::{FormatError, proto};

impl From<&Ask> for proto::Ask {
    fn from(ask: &Ask) -> Self {
        use proto::AskKind as Out;
        let (kind, many, other, schema) = match &ask.kind {
            AskKind::Approve { other, .. } => (Out::Approve, false, *other, Vec::new()),
            AskKind::Choose { many, other, .. } => (Out::Choose, *many, *other, Vec::new()),
            AskKind::Confirm => (Out::Confirm, false, false, Vec::new()),
            AskKind::Text => (Out::Text, false, false, Vec::new()),
            AskKind::Form { schema } => (Out::Form, false, false, schema.to_vec()),
        };
        Self {
            kind: kind.into(),
            prompt: ask.prompt.to_string(),
            options: ask.kind.options().iter().map(|option| option.to_string()).collect(),
            many,
            other,
            schema,
            answerers: ask.answerers.iter().map(Principal::to_string).collect(),
            timeout_us: ask.timeout.map(|timeout| timeout.0),
            default: ask.default.as_ref().map(|default| default.to_vec()),
        }
    }
}

impl TryFrom<proto::Ask> for Ask {
    type Error = FormatError;

    fn try_from(message: proto::Ask) -> Result<Self, FormatError> {
        use proto::AskKind as In;
        let refused = || FormatError::Value { field: "ask.kind", found: message.kind.into() };
        let options = message.options.iter().map(|option| option.as_str().into()).collect();
        let kind = match In::try_from(message.kind).unwrap_or(In::Unspecified) {
            In::Unspecified => return Err(refused()),
            In::Approve => AskKind::Approve { options, other: message.other },
            In::Choose => AskKind::Choose { options, many: message.many, other: message.other },
            In::Confirm => AskKind::Confirm,
            In::Text => AskKind::Text,
            In::Form => AskKind::Form { schema: message.schema.as_slice().into() },
        };
        let answerers = message.answerers.iter().map(|principal| name("ask.answerers", principal, Principal::new));
        let ask = Self {
            kind,
            prompt: message.prompt.as_str().into(),
            answerers: answerers.collect::<Result<_, FormatError>>()?,
            timeout: message.timeout_us.map(Micros),
            default: message.default.as_deref().map(Arc::from),
        };
        // What the kind does not have would be lost.
        if proto::Ask::from(&ask) == message { Ok(ask) } else { Err(refused()) }
    }
}

message!(Ask = Ask);

table! {
    "question": Question = Question {
        id = question_id,
        namespace = namespace,
        job = job_id,
        step = step,
        ask = ask,
        asked = asked_event_seq,
        asked_at = asked_at_us,
        due = due_us,
        end = end,
        ended_at = ended_at_us,
        rule = rule,
    }
}

impl From<&QuestionEnd> for proto::QuestionEnd {
    fn from(end: &QuestionEnd) -> Self {
        let kind = match end {
            QuestionEnd::Answered { answer, by } => {
                Kind::Answered(proto::Answered { answer: answer.to_vec(), principal: by.to_string() })
            }
            QuestionEnd::Defaulted => Kind::Defaulted(proto::Defaulted {}),
            QuestionEnd::Expired => Kind::Expired(proto::Expired {}),
            QuestionEnd::Cancelled => Kind::Cancelled(proto::QuestionCancelled {}),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<proto::QuestionEnd> for QuestionEnd {
    type Error = FormatError;

    fn try_from(end: proto::QuestionEnd) -> Result<Self, FormatError> {
        Ok(match required("question_end.kind", end.kind)? {
            Kind::Answered(answered) => Self::Answered {
                answer: answered.answer.into(),
                by: name("answered.principal", &answered.principal, Principal::new)?,
            },
            Kind::Defaulted(proto::Defaulted {}) => Self::Defaulted,
            Kind::Expired(proto::Expired {}) => Self::Expired,
            Kind::Cancelled(proto::QuestionCancelled {}) => Self::Cancelled,
        })
    }
}

message!(QuestionEnd = QuestionEnd);

table! {
    "ask_question": AskQuestion = AskQuestion {
        job = job_id,
        node = node_id,
        token = fencing_token,
        key = key,
        ask = ask,
    }
}

/// The rule of most jobs is not stored.
impl Field<Option<proto::QuestionRule>> for QuestionRule {
    fn write(&self) -> Option<proto::QuestionRule> {
        match self {
            Self::Fail => None,
            Self::Wait => Some(proto::QuestionRule { answer: None }),
            Self::Answer(answer) => Some(proto::QuestionRule { answer: Some(answer.to_string()) }),
        }
    }

    fn read(_: &'static str, stored: Option<proto::QuestionRule>) -> Result<Self, FormatError> {
        Ok(match stored.map(|rule| rule.answer) {
            None => Self::Fail,
            Some(None) => Self::Wait,
            Some(Some(answer)) => Self::Answer(answer.into()),
        })
    }
}

/// As text, where the rule of most jobs is not the one that is left out.
impl Field<String> for QuestionRule {
    fn write(&self) -> String {
        self.to_string()
    }

    fn read(field: &'static str, stored: String) -> Result<Self, FormatError> {
        stored.parse().map_err(|_| FormatError::Text { field })
    }
}
