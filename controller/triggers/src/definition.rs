//! The definition of a trigger, and what makes one invalid (compatibility §14.1).

use atlas_contract::python;
use serde_json::{Map, Value, json};

use crate::{Cron, CronError, Rules};

/// The shortest interval that the leader keeps reliably, in seconds: it looks for due triggers several times in it.
const INTERVAL_MIN: f64 = 1.0;
/// The longest interval, in seconds.
const INTERVAL_MAX: f64 = 36_500.0 * 86_400.0;
/// The first moment of the year 9999: later ones have no local time everywhere.
const FIRE_AT_END: f64 = 253_370_764_800.0;

/// What makes a trigger fire.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// At times, in UTC.
    Cron { cron: Cron },
    /// Again and again.
    Interval {
        /// In seconds, more than 0.
        seconds: f64,
    },
    /// Once.
    OneShot {
        /// Seconds since 1970; may have passed.
        at: f64,
    },
    /// When its address is called.
    Webhook,
}

impl Kind {
    /// The names of the kinds, sorted.
    const NAMES: [&'static str; 4] = ["cron", "interval", "one_shot", "webhook"];

    /// Its name in definitions.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cron { .. } => "cron",
            Self::Interval { .. } => "interval",
            Self::OneShot { .. } => "one_shot",
            Self::Webhook => "webhook",
        }
    }
}

/// What a trigger starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Agent(String),
    Chain(String),
}

/// A trigger as its author describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub name: String,
    pub kind: Kind,
    /// A disabled trigger does not fire.
    pub enabled: bool,
    pub target: Target,
    /// The input of each job.
    pub input: Map<String, Value>,
    /// The priority of each job.
    pub priority: i64,
    /// Metadata of each job.
    pub metadata: Map<String, Value>,
    /// The members of all kinds, as they are kept and shown.
    pub fields: Fields,
    /// What Atlas for Python does not have.
    pub rules: Rules,
}

/// Members that belong to one kind of trigger each. They are kept for the others too, and mean nothing there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fields {
    pub cron_expr: String,
    pub interval_seconds: f64,
    pub fire_at: f64,
    /// Signs the calls of a webhook; calls without a signature are accepted if it is empty.
    pub webhook_secret: String,
}

/// Why a definition is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    #[error("Trigger must be a mapping, got {0}")]
    NotAMapping(&'static str),
    #[error("Invalid trigger_type {0}, must be one of ['cron', 'interval', 'one_shot', 'webhook']")]
    Kind(String),
    #[error("Trigger must specify agent_name or chain_name")]
    NoTarget,
    #[error("Trigger cannot specify both agent_name and chain_name")]
    TwoTargets,
    #[error("Cron trigger requires cron_expr")]
    NoExpression,
    #[error(transparent)]
    Expression(#[from] CronError),
    #[error("Interval trigger requires interval_seconds > 0")]
    NoInterval,
    #[error("One-shot trigger requires fire_at > 0")]
    NoTime,
    /// A member has the wrong type.
    #[error("Trigger member '{member}' must be {expected}, got {found}")]
    Member { member: &'static str, expected: &'static str, found: String },
    /// A member that Atlas for Python does not have is wrong.
    #[error("{0}")]
    Rule(String),
}

impl Definition {
    /// Reads a definition: the members, or an object that has them under `trigger`. Unknown members are ignored.
    pub fn parse(document: &Value) -> Result<Self, DefinitionError> {
        let members = document.get("trigger").unwrap_or(document);
        let Value::Object(members) = members else {
            return Err(DefinitionError::NotAMapping(python::type_name(members)));
        };
        let members = Members(members);
        let name = members.text("trigger_type")?;
        if !Kind::NAMES.contains(&name.as_str()) {
            return Err(DefinitionError::Kind(python::repr(&Value::String(name))));
        }
        let target = match (members.text("agent_name")?, members.text("chain_name")?) {
            (agent, chain) if agent.is_empty() && chain.is_empty() => return Err(DefinitionError::NoTarget),
            (agent, chain) if chain.is_empty() => Target::Agent(agent),
            (agent, chain) if agent.is_empty() => Target::Chain(chain),
            _ => return Err(DefinitionError::TwoTargets),
        };
        let fields = Fields {
            cron_expr: members.text("cron_expr")?,
            interval_seconds: members.number("interval_seconds")?,
            fire_at: members.number("fire_at")?,
            webhook_secret: members.text("webhook_secret")?,
        };
        Ok(Self {
            kind: kind(&name, &fields)?,
            fields,
            target,
            name: members.text("name")?,
            enabled: members.0.get("enabled").is_none_or(|enabled| !python::is_false(enabled)),
            input: members.object("input_data")?,
            priority: members.integer("priority")?,
            metadata: members.object("metadata")?,
            rules: Rules::read(members)?,
        })
    }

    /// What is odd about it: parts of its expression never match, or match more than they seem to ([`Cron::remarks`]); or it fires
    /// less often than it says.
    pub fn remarks(&self) -> Vec<String> {
        match self.kind {
            Kind::Cron { .. } => Cron::remarks(&self.fields.cron_expr),
            Kind::Interval { seconds } if seconds < INTERVAL_MIN => {
                vec![format!("an interval of {seconds} s cannot be kept: the shortest is {INTERVAL_MIN} s")]
            }
            _ => Vec::new(),
        }
    }

    /// Why it could never fire at its time: that is further away than any time that the cluster keeps.
    pub fn out_of_range(&self) -> Option<String> {
        match self.kind {
            Kind::Interval { seconds } if seconds > INTERVAL_MAX => {
                Some(format!("interval_seconds must be at most {INTERVAL_MAX}, which is 100 years"))
            }
            Kind::OneShot { at } if at >= FIRE_AT_END => {
                Some("fire_at must be before the year 9999, in seconds since 1970, not milliseconds".to_owned())
            }
            _ => None,
        }
    }

    /// What is stored: the members that are not the default. No secret is among them.
    pub fn to_document(&self) -> Value {
        let mut document = self.to_json();
        let Some(members) = document.as_object_mut() else { return document };
        let is_default = |value: &Value| match value {
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        members.retain(|name, value| name != "webhook_secret" && !is_default(value));
        self.rules.add_to(members);
        document
    }

    /// All members of Atlas for Python.
    pub fn to_json(&self) -> Value {
        let (agent, chain) = match &self.target {
            Target::Agent(agent) => (agent.as_str(), ""),
            Target::Chain(chain) => ("", chain.as_str()),
        };
        json!({
            "name": self.name, "trigger_type": self.kind.name(), "enabled": self.enabled, "agent_name": agent,
            "chain_name": chain, "input_data": self.input, "priority": self.priority, "metadata": self.metadata,
            "cron_expr": self.fields.cron_expr, "interval_seconds": self.fields.interval_seconds,
            "fire_at": self.fields.fire_at, "webhook_secret": self.fields.webhook_secret,
        })
    }
}

fn kind(name: &str, fields: &Fields) -> Result<Kind, DefinitionError> {
    Ok(match name {
        "cron" => {
            if fields.cron_expr.is_empty() {
                return Err(DefinitionError::NoExpression);
            }
            let cron = Cron::parse(&fields.cron_expr)?;
            // What does not match after 1970 never matches.
            if cron.next(0.0).is_none() {
                return Err(CronError::Never(fields.cron_expr.clone()).into());
            }
            Kind::Cron { cron }
        }
        "interval" if fields.interval_seconds > 0.0 => Kind::Interval { seconds: fields.interval_seconds },
        "interval" => return Err(DefinitionError::NoInterval),
        "one_shot" if fields.fire_at > 0.0 => Kind::OneShot { at: fields.fire_at },
        "one_shot" => return Err(DefinitionError::NoTime),
        _ => Kind::Webhook,
    })
}

/// The members of a definition. A member that is null counts as missing.
#[derive(Clone, Copy)]
pub(crate) struct Members<'a>(&'a Map<String, Value>);

impl Members<'_> {
    fn get(&self, member: &str) -> Option<&Value> {
        self.0.get(member).filter(|value| !value.is_null())
    }

    pub(crate) fn is_absent(self, member: &str) -> bool {
        self.get(member).is_none()
    }

    pub(crate) fn text(self, member: &'static str) -> Result<String, DefinitionError> {
        match self.get(member) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(found) => Err(wrong(member, "a text", found)),
        }
    }

    pub(crate) fn object(self, member: &'static str) -> Result<Map<String, Value>, DefinitionError> {
        match self.get(member) {
            None => Ok(Map::new()),
            Some(Value::Object(members)) => Ok(members.clone()),
            Some(found) => Err(wrong(member, "a mapping", found)),
        }
    }

    /// A finite number, also as text.
    fn number(self, member: &'static str) -> Result<f64, DefinitionError> {
        let number = match self.get(member) {
            None => Some(0.0),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Bool(value)) => Some(f64::from(u8::from(*value))),
            Some(_) => None,
        };
        let found = || wrong(member, "a number", self.get(member).unwrap_or(&Value::Null));
        number.filter(|number: &f64| number.is_finite()).ok_or_else(found)
    }

    /// An integer, also as text. A fraction is refused.
    pub(crate) fn whole(self, member: &'static str) -> Result<i64, DefinitionError> {
        let number = self.integer(member)?;
        #[expect(clippy::cast_precision_loss, reason = "an integer that a double does not hold has no fraction")]
        match self.get(member) {
            Some(found @ Value::Number(given)) if given.as_f64() != Some(number as f64) => {
                Err(wrong(member, "an integer", found))
            }
            _ => Ok(number),
        }
    }

    /// An integer, also as text. Fractions are cut off.
    pub(crate) fn integer(self, member: &'static str) -> Result<i64, DefinitionError> {
        let found = || wrong(member, "an integer", self.get(member).unwrap_or(&Value::Null));
        match self.get(member) {
            Some(Value::Number(number)) if number.is_i64() => number.as_i64().ok_or_else(found),
            Some(Value::String(text)) => text.trim().parse().map_err(|_| found()),
            _ => match self.number(member)?.trunc() {
                #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
                number if number.abs() < 9.0e15 => Ok(number as i64),
                _ => Err(found()),
            },
        }
    }
}

fn wrong(member: &'static str, expected: &'static str, found: &Value) -> DefinitionError {
    DefinitionError::Member { member, expected, found: python::repr(found) }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "the tests read better")]
    fn check(document: Value, expected: Expect) {
        match Definition::parse(&document) {
            Ok(definition) => expected.assert_eq(&definition.to_json().to_string()),
            Err(error) => expected.assert_eq(&error.to_string()),
        }
    }

    #[test]
    fn definitions_are_normalised() {
        check(
            json!({"trigger": {"trigger_type": "cron", "agent_name": "echo", "cron_expr": "0 2 * * *", "more": 1}}),
            expect![[
                r#"{"name":"","trigger_type":"cron","enabled":true,"agent_name":"echo","chain_name":"","input_data":{},"priority":0,"metadata":{},"cron_expr":"0 2 * * *","interval_seconds":0.0,"fire_at":0.0,"webhook_secret":""}"#
            ]],
        );
        check(
            json!({"trigger_type": "interval", "chain_name": "c", "interval_seconds": "2.5", "priority": "7", "enabled": 0}),
            expect![[
                r#"{"name":"","trigger_type":"interval","enabled":false,"agent_name":"","chain_name":"c","input_data":{},"priority":7,"metadata":{},"cron_expr":"","interval_seconds":2.5,"fire_at":0.0,"webhook_secret":""}"#
            ]],
        );
    }

    #[test]
    fn a_document_leaves_out_defaults_and_secrets() {
        let document = json!({
            "trigger_type": "webhook", "agent_name": "a", "webhook_secret": "s", "interval_seconds": "2.5", "overlap": "skip"
        });
        let definition = Definition::parse(&document).expect("a definition");
        let expected = json!({
            "trigger_type": "webhook", "agent_name": "a", "enabled": true, "interval_seconds": 2.5, "overlap": "skip"
        });
        assert_eq!(definition.to_document(), expected);
    }

    #[test]
    fn wrong_definitions_are_refused() {
        let of = |kind: &str| json!({"trigger_type": kind, "agent_name": "echo"});
        check(json!([]), expect!["Trigger must be a mapping, got list"]);
        check(
            of("daily"),
            expect!["Invalid trigger_type 'daily', must be one of ['cron', 'interval', 'one_shot', 'webhook']"],
        );
        check(json!({"trigger_type": "webhook"}), expect!["Trigger must specify agent_name or chain_name"]);
        check(
            json!({"trigger_type": "webhook", "agent_name": "a", "chain_name": "c"}),
            expect!["Trigger cannot specify both agent_name and chain_name"],
        );
        check(of("cron"), expect!["Cron trigger requires cron_expr"]);
        check(of("interval"), expect!["Interval trigger requires interval_seconds > 0"]);
        check(of("one_shot"), expect!["One-shot trigger requires fire_at > 0"]);
        check(
            json!({"trigger_type": "cron", "agent_name": "a", "cron_expr": "0 0 30 2 *"}),
            expect!["Cron expression matches no time: '0 0 30 2 *'"],
        );
        check(
            json!({"trigger_type": "interval", "agent_name": "a", "interval_seconds": "1e999"}),
            expect!["Trigger member 'interval_seconds' must be a number, got '1e999'"],
        );
        check(
            json!({"trigger_type": "webhook", "agent_name": "a", "input_data": [1]}),
            expect!["Trigger member 'input_data' must be a mapping, got [1]"],
        );
        check(
            json!({"trigger_type": "webhook", "agent_name": "a", "priority": 1e300}),
            expect!["Trigger member 'priority' must be an integer, got 1e+300"],
        );
    }

    #[test]
    fn times_that_never_come_are_out_of_range() {
        let of = |kind: &str, member: &str, number: f64| {
            let document = json!({"trigger_type": kind, "agent_name": "a", member: number});
            Definition::parse(&document).expect("a definition")
        };
        let fire_at = |at: f64| of("one_shot", "fire_at", at).out_of_range();
        assert_eq!(fire_at(4_102_444_800.0), None);
        for far in [1_795_348_867_000.0, 253_370_764_800.0, 1e300] {
            assert!(fire_at(far).is_some_and(|why| why.contains("not milliseconds")), "{far}");
        }
        let every = |seconds: f64| of("interval", "interval_seconds", seconds);
        assert_eq!(every(31_536_000.0).out_of_range(), None);
        assert!(every(1e10).out_of_range().is_some());
        assert_eq!(every(1.0).remarks(), Vec::<String>::new());
        assert_eq!(every(0.001).remarks(), ["an interval of 0.001 s cannot be kept: the shortest is 1 s"]);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(seconds in 0.001_f64..1e9, priority in any::<i64>(), name in ".{0,8}") {
            let document = json!({"trigger_type": "interval", "agent_name": "a", "interval_seconds": seconds, "priority": priority, "name": name});
            let definition = Definition::parse(&document).expect("a definition");
            prop_assert_eq!(Definition::parse(&definition.to_json()), Ok(definition));
        }
    }
}
