//! The functions behind every door: submit a job, wait for it, register an agent, follow events.
//!
//! A door translates and makes no decisions; decisions are made behind it or, for changes, by the state. Most subjects have a crate of their own
//! over `atlas-desk`: submission is in `atlas-jobs`, versions and policies in `atlas-registry`, what clients see of the state and the history in
//! `atlas-records`, missing artifacts and history in `atlas-upkeep`. This crate wires them (`wiring`) and hands them on (`subjects`). Of its own it
//! has runs of chains, triggers, orchestrators, skills, objects, the registration of agents, and the tools that agents call. It opens no socket.

mod agent_health;
mod agents;
mod base_search;
mod base_vectors;
mod collect;
mod document_models;
mod externals;
mod follow;
mod ids;
mod kept;
mod model_calls;
mod model_metrics;
mod model_probe;
mod needs;
mod objects;
mod orchestrators;
mod park;
mod pins;
mod probes;
mod revisions;
mod runs;
mod series;
mod served;
mod service;
mod skill_run;
mod skills;
mod spawn;
mod steps;
mod subjects;
mod submit;
mod tasks;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tools;
mod triggers;
mod usable_models;
mod wiring;
mod wish;

pub use agent_health::{AgentHealth, MessageTiming};
pub use agents::{AgentQuery, Registered, ShownAgent, Versions};
pub use atlas_artifacts::{
    Arriving, ArrivingLines, ArtifactError, ArtifactOptions, Artifacts, AttemptOutput, AuditAsk, AuditPage, Following,
    Group, Line, LineCursor, NoPeers, Outgoing, PeerAnswer, PeerError, Peers, Pieces, Query, QueryResult, Receiver,
    Sender, digest_of,
};
pub use atlas_audit::{Decision as AuditDecision, Filter as AuditFilter, Receipt};
pub use atlas_bases::{Bases, DocumentFilter, REQUEST_BYTES_MAX as DOCUMENTS_BYTES_MAX};
pub use atlas_conversations::{BegunTurn, ConversationScope, Mapping, Message, Role, reply_of};
pub use atlas_desk::{
    Attempted, Audit, AuditOptions, Caller, Consistency, Error, Fetched, Issuers, LeadershipLost, Limits, NoIssuers,
    ShownObject, TurnedAway, is_denial, json,
};
pub use atlas_events::{Change, EventFilter, EventKind, EventLabel, Follow, JobStream, Next, Reader};
pub use atlas_identity::{Authentication, CreatedToken, GroupMember, NewToken, NotARootToken};
pub use atlas_jobs::{
    BearerRefused, Bearers, Decision, ForkRequest, NewMessage, Recipient, RetryRequest, Set, Submission, Submitted,
};
pub use atlas_knowledge::{Acl, SEARCH_LIMIT};
pub use atlas_library::knowledge::{KnowledgeError, KnowledgeFilter, unknown_entry};
pub use atlas_library::{Library, MemoryScope, ScopeError, Stores, WriteKey};
pub use atlas_lines::{LiveLines, LogLine, LogOutput, LogReader, Piece, Streams};
pub use atlas_platform::{ModelLimits, NodeAction, Stats, Transition, WorkFilter};
pub use atlas_records::{
    JobQuery, QuestionQuery, Shown, StepQuery, Steps, TraceQuery, Tree, View, shown_question, write_frame,
};
pub use atlas_registry::{KnownContract, PolicyOperation, PolicyQuestion, lacking};
pub use atlas_trail::{AuditCursor, AuditQuery, MergedAudit, MissingAudit};
pub use atlas_upkeep::{Backup, Completeness};
pub use atlas_vault::{BegunLogin, DeviceLogin, KeyError, Keys, LoggedIn, NewLogin, NewSecret, Withheld};
pub use externals::{AskedJob, ExternalDecision, Externals, NoExternals};
pub use kept::HookSender;
pub use model_calls::ModelCall;
pub use objects::{ObjectChange, ObjectFilter};
pub use orchestrators::Selected;
pub use pins::{PinChanges, Pinned};
pub use revisions::RolledBack;
pub use runs::{ChainSource, ChainStart};
pub use served::ServedAgent;
pub use service::Service;
pub use skill_run::SkillEnd;
pub use skills::DeployedSkill;
pub use spawn::{Child, Spawning};
pub use submit::SubmittedJob;
pub use tasks::Followers;
pub use tools::{OutsideCall, Unwanted, tool_operation};
pub use triggers::{Backfill, Backfilled, HOOK_HEADERS, HookAnswer, HookCall, LocalTime, TriggerFilter};
pub use usable_models::{UsableForm, UsableModel};
pub use wiring::Parts;
