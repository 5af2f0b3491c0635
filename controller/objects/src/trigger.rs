//! Triggers: rules that start jobs at times, or when an address is called. When a trigger fires is decided elsewhere, because no
//! replica may parse a cron expression or know time zones.

mod schema;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use atlas_types::{Level, ObjectKey, level};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::status::{FIRINGS_MAX, Firing, TriggerStatus};
use crate::kind::{Kind, Refusal, read};
use crate::secret::SealedVersion;

/// The types of triggers, as documents name them.
pub const TRIGGER_TYPES: [&str; 4] = ["cron", "interval", "one_shot", "webhook"];
/// What a trigger does whose last job has not ended.
pub const OVERLAPS: [&str; 4] = ["allow", "skip", "queue", "cancel"];
/// How senders sign the calls of webhooks.
pub const SCHEMES: [&str; 6] = ["atlas", "github", "stripe", "slack", "shopify", "standard"];
/// Most missed times for which jobs are started afterwards.
pub const CATCH_UP_MAX: u32 = 100;
/// Most seconds by which a firing may be delayed at random.
pub const JITTER_MAX: u32 = 3_600;
/// Most seconds for which a signed time stamp is accepted.
pub const REPLAY_WINDOW_MAX: u32 = 86_400;
/// Most members of an input that come from the body of a call.
pub const MAPPED_MAX: usize = 64;

const TEXT_BYTES_MAX: usize = 4 << 10;
/// Members that are JSON texts in the stored spec: canonical JSON has no fractions, and a job gets its input as it was written.
const TEXTS: [&str; 2] = ["input_data", "metadata"];

/// The document of a trigger, as far as the state reads it. `atlas-triggers` reads the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerSpec {
    #[serde(default)]
    pub name: String,
    pub trigger_type: String,
    #[serde(default = "yes")]
    pub enabled: bool,
    #[serde(default)]
    pub agent_name: String,
    #[serde(default)]
    pub chain_name: String,
    /// A JSON object.
    #[serde(default = "empty")]
    pub input_data: String,
    /// A JSON object.
    #[serde(default = "empty")]
    pub metadata: String,
    #[serde(default)]
    pub cron_expr: String,
    /// Seconds since 1970.
    #[serde(default)]
    pub fire_at: Value,
    #[serde(default)]
    pub time_zone: String,
    #[serde(default)]
    pub overlap: String,
    #[serde(default)]
    pub hmac: String,
    #[serde(default)]
    pub map: BTreeMap<String, String>,
    /// Counts how often a one-shot trigger that had fired was enabled again. Only the cluster writes it.
    #[serde(default)]
    pub rearmed: u64,
    /// The secret that signs calls. Only the cluster writes it.
    #[serde(default)]
    pub webhook_secret: Option<SealedVersion>,
}

fn yes() -> bool {
    true
}

fn empty() -> String {
    "{}".to_owned()
}

impl TriggerSpec {
    /// Reads the spec of a trigger.
    pub fn read(spec: &[u8]) -> Result<Self, Refusal> {
        read(spec)
    }

    /// What a one-shot trigger fires for: one that has fired for this fires again only for something else.
    pub fn shot(&self) -> String {
        format!("{} {}", self.fire_at, self.rearmed)
    }

    /// Whether it fires at its time: it is enabled, and not a one-shot trigger that has fired.
    pub fn is_armed(&self, status: &TriggerStatus) -> bool {
        self.enabled && (self.trigger_type != "one_shot" || status.spent != self.shot())
    }

    fn check(&self) -> Result<(), Refusal> {
        let one_of = |field, value: &str, words: &[&str]| match words.contains(&value) {
            true => Ok(()),
            false => Err(Refusal::new(field, format!("is one of {}", words.join(", ")))),
        };
        one_of("spec.trigger_type", &self.trigger_type, &TRIGGER_TYPES)?;
        if !self.overlap.is_empty() {
            one_of("spec.overlap", &self.overlap, &OVERLAPS)?;
        }
        if self.agent_name.is_empty() == self.chain_name.is_empty() {
            return Err(Refusal::new("spec.agent_name", "or `spec.chain_name` names what is started, not both"));
        }
        let texts = [
            ("spec.name", &self.name),
            ("spec.agent_name", &self.agent_name),
            ("spec.chain_name", &self.chain_name),
            ("spec.cron_expr", &self.cron_expr),
            ("spec.time_zone", &self.time_zone),
            ("spec.hmac", &self.hmac),
        ];
        let long = texts.into_iter().find(|(_, text)| text.len() > TEXT_BYTES_MAX);
        if let Some((field, _)) = long {
            return Err(Refusal::new(field, format!("is longer than {TEXT_BYTES_MAX} bytes")));
        }
        for (field, text) in [("spec.input_data", &self.input_data), ("spec.metadata", &self.metadata)] {
            if !serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object()) {
                return Err(Refusal::new(field, "is not a JSON object"));
            }
        }
        let long = |(member, path): (&String, &String)| member.len() > 255 || path.len() > TEXT_BYTES_MAX;
        if self.map.len() > MAPPED_MAX || self.map.iter().any(long) {
            return Err(Refusal::new(
                "spec.map",
                format!("has at most {MAPPED_MAX} members with short names and paths"),
            ));
        }
        Ok(())
    }
}

pub(crate) struct TriggerKind;

impl Kind for TriggerKind {
    fn name(&self) -> &'static str {
        "trigger"
    }

    fn about(&self) -> &'static str {
        "A rule that starts jobs: at times, or when its address is called."
    }

    fn level(&self) -> Level {
        level::TRIGGERS
    }

    fn schema(&self) -> Value {
        schema::schema()
    }

    fn admit(&self, _key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        TriggerSpec::read(spec)?.check()
    }

    fn kept(&self) -> &'static [&'static str] {
        &["webhook_secret", "rearmed"]
    }

    fn normalise(&self, spec: &mut Value) {
        for member in TEXTS {
            if let Some(value) = spec.get_mut(member).filter(|value| value.is_object()) {
                *value = Value::String(value.to_string());
            }
        }
    }

    fn shown(&self, spec: &mut Value) {
        for member in TEXTS {
            let Some(value) = spec.get_mut(member) else { continue };
            if let Some(object) = value.as_str().and_then(|text| serde_json::from_str(text).ok()) {
                *value = object;
            }
        }
        if let Some(secret) = spec.get_mut("webhook_secret") {
            *secret = Value::String("***".to_owned());
        }
    }
}
