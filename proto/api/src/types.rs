//! The bodies of requests and answers, and the frames of event streams, as types. Their JSON Schemas are derived from them: the comments are the
//! descriptions.
//!
//! Reading is lenient: a member that is missing gets its default, and one that is unknown is ignored, because the other side may be older or newer.
//! Only requests whose schema closes the list of members refuse unknown ones.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

mod access;
mod agents;
mod bases;
mod chains;
mod cluster;
mod conversations;
mod events;
mod explanations;
mod figures;
mod jobs;
mod library;
mod logins;
mod nodes;
mod objects;
mod openai;
mod orchestrators;
mod policies;
mod problems;
mod questions;
mod shown;
mod skills;
mod submissions;
mod traces;
mod triggers;

pub use access::{AccessToken, AccessTokenRequest, AuditMember, AuditPage, AuditRecord, Grant, MissingMember, Whoami};
pub use agents::{
    Agent, AgentRevision, Circuit, Deletion, DeprecateRequest, Deprecation, Registration, Retirement, RollbackRequest,
    RolledBack,
};
pub use bases::{
    AddedDocument, AddedDocuments, Base, BaseChange, BaseCollecting, BaseCollection, BaseDocument, BaseDraft,
    BaseRebuild, BaseVectors, DocumentDraft, DocumentDrafts, DocumentHit, DocumentPage, DocumentQuery, DocumentReaders,
    FoundDocuments, HitRank, RebuiltBase, RemovedDocuments, UnreadableSegment,
};
pub use chains::{ChainCheck, ChainId, ChainRun, ChainStart, ChainToCheck, ChainTree};
pub use cluster::{
    ClusterView, ControllerTokenRequest, Disk, Document, Member, Quorum, Revocation, RevokeRequest, Token,
    TokenRequest, Transfer, TransferRequest, WorkerTokenRequest,
};
pub use conversations::{Conversation, ConversationBranch, ConversationMessage, McpServers, ProtectedResource};
pub use events::{ClusterEvent, JobChange, Line};
pub use explanations::{Counterfactual, Estimate, Explanation, Shortfall};
pub use figures::{AgentFigures, AllFigures, Allocation, GlobalFigures, Hardware, Health, Ready, Version};
pub use jobs::{
    Cancellation, DoubtDecision, Erasure, Fork, GraphValues, Job, JobApproval, JobMessage, JobRoute, JobStep, JobTree,
    NeededApproval, Receipt, Resolution, SentMessage,
};
pub use library::{
    KnowledgeAcl, KnowledgeChange, KnowledgeDomain, KnowledgeDraft, KnowledgeEntry, KnowledgeRights, Memory,
    MemoryChange, MemoryEntry, SummaryOf,
};
pub use logins::{LoginProgress, LoginRequest, ServerLoginProgress, ServerLoginRequest};
pub use nodes::{Acceptance, DrainRequest, Gpu, LabelRequest, Node, Removal, Rival};
pub use objects::{Object, ObjectKind, ObjectMetadata, ObjectPage, ObjectRequest, SecretRequest};
pub use openai::{
    ApiError, ApiErrorDetail, ChatCompletion, ChatCompletionRequest, Completion, CompletionRequest, DeletedResponse,
    Embeddings, EmbeddingsRequest, InputItems, ModelResponse, ResponseRequest, UsableModel, UsableModels,
};
pub use orchestrators::{Orchestrator, OrchestratorName, SelectedOrchestrator};
pub use policies::{LeftPermissions, Policy, PolicyAnswer, PolicyDecision, PolicyQuestion};
pub use problems::{Error, Problem, Violation};
pub use questions::{JobQuestion, QuestionAnswer};
pub use shown::schemas;
pub use skills::{Skill, SkillTest, SkillTested};
pub use submissions::{Batch, BatchJob, BatchResult, BatchResults, Id, NewJob, Submission};
pub use traces::{EvalResult, Trace};
pub use triggers::{
    Backfill, BackfillRequest, BackfillTime, Call, Deliveries, Delivery, FiredJob, Firing, HookGreeting, NextFirings,
    Trigger, TriggerRequest, TriggerTest, TriggerTested,
};

/// A type of the interface: what a row says of a body.
#[derive(Clone, Copy)]
pub struct Shape {
    name: fn() -> Cow<'static, str>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Shape {
    /// The name of its schema.
    pub fn name(self) -> Cow<'static, str> {
        (self.name)()
    }

    /// The names of its members. A request of several forms has the members of all.
    pub fn members(self) -> impl Iterator<Item = &'static str> + Clone {
        let schema = schemas().get(&*self.name());
        let forms = schema.map(|schema| schema["oneOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice));
        let members = forms.into_iter().flatten().filter_map(|form| form["properties"].as_object());
        members.flat_map(|members| members.keys().map(String::as_str))
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

/// The shape of a type.
pub const fn of<T: JsonSchema>() -> Shape {
    Shape { name: T::schema_name, schema: T::json_schema }
}

/// Who writes a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Client,
    Server,
}

/// A body that clients write: a member is required if there is no default for it.
const fn request<T: JsonSchema>() -> (From, Shape) {
    (From::Client, of::<T>())
}

/// A body that the server writes: a member is required if it is always written.
const fn answer<T: JsonSchema>() -> (From, Shape) {
    (From::Server, of::<T>())
}

/// Every shape, in the order of the reference.
const SHAPES: &[(From, Shape)] = &[
    answer::<Error>(),
    answer::<Problem>(),
    answer::<Violation>(),
    answer::<Id>(),
    request::<Submission>(),
    request::<BatchJob>(),
    request::<Batch>(),
    answer::<BatchResult>(),
    answer::<BatchResults>(),
    answer::<Job>(),
    answer::<JobTree>(),
    answer::<Explanation>(),
    answer::<Shortfall>(),
    answer::<Estimate>(),
    answer::<Counterfactual>(),
    answer::<JobStep>(),
    answer::<Erasure>(),
    answer::<Cancellation>(),
    request::<DoubtDecision>(),
    request::<Fork>(),
    answer::<Resolution>(),
    request::<JobMessage>(),
    answer::<JobQuestion>(),
    request::<QuestionAnswer>(),
    answer::<SentMessage>(),
    answer::<JobChange>(),
    answer::<ClusterEvent>(),
    answer::<Line>(),
    answer::<Agent>(),
    answer::<AgentRevision>(),
    request::<RollbackRequest>(),
    answer::<RolledBack>(),
    answer::<Registration>(),
    answer::<Deletion>(),
    answer::<Retirement>(),
    request::<DeprecateRequest>(),
    answer::<Deprecation>(),
    request::<DrainRequest>(),
    request::<LabelRequest>(),
    answer::<Node>(),
    answer::<Circuit>(),
    answer::<Acceptance>(),
    answer::<Removal>(),
    answer::<Health>(),
    answer::<Hardware>(),
    answer::<Ready>(),
    answer::<Version>(),
    answer::<GlobalFigures>(),
    answer::<AgentFigures>(),
    answer::<AllFigures>(),
    request::<ChainStart>(),
    request::<ChainToCheck>(),
    answer::<ChainCheck>(),
    answer::<ChainId>(),
    answer::<ChainRun>(),
    answer::<ChainTree>(),
    answer::<Conversation>(),
    request::<ConversationBranch>(),
    answer::<Memory>(),
    answer::<MemoryEntry>(),
    request::<MemoryChange>(),
    request::<SummaryOf>(),
    answer::<KnowledgeEntry>(),
    request::<KnowledgeDraft>(),
    request::<KnowledgeChange>(),
    answer::<KnowledgeDomain>(),
    answer::<KnowledgeAcl>(),
    answer::<KnowledgeRights>(),
    request::<DocumentReaders>(),
    answer::<BaseVectors>(),
    answer::<BaseCollection>(),
    answer::<BaseCollecting>(),
    answer::<Base>(),
    request::<BaseDraft>(),
    request::<BaseChange>(),
    request::<BaseRebuild>(),
    answer::<RebuiltBase>(),
    request::<DocumentDraft>(),
    request::<DocumentDrafts>(),
    answer::<AddedDocument>(),
    answer::<AddedDocuments>(),
    answer::<BaseDocument>(),
    answer::<DocumentPage>(),
    answer::<UnreadableSegment>(),
    answer::<RemovedDocuments>(),
    request::<DocumentQuery>(),
    answer::<DocumentHit>(),
    answer::<HitRank>(),
    answer::<FoundDocuments>(),
    request::<ChatCompletionRequest>(),
    answer::<ChatCompletion>(),
    request::<CompletionRequest>(),
    answer::<Completion>(),
    request::<EmbeddingsRequest>(),
    answer::<Embeddings>(),
    answer::<UsableModel>(),
    answer::<UsableModels>(),
    request::<ResponseRequest>(),
    answer::<ModelResponse>(),
    answer::<DeletedResponse>(),
    answer::<InputItems>(),
    answer::<ApiError>(),
    answer::<ProtectedResource>(),
    answer::<McpServers>(),
    answer::<Trace>(),
    answer::<Skill>(),
    answer::<LeftPermissions>(),
    request::<PolicyQuestion>(),
    answer::<PolicyAnswer>(),
    answer::<Orchestrator>(),
    request::<OrchestratorName>(),
    answer::<SelectedOrchestrator>(),
    request::<SkillTest>(),
    answer::<SkillTested>(),
    answer::<Policy>(),
    answer::<Document>(),
    answer::<Member>(),
    answer::<ClusterView>(),
    request::<TokenRequest>(),
    answer::<Token>(),
    request::<RevokeRequest>(),
    answer::<Revocation>(),
    request::<TransferRequest>(),
    answer::<Transfer>(),
    answer::<ObjectKind>(),
    request::<ObjectRequest>(),
    request::<SecretRequest>(),
    request::<LoginRequest>(),
    answer::<LoginProgress>(),
    request::<ServerLoginRequest>(),
    answer::<ServerLoginProgress>(),
    answer::<Object>(),
    answer::<ObjectPage>(),
    request::<TriggerRequest>(),
    answer::<Trigger>(),
    answer::<FiredJob>(),
    answer::<NextFirings>(),
    answer::<Deliveries>(),
    answer::<Delivery>(),
    answer::<HookGreeting>(),
    request::<TriggerTest>(),
    answer::<TriggerTested>(),
    request::<BackfillRequest>(),
    answer::<Backfill>(),
    request::<Call>(),
    answer::<Receipt>(),
    answer::<AuditPage>(),
    answer::<Whoami>(),
    request::<AccessTokenRequest>(),
    answer::<AccessToken>(),
];

/// Whether a member has the value that it has if it is missing, so that it need not be written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// An enum whose forms exclude each other.
fn one_of(schema: &mut Schema) {
    if let Some(forms) = schema.remove("anyOf") {
        schema.insert("oneOf".to_owned(), forms);
    }
}
