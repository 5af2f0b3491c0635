//! What to try after an error.

use atlas_types::{ObjectKind, Rejection};

use super::{Error, limit};

/// The kind of objects that a text names which says that there is none.
fn kind_in(text: &str) -> Option<&'static str> {
    let kind = ObjectKind::new(text.strip_prefix("no such ")?.split(':').next()?).ok()?;
    atlas_objects::kind(&kind).map(|kind| kind.name())
}

impl Error {
    /// A suggestion in one line; empty if there is none.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownAgent { name, versions, .. } if !versions.is_empty() => {
                format!("list them: atlasctl agent versions {name}")
            }
            Self::UnknownAgent { suggestion: Some(name), .. } => format!("did you mean {name}?"),
            Self::UnknownAgent { .. } => "list them: atlasctl agent list".to_owned(),
            Self::InputRefused { agent, .. } | Self::OutputRefused { agent, .. } => {
                format!("show the contract: atlasctl agent schema {agent}")
            }
            Self::ConversationBusy(name) => format!("show what is answering: atlasctl conversation show {name}"),
            Self::DependencyMissing { .. } => "deploy them first: atlasctl deploy DIR".to_owned(),
            Self::AmbiguousJob { .. } => "give more digits of the id".to_owned(),
            Self::UnknownObjectKind(_) => "job, agent, node and controller are kinds as well".to_owned(),
            Self::Unauthenticated(_) => {
                "give a token: export ATLAS_TOKEN=TOKEN   or: atlasctl context add NAME --server URL --token-file FILE".to_owned()
            }
            Self::Forbidden { .. } => "show what is granted: atlasctl auth whoami".to_owned(),
            Self::ApprovalNeeded { .. } | Self::Unapproved => "submit a new job, which waits for its approval".to_owned(),
            Self::PolicyDenied { .. } => "show what policies decide: atlasctl policy why AGENT".to_owned(),
            Self::NotPrivate => "send it to a controller with TLS, or to one that listens on 127.0.0.1".to_owned(),
            Self::NoSecretsKey => {
                "make a key, (umask 077; head -c 32 /dev/urandom | base64 > FILE), and start all controllers with --secrets-key FILE"
                    .to_owned()
            }
            Self::ObjectRefused { .. } => "compare it with the schema of its kind: GET /api/objects".to_owned(),
            Self::NoSuchStep { recorded: 0, .. } => "run it again from the beginning: atlasctl job retry ID".to_owned(),
            Self::NoSuchStep { .. } => "list the recorded steps: atlasctl job steps ID".to_owned(),
            Self::JournalGone => "run it without its journal: atlasctl job retry ID".to_owned(),
            Self::BadSignature => {
                "sign the body with the secret of the trigger: X-Atlas-Signature is its HMAC-SHA256, hexadecimal".to_owned()
            }
            Self::AuditFailing => "ask another controller; free disk space on this one, which recovers by itself".to_owned(),
            Self::NoSpace => "free disk space; the controller recovers by itself".to_owned(),
            Self::QueueFull { .. } => {
                "wait until jobs have ended: atlasctl job list --status running   or start the controllers with a larger --queue-max-size"
                    .to_owned()
            }
            Self::LimitReached(rejection) | Self::NamespaceLimit(rejection) => {
                limit::remedy(rejection).unwrap_or_else(|| limit::waiting(rejection)).to_owned()
            }
            Self::TooLarge { what, .. } => limit::smaller(what).to_owned(),
            Self::NoLeader => "show which controllers answer: atlasctl cluster status".to_owned(),
            Self::LevelTooLow(_) => "upgrade the other controllers: atlasctl cluster status".to_owned(),
            Self::AgentInUse(Rejection::AgentInUse { .. }) => "wait for its jobs to end, or cancel them".to_owned(),
            Self::VersionTaken(_) => "raise its version, or replace the package: atlasctl deploy --replace".to_owned(),
            Self::UnknownRevision(_) => "list them: atlasctl agent revisions NAME@VERSION".to_owned(),
            Self::AgentInUse(_) => "retire it first: atlasctl agent retire NAME@VERSION".to_owned(),
            Self::LabelOfWorker(_) => {
                "change --label of the worker, or override the label: atlasctl node label".to_owned()
            }
            Self::NodeTokenRefused | Self::NotEnrolled(_) => "create a new token: atlasctl node token NODE".to_owned(),
            Self::NodeNameTaken(node) => {
                format!("give the worker another name, or let the cluster forget the node: atlasctl node remove {node}")
            }
            Self::GroupFull { .. } => {
                "look who joined (atlasctl get enrollment), revoke what is gone (atlasctl node revoke NODE), and replace the token if it \
                 is known to others"
                    .to_owned()
            }
            Self::NoTls => "start controllers with --tls-dir; atlasctl operator init makes its files".to_owned(),
            Self::TokenRefused(_) => "create a new token: atlasctl cluster join-token".to_owned(),
            Self::ObjectChanged { .. } => "read the object again, and send its revision as If-Match".to_owned(),
            Self::MemoryChanged => "read its entries again: atlasctl memory history".to_owned(),
            Self::UnknownQuestion => "list them: atlasctl question list --all".to_owned(),
            Self::AnswerRefused(_) => "show what is asked: atlasctl question show ID".to_owned(),
            Self::UnknownMember(_) => "list them: atlasctl cluster members".to_owned(),
            Self::UnknownRun => "list them: atlasctl chain runs".to_owned(),
            Self::OutcomeUnknown | Self::Unrecorded => "repeat it with the same Idempotency-Key".to_owned(),
            Self::NoMethod(methods) => format!("allowed methods: {methods}"),
            Self::EventsGone { earliest } => format!("read from event {earliest} on"),
            Self::RequestConflict => "send another body with another Idempotency-Key".to_owned(),
            Self::WrongStatus { .. } | Self::NotInDoubt { .. } => "show what it does: atlasctl job show ID".to_owned(),
            Self::NodeBusy { .. } => "let its jobs end first: atlasctl node drain NODE".to_owned(),
            Self::NodeTaken { .. } => "start it with another --node, or stop the other worker".to_owned(),
            Self::UnknownObject(text) => format!("list them: atlasctl get {}", kind_in(text).unwrap_or("KIND")),
            Self::UnknownNode(_) => "list them: atlasctl node list".to_owned(),
            Self::UnknownJob => "list them: atlasctl job list".to_owned(),
            Self::UnknownOrchestrator(_) => "list them: atlasctl get orchestrator".to_owned(),
            Self::UnknownTrace => "list them: atlasctl trace list".to_owned(),
            Self::Artifact(_) => "show which controllers answer: atlasctl cluster status".to_owned(),
            Self::TooOld { .. } => "start the joining controller with the program of the cluster: atlasctl version".to_owned(),
            Self::NameTaken(_) => "give the controller another --name, or remove the old member: atlasctl cluster members".to_owned(),
            Self::LoginFailed { passes: false, .. } => "log in again: atlasctl model login NAME   or: atlasctl mcp login NAME".to_owned(),
            _ => String::new(),
        }
    }
}
