//! Commands: a list of them, and the fields of those that are short.

use std::collections::BTreeMap;

use atlas_types::{
    AnswerQuestion, CancelJob, CancelRun, CarryJob, Command, ConfigureCluster, Cordon, CreateJoinToken, DeleteAgent,
    DeliverMessage, DeprecateAgent, DrainNode, ErasePayloads, ExpireQuestion, FailPending, FoldSteps, ForsakeChild,
    GrantLease, JoinMember, LabelNode, LoseLease, LoseNode, NoteRival, ParkJob, PruneJobs, RecordSteps, RegisterNode,
    RemoveNode, ReportDigest, Request, Reservation, ReserveBudget, ResumeAgent, ResumeNode, RetireAgent, RetryJob,
    RevokeJoinToken, SinkAck, StartJob, StoreLog, WakeJob, WarmChanged,
};

mod bodies;

use super::required;
use super::table::{EmptyIsNone, Field, table};
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

/// The commands: a name gives both directions, and the sample.
macro_rules! commands {
    ($($name:ident,)*) => {
        impl From<&Command> for Message {
            fn from(command: &Command) -> Self {
                match command {
                    $(Command::$name(command) => Self::$name(command.into()),)*
                }
            }
        }

        impl TryFrom<Message> for Command {
            type Error = FormatError;

            fn try_from(message: Message) -> Result<Self, FormatError> {
                Ok(match message {
                    $(Message::$name(message) => Self::$name(message.try_into()?),)*
                })
            }
        }

        #[cfg(test)]
        impl crate::tests::Sample for Command {
            fn sample(draw: &mut crate::tests::Draw) -> Self {
                let all: &[fn(&mut crate::tests::Draw) -> Self] =
                    &[$(|draw| Self::$name(crate::tests::Sample::sample(draw))),*];
                let one = draw.pick(all);
                one(draw)
            }
        }
    };
}

commands! {
    RegisterAgent,
    RetireAgent,
    RegisterNode,
    DrainNode,
    Cordon,
    RemoveNode,
    LoseNode,
    WarmChanged,
    SubmitJob,
    GrantLease,
    StartJob,
    CompleteJob,
    FailJob,
    FailPending,
    CancelJob,
    LoseLease,
    WakeJob,
    RetryJob,
    SinkAck,
    PruneJobs,
    ConfigureCluster,
    ResolveJob,
    ReportDigest,
    CreateJoinToken,
    RevokeJoinToken,
    JoinMember,
    ForsakeChild,
    DeprecateAgent,
    LabelNode,
    DeleteAgent,
    ParkJob,
    DeliverMessage,
    CarryJob,
    EndCarried,
    RecordSteps,
    FoldSteps,
    PutObject,
    DeleteObject,
    ObserveObjects,
    StoreLog,
    StartRun,
    AdvanceRun,
    CancelRun,
    FireTrigger,
    ForkJob,
    AskQuestion,
    AnswerQuestion,
    ExpireQuestion,
    RouteJob,
    ConsultOrchestrator,
    ErasePayloads,
    ResumeAgent,
    ResumeNode,
    NoteRival,
    ReserveBudget,
}

table! { "delete_agent": DeleteAgent = DeleteAgent { name = name, version = version } }
table! { "retire_agent": RetireAgent = RetireAgent { name = name, version = version } }
table! { "deprecate_agent": DeprecateAgent = DeprecateAgent { name = name, version = version, why = why } }
table! { "resume_agent": ResumeAgent = ResumeAgent { name = name, version = version } }
table! { "resume_node": ResumeNode = ResumeNode { node = node_id } }
table! { "note_rival": NoteRival = NoteRival { node = node_id, epoch = epoch, address = address, holder = holder } }
table! { "register_node": RegisterNode = RegisterNode { node = node_id, boot_id = boot_id, inventory = inventory } }
table! { "drain_node": DrainNode = DrainNode { node = node_id, deadline = deadline_us } }
table! { "cordon": Cordon = Cordon { node = node_id, cordoned = cordoned } }
table! { "label_node": LabelNode = LabelNode { node = node_id, labels = labels } }
table! { "remove_node": RemoveNode = RemoveNode { node = node_id } }
table! { "lose_node": LoseNode = LoseNode { node = node_id, epoch = epoch } }
table! { "warm_changed": WarmChanged = WarmChanged { node = node_id, epoch = epoch, digest = digest, idle = idle } }

table! {
    "grant_lease": GrantLease = GrantLease {
        job = job_id,
        node = node_id,
        epoch = epoch,
        allocation = allocation,
    }
}

table! { "start_job": StartJob = StartJob { job = job_id, node = node_id, token = fencing_token } }
table! { "store_log": StoreLog = StoreLog { job = job_id, node = node_id, token = fencing_token, stream = stream } }
table! { "fail_pending": FailPending = FailPending { job = job_id, failure = failure } }
table! { "cancel_job": CancelJob = CancelJob { job = job_id, running = running } }
table! { "lose_lease": LoseLease = LoseLease { job = job_id, token = fencing_token } }
table! { "wake_job": WakeJob = WakeJob { job = job_id } }
table! {
    "retry_job": RetryJob = RetryJob {
        job = job_id,
        id = new_job_id,
        resume = resume,
        questions = questions,
    }
}

table! { "erase_payloads": ErasePayloads = ErasePayloads { job = job_id } }
table! { "sink_ack": SinkAck = SinkAck { member = member_id, event_seq = event_seq } }
table! { "prune_jobs": PruneJobs = PruneJobs { voters = voter_ids, event_seq = event_seq, limit = limit } }
table! { "configure_cluster": ConfigureCluster = ConfigureCluster { config = config } }
table! { "report_digest": ReportDigest = ReportDigest { member = member_id, seq = seq, digest = digest } }

table! {
    "create_join_token": CreateJoinToken = CreateJoinToken {
        hash = hash,
        kind = kind,
        ttl = ttl_us,
        uses = uses,
        salt = salt via EmptyIsNone,
    }
}

table! { "revoke_join_token": RevokeJoinToken = RevokeJoinToken { hash = hash } }
table! { "join_member": JoinMember = JoinMember { hash = hash, above = above } }
table! { "forsake_child": ForsakeChild = ForsakeChild { spawner = spawner, node = node_id, child = child_job_id } }

table! {
    "record_steps": RecordSteps = RecordSteps {
        job = job_id,
        node = node_id,
        token = fencing_token,
        from = from,
        steps = steps,
    }
}

table! {
    "reserve_budget": ReserveBudget = ReserveBudget {
        job = job_id,
        node = node_id,
        token = fencing_token,
    }
    part call: Reservation {
        key = key,
        nanodollars = nanodollars,
    }
}

table! {
    "fold_steps": FoldSteps = FoldSteps {
        job = job_id,
        node = node_id,
        token = fencing_token,
        upto = upto,
        artifact = artifact,
    }
}

table! {
    "park_job": ParkJob = ParkJob {
        job = job_id,
        node = node_id,
        token = fencing_token,
        journal_length = journal_length,
        waits = waits,
        used = used_us,
        read = read,
    }
}

table! {
    "deliver_message": DeliverMessage = DeliverMessage {
        job = job_id,
        id = message_id,
        answers = answers via EmptyIsNone,
        channel = channel,
        payload = payload,
    }
}

table! { "carry_job": CarryJob = CarryJob { job = job_id, run = run_id } }
table! { "cancel_run": CancelRun = CancelRun { run = run_id } }
table! { "answer_question": AnswerQuestion = AnswerQuestion { question = question_id, answer = answer } }
table! { "expire_question": ExpireQuestion = ExpireQuestion { question = question_id } }

/// Changes of labels, which must come by rising key: another order would make equal values of unequal bytes.
impl Field<Vec<proto::LabelChange>> for BTreeMap<String, Option<String>> {
    fn write(&self) -> Vec<proto::LabelChange> {
        let change =
            |(key, value): (&String, &Option<String>)| proto::LabelChange { key: key.clone(), value: value.clone() };
        self.iter().map(change).collect()
    }

    fn read(field: &'static str, stored: Vec<proto::LabelChange>) -> Result<Self, FormatError> {
        if !stored.is_sorted_by(|a, b| a.key < b.key) {
            return Err(FormatError::Order { field });
        }
        Ok(stored.into_iter().map(|label| (label.key, label.value)).collect())
    }
}
