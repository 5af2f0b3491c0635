//! Errors of the service functions, with the details that doors show.

mod convert;
mod hint;
mod limit;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;
use std::time::Duration;

use atlas_access::{Place, Right};
use atlas_artifacts::ArtifactError;
use atlas_contract::Violation;
use atlas_raft::ChangeError;
use atlas_types::{AgentName, ErrorKind, EventSeq, JobId, JobStatus, Level, NodeId, Principal, Rejection, Version};

use atlas_api::catalogue::{self, Entry};

use words::{asked_by, denied_by, expected, in_place, no_such_step, unknown_version};

/// Why a service function failed. The text is for people. Where Atlas for Python has a text for the case, it is the
/// same.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No agent has the name, or no version meets the requirement.
    #[error("no such agent: {}", unknown_version(name, version.as_deref(), versions))]
    UnknownAgent {
        name: String,
        /// The version or requirement as given.
        version: Option<String>,
        /// The versions that the agent has, newest first, retired ones are marked.
        versions: Vec<String>,
        /// The most similar known name.
        suggestion: Option<AgentName>,
    },
    /// The agent version of a job, or of a request, is not registered any more.
    #[error("the agent version is not registered")]
    AgentGone,
    /// A page of another site sent the request.
    #[error("the request comes from another site: {0}")]
    Foreign(String),
    /// No orchestrator has this name.
    #[error("Orchestrator not found: {0}")]
    UnknownOrchestrator(String),
    /// The orchestrator does not have the methods of one.
    #[error("{0} does not implement Orchestrator protocol")]
    NotAnOrchestrator(String),
    /// A chain calls itself, directly or through others.
    #[error("{0}")]
    ChainCycle(String),
    /// No job of an agent with this name has run on this controller.
    #[error("No metrics for agent: {0}")]
    NoFigures(String),
    /// The input breaks the agent's contract.
    #[error("the input does not fit the contract of {agent} {version}")]
    InputRefused {
        agent: AgentName,
        version: Version,
        /// The violations, in order.
        violations: Vec<Violation>,
    },
    /// Agents that the agent requires are missing.
    #[error("{agent} {version} requires agents that are missing: {}", missing.join(", "))]
    DependencyMissing {
        agent: AgentName,
        version: Version,
        /// The missing agents, with the required range where only another version exists.
        missing: Vec<String>,
    },
    /// An `agent.yaml` breaks the rules for contracts.
    #[error("the contract is not valid: {text}")]
    ContractRefused {
        /// The violations in one line.
        text: String,
        /// The violations, in order.
        violations: Vec<Violation>,
    },
    /// The request is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The interface has no such path.
    #[error("Not Found")]
    UnknownPath,
    /// The path supports only other methods.
    #[error("Method Not Allowed")]
    NoMethod(String),
    /// The resource of the path is not configured on this controller.
    #[error("{0}")]
    NotConfigured(&'static str),
    /// The request came over a network that others can read.
    #[error(
        "values of secrets are accepted over TLS or loopback only, and this controller listens on a network without TLS"
    )]
    NotPrivate,
    /// A login of a model or of an MCP server failed.
    #[error("could not log in to {owner}: {why}")]
    LoginFailed {
        /// The model or the server, for people.
        owner: String,
        /// The issuer's words.
        why: String,
        /// Whether another try may succeed.
        passes: bool,
    },
    /// This controller has no key of secrets.
    #[error("this controller has no key of secrets")]
    NoSecretsKey,
    /// The request has no valid token.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The caller lacks a right.
    #[error("{principal} lacks the right {right} {}", in_place(place))]
    Forbidden {
        /// Who asked.
        principal: Principal,
        /// The right.
        right: Right,
        /// Where it is needed.
        place: Place,
    },
    /// A policy does not allow it.
    #[error("{}", denied_by(policy, rule.as_deref(), why.as_deref()))]
    PolicyDenied {
        /// The policy.
        policy: String,
        /// Its rule; none if another part of it denies.
        rule: Option<String>,
        /// Why, for people.
        why: Option<String>,
    },
    /// A policy asks for an approval, and the operation cannot wait for one.
    #[error("{}, and {what} cannot wait for an approval", asked_by(policy, rule))]
    ApprovalNeeded {
        /// The policy.
        policy: String,
        /// Its rule.
        rule: String,
        /// The operation, in words.
        what: &'static str,
    },
    /// The job was not approved.
    #[error("the job was not approved, so it cannot be run again")]
    Unapproved,
    /// The body did not arrive in time.
    #[error("the request body was not received in time")]
    Late,
    /// An uploaded package cannot be unpacked.
    #[error("the package cannot be read: {0}")]
    PackageRefused(String),
    /// No such job.
    #[error("Job not found")]
    UnknownJob,
    /// No such run of a chain.
    #[error("Chain execution not found")]
    UnknownRun,
    /// No such trace.
    #[error("Trace not found")]
    UnknownTrace,
    /// The ids of several jobs start with this text.
    #[error("\"{prefix}\" matches several job ids: {first}, {second}")]
    AmbiguousJob {
        prefix: String,
        /// One of them.
        first: JobId,
        /// Another.
        second: JobId,
    },
    /// The queue is full.
    #[error("{rejection}")]
    QueueFull {
        /// The text of Atlas for Python.
        rejection: Rejection,
    },
    /// The idempotency key was used before with another body.
    #[error("this idempotency key was used before with another body")]
    RequestConflict,
    /// The job's status does not allow the operation.
    #[error("the job is {}", status.as_str())]
    WrongStatus { status: JobStatus },
    /// The job has left the state, and its journal with it.
    #[error("the journal of the job can no longer be resumed")]
    JournalGone,
    /// A journal does not have the steps that a fork is to begin with.
    #[error("{}", no_such_step(*.steps, *.recorded))]
    NoSuchStep {
        /// How many were asked for.
        steps: u64,
        /// How many are recorded.
        recorded: u64,
    },
    /// A fork would ask for other steps than the recorded ones.
    #[error("{0}")]
    ForkDiffers(String),
    /// The job is not in doubt.
    #[error("the job is not in doubt, it is {}", status.as_str())]
    NotInDoubt { status: JobStatus },
    /// An output that an operator provided breaks the agent's contract.
    #[error("the output does not fit the contract of {agent} {version}")]
    OutputRefused {
        agent: AgentName,
        version: Version,
        /// The violations, in order.
        violations: Vec<Violation>,
    },
    /// An attempt may not spawn this job.
    #[error("{0}")]
    SpawnRefused(Rejection),
    /// A member of the cluster runs a program that does not know the command.
    #[error("{0}")]
    LevelTooLow(Rejection),
    /// More bytes than allowed.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The call of a webhook is not signed with its secret, or its time stamp is too old.
    #[error("Invalid signature")]
    BadSignature,
    /// The body of a call of a webhook is too large.
    #[error("Payload too large")]
    CallTooLarge,
    /// The requested events were dropped from the history.
    #[error("events before {earliest} have been dropped")]
    EventsGone {
        /// The first event that is still stored.
        earliest: EventSeq,
    },
    /// A limit of the cluster is reached.
    #[error("{0}")]
    LimitReached(Rejection),
    /// An artifact cannot be read, or cannot be stored on enough controllers.
    #[error("could not use an artifact")]
    Artifact(#[source] ArtifactError),
    /// The data is missing in this controller's history, and no controller that has it answers.
    #[error("this controller's history is behind, and no other controller could answer")]
    HistoryBehind,
    /// This controller has not applied entries that the client has already seen on another one.
    #[error("this controller is behind the state that the client has seen")]
    Behind,
    /// There is no leader.
    #[error("the cluster has no leader at the moment")]
    NoLeader,
    /// The request may or may not have taken effect.
    #[error("the connection to the leader broke; the request may have taken effect")]
    OutcomeUnknown,
    /// This controller cannot write its audit: changes are refused.
    #[error("the controller cannot record changes in its audit")]
    AuditFailing,
    /// The change is made, and its record is not durable.
    #[error("the change was made, and its record in the audit is not written yet")]
    Unrecorded,
    /// The disk of this controller, or of the leader, is nearly full: new work is refused.
    #[error("the controller's disk is nearly full")]
    NoSpace,
    /// Too many requests wait already.
    #[error("the controller has too many requests")]
    Overloaded,
    /// No such node.
    #[error("no such node: {0}")]
    UnknownNode(String),
    /// Another worker has the name of the node.
    #[error(
        "node \"{node}\" is the worker at {holder}, which renews its session; the worker at {address} needs another name"
    )]
    NodeTaken {
        node: NodeId,
        /// The address of the worker that has the name.
        holder: Arc<str>,
        /// The address of the one that asks for it.
        address: Arc<str>,
    },
    /// The node still holds leases.
    #[error("{}", Rejection::NodeBusy { leases: *leases })]
    NodeBusy {
        /// The number of leases.
        leases: u64,
    },
    /// The agent version is not retired, or jobs refer to it.
    #[error("{0}")]
    AgentInUse(Rejection),
    /// The agent version, or the version of a skill, has another package.
    #[error("{0}")]
    VersionTaken(String),
    /// The agent version has no such earlier package.
    #[error("{0}")]
    UnknownRevision(String),
    /// The worker reports the label, so it cannot be removed by an operator.
    #[error("{0}")]
    LabelOfWorker(Rejection),
    /// No such object.
    #[error("{0}")]
    UnknownObject(String),
    /// The object is not at the revision that the client expects.
    #[error("{}", expected(*revision))]
    ObjectChanged {
        /// Its revision; 0 if there is no such object.
        revision: EventSeq,
    },
    /// The entries of the memory that a summary stands for are not the oldest ones any more.
    #[error("the memory was changed in the meantime")]
    MemoryChanged,
    /// No such kind of object.
    #[error("{0}")]
    UnknownObjectKind(String),
    /// The document does not fit its kind.
    #[error("{what}")]
    ObjectRefused {
        what: String,
        /// The violations by their place in the whole document; none if another member of the cluster refused it.
        violations: Vec<Violation>,
    },
    /// Another turn of the conversation is under way.
    #[error("the conversation \"{0}\" is still answering an earlier message")]
    ConversationBusy(String),
    /// The object cannot be deleted yet.
    #[error("{0}")]
    ObjectInUse(Rejection),
    /// A limit of the namespace is reached.
    #[error("{0}")]
    NamespaceLimit(Rejection),
    /// The join token is not valid.
    #[error("{0}")]
    TokenRefused(Rejection),
    /// The join token of a node is unknown, used up or expired, or for another node.
    #[error("the join token is refused")]
    NodeTokenRefused,
    /// The token of a group, under the name of a node that did not join by it, or was revoked since.
    #[error("the name \"{0}\" is that of a node that the cluster knows, and that is no member of the group")]
    NodeNameTaken(String),
    /// The group has too many members for another name.
    #[error("the group has {max} nodes that joined by its token, which is the limit")]
    GroupFull {
        /// The limit.
        max: usize,
    },
    /// The node's certificate is not the one that the cluster knows.
    #[error("node \"{0}\" may not connect with this certificate")]
    NotEnrolled(String),
    /// Nodes join without tokens where there are no certificates.
    #[error("this cluster has no TLS, so nodes need no join tokens")]
    NoTls,
    /// No such member.
    #[error("no such member: {0}")]
    UnknownMember(String),
    /// This change of the membership is not possible, or not now.
    #[error("{0}")]
    Membership(ChangeError),
    /// A joining controller does not know the cluster's feature level.
    #[error("the cluster is at feature level {}, this program knows {}", needed.0, known.0)]
    TooOld {
        /// The level of the cluster.
        needed: Level,
        /// The highest level that the program knows.
        known: Level,
    },
    /// Another member has the name.
    #[error("another member has the name \"{0}\"")]
    NameTaken(String),
    /// An error from another controller.
    #[error("{message}")]
    Relayed {
        /// Its code.
        entry: Entry,
        /// Its text.
        message: String,
    },
    /// A backup cannot be made at the moment.
    #[error("no backup at the moment: {0}")]
    NoBackup(&'static str),
    /// A store of memory or knowledge outside of the cluster failed.
    #[error("{0}")]
    StoreFailed(String),
    /// No such question.
    #[error("no such question")]
    UnknownQuestion,
    /// The question has ended.
    #[error("the question is {0}")]
    QuestionClosed(&'static str),
    /// The question is for others.
    #[error("the question names who may answer it, and the caller is none of them")]
    NotAnswerer,
    /// The answer does not fit what is asked.
    #[error("{0}")]
    AnswerRefused(String),
    /// Documents of a document base are lost.
    #[error("{0}")]
    SegmentUnreadable(String),
    /// The vectors of a document base are those of another model.
    #[error("{0}")]
    VectorsDiffer(String),
    /// A model that documents need gave no answer.
    #[error("{why}")]
    ModelFailed { entry: Entry, why: String },
    /// A document base is full.
    #[error("{0}")]
    BaseFull(String),
    /// A defect in Atlas. The log has the details.
    #[error("internal error")]
    Internal,
}

impl Error {
    /// The error's entry in the catalogue.
    pub fn entry(&self) -> Entry {
        match self {
            Self::UnknownAgent { .. } | Self::AgentGone | Self::NoFigures(_) => catalogue::UNKNOWN_AGENT,
            Self::InputRefused { .. } => catalogue::INPUT_REFUSED,
            Self::DependencyMissing { .. } => catalogue::DEPENDENCY_MISSING,
            Self::ContractRefused { .. } => catalogue::CONTRACT_REFUSED,
            Self::Malformed(_) => catalogue::MALFORMED,
            Self::Foreign(_) => catalogue::FOREIGN,
            Self::UnknownPath => catalogue::UNKNOWN_PATH,
            Self::NoMethod(_) => catalogue::NO_METHOD,
            Self::NotConfigured(_) => catalogue::NOT_CONFIGURED,
            Self::NoSecretsKey => catalogue::NO_SECRETS_KEY,
            Self::LoginFailed { passes: true, .. } => catalogue::MODEL_CALL,
            Self::LoginFailed { .. } => catalogue::NO_LOGIN,
            Self::NotPrivate => catalogue::NOT_PRIVATE,
            Self::Unauthenticated(_) => catalogue::UNAUTHENTICATED,
            Self::Forbidden { .. } => catalogue::FORBIDDEN,
            Self::PolicyDenied { .. } => catalogue::POLICY_DENIED,
            Self::ApprovalNeeded { .. } => catalogue::APPROVAL_NEEDED,
            Self::Unapproved => catalogue::NOT_APPROVED,
            Self::Late => catalogue::LATE,
            Self::PackageRefused(_) => catalogue::PACKAGE_REFUSED,
            Self::UnknownJob => catalogue::UNKNOWN_JOB,
            Self::UnknownRun => catalogue::UNKNOWN_RUN,
            Self::UnknownTrace => catalogue::UNKNOWN_TRACE,
            Self::UnknownOrchestrator(_) => catalogue::UNKNOWN_ORCHESTRATOR,
            Self::NotAnOrchestrator(_) => catalogue::NOT_AN_ORCHESTRATOR,
            Self::ChainCycle(_) => catalogue::CHAIN_CYCLE,
            Self::AmbiguousJob { .. } => catalogue::AMBIGUOUS_JOB,
            Self::QueueFull { .. } => catalogue::QUEUE_FULL,
            Self::RequestConflict => catalogue::REQUEST_CONFLICT,
            Self::WrongStatus { .. } => catalogue::WRONG_STATUS,
            Self::JournalGone => catalogue::JOURNAL_GONE,
            Self::NoSuchStep { .. } => catalogue::NO_SUCH_STEP,
            Self::ForkDiffers(_) => catalogue::STEP_DIFFERS,
            Self::NotInDoubt { .. } => catalogue::NOT_IN_DOUBT,
            Self::OutputRefused { .. } => catalogue::OUTPUT_REFUSED,
            Self::LevelTooLow(_) => catalogue::LEVEL_TOO_LOW,
            Self::SpawnRefused(_) => catalogue::SPAWN_REFUSED,
            Self::TooLarge { .. } | Self::CallTooLarge => catalogue::TOO_LARGE,
            Self::BadSignature => catalogue::BAD_SIGNATURE,
            Self::EventsGone { .. } => catalogue::EVENTS_GONE,
            Self::LimitReached(rejection) if limit::remedy(rejection).is_some() => catalogue::CLUSTER_FULL,
            Self::LimitReached(_) => catalogue::LIMIT_REACHED,
            Self::Artifact(error) => match error.kind() {
                ErrorKind::Unavailable => catalogue::PEERS_AWAY,
                ErrorKind::Internal => catalogue::INTERNAL,
                _ => catalogue::ARTIFACT_MISSING,
            },
            Self::SegmentUnreadable(_) => catalogue::ARTIFACT_MISSING,
            Self::VectorsDiffer(_) => catalogue::OBJECT_REFUSED,
            Self::BaseFull(_) => catalogue::TOO_LARGE,
            Self::HistoryBehind => catalogue::HISTORY_BEHIND,
            Self::Behind => catalogue::BEHIND,
            Self::NoLeader => catalogue::NO_LEADER,
            Self::OutcomeUnknown | Self::Unrecorded => catalogue::OUTCOME_UNKNOWN,
            Self::AuditFailing => catalogue::AUDIT_FAILING,
            Self::Overloaded => catalogue::OVERLOADED,
            Self::NoSpace => catalogue::NO_SPACE,
            Self::UnknownNode(_) => catalogue::UNKNOWN_NODE,
            Self::NodeBusy { .. } => catalogue::NODE_BUSY,
            Self::NodeTaken { .. } => catalogue::NODE_TAKEN,
            Self::LabelOfWorker(_) => catalogue::LABEL_OF_WORKER,
            Self::AgentInUse(_) => catalogue::AGENT_IN_USE,
            Self::VersionTaken(_) => catalogue::VERSION_TAKEN,
            Self::UnknownRevision(_) => catalogue::UNKNOWN_REVISION,
            Self::UnknownObject(_) => catalogue::UNKNOWN_OBJECT,
            Self::ObjectChanged { .. } | Self::MemoryChanged => catalogue::OBJECT_CHANGED,
            Self::UnknownObjectKind(_) => catalogue::UNKNOWN_OBJECT_KIND,
            Self::ObjectRefused { .. } => catalogue::OBJECT_REFUSED,
            Self::ConversationBusy(_) => catalogue::CONVERSATION_BUSY,
            Self::ObjectInUse(_) => catalogue::OBJECT_IN_USE,
            Self::NamespaceLimit(rejection) if limit::remedy(rejection).is_some() => catalogue::NAMESPACE_FULL,
            Self::NamespaceLimit(_) => catalogue::NAMESPACE_LIMIT,
            Self::TokenRefused(_) | Self::NodeTokenRefused | Self::NodeNameTaken(_) => catalogue::TOKEN_REFUSED,
            Self::GroupFull { .. } => catalogue::CLUSTER_FULL,
            Self::NotEnrolled(_) => catalogue::NOT_ENROLLED,
            Self::NoTls => catalogue::NO_TLS,
            Self::UnknownMember(_) => catalogue::UNKNOWN_MEMBER,
            Self::Membership(ChangeError::Behind { .. } | ChangeError::NotVoter { .. }) => catalogue::MEMBER_BEHIND,
            Self::Membership(_) => catalogue::MEMBERSHIP_REFUSED,
            Self::TooOld { .. } => catalogue::TOO_OLD,
            Self::NameTaken(_) => catalogue::NAME_TAKEN,
            Self::Relayed { entry, .. } | Self::ModelFailed { entry, .. } => *entry,
            Self::NoBackup(_) => catalogue::NO_BACKUP,
            Self::StoreFailed(_) => catalogue::STORE_FAILED,
            Self::UnknownQuestion => catalogue::UNKNOWN_QUESTION,
            Self::QuestionClosed(_) => catalogue::QUESTION_CLOSED,
            Self::NotAnswerer => catalogue::NOT_ANSWERER,
            Self::AnswerRefused(_) => catalogue::ANSWER_REFUSED,
            Self::Internal => catalogue::INTERNAL,
        }
    }

    /// The kind of the error, which determines what a caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.entry().kind
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self.kind(), ErrorKind::Unavailable) || matches!(self, Self::Overloaded)
    }

    /// The violations, for refused inputs and contracts.
    pub fn violations(&self) -> &[Violation] {
        match self {
            Self::InputRefused { violations, .. }
            | Self::OutputRefused { violations, .. }
            | Self::ContractRefused { violations, .. }
            | Self::ObjectRefused { violations, .. } => violations,
            _ => &[],
        }
    }

    /// After which time a repeat may succeed; none if it needs a person first.
    pub fn retry_after(&self) -> Option<Duration> {
        let entry = self.entry();
        match entry.kind {
            _ if !entry.passes() => None,
            ErrorKind::NoSpace => Some(Duration::from_secs(10)),
            _ => Some(Duration::from_secs(1)),
        }
    }

    /// Converts the error of a failed store operation.
    pub fn storing(what: &'static str, error: ArtifactError) -> Self {
        match error {
            ArtifactError::TooLarge { max, .. } => Self::TooLarge { what, limit: max },
            error if error.kind() == ErrorKind::Unavailable => Self::Artifact(error),
            error if error.kind() == ErrorKind::NoSpace => Self::NoSpace,
            error => Self::internal("store an artifact", &error),
        }
    }

    /// Converts an error from another controller by its code.
    pub fn relayed(code: &str, message: String) -> Self {
        let entry = catalogue::ENTRIES.iter().find(|entry| entry.code == code);
        Self::Relayed { entry: entry.copied().unwrap_or(catalogue::INTERNAL), message }
    }

    /// The files for a backup could not be created or written.
    pub fn backup_failed(error: &std::io::Error) -> Self {
        Self::internal("write a backup", error)
    }

    /// An internal error. It is logged here in full and not shown to clients.
    pub fn internal(doing: &'static str, error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error, "could not {doing}");
        Self::Internal
    }
}
