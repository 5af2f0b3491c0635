//! How jobs are routed, and the commands about it.

use std::sync::Arc;

use atlas_types::{
    AgentName, AgentPin, ConsultOrchestrator, Decider, Decision, EventSeq, Failure, JobId, Micros, Route, RouteAction,
    RouteJob, Verdict,
};

use super::approval::{asked_in, asked_out};
use super::{EnumField as _, enum_field, name, required};
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

fn text(rule: Option<&Arc<str>>) -> String {
    rule.map(|rule| rule.to_string()).unwrap_or_default()
}

/// An empty name is none.
fn rule(name: String) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| name.into())
}

impl From<&Route> for proto::Route {
    fn from(route: &Route) -> Self {
        Self {
            generation: route.generation.0,
            action: proto::RouteAction::from(route.action).into(),
            decider: proto::Decider::from(route.decider).into(),
            priority: route.priority,
            asked_agent_name: route.asked.to_string(),
            asked_pin: route.asked_pin.as_ref().map(Into::into),
            refused: route.refused.as_ref().map(Into::into),
            rule: text(route.rule.as_ref()),
        }
    }
}

impl TryFrom<proto::Route> for Route {
    type Error = FormatError;

    fn try_from(route: proto::Route) -> Result<Self, FormatError> {
        Ok(Self {
            generation: EventSeq(route.generation),
            action: RouteAction::read("route.action", route.action)?,
            decider: Decider::read("route.decider", route.decider)?,
            priority: route.priority,
            asked: name("route.asked_agent_name", &route.asked_agent_name, AgentName::new)?,
            asked_pin: route.asked_pin.map(AgentPin::try_from).transpose()?,
            refused: route.refused.map(Failure::try_from).transpose()?,
            rule: rule(route.rule),
        })
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
            rule: text(command.rule.as_ref()),
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
            rule: rule(message.rule),
        })
    }
}

impl From<&ConsultOrchestrator> for proto::ConsultOrchestrator {
    fn from(command: &ConsultOrchestrator) -> Self {
        Self {
            job_id: command.id.0,
            agent_name: command.agent.to_string(),
            pin: Some((&command.pin).into()),
            input: Some((&command.input).into()),
            timeout_us: command.timeout.0,
        }
    }
}

impl TryFrom<proto::ConsultOrchestrator> for ConsultOrchestrator {
    type Error = FormatError;

    fn try_from(message: proto::ConsultOrchestrator) -> Result<Self, FormatError> {
        Ok(Self {
            id: JobId(message.job_id),
            agent: name("consult_orchestrator.agent_name", &message.agent_name, AgentName::new)?,
            pin: required("consult_orchestrator.pin", message.pin)?.try_into()?,
            input: required("consult_orchestrator.input", message.input)?.try_into()?,
            timeout: Micros(message.timeout_us),
        })
    }
}
