//! The functions behind every door: submit a job, wait for it, register an agent, follow events.
//!
//! A door translates and makes no decisions; decisions are made here or, for changes, by the state. This crate resolves
//! agents, checks inputs and keeps artifacts before a command is proposed, and converts the state and the history into
//! the objects that clients receive. It keeps the history and artifacts consistent with the other members. It opens no
//! socket.

mod access;
mod agent_health;
mod agents;
mod archive;
mod artifacts;
mod attachments;
mod audit;
mod backup;
mod batch;
mod caller;
mod catch_up;
mod circuit;
mod cluster;
mod cluster_events;
mod collect;
mod contracts;
mod conversations;
mod dependencies;
mod enrollment;
mod erase;
mod error;
mod events;
mod explain;
mod fill;
mod follow;
mod fork;
mod health;
mod inbound;
mod jobs;
mod journal;
pub mod json;
mod labels;
mod lines;
mod logins;
mod logs;
mod messages;
mod model_health;
mod model_limits;
mod model_metrics;
mod model_probe;
mod needs;
mod nodes;
mod objects;
mod observe;
mod orchestrators;
mod outage;
mod ownership;
mod park;
mod peers;
mod pins;
mod policy;
mod probes;
mod questions;
mod receipt;
mod resolve;
mod revisions;
mod runs;
mod scrub;
mod seal;
mod secrets;
mod series;
mod served;
mod service;
mod sign_in;
mod skill_run;
mod skills;
mod spawn;
mod stats;
mod steps;
mod streams;
mod submission;
mod submit;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tools;
mod traces;
mod tree;
mod triggers;
mod view;
mod waiters;
mod webhooks;
mod work;

pub use access::{Authentication, CreatedToken, NewToken, NotARootToken};
pub use agent_health::{AgentHealth, MessageTiming};
pub use agents::{AgentQuery, Registered, ShownAgent, Versions};
pub use artifacts::{ArtifactError, ArtifactOptions, Artifacts, Receiver, Sender, digest_of};
pub use atlas_audit::{Decision as AuditDecision, Filter as AuditFilter, Receipt};
pub use attachments::{BearerRefused, Bearers, Recipient, Withheld};
pub use audit::{
    Attempted, Audit, AuditAsk, AuditCursor, AuditOptions, AuditPage, AuditQuery, MergedAudit, MissingAudit,
    TurnedAway, is_denial,
};
pub use backup::Backup;
pub use batch::Submitted;
pub use caller::Caller;
pub use cluster_events::{EventFilter, EventKind, EventLabel};
pub use contracts::Known;
pub use conversations::{BegunTurn, ConversationScope, Mapping, Message, Role, reply_of};
pub use dependencies::lacking;
pub use enrollment::GroupMember;
pub use error::Error;
pub use events::{Change, Follow, JobStream, Next, Reader};
pub use fill::Completeness;
pub use fork::{ForkRequest, Set};
pub use jobs::JobQuery;
pub use journal::{StepQuery, Steps};
pub use lines::{AttemptOutput, LeadershipLost, LiveLines, LogLine, LogOutput, LogReader, Piece};
pub use logins::{BegunLogin, DeviceLogin, Fetched, Issuers, LoggedIn, NewLogin, NoIssuers};
pub use messages::NewMessage;
pub use model_limits::ModelLimits;
pub use nodes::NodeAction;
pub use objects::{ObjectChange, ObjectFilter, ShownObject};
pub use orchestrators::{AskedJob, ExternalDecision, Externals, NoExternals, Selected};
pub use peers::{
    Arriving, ArrivingLines, Following, Group, LineCursor, NoPeers, Outgoing, PeerAnswer, PeerError, Peers, Query,
    QueryResult,
};
pub use pins::{PinChanges, Pinned};
pub use policy::{PolicyOperation, PolicyQuestion};
pub use questions::{QuestionQuery, shown as shown_question};
pub use resolve::Decision;
pub use revisions::RolledBack;
pub use runs::{ChainSource, ChainStart};
pub use seal::{KeyError, Keys};
pub use secrets::NewSecret;
pub use served::ServedAgent;
pub use service::{Consistency, Followers, Limits, Parts, Service};
pub use skill_run::SkillEnd;
pub use skills::DeployedSkill;
pub use spawn::{Child, Spawning};
pub use stats::{Stats, Transition};
pub use streams::{Line, Pieces, Streams};
pub use submission::Submission;
pub use tools::{OutsideCall, Unwanted};
pub use traces::TraceQuery;
pub use tree::Tree;
pub use triggers::{Backfill, Backfilled, HOOK_HEADERS, HookAnswer, HookCall, HookSender, LocalTime, TriggerFilter};
pub use view::{Shown, View, write_frame};
pub use work::WorkFilter;
