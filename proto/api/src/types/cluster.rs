//! Controllers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::one_of;
use crate::words;

/// An OpenAPI document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("required" = ["openapi", "paths"]))]
pub struct Document(pub Map<String, Value>);

/// One controller of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Member {
    /// its number
    pub id: u64,
    /// its name
    pub name: String,
    /// role
    #[schemars(extend("enum" = ["leader", "follower", "learner"]))]
    pub role: String,
    /// whether it answers
    pub reachable: bool,
    /// its term
    pub term: Option<u64>,
    /// the end of its log
    pub last_index: Option<u64>,
    /// last applied log index
    pub applied: Option<u64>,
    /// last log index that the leader knows of
    pub matched: Option<u64>,
    /// milliseconds since the last contact
    pub heartbeat_ms: Option<u64>,
    /// 99th percentile of fsync
    pub fsync_p99_ms: Option<f64>,
    /// time of the last complete backup that it sent
    pub backup_at: Option<f64>,
    /// when its certificate should be replaced; null without TLS
    pub certificate_due_at: Option<f64>,
    /// when its certificate ends; null without TLS
    pub certificate_ends_at: Option<f64>,
    /// whether its disk is nearly full
    pub short_of_space: Option<bool>,
    /// highest supported feature level
    pub level: Option<u64>,
    /// its program's version
    pub version: Option<String>,
    /// where peers reach it
    pub peer: String,
    /// where workers reach it
    pub worker: String,
    /// where clients reach it
    pub http: String,
}

/// The cluster as one controller sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Cluster")]
pub struct ClusterView {
    /// 32 hexadecimal digits
    pub cluster_id: String,
    /// how it was started
    #[schemars(extend("enum" = words::MODES))]
    pub mode: String,
    /// version of the program
    pub version: String,
    /// active feature level
    pub level: u64,
    /// highest supported feature level
    pub level_known: u64,
    /// name of the leader
    pub leader: Option<String>,
    /// the term
    pub term: u64,
    /// last committed log index
    pub commit: u64,
    /// last applied log index
    pub applied: u64,
    /// whether a membership change is in progress
    pub changing: bool,
    /// why its wall clock is not trusted
    pub clock_doubt: Option<String>,
    /// its disk
    pub disk: Disk,
    /// last log entry at which all digests agreed
    pub agreed_at: u64,
    /// voters and reachable voters
    pub quorum: Quorum,
    /// the members
    pub members: Vec<Member>,
}

/// The disk of a controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Disk {
    #[schemars(extend("enum" = ["ample", "short", "none"]))]
    pub room: String,
    pub free_bytes: u64,
}

/// The voters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Quorum {
    pub voters: u64,
    pub reachable: u64,
}

/// Request for a join token: of a controller, or of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(transform = one_of)]
pub enum TokenRequest {
    Controller(ControllerTokenRequest),
    Worker(WorkerTokenRequest),
}

/// Request for the join token of a controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ControllerTokenRequest {
    /// defaults to `controller`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["controller", null]))]
    pub kind: Option<String>,
    /// for workers only
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "()")]
    pub node: Option<()>,
    /// lifetime in seconds; defaults to 600
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3_600))]
    pub expires_s: Option<u64>,
}

/// Request for the join token of a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct WorkerTokenRequest {
    /// a node joins, which needs a cluster with TLS
    #[schemars(extend("enum" = ["worker"]))]
    pub kind: String,
    /// the name of the node
    #[schemars(regex(pattern = r"^[a-z0-9.-]{1,63}$"))]
    pub node: String,
    /// lifetime in seconds; defaults to 600
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub expires_s: Option<u64>,
}

/// A join token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Token {
    /// the secret
    pub token: String,
    /// what can join with it
    #[schemars(extend("enum" = ["controller", "worker"]))]
    pub kind: String,
    /// lifetime in seconds
    pub expires_s: u64,
    /// Unix seconds
    pub expires_at: f64,
}

/// Token to revoke.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeRequest {
    /// the token
    pub token: String,
}

/// The token is revoked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Revoked")]
pub struct Revocation {
    /// true
    pub revoked: bool,
}

/// Request for a leadership transfer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    /// number or name of the new leader; defaults to the most up-to-date member
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The new leader.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Transferred")]
pub struct Transfer {
    /// its name
    pub leader: String,
    /// the term
    pub term: u64,
}
