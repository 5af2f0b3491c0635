//! Triggers, their firings and the calls of webhooks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::words;

/// A trigger, or what changes of one. Numbers may be text, and the members may be under `trigger`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriggerRequest {
    /// only for a new trigger; generated without it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub id: Option<String>,
    /// a name for people
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub name: Option<String>,
    /// only for a new trigger
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = words::TRIGGER_TYPES))]
    pub trigger_type: Option<String>,
    /// defaults to true
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub enabled: Option<bool>,
    /// the agent that it runs
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub agent_name: Option<String>,
    /// the chain that it runs, instead of an agent
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub chain_name: Option<String>,
    /// the input of each job
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub input_data: Option<Map<String, Value>>,
    /// the priority of each job
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub priority: Option<i64>,
    /// metadata of each job
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    pub metadata: Option<Map<String, Value>>,
    /// five fields, for the type `cron`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub cron_expr: Option<String>,
    /// more than 0, for the type `interval`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub interval_seconds: Option<f64>,
    /// Unix seconds, for the type `one_shot`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub fire_at: Option<f64>,
    /// signs the calls of a webhook; `***` leaves it as it is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub webhook_secret: Option<String>,
    /// of `cron_expr`, such as `Europe/Rome`; UTC without it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub time_zone: Option<String>,
    /// what a firing does while the last job has not ended
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = words::OVERLAPS))]
    pub overlap: Option<String>,
    /// how many missed times are made up for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 0, max = 100))]
    pub catch_up: Option<u64>,
    /// each firing is delayed by less than this
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 0, max = 3_600))]
    pub jitter_seconds: Option<u64>,
    /// the secret that signs calls, `secret://NAME`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac: Option<String>,
    /// how the sender signs its calls
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = words::SCHEMES))]
    pub scheme: Option<String>,
    /// how old the signed time stamp of a call may be; with 0, the scheme `atlas` asks for none, and the others that sign one accept it for 5 minutes
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 0, max = 86_400))]
    pub replay_window_seconds: Option<u64>,
    /// members of the input, and the paths of their values in a call
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub map: Option<BTreeMap<String, String>>,
}

/// A trigger. The members from `namespace` on are part of the full view.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Trigger {
    /// its id
    pub id: String,
    /// a name for people
    pub name: String,
    /// what makes it fire
    #[schemars(extend("enum" = words::TRIGGER_TYPES))]
    pub trigger_type: String,
    /// whether it fires by itself, or when it is called
    pub enabled: bool,
    /// the agent that it runs
    pub agent_name: String,
    /// the chain that it runs
    pub chain_name: String,
    /// the input of each job
    pub input_data: Map<String, Value>,
    /// the priority of each job
    pub priority: i64,
    /// metadata of each job
    pub metadata: Map<String, Value>,
    /// when it fires
    pub cron_expr: String,
    /// how often it fires
    pub interval_seconds: f64,
    /// Unix seconds
    pub fire_at: f64,
    /// whether it has a secret
    #[schemars(extend("enum" = ["", "***"]))]
    pub webhook_secret: String,
    /// Unix seconds; 0 if it has not fired
    pub last_fired: f64,
    /// Unix seconds; 0 if it does not fire by itself
    pub next_fire: f64,
    /// how often it has fired
    pub fire_count: u64,
    /// the job of the last firing
    pub last_job_id: String,
    /// Unix seconds
    pub created_at: f64,
    /// its namespace
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// the event of its last change
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// of `cron_expr`, such as `Europe/Rome`; UTC without it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// what a firing does while the last job has not ended
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = words::OVERLAPS))]
    pub overlap: Option<String>,
    /// how many missed times are made up for
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub catch_up: Option<u64>,
    /// each firing is delayed by less than this
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3_600))]
    pub jitter_seconds: Option<u64>,
    /// the secret that signs calls, `secret://NAME`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-null" = true))]
    pub hmac: Option<String>,
    /// how the sender signs its calls
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = words::SCHEMES))]
    pub scheme: Option<String>,
    /// how old the signed time stamp of a call may be; with 0, the scheme `atlas` asks for none, and the others that sign one accept it for 5 minutes
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub replay_window_seconds: Option<u64>,
    /// members of the input, and the paths of their values in a call
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<BTreeMap<String, String>>,
    /// times without a firing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// why it did not fire when it was due
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// parts of `cron_expr` that never match, or match more than they seem to
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
    /// the last ten, newest first
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firings: Option<Vec<Firing>>,
}

/// One firing of a trigger.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct Firing {
    pub fired_at: f64,
    pub tick: f64,
    #[schemars(extend("enum" = ["schedule", "request", "webhook", "backfill"]))]
    pub by: String,
    pub job_id: Option<String>,
}

/// The job of a firing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Fired")]
pub struct FiredJob {
    /// its id
    pub job_id: String,
}

/// The next times of a trigger.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NextFirings {
    /// Unix seconds, ascending; empty if it does not fire by itself
    pub next: Vec<f64>,
    /// the same times in the time zone of the trigger
    pub local: Vec<String>,
}

/// Calls of a webhook that reached this controller since it started, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Deliveries {
    /// the calls
    pub deliveries: Vec<Delivery>,
}

/// One call of a webhook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Delivery {
    /// Unix seconds
    pub at: f64,
    /// the address of the caller, or of the proxy before this controller
    pub from: String,
    /// its header `User-Agent`, at most 128 bytes
    pub program: String,
    /// what the caller calls it; empty if it did not say
    pub delivery: String,
    /// `repeated` is an earlier delivery again, and `greeted` only asked whether somebody is here
    #[schemars(extend("enum" = ["fired", "greeted", "repeated", "refused"]))]
    pub outcome: String,
    /// the job or run; empty if it was refused
    pub job_id: String,
    /// the code of the error; empty if it was not refused
    pub code: String,
    /// its text, at most 128 bytes
    pub error: String,
}

/// The answer to a call that starts nothing: the `challenge` of Slack, or `pong` for the `ping` of GitHub.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Greeted")]
pub struct HookGreeting {
    /// what was sent
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
    /// true
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pong: Option<bool>,
}

/// A call to try out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerTest {
    /// the body of the call
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Map<String, Value>>,
}

/// What a call would start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TriggerTested {
    /// the agent
    pub agent_name: String,
    /// the chain, instead of an agent
    pub chain_name: String,
    /// its version; null if there is none
    pub agent_version: Option<String>,
    /// the input
    pub input_data: Map<String, Value>,
    /// the priority
    pub priority: i64,
    /// the metadata
    pub metadata: Map<String, Value>,
    /// whether the job would run
    pub accepted: bool,
    /// why it would fail
    pub error: String,
    /// whether calls need a signature
    pub signed: bool,
    /// the header that has it
    pub signature: String,
    /// whether calls are accepted now
    pub enabled: bool,
}

/// Times to make up for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillRequest {
    /// Unix seconds
    pub from: f64,
    /// Unix seconds
    pub to: f64,
    /// only list the times
    #[serde(default)]
    pub dry_run: bool,
}

/// The times of a backfill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Backfilled")]
pub struct Backfill {
    /// ascending, at most 100
    pub times: Vec<BackfillTime>,
    /// whether the jobs were only listed
    pub dry_run: bool,
}

/// One time of a backfill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline)]
pub struct BackfillTime {
    pub time: f64,
    pub local: String,
    pub job_id: Option<String>,
}

/// The body of a call: members of the input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Call(pub Map<String, Value>);
