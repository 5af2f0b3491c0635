//! Approvals: what policies ask before a job runs.

use atlas_types::{AgentPin, Approval, ApprovalAsk, Approvals, AskingRule, Verdict};

use super::table::{EmptyIsNone, Field as _, table};
use crate::{FormatError, proto};

table! {
    "asking_rule": AskingRule = AskingRule {
        policy = policy,
        rule = rule,
        role = role via EmptyIsNone,
        own = own,
    }
}

table! {
    "approvals": Approvals = Approvals {
        all = all,
        not_before = not_before_us,
    }
}

table! {
    "approval": Approval = Approval {
        policy = policy,
        rule = rule,
        question = question_id,
        agent = agent,
        by = principal via EmptyIsNone,
    }
}

table! {
    "approval_ask": ApprovalAsk = ApprovalAsk {
        rule = rule,
        ask = ask,
    }
}

/// Approvals that name no agent are for the one that their job runs.
pub(super) fn with_agents(mut job: proto::Job) -> proto::Job {
    for approval in job.approvals.iter_mut().flat_map(|approvals| &mut approvals.all) {
        if approval.agent.is_empty() {
            approval.agent.clone_from(&job.agent_name);
        }
    }
    job
}

/// The verdict on a job that must be approved, outward.
pub(super) fn asked_out(pin: &AgentPin, asks: &[ApprovalAsk]) -> proto::AskedVerdict {
    proto::AskedVerdict { pin: Some(pin.into()), asks: asks.iter().map(Into::into).collect() }
}

/// The verdict on a job that must be approved, inward.
pub(super) fn asked_in(asked: proto::AskedVerdict) -> Result<Verdict, FormatError> {
    let asks = Vec::read("asked_verdict.asks", asked.asks)?;
    Ok(Verdict::Asked { pin: AgentPin::read("asked_verdict.pin", asked.pin)?, asks })
}
