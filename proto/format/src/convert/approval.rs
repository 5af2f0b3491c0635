//! Approvals: what policies ask before a job runs.

use std::sync::Arc;

use atlas_types::{
    AgentName, AgentPin, Approval, ApprovalAsk, Approvals, AskingRule, ObjectName, Principal, QuestionId, Timestamp,
    Verdict,
};

use super::{name, required};
use crate::{FormatError, proto};

impl From<&AskingRule> for proto::AskingRule {
    fn from(rule: &AskingRule) -> Self {
        Self {
            policy: rule.policy.to_string(),
            rule: rule.rule.to_string(),
            role: rule.role.as_ref().map(ObjectName::to_string).unwrap_or_default(),
            own: rule.own,
        }
    }
}

impl TryFrom<proto::AskingRule> for AskingRule {
    type Error = FormatError;

    fn try_from(rule: proto::AskingRule) -> Result<Self, FormatError> {
        let role = match rule.role.as_str() {
            "" => None,
            role => Some(name("asking_rule.role", role, ObjectName::new)?),
        };
        Ok(Self {
            policy: name("asking_rule.policy", &rule.policy, ObjectName::new)?,
            rule: rule.rule.into(),
            role,
            own: rule.own,
        })
    }
}

impl From<&Approvals> for proto::Approvals {
    fn from(approvals: &Approvals) -> Self {
        let out = |approval: &Approval| proto::Approval {
            policy: approval.policy.to_string(),
            rule: approval.rule.to_string(),
            question_id: approval.question.0,
            principal: approval.by.as_ref().map(Principal::to_string).unwrap_or_default(),
            agent: approval.agent.to_string(),
        };
        Self { all: approvals.all.iter().map(out).collect(), not_before_us: approvals.not_before.map(|time| time.0) }
    }
}

/// The approvals of a job that runs `agent`, inward.
pub(super) fn approvals_in(approvals: proto::Approvals, agent: &AgentName) -> Result<Approvals, FormatError> {
    let read = |approval: proto::Approval| {
        let by = match approval.principal.as_str() {
            "" => None,
            principal => Some(name("approval.principal", principal, Principal::new)?),
        };
        let agent = match approval.agent.as_str() {
            "" => agent.clone(),
            agent => name("approval.agent", agent, AgentName::new)?,
        };
        Ok(Approval {
            policy: name("approval.policy", &approval.policy, ObjectName::new)?,
            rule: approval.rule.into(),
            question: QuestionId(approval.question_id),
            agent,
            by,
        })
    };
    Ok(Approvals {
        all: approvals.all.into_iter().map(read).collect::<Result<_, FormatError>>()?,
        not_before: approvals.not_before_us.map(Timestamp),
    })
}

/// The verdict on a job that must be approved, outward.
pub(super) fn asked_out(pin: &AgentPin, asks: &[ApprovalAsk]) -> proto::AskedVerdict {
    let ask = |ask: &ApprovalAsk| proto::ApprovalAsk { rule: Some((&*ask.rule).into()), ask: Some((&*ask.ask).into()) };
    proto::AskedVerdict { pin: Some(pin.into()), asks: asks.iter().map(ask).collect() }
}

/// The verdict on a job that must be approved, inward.
pub(super) fn asked_in(asked: proto::AskedVerdict) -> Result<Verdict, FormatError> {
    let read = |ask: proto::ApprovalAsk| {
        Ok(ApprovalAsk {
            rule: Arc::new(required("approval_ask.rule", ask.rule)?.try_into()?),
            ask: Arc::new(required("approval_ask.ask", ask.ask)?.try_into()?),
        })
    };
    let asks = asked.asks.into_iter().map(read).collect::<Result<_, FormatError>>()?;
    Ok(Verdict::Asked { pin: required("asked_verdict.pin", asked.pin)?.try_into()?, asks })
}
