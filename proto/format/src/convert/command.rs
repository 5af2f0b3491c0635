//! Commands: one arm per variant in each direction.

use atlas_types::{
    AgentName, AnswerQuestion, CancelJob, CancelRun, CarryJob, Command, ConfigureCluster, Cordon, CreateJoinToken,
    DeleteAgent, DeliverMessage, DeprecateAgent, DrainNode, ErasePayloads, EventSeq, ExpireQuestion, FailPending,
    FencingToken, FoldSteps, ForsakeChild, GrantLease, JobId, JoinKind, JoinMember, LabelNode, LoseLease, LoseNode,
    MemberId, Micros, NodeEpoch, NodeId, NoteRival, ParkJob, PruneJobs, QuestionId, RecordSteps, RegisterNode,
    RemoveNode, ReportDigest, Request, Reservation, ReserveBudget, ResumeAgent, ResumeNode, RetireAgent, RetryJob,
    RevokeJoinToken, RunId, Seq, SinkAck, SpawnedBy, StartJob, StepKey, StoreLog, WakeJob, WarmChanged,
};

mod bodies;

use super::journal::{steps_in, steps_out};
use super::node::boot_id;
use super::park::{message_id, question_in, question_out, waits_in, waits_out};
use super::{EnumField as _, digest, fixed, name, required};
use crate::proto::request::Command as Message;
use crate::{FormatError, proto};

impl From<&Request> for proto::Request {
    fn from(request: &Request) -> Self {
        Self { origin: Some((&request.origin).into()), command: Some((&request.command).into()) }
    }
}

impl TryFrom<proto::Request> for Request {
    type Error = FormatError;

    fn try_from(request: proto::Request) -> Result<Self, FormatError> {
        Ok(Self {
            origin: required("request.origin", request.origin)?.try_into()?,
            command: required("request.command", request.command)?.try_into()?,
        })
    }
}

impl From<&Command> for Message {
    fn from(command: &Command) -> Self {
        match command {
            Command::RegisterAgent(command) => Self::RegisterAgent(command.into()),
            Command::PutObject(command) => Self::PutObject(command.into()),
            Command::DeleteObject(command) => Self::DeleteObject(command.into()),
            Command::ObserveObjects(command) => Self::ObserveObjects(command.into()),
            Command::DeleteAgent(command) => Self::DeleteAgent(proto::DeleteAgent {
                name: command.name.to_string(),
                version: Some(command.version.into()),
            }),
            Command::RetireAgent(command) => Self::RetireAgent(proto::RetireAgent {
                name: command.name.to_string(),
                version: Some(command.version.into()),
            }),
            Command::DeprecateAgent(command) => Self::DeprecateAgent(proto::DeprecateAgent {
                name: command.name.to_string(),
                version: Some(command.version.into()),
                why: command.why.as_deref().map(str::to_owned),
            }),
            Command::ResumeAgent(command) => Self::ResumeAgent(proto::ResumeAgent {
                name: command.name.to_string(),
                version: Some(command.version.into()),
            }),
            Command::ResumeNode(command) => Self::ResumeNode(proto::ResumeNode { node_id: command.node.to_string() }),
            Command::NoteRival(command) => Self::NoteRival(proto::NoteRival {
                node_id: command.node.to_string(),
                epoch: command.epoch.0,
                address: command.address.to_string(),
                holder: command.holder.to_string(),
            }),
            Command::RegisterNode(command) => Self::RegisterNode(proto::RegisterNode {
                node_id: command.node.to_string(),
                boot_id: command.boot_id.0.to_be_bytes().to_vec(),
                inventory: Some((&command.inventory).into()),
            }),
            Command::DrainNode(command) => Self::DrainNode(proto::DrainNode {
                node_id: command.node.to_string(),
                deadline_us: command.deadline.map(|deadline| deadline.0),
            }),
            Command::Cordon(command) => {
                Self::Cordon(proto::Cordon { node_id: command.node.to_string(), cordoned: command.cordoned })
            }
            Command::LabelNode(command) => Self::LabelNode(command.into()),
            Command::RemoveNode(command) => Self::RemoveNode(proto::RemoveNode { node_id: command.node.to_string() }),
            Command::LoseNode(command) => {
                Self::LoseNode(proto::LoseNode { node_id: command.node.to_string(), epoch: command.epoch.0 })
            }
            Command::WarmChanged(command) => Self::WarmChanged(proto::WarmChanged {
                node_id: command.node.to_string(),
                epoch: command.epoch.0,
                digest: command.digest.0.to_vec(),
                idle: command.idle,
            }),
            Command::SubmitJob(command) => Self::SubmitJob(command.into()),
            Command::GrantLease(command) => Self::GrantLease(proto::GrantLease {
                job_id: command.job.0,
                node_id: command.node.to_string(),
                epoch: command.epoch.0,
                allocation: Some((&command.allocation).into()),
            }),
            Command::StartJob(command) => Self::StartJob(proto::StartJob {
                job_id: command.job.0,
                node_id: command.node.to_string(),
                fencing_token: command.token.0,
            }),
            Command::StoreLog(command) => Self::StoreLog(proto::StoreLog {
                job_id: command.job.0,
                node_id: command.node.to_string(),
                fencing_token: command.token.0,
                stream: Some((&command.stream).into()),
            }),
            Command::CompleteJob(command) => Self::CompleteJob(command.into()),
            Command::FailJob(command) => Self::FailJob(command.into()),
            Command::FailPending(command) => Self::FailPending(proto::FailPending {
                job_id: command.job.0,
                failure: Some((&command.failure).into()),
            }),
            Command::CancelJob(command) => {
                Self::CancelJob(proto::CancelJob { job_id: command.job.0, running: command.running })
            }
            Command::LoseLease(command) => {
                Self::LoseLease(proto::LoseLease { job_id: command.job.0, fencing_token: command.token.0 })
            }
            Command::WakeJob(command) => Self::WakeJob(proto::WakeJob { job_id: command.job.0 }),
            Command::RetryJob(command) => Self::RetryJob(proto::RetryJob {
                job_id: command.job.0,
                new_job_id: command.id.0,
                resume: command.resume,
            }),
            Command::ForkJob(command) => Self::ForkJob(command.into()),
            Command::ErasePayloads(command) => {
                Self::ErasePayloads(proto::ErasePayloads { job_id: command.job.map(|job| job.0) })
            }
            Command::SinkAck(command) => {
                Self::SinkAck(proto::SinkAck { member_id: command.member.0, event_seq: command.event_seq.0 })
            }
            Command::PruneJobs(command) => Self::PruneJobs(proto::PruneJobs {
                voter_ids: command.voters.iter().map(|voter| voter.0).collect(),
                event_seq: command.event_seq.0,
                limit: command.limit,
            }),
            Command::ConfigureCluster(command) => {
                Self::ConfigureCluster(proto::ConfigureCluster { config: Some((&command.config).into()) })
            }
            Command::ResolveJob(command) => Self::ResolveJob(command.into()),
            Command::ReportDigest(command) => Self::ReportDigest(proto::ReportDigest {
                member_id: command.member.0,
                seq: command.seq.0,
                digest: command.digest.to_vec(),
            }),
            Command::CreateJoinToken(command) => Self::CreateJoinToken(proto::CreateJoinToken {
                hash: command.hash.0.to_vec(),
                kind: proto::JoinKind::from(command.kind).into(),
                ttl_us: command.ttl.0,
                uses: command.uses,
                salt: command.salt.map_or_else(Vec::new, |salt| salt.to_be_bytes().to_vec()),
            }),
            Command::RevokeJoinToken(command) => {
                Self::RevokeJoinToken(proto::RevokeJoinToken { hash: command.hash.0.to_vec() })
            }
            Command::JoinMember(command) => {
                Self::JoinMember(proto::JoinMember { hash: command.hash.0.to_vec(), above: command.above.0 })
            }
            Command::ForsakeChild(command) => Self::ForsakeChild(proto::ForsakeChild {
                spawner: Some(SpawnedBy::Attempt(command.spawner).into()),
                node_id: command.node.to_string(),
                child_job_id: command.child.0,
            }),
            Command::RecordSteps(command) => Self::RecordSteps(proto::RecordSteps {
                job_id: command.job.0,
                node_id: command.node.to_string(),
                fencing_token: command.token.0,
                from: command.from,
                steps: steps_out(&command.steps),
            }),
            Command::ReserveBudget(command) => Self::ReserveBudget(proto::ReserveBudget {
                job_id: command.job.0,
                node_id: command.node.to_string(),
                fencing_token: command.token.0,
                key: command.call.key.0.to_vec(),
                nanodollars: command.call.nanodollars,
            }),
            Command::FoldSteps(command) => Self::FoldSteps(proto::FoldSteps {
                job_id: command.job.0,
                node_id: command.node.to_string(),
                fencing_token: command.token.0,
                upto: command.upto,
                artifact: Some((&command.artifact).into()),
            }),
            Command::ParkJob(command) => Self::ParkJob(proto::ParkJob {
                job_id: command.job.0,
                node_id: command.node.to_string(),
                fencing_token: command.token.0,
                journal_length: command.journal_length,
                waits: waits_out(&command.waits),
                used_us: command.used.0,
                read: command.read,
            }),
            Command::DeliverMessage(command) => Self::DeliverMessage(proto::DeliverMessage {
                job_id: command.job.0,
                message_id: command.id.to_string(),
                answers: question_out(command.answers),
                payload: Some((&command.payload).into()),
            }),
            Command::CarryJob(command) => {
                Self::CarryJob(proto::CarryJob { job_id: command.job.0, run_id: command.run.0 })
            }
            Command::EndCarried(command) => Self::EndCarried(command.into()),
            Command::StartRun(command) => Self::StartRun(command.into()),
            Command::AdvanceRun(command) => Self::AdvanceRun(command.into()),
            Command::CancelRun(command) => Self::CancelRun(proto::CancelRun { run_id: command.run.0 }),
            Command::FireTrigger(command) => Self::FireTrigger(command.into()),
            Command::AskQuestion(command) => Self::AskQuestion(command.into()),
            Command::AnswerQuestion(command) => Self::AnswerQuestion(proto::AnswerQuestion {
                question_id: command.question.0,
                answer: command.answer.to_vec(),
            }),
            Command::ExpireQuestion(command) => {
                Self::ExpireQuestion(proto::ExpireQuestion { question_id: command.question.0 })
            }
            Command::RouteJob(command) => Self::RouteJob(command.into()),
            Command::ConsultOrchestrator(command) => Self::ConsultOrchestrator(command.into()),
        }
    }
}

impl TryFrom<Message> for Command {
    type Error = FormatError;

    fn try_from(message: Message) -> Result<Self, FormatError> {
        Ok(match message {
            Message::RegisterAgent(message) => Self::RegisterAgent(message.try_into()?),
            Message::DeleteAgent(message) => Self::DeleteAgent(DeleteAgent {
                name: name("delete_agent.name", &message.name, AgentName::new)?,
                version: required("delete_agent.version", message.version)?.into(),
            }),
            Message::RetireAgent(message) => Self::RetireAgent(RetireAgent {
                name: name("retire_agent.name", &message.name, AgentName::new)?,
                version: required("retire_agent.version", message.version)?.into(),
            }),
            Message::DeprecateAgent(message) => Self::DeprecateAgent(DeprecateAgent {
                name: name("deprecate_agent.name", &message.name, AgentName::new)?,
                version: required("deprecate_agent.version", message.version)?.into(),
                why: message.why.map(Into::into),
            }),
            Message::ResumeAgent(message) => Self::ResumeAgent(ResumeAgent {
                name: name("resume_agent.name", &message.name, AgentName::new)?,
                version: required("resume_agent.version", message.version)?.into(),
            }),
            Message::ResumeNode(message) => {
                Self::ResumeNode(ResumeNode { node: node("resume_node.node_id", &message.node_id)? })
            }
            Message::NoteRival(message) => Self::NoteRival(NoteRival {
                node: node("note_rival.node_id", &message.node_id)?,
                epoch: NodeEpoch(message.epoch),
                address: message.address.into(),
                holder: message.holder.into(),
            }),
            Message::RegisterNode(message) => Self::RegisterNode(RegisterNode {
                node: node("register_node.node_id", &message.node_id)?,
                boot_id: boot_id("register_node.boot_id", &message.boot_id)?,
                inventory: required("register_node.inventory", message.inventory)?.try_into()?,
            }),
            Message::DrainNode(message) => Self::DrainNode(DrainNode {
                node: node("drain_node.node_id", &message.node_id)?,
                deadline: message.deadline_us.map(Micros),
            }),
            Message::Cordon(message) => {
                Self::Cordon(Cordon { node: node("cordon.node_id", &message.node_id)?, cordoned: message.cordoned })
            }
            Message::LabelNode(message) => Self::LabelNode(message.try_into()?),
            Message::RemoveNode(message) => {
                Self::RemoveNode(RemoveNode { node: node("remove_node.node_id", &message.node_id)? })
            }
            Message::LoseNode(message) => Self::LoseNode(LoseNode {
                node: node("lose_node.node_id", &message.node_id)?,
                epoch: NodeEpoch(message.epoch),
            }),
            Message::WarmChanged(message) => Self::WarmChanged(WarmChanged {
                node: node("warm_changed.node_id", &message.node_id)?,
                epoch: NodeEpoch(message.epoch),
                digest: digest("warm_changed.digest", &message.digest)?,
                idle: message.idle,
            }),
            Message::SubmitJob(message) => Self::SubmitJob(message.try_into()?),
            Message::GrantLease(message) => Self::GrantLease(GrantLease {
                job: JobId(message.job_id),
                node: node("grant_lease.node_id", &message.node_id)?,
                epoch: NodeEpoch(message.epoch),
                allocation: required("grant_lease.allocation", message.allocation)?.try_into()?,
            }),
            Message::StartJob(message) => Self::StartJob(StartJob {
                job: JobId(message.job_id),
                node: node("start_job.node_id", &message.node_id)?,
                token: FencingToken(message.fencing_token),
            }),
            Message::StoreLog(message) => Self::StoreLog(StoreLog {
                job: JobId(message.job_id),
                node: node("store_log.node_id", &message.node_id)?,
                token: FencingToken(message.fencing_token),
                stream: required("store_log.stream", message.stream)?.try_into()?,
            }),
            Message::CompleteJob(message) => Self::CompleteJob(message.try_into()?),
            Message::FailJob(message) => Self::FailJob(message.try_into()?),
            Message::FailPending(message) => Self::FailPending(FailPending {
                job: JobId(message.job_id),
                failure: required("fail_pending.failure", message.failure)?.try_into()?,
            }),
            Message::CancelJob(message) => {
                Self::CancelJob(CancelJob { job: JobId(message.job_id), running: message.running })
            }
            Message::LoseLease(message) => {
                Self::LoseLease(LoseLease { job: JobId(message.job_id), token: FencingToken(message.fencing_token) })
            }
            Message::WakeJob(message) => Self::WakeJob(WakeJob { job: JobId(message.job_id) }),
            Message::ForkJob(message) => Self::ForkJob(message.try_into()?),
            Message::ErasePayloads(message) => Self::ErasePayloads(ErasePayloads { job: message.job_id.map(JobId) }),
            Message::RetryJob(message) => Self::RetryJob(RetryJob {
                job: JobId(message.job_id),
                id: JobId(message.new_job_id),
                resume: message.resume,
            }),
            Message::SinkAck(message) => {
                Self::SinkAck(SinkAck { member: MemberId(message.member_id), event_seq: EventSeq(message.event_seq) })
            }
            Message::PruneJobs(message) => Self::PruneJobs(PruneJobs {
                voters: message.voter_ids.into_iter().map(MemberId).collect(),
                event_seq: EventSeq(message.event_seq),
                limit: message.limit,
            }),
            Message::ConfigureCluster(message) => Self::ConfigureCluster(ConfigureCluster {
                config: required("configure_cluster.config", message.config)?.into(),
            }),
            Message::ResolveJob(message) => Self::ResolveJob(message.try_into()?),
            Message::ReportDigest(message) => Self::ReportDigest(ReportDigest {
                member: MemberId(message.member_id),
                seq: Seq(message.seq),
                digest: digest("report_digest.digest", &message.digest)?.0,
            }),
            Message::CreateJoinToken(message) => Self::CreateJoinToken(CreateJoinToken {
                hash: digest("create_join_token.hash", &message.hash)?,
                kind: JoinKind::read("create_join_token.kind", message.kind)?,
                ttl: Micros(message.ttl_us),
                uses: message.uses,
                salt: match &message.salt[..] {
                    [] => None,
                    salt => Some(u128::from_be_bytes(fixed("create_join_token.salt", salt)?)),
                },
            }),
            Message::RevokeJoinToken(message) => {
                Self::RevokeJoinToken(RevokeJoinToken { hash: digest("revoke_join_token.hash", &message.hash)? })
            }
            Message::JoinMember(message) => Self::JoinMember(JoinMember {
                hash: digest("join_member.hash", &message.hash)?,
                above: MemberId(message.above),
            }),
            Message::ForsakeChild(message) => Self::ForsakeChild(ForsakeChild {
                spawner: bodies::attempt(required("forsake_child.spawner", message.spawner)?)?,
                node: node("forsake_child.node_id", &message.node_id)?,
                child: JobId(message.child_job_id),
            }),
            Message::RecordSteps(message) => Self::RecordSteps(RecordSteps {
                job: JobId(message.job_id),
                node: node("record_steps.node_id", &message.node_id)?,
                token: FencingToken(message.fencing_token),
                from: message.from,
                steps: steps_in(message.steps)?,
            }),
            Message::ReserveBudget(message) => Self::ReserveBudget(ReserveBudget {
                job: JobId(message.job_id),
                node: node("reserve_budget.node_id", &message.node_id)?,
                token: FencingToken(message.fencing_token),
                call: Reservation {
                    key: StepKey(fixed("reserve_budget.key", &message.key)?),
                    nanodollars: message.nanodollars,
                },
            }),
            Message::FoldSteps(message) => Self::FoldSteps(FoldSteps {
                job: JobId(message.job_id),
                node: node("fold_steps.node_id", &message.node_id)?,
                token: FencingToken(message.fencing_token),
                upto: message.upto,
                artifact: required("fold_steps.artifact", message.artifact)?.try_into()?,
            }),
            Message::ParkJob(message) => Self::ParkJob(ParkJob {
                job: JobId(message.job_id),
                node: node("park_job.node_id", &message.node_id)?,
                token: FencingToken(message.fencing_token),
                journal_length: message.journal_length,
                waits: waits_in(message.waits)?,
                used: Micros(message.used_us),
                read: message.read,
            }),
            Message::DeliverMessage(message) => Self::DeliverMessage(DeliverMessage {
                job: JobId(message.job_id),
                id: message_id("deliver_message.message_id", &message.message_id)?,
                answers: question_in("deliver_message.answers", &message.answers)?,
                payload: required("deliver_message.payload", message.payload)?.try_into()?,
            }),
            Message::CarryJob(message) => {
                Self::CarryJob(CarryJob { job: JobId(message.job_id), run: RunId(message.run_id) })
            }
            Message::EndCarried(message) => Self::EndCarried(message.try_into()?),
            Message::StartRun(message) => Self::StartRun(message.try_into()?),
            Message::AdvanceRun(message) => Self::AdvanceRun(message.try_into()?),
            Message::CancelRun(message) => Self::CancelRun(CancelRun { run: RunId(message.run_id) }),
            Message::AskQuestion(message) => Self::AskQuestion(message.try_into()?),
            Message::AnswerQuestion(message) => Self::AnswerQuestion(AnswerQuestion {
                question: QuestionId(message.question_id),
                answer: message.answer.into(),
            }),
            Message::ExpireQuestion(message) => {
                Self::ExpireQuestion(ExpireQuestion { question: QuestionId(message.question_id) })
            }
            Message::RouteJob(message) => Self::RouteJob(message.try_into()?),
            Message::ConsultOrchestrator(message) => Self::ConsultOrchestrator(message.try_into()?),
            Message::PutObject(message) => Self::PutObject(message.try_into()?),
            Message::DeleteObject(message) => Self::DeleteObject(message.try_into()?),
            Message::ObserveObjects(message) => Self::ObserveObjects(message.try_into()?),
            Message::FireTrigger(message) => Self::FireTrigger(message.try_into()?),
        })
    }
}

fn node(field: &'static str, text: &str) -> Result<NodeId, FormatError> {
    name(field, text, NodeId::new)
}

impl From<&LabelNode> for proto::LabelNode {
    fn from(command: &LabelNode) -> Self {
        let change =
            |(key, value): (&String, &Option<String>)| proto::LabelChange { key: key.clone(), value: value.clone() };
        Self { node_id: command.node.to_string(), labels: command.labels.iter().map(change).collect() }
    }
}

impl TryFrom<proto::LabelNode> for LabelNode {
    type Error = FormatError;

    fn try_from(message: proto::LabelNode) -> Result<Self, FormatError> {
        if !message.labels.is_sorted_by(|a, b| a.key < b.key) {
            return Err(FormatError::Order { field: "label_node.labels" });
        }
        Ok(Self {
            node: node("label_node.node_id", &message.node_id)?,
            labels: message.labels.into_iter().map(|label| (label.key, label.value)).collect(),
        })
    }
}
