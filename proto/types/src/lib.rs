//! Ids and plain data that the parts of Atlas share.
//!
//! Everything here is data with public fields: no async, no I/O, no clock. A type is defined here when it crosses a
//! crate boundary; stored and sent data (log, snapshot, wire) has formats of its own, which convert to these types.

mod agent;
mod approval;
mod attachment;
mod budget;
mod carried;
mod circuit;
mod command;
mod config;
mod entry;
mod error;
mod event;
mod evidence;
mod failure;
mod fair;
mod hardware;
mod id;
mod image;
mod inbox;
mod job;
mod journal;
mod label;
pub mod level;
mod limit;
mod member;
mod node;
mod object;
mod origin;
mod outcome;
mod park;
mod payload;
mod question;
pub mod requirement;
mod route;
mod run;
mod session;
mod spawner;
mod status;
mod time;
mod usage;
mod verdict;
mod version;

pub use agent::{
    AgentKind, AgentPin, AgentRevision, AgentVersion, Effects, RequiredAgent, RetryRule, RunSpec, Timeouts,
};
pub use approval::{
    Approval, ApprovalAnswer, ApprovalAsk, Approvals, AskingRule, EARLIER_APPROVALS_MAX, JOB_APPROVALS_MAX, rejected,
    unapproved,
};
pub use attachment::{
    ATTACHED_MODELS_MAX, ATTACHED_SECRETS_MAX, ATTACHED_SERVERS_MAX, ATTACHMENTS_BYTES_MAX, AttachedModel,
    AttachedSecret, AttachedServer, Attachment, Attachments, BOUNDS_WORDS_MAX, Bounds, SECRET_BYTES_MAX, SecretSource,
    SecretText,
};
pub use budget::{Envelope, NotReserved, RESERVATIONS_MAX, Reservation};
pub use carried::Carried;
pub use circuit::{Bound, Circuit, Failed, Open, Probe};
pub use command::{
    AdvanceRun, AnswerQuestion, AskQuestion, CancelJob, CancelRun, CarriedEnd, CarryJob, Command, CompleteJob,
    ConfigureCluster, ConsultOrchestrator, Cordon, CreateJoinToken, DeleteAgent, DeleteObject, DeliverMessage,
    DeprecateAgent, DrainNode, EndCarried, ErasePayloads, ExpireQuestion, FailJob, FailPending, FireTrigger, FiredBy,
    FoldSteps, ForkJob, ForsakeChild, GrantLease, JoinMember, LabelNode, LoseLease, LoseNode, NoteRival, Observation,
    ObserveObjects, ParkJob, PruneJobs, PutObject, RecordSteps, RegisterAgent, RegisterNode, RemoveNode, ReportDigest,
    Request, ReserveBudget, Resolution, ResolveJob, ResumeAgent, ResumeNode, RetireAgent, RetryJob, RevokeJoinToken,
    RouteJob, RunDefinition, RunNext, RunWave, SinkAck, StartJob, StartRun, StoreLog, TriggerStart, WakeJob,
    WarmChanged, WaveEnd, WaveStep,
};
pub use config::ClusterConfig;
pub use entry::{Entry, Parent};
pub use error::ErrorKind;
pub use event::{Event, EventRecord, JobChange};
pub use evidence::{Answered, AnsweredHow, Evidence, GRANTS_MAX, Granted, POLICIES_MAX, PolicyRef};
pub use failure::{Failure, FailureKind};
pub use fair::{AGING_PRIORITY_MAX, Share, Turn, WEIGHT_DEFAULT, WEIGHT_MAX};
pub use hardware::{Allocation, Architecture, Demand, Gpu, GpuShare, Inventory, Place};
pub use id::{
    AgentName, Attempt, BootId, Channel, Digest, EventSeq, FencingToken, IdError, JobId, MemberId, MessageId,
    Namespace, NodeEpoch, NodeId, ObjectKind, ObjectName, Principal, QuestionId, RequestId, RunId, Seq,
};
pub use image::{EndedImage, EnvelopeImage, InboxImage, JournalImage, NodeImage, RequestImage, SinkImage, StateImage};
pub use inbox::{INBOX_BYTES_MAX, INBOX_MESSAGES_MAX, INBOX_READ_MAX, Inbox, Message};
pub use job::{
    CALLED_FROM_METADATA, CONVERSATION_METADATA, ERASED_LABEL, Fork, Job, KEPT_METADATA, LEFT_METADATA, METADATA_OURS,
    NAMED_METADATA, Spawned, SubmitJob,
};
pub use journal::{
    FOLDS_MAX, Fold, JOURNAL_INLINE_BYTES_MAX, Journal, STEP_BYTES, STEPS_BYTES_MAX, Step, StepKey, StepKind, StepUsage,
};
pub use label::{LABEL_BYTES_MAX, LABELS_MAX, label_bytes};
pub use level::Level;
pub use limit::{Bucket, Limit, LimitKey, PerKey, Rate};
pub use member::{JoinKind, JoinToken};
pub use node::{Lease, Node, NodeHealth, Rival};
pub use object::{Expect, JOB_LABEL, Object, ObjectKey, SPEC_BYTES_MAX, STATUS_BYTES_MAX};
pub use origin::{Door, Origin, TraceContext};
pub use outcome::{Outcome, Rejection};
pub use park::{Park, ParkResult, Parked, WAITS_MAX, Wait};
pub use payload::{INLINE_BYTES_MAX, Payload, PayloadBody};
pub use question::{
    ANSWER_BYTES_MAX, APPROVALS, ASK_BYTES_MAX, Ask, AskKind, OPTIONS_MAX, QUESTIONS_MAX, Question, QuestionEnd,
    QuestionRule, RULE_ANSWER_BYTES_MAX,
};
pub use route::{Decider, Decision, Route, RouteAction};
pub use run::{
    Branches, RUN_STEPS_MAX, RUNS_ACTIVE_MAX, RUNS_ENDED_KEPT, Run, RunChange, RunFailure, RunFault, RunStatus,
    RunStep, RunStrategy, StepLeft, StepOf,
};
pub use session::{
    AssignedJournal, Assignment, COLLECT, Delta, HandBack, HandBackDeadline, HeldLease, MODEL_TOKEN, Mail, Report,
    ReportKind, ReportResult, Spawn, SpawnEnd, SpawnRule, SpawnStep, StepsResult, StreamEvent, StreamKind, TEAM,
    ToolEnd, ToolRequest, is_hidden,
};
pub use spawner::{SpawnedBy, Spawner};
pub use status::{JobStatus, Reason};
pub use time::{ClusterTime, Micros, Timestamp};
pub use usage::Usage;
pub use verdict::Verdict;
pub use version::{Version, VersionError};
