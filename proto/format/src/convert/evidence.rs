//! What jobs keep for their receipts.

use atlas_types::{
    Answered, AnsweredHow, Attempt, EventSeq, Evidence, Granted, NodeId, ObjectName, PolicyRef, Principal, QuestionId,
    Timestamp,
};

use super::{EnumField as _, digest, enum_field, name};
use crate::{FormatError, proto};

enum_field!(AnsweredHow, proto::AnsweredHow, {
    Answered = Answered,
    Defaulted = Defaulted,
    Expired = Expired,
    Cancelled = Cancelled,
});

impl From<&Evidence> for proto::Evidence {
    fn from(evidence: &Evidence) -> Self {
        Self {
            policies: policies_out(&evidence.policies),
            grants: evidence.grants.iter().map(granted_out).collect(),
            answers: evidence.answers.iter().map(answered_out).collect(),
        }
    }
}

impl TryFrom<proto::Evidence> for Evidence {
    type Error = FormatError;

    fn try_from(evidence: proto::Evidence) -> Result<Self, FormatError> {
        Ok(Self {
            policies: policies_in(evidence.policies)?,
            grants: evidence.grants.iter().map(granted_in).collect::<Result<_, _>>()?,
            answers: evidence.answers.into_iter().map(answered_in).collect::<Result<_, _>>()?,
        })
    }
}

pub(super) fn policies_out(policies: &[PolicyRef]) -> Vec<proto::PolicyRef> {
    let out = |policy: &PolicyRef| proto::PolicyRef {
        name: policy.name.to_string(),
        revision: policy.revision.0,
        digest: policy.digest.0.to_vec(),
    };
    policies.iter().map(out).collect()
}

pub(super) fn policies_in(policies: Vec<proto::PolicyRef>) -> Result<Vec<PolicyRef>, FormatError> {
    let read = |policy: proto::PolicyRef| {
        Ok(PolicyRef {
            name: name("policy.name", &policy.name, ObjectName::new)?,
            revision: EventSeq(policy.revision),
            digest: digest("policy.digest", &policy.digest)?,
        })
    };
    policies.into_iter().map(read).collect()
}

fn granted_out(granted: &Granted) -> proto::GrantedLease {
    proto::GrantedLease { attempt: granted.attempt.0, node_id: granted.node.to_string(), at_us: granted.at.0 }
}

fn granted_in(granted: &proto::GrantedLease) -> Result<Granted, FormatError> {
    let node = name("granted.node_id", &granted.node_id, NodeId::new)?;
    Ok(Granted { attempt: Attempt(granted.attempt), node, at: Timestamp(granted.at_us) })
}

fn answered_out(answered: &Answered) -> proto::EndedQuestion {
    proto::EndedQuestion {
        question_id: answered.question.0,
        step: answered.step,
        principal: answered.by.as_ref().map(Principal::to_string).unwrap_or_default(),
        how: proto::AnsweredHow::from(answered.how).into(),
        at_us: answered.at.0,
    }
}

fn answered_in(answered: proto::EndedQuestion) -> Result<Answered, FormatError> {
    let by = Some(answered.principal).filter(|by| !by.is_empty());
    Ok(Answered {
        question: QuestionId(answered.question_id),
        step: answered.step,
        by: by.map(|by| name("answered.principal", &by, Principal::new)).transpose()?,
        how: AnsweredHow::read("answered.how", answered.how)?,
        at: Timestamp(answered.at_us),
    })
}
