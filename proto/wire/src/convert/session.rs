//! Whole frames of a session.

use atlas_types::{
    Assignment, Attempt, BootId, ClusterTime, FencingToken, HandBack, HandBackDeadline, HeldLease, JobId, Level,
    NodeEpoch, NodeId, StreamEvent,
};
use bytes::Bytes;

use super::artifact::{digest_in, digest_out};
use super::journal::{ack_in, ack_out, fold_in, fold_out, record_in, record_out, reserve_in, reserve_out};
use super::model::{announce_in, announce_out, ask_in, ask_out};
use super::park::{messages_in, messages_out, park_ack_in, park_ack_out, park_in, park_out};
use super::report::{deltas_in, report_in, report_out, result_in, result_out};
use super::spawn::{end_in, end_out, spawn_in, spawn_out};
use super::time::{duration_in, duration_out};
use super::tool::{call_in, call_out, called_in, called_out};
use super::{ConvertError, bounded, fixed, name, required, word};
use crate::limits::{CONTROLLERS_MAX, LEASES_MAX, STREAM_EVENTS_MAX};
use crate::proto::worker::v1 as pb;
use crate::session::{Hello, ToLeader, ToWorker, Welcome};

impl From<ToLeader> for pb::SessionRequest {
    fn from(said: ToLeader) -> Self {
        use pb::session_request::Kind;
        let kind = match said {
            ToLeader::Hello(hello) => Kind::Hello(hello.into()),
            ToLeader::Renew { number } => Kind::Renew(pb::Renew { number }),
            ToLeader::Report { number, report } => Kind::Report(report_out(number, report)),
            ToLeader::WarmChanged { digest, idle } => {
                Kind::WarmChanged(pb::WarmChanged { digest: digest_out(digest), idle })
            }
            ToLeader::StreamEvents { job, attempt, events } => Kind::StreamEvents(pb::StreamEvents {
                job_id: job.0,
                attempt: attempt.0,
                events: events.into_iter().map(pb::StreamEvent::from).collect(),
            }),
            ToLeader::Deltas { job, attempt, deltas } => Kind::Deltas(pb::Deltas {
                job_id: job.0,
                attempt: attempt.0,
                deltas: deltas.into_iter().map(pb::Delta::from).collect(),
            }),
            ToLeader::Draining => Kind::Draining(pb::Draining {}),
            ToLeader::Leaving => Kind::Leaving(pb::Leaving {}),
            ToLeader::Spawn { number, spawn } => Kind::Spawn(spawn_out(number, *spawn)),
            ToLeader::RecordSteps { number, job, token, from, steps } => {
                Kind::RecordSteps(record_out(number, job, token, from, &steps))
            }
            ToLeader::ReserveBudget { number, job, token, call } => {
                Kind::ReserveBudget(reserve_out(number, job, token, call))
            }
            ToLeader::FoldSteps { number, job, token, fold } => Kind::FoldSteps(fold_out(number, job, token, &fold)),
            ToLeader::Park { number, job, token, park } => Kind::Park(park_out(number, job, token, park)),
            ToLeader::CallTool { number, call } => Kind::CallTool(call_out(number, *call)),
            ToLeader::AskModel(ask) => Kind::AskModel(ask_out(ask)),
            ToLeader::ModelDone { number, tokens } => Kind::ModelDone(pb::ModelDone { number, tokens }),
            ToLeader::AnnounceModels(uses) => Kind::AnnounceModels(announce_out(uses)),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<pb::SessionRequest> for ToLeader {
    type Error = ConvertError;

    fn try_from(frame: pb::SessionRequest) -> Result<Self, ConvertError> {
        use pb::session_request::Kind;
        Ok(match required("session_request.kind", frame.kind)? {
            Kind::Hello(hello) => Self::Hello(hello.try_into()?),
            Kind::Renew(pb::Renew { number }) => Self::Renew { number },
            Kind::Report(report) => {
                let (number, report) = report_in(report)?;
                Self::Report { number, report }
            }
            Kind::WarmChanged(pb::WarmChanged { digest, idle }) => {
                Self::WarmChanged { digest: digest_in("warm_changed.digest", &digest)?, idle }
            }
            Kind::StreamEvents(pb::StreamEvents { job_id, attempt, events }) => {
                bounded("stream_events.events", events.len(), STREAM_EVENTS_MAX)?;
                let events = events.into_iter().map(StreamEvent::try_from).collect::<Result<_, _>>()?;
                Self::StreamEvents { job: JobId(job_id), attempt: Attempt(attempt), events }
            }
            Kind::Deltas(pb::Deltas { job_id, attempt, deltas }) => {
                Self::Deltas { job: JobId(job_id), attempt: Attempt(attempt), deltas: deltas_in(deltas)? }
            }
            Kind::Draining(pb::Draining {}) => Self::Draining,
            Kind::Leaving(pb::Leaving {}) => Self::Leaving,
            Kind::Spawn(spawn) => {
                let (number, spawn) = spawn_in(spawn)?;
                Self::Spawn { number, spawn: Box::new(spawn) }
            }
            Kind::RecordSteps(frame) => record_in(frame)?,
            Kind::FoldSteps(frame) => fold_in(frame)?,
            Kind::ReserveBudget(frame) => reserve_in(&frame)?,
            Kind::Park(frame) => park_in(frame)?,
            Kind::CallTool(call) => {
                let (number, call) = call_in(call)?;
                Self::CallTool { number, call: Box::new(call) }
            }
            Kind::AskModel(ask) => Self::AskModel(ask_in(ask)?),
            Kind::ModelDone(pb::ModelDone { number, tokens }) => Self::ModelDone { number, tokens },
            Kind::AnnounceModels(uses) => Self::AnnounceModels(announce_in(uses)?),
        })
    }
}

fn boot_out(boot: BootId) -> Bytes {
    Bytes::copy_from_slice(&boot.0.to_be_bytes())
}

fn boot_in(field: &'static str, bytes: &[u8]) -> Result<BootId, ConvertError> {
    Ok(BootId(u128::from_be_bytes(fixed(field, bytes)?)))
}

impl From<Hello> for pb::Hello {
    fn from(hello: Hello) -> Self {
        Self {
            node_id: hello.node.to_string(),
            boot_id: boot_out(hello.boot_id),
            previous_boot_id: hello.previous.map(boot_out).unwrap_or_default(),
            inventory: Some(hello.inventory.into()),
            feature_level: hello.level.0,
            leases: hello.leases.into_iter().map(pb::HeldLease::from).collect(),
        }
    }
}

impl TryFrom<pb::Hello> for Hello {
    type Error = ConvertError;

    fn try_from(hello: pb::Hello) -> Result<Self, ConvertError> {
        bounded("hello.leases", hello.leases.len(), LEASES_MAX)?;
        Ok(Self {
            node: name("hello.node_id", &hello.node_id, NodeId::new)?,
            boot_id: boot_in("hello.boot_id", &hello.boot_id)?,
            previous: match &*hello.previous_boot_id {
                [] => None,
                bytes => Some(boot_in("hello.previous_boot_id", bytes)?),
            },
            inventory: required("hello.inventory", hello.inventory)?.try_into()?,
            level: Level(hello.feature_level),
            leases: hello.leases.into_iter().map(HeldLease::from).collect(),
        })
    }
}

impl From<ToWorker> for pb::SessionResponse {
    fn from(said: ToWorker) -> Self {
        use pb::session_response::Kind;
        let kind = match said {
            ToWorker::Welcome(welcome) => Kind::Welcome(welcome.into()),
            ToWorker::NotLeader { leader_address } => {
                Kind::NotLeader(pb::NotLeader { leader_address: leader_address.unwrap_or_default() })
            }
            ToWorker::Grant(assignment) => Kind::Grant(pb::Grant { assignment: Some((*assignment).into()) }),
            ToWorker::Cancel { job, token, grace } => {
                Kind::Cancel(pb::Cancel { job_id: job.0, fencing_token: token.0, grace: Some(duration_out(grace)) })
            }
            ToWorker::Revoke { job, token } => Kind::Revoke(pb::Revoke { job_id: job.0, fencing_token: token.0 }),
            ToWorker::ReportAck { number, result } => {
                Kind::ReportAck(pb::ReportAck { number, result: result_out(result).into() })
            }
            ToWorker::RenewAck { number } => Kind::RenewAck(pb::RenewAck { number }),
            ToWorker::StreamAck { job, attempt, number } => {
                Kind::StreamAck(pb::StreamAck { job_id: job.0, attempt: attempt.0, number })
            }
            ToWorker::Drain => Kind::Drain(pb::Drain {}),
            ToWorker::Shutdown => Kind::Shutdown(pb::Shutdown {}),
            ToWorker::Spawned { number, end } => Kind::Spawned(end_out(number, end)),
            ToWorker::HandBack(by) => {
                Kind::HandBackChanged(pb::HandBackChanged { hand_back: by.map(pb::HandBack::from) })
            }
            ToWorker::StepsAck { number, result } => Kind::StepsAck(ack_out(number, result)),
            ToWorker::ParkAck { number, result } => Kind::ParkAck(park_ack_out(number, result)),
            ToWorker::Messages { job, token, mail } => Kind::Messages(messages_out(job, token, &mail)),
            ToWorker::ToolCalled { number, end } => Kind::ToolCalled(called_out(number, end)),
            ToWorker::ModelGranted { number } => Kind::ModelGranted(pb::ModelGranted { number }),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<pb::SessionResponse> for ToWorker {
    type Error = ConvertError;

    fn try_from(frame: pb::SessionResponse) -> Result<Self, ConvertError> {
        use pb::session_response::Kind;
        Ok(match required("session_response.kind", frame.kind)? {
            Kind::Welcome(welcome) => Self::Welcome(welcome.try_into()?),
            Kind::NotLeader(pb::NotLeader { leader_address }) => {
                let address = word("not_leader.leader_address", leader_address)?;
                Self::NotLeader { leader_address: Some(address).filter(|text| !text.is_empty()) }
            }
            Kind::Grant(pb::Grant { assignment }) => {
                Self::Grant(Box::new(required("grant.assignment", assignment)?.try_into()?))
            }
            Kind::Cancel(pb::Cancel { job_id, fencing_token, grace }) => Self::Cancel {
                job: JobId(job_id),
                token: FencingToken(fencing_token),
                grace: duration_in("cancel.grace", grace)?,
            },
            Kind::Revoke(pb::Revoke { job_id, fencing_token }) => {
                Self::Revoke { job: JobId(job_id), token: FencingToken(fencing_token) }
            }
            Kind::ReportAck(pb::ReportAck { number, result }) => Self::ReportAck { number, result: result_in(result)? },
            Kind::RenewAck(pb::RenewAck { number }) => Self::RenewAck { number },
            Kind::StreamAck(pb::StreamAck { job_id, attempt, number }) => {
                Self::StreamAck { job: JobId(job_id), attempt: Attempt(attempt), number }
            }
            Kind::Drain(pb::Drain {}) => Self::Drain,
            Kind::Shutdown(pb::Shutdown {}) => Self::Shutdown,
            Kind::Spawned(spawned) => {
                let (number, end) = end_in(spawned)?;
                Self::Spawned { number, end }
            }
            Kind::HandBackChanged(pb::HandBackChanged { hand_back }) => {
                Self::HandBack(hand_back.map(HandBack::try_from).transpose()?)
            }
            Kind::StepsAck(ack) => {
                let (number, result) = ack_in(ack)?;
                Self::StepsAck { number, result }
            }
            Kind::ParkAck(ack) => park_ack_in(ack)?,
            Kind::Messages(frame) => messages_in(frame)?,
            Kind::ToolCalled(called) => {
                let (number, end) = called_in(called)?;
                Self::ToolCalled { number, end }
            }
            Kind::ModelGranted(pb::ModelGranted { number }) => Self::ModelGranted { number },
        })
    }
}

impl From<HandBack> for pb::HandBack {
    fn from(by: HandBack) -> Self {
        Self {
            until_us: by.deadline.map_or(0, |deadline| deadline.until.0),
            within: by.deadline.map(|deadline| duration_out(deadline.within)),
        }
    }
}

impl TryFrom<pb::HandBack> for HandBack {
    type Error = ConvertError;

    fn try_from(by: pb::HandBack) -> Result<Self, ConvertError> {
        let deadline = |within| {
            let within = duration_in("hand_back.within", Some(within))?;
            Ok(HandBackDeadline { until: ClusterTime(by.until_us), within })
        };
        Ok(Self { deadline: by.within.map(deadline).transpose()? })
    }
}

impl From<Welcome> for pb::Welcome {
    fn from(welcome: Welcome) -> Self {
        Self {
            epoch: welcome.epoch.0,
            session_ttl: Some(duration_out(welcome.session_ttl)),
            leases: welcome.leases.into_iter().map(pb::Assignment::from).collect(),
            controllers: welcome.controllers,
            hand_back: welcome.hand_back.map(pb::HandBack::from),
            feature_level: welcome.level.0,
        }
    }
}

impl TryFrom<pb::Welcome> for Welcome {
    type Error = ConvertError;

    fn try_from(welcome: pb::Welcome) -> Result<Self, ConvertError> {
        bounded("welcome.leases", welcome.leases.len(), LEASES_MAX)?;
        bounded("welcome.controllers", welcome.controllers.len(), CONTROLLERS_MAX)?;
        let controllers = welcome.controllers.into_iter().map(|address| word("welcome.controllers", address));
        Ok(Self {
            epoch: NodeEpoch(welcome.epoch),
            session_ttl: duration_in("welcome.session_ttl", welcome.session_ttl)?,
            leases: welcome.leases.into_iter().map(Assignment::try_from).collect::<Result<_, _>>()?,
            controllers: controllers.collect::<Result<_, _>>()?,
            hand_back: welcome.hand_back.map(HandBack::try_from).transpose()?,
            level: Level(welcome.feature_level),
        })
    }
}
