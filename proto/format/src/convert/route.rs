//! How jobs are routed, and the commands about it.

use atlas_types::{
    AgentName, AgentPin, ConsultOrchestrator, Decider, Decision, EventSeq, JobId, Route, RouteAction, RouteJob, Verdict,
};

use super::approval::{asked_in, asked_out};
use super::table::{EmptyIsNone, Field as _, Rule as _, table};
use super::{enum_field, name, required};
use crate::{FormatError, proto};

enum_field!(RouteAction, proto::RouteAction, {
    Undecided = Undecided,
    Execute = Execute,
    Reject = Reject,
    Redirect = Redirect,
});

enum_field!(Decider, proto::Decider, {
    Orchestrator = Orchestrator,
    Deadline = Deadline,
    Fault = Fault,
    Default = Default,
});

table! {
    "route": Route = Route {
        generation = generation,
        action = action,
        decider = decider,
        priority = priority,
        asked = asked_agent_name,
        asked_pin = asked_pin,
        refused = refused,
        rule = rule via EmptyIsNone,
    }
}

impl From<&RouteJob> for proto::RouteJob {
    fn from(command: &RouteJob) -> Self {
        use proto::route_job::Verdict as Found;
        let (action, reason, agent_name, verdict) = match &command.decision {
            None => (RouteAction::Undecided, String::new(), String::new(), None),
            Some(Decision::Execute) => (RouteAction::Execute, String::new(), String::new(), None),
            Some(Decision::Reject(reason)) => (RouteAction::Reject, reason.to_string(), String::new(), None),
            Some(Decision::Redirect(agent, verdict)) => {
                let verdict = match verdict {
                    Verdict::Accepted(pin) => Found::Accepted(pin.into()),
                    Verdict::Asked { pin, asks } => Found::Asked(asked_out(pin, asks)),
                    Verdict::Refused { pin, failure } => Found::Refused(proto::Refused {
                        pin: pin.as_ref().map(Into::into),
                        failure: Some(failure.into()),
                    }),
                };
                (RouteAction::Redirect, String::new(), agent.to_string(), Some(verdict))
            }
        };
        Self {
            job_id: command.job.0,
            generation: command.generation.0,
            decider: proto::Decider::from(command.decider).into(),
            action: proto::RouteAction::from(action).into(),
            priority: command.priority,
            reason,
            agent_name,
            verdict,
            rule: EmptyIsNone::write(&command.rule),
        }
    }
}

impl TryFrom<proto::RouteJob> for RouteJob {
    type Error = FormatError;

    fn try_from(message: proto::RouteJob) -> Result<Self, FormatError> {
        use proto::route_job::Verdict as Found;
        let action = RouteAction::read("route_job.action", message.action)?;
        // What does not belong to the action is refused: another program means something by it.
        let spare = (action != RouteAction::Reject && !message.reason.is_empty())
            || (action != RouteAction::Redirect && (!message.agent_name.is_empty() || message.verdict.is_some()));
        if spare {
            return Err(FormatError::Value { field: "route_job.action", found: message.action.into() });
        }
        let decision = match action {
            RouteAction::Undecided => None,
            RouteAction::Execute => Some(Decision::Execute),
            RouteAction::Reject => Some(Decision::Reject(message.reason.into())),
            RouteAction::Redirect => {
                let verdict = match required("route_job.verdict", message.verdict)? {
                    Found::Accepted(pin) => Verdict::Accepted(pin.try_into()?),
                    Found::Asked(asked) => asked_in(asked)?,
                    Found::Refused(refused) => Verdict::Refused {
                        pin: refused.pin.map(AgentPin::try_from).transpose()?,
                        failure: required("refused.failure", refused.failure)?.try_into()?,
                    },
                };
                let agent = name("route_job.agent_name", &message.agent_name, AgentName::new)?;
                Some(Decision::Redirect(agent, verdict))
            }
        };
        Ok(Self {
            job: JobId(message.job_id),
            generation: EventSeq(message.generation),
            decider: Decider::read("route_job.decider", message.decider)?,
            decision,
            priority: message.priority,
            rule: EmptyIsNone::read("route_job.rule", message.rule)?,
        })
    }
}

table! {
    "consult_orchestrator": ConsultOrchestrator = ConsultOrchestrator {
        id = job_id,
        agent = agent_name,
        pin = pin,
        input = input,
        timeout = timeout_us,
    }
}
