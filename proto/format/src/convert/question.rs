//! Questions of jobs to people.

use std::sync::Arc;

use atlas_types::{
    Ask, AskKind, AskQuestion, AskingRule, ClusterTime, EventSeq, FencingToken, JobId, Micros, Namespace, NodeId,
    Principal, Question, QuestionEnd, QuestionId, QuestionRule, StepKey, Timestamp,
};

use super::{fixed, name, required};
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

impl From<&Question> for proto::Question {
    fn from(question: &Question) -> Self {
        Self {
            question_id: question.id.0,
            namespace: question.namespace.to_string(),
            job_id: question.job.0,
            step: question.step,
            ask: Some((&*question.ask).into()),
            asked_event_seq: question.asked.0,
            asked_at_us: question.asked_at.0,
            due_us: question.due.map(|due| due.0),
            end: question.end.as_ref().map(end_out),
            ended_at_us: question.ended_at.0,
            rule: question.rule.as_deref().map(Into::into),
        }
    }
}

impl TryFrom<proto::Question> for Question {
    type Error = FormatError;

    fn try_from(question: proto::Question) -> Result<Self, FormatError> {
        Ok(Self {
            id: QuestionId(question.question_id),
            namespace: name("question.namespace", &question.namespace, Namespace::new)?,
            job: JobId(question.job_id),
            step: question.step,
            ask: Arc::new(required("question.ask", question.ask)?.try_into()?),
            asked: EventSeq(question.asked_event_seq),
            asked_at: Timestamp(question.asked_at_us),
            due: question.due_us.map(ClusterTime),
            end: question.end.map(end_in).transpose()?,
            ended_at: Timestamp(question.ended_at_us),
            rule: question.rule.map(AskingRule::try_from).transpose()?.map(Arc::new),
        })
    }
}

fn end_out(end: &QuestionEnd) -> proto::QuestionEnd {
    let kind = match end {
        QuestionEnd::Answered { answer, by } => {
            Kind::Answered(proto::Answered { answer: answer.to_vec(), principal: by.to_string() })
        }
        QuestionEnd::Defaulted => Kind::Defaulted(proto::Defaulted {}),
        QuestionEnd::Expired => Kind::Expired(proto::Expired {}),
        QuestionEnd::Cancelled => Kind::Cancelled(proto::QuestionCancelled {}),
    };
    proto::QuestionEnd { kind: Some(kind) }
}

fn end_in(end: proto::QuestionEnd) -> Result<QuestionEnd, FormatError> {
    Ok(match required("question_end.kind", end.kind)? {
        Kind::Answered(answered) => QuestionEnd::Answered {
            answer: answered.answer.into(),
            by: name("answered.principal", &answered.principal, Principal::new)?,
        },
        Kind::Defaulted(proto::Defaulted {}) => QuestionEnd::Defaulted,
        Kind::Expired(proto::Expired {}) => QuestionEnd::Expired,
        Kind::Cancelled(proto::QuestionCancelled {}) => QuestionEnd::Cancelled,
    })
}

impl From<&AskQuestion> for proto::AskQuestion {
    fn from(command: &AskQuestion) -> Self {
        Self {
            job_id: command.job.0,
            node_id: command.node.to_string(),
            fencing_token: command.token.0,
            key: command.key.0.to_vec(),
            ask: Some((&*command.ask).into()),
        }
    }
}

impl TryFrom<proto::AskQuestion> for AskQuestion {
    type Error = FormatError;

    fn try_from(message: proto::AskQuestion) -> Result<Self, FormatError> {
        let key = StepKey(fixed("ask_question.key", &message.key)?);
        Ok(Self {
            job: JobId(message.job_id),
            node: name("ask_question.node_id", &message.node_id, NodeId::new)?,
            token: FencingToken(message.fencing_token),
            key,
            ask: Arc::new(required("ask_question.ask", message.ask)?.try_into()?),
        })
    }
}

/// The rule of a job for its questions, outward.
pub(super) fn rule_out(rule: &QuestionRule) -> Option<proto::QuestionRule> {
    match rule {
        QuestionRule::Fail => None,
        QuestionRule::Wait => Some(proto::QuestionRule { answer: None }),
        QuestionRule::Answer(answer) => Some(proto::QuestionRule { answer: Some(answer.to_string()) }),
    }
}

/// The rule of a job for its questions, inward.
pub(super) fn rule_in(rule: Option<proto::QuestionRule>) -> QuestionRule {
    match rule.map(|rule| rule.answer) {
        None => QuestionRule::Fail,
        Some(None) => QuestionRule::Wait,
        Some(Some(answer)) => QuestionRule::Answer(answer.into()),
    }
}
