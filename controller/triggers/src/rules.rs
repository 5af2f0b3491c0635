//! Rules of triggers beyond those of Atlas for Python: time zones, overlap, catching up, jitter, signed time stamps and maps.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::definition::Members;
use crate::{DefinitionError, Scheme, Zone};

/// Most missed times for which jobs are started afterwards.
const CATCH_UP_MAX: i64 = 100;
/// Most seconds by which a firing may be delayed at random.
const JITTER_MAX: i64 = 3_600;
/// Most seconds for which a signed time stamp is accepted.
const WINDOW_MAX: i64 = 86_400;
/// Most members of an input that come from the body of a call, and most steps of a path.
const MAPPED_MAX: usize = 64;
const STEPS_MAX: usize = 32;
/// What a reference to a secret starts with.
const SECRET: &str = "secret://";
/// What a path into the body of a call starts with.
const BODY: &str = "body";

/// What a firing does while the last job has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// Starts another.
    #[default]
    Allow,
    /// Is left out.
    Skip,
    /// Waits for its end; of several that wait, the catch-up rule decides how many fire.
    Queue,
    /// Cancels the last job, waits for its end, and starts another.
    Cancel,
}

impl Overlap {
    const ALL: [Self; 4] = [Self::Allow, Self::Skip, Self::Queue, Self::Cancel];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Cancel => "cancel",
        }
    }
}

/// The rules. The default is the behaviour of Atlas for Python.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Of a cron expression; none for UTC.
    pub time_zone: Option<Zone>,
    pub overlap: Overlap,
    /// How many of the times that have passed are fired, the latest ones.
    pub catch_up: u32,
    /// Each firing is delayed by less than so many seconds.
    pub jitter_seconds: u32,
    /// The name of the secret that signs calls; none if the trigger has a secret of its own, or none at all.
    pub hmac: Option<String>,
    /// How calls are signed.
    pub scheme: Scheme,
    /// How old a signed time stamp may be, in seconds; with 0 the scheme decides, and that of Atlas asks for none.
    pub replay_window_seconds: u32,
    /// Members of the input, and where in a call their values are.
    pub map: BTreeMap<String, String>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            time_zone: None,
            overlap: Overlap::Allow,
            catch_up: 1,
            jitter_seconds: 0,
            hmac: None,
            scheme: Scheme::Atlas,
            replay_window_seconds: 0,
            map: BTreeMap::new(),
        }
    }
}

impl Rules {
    pub(crate) fn read(members: Members<'_>) -> Result<Self, DefinitionError> {
        let zone = members.text("time_zone")?;
        let overlap = members.text("overlap")?;
        let hmac = members.text("hmac")?;
        let refused = DefinitionError::Rule;
        let time_zone = match zone.as_str() {
            "" => None,
            name => Some(Zone::named(name).ok_or_else(|| {
                let meant = Zone::meant(name).map_or_else(
                    || "write one such as Europe/Rome".to_owned(),
                    |meant| format!("did you mean '{meant}'?"),
                );
                refused(format!("There is no time zone '{name}'; {meant}"))
            })?),
        };
        let overlap = match overlap.as_str() {
            "" => Overlap::default(),
            word => {
                let found = Overlap::ALL.into_iter().find(|overlap| overlap.as_str() == word);
                found.ok_or_else(|| {
                    refused(format!("Invalid overlap '{word}', must be one of allow, skip, queue, cancel"))
                })?
            }
        };
        let hmac = match hmac.as_str() {
            "" => None,
            text => {
                let name = text.strip_prefix(SECRET).filter(|name| !name.is_empty());
                Some(name.ok_or_else(|| refused("hmac must be secret://NAME".to_owned()))?.to_owned())
            }
        };
        let scheme = match members.text("scheme")?.as_str() {
            "" => Scheme::default(),
            word => Scheme::named(word).map_err(refused)?,
        };
        let replay_window_seconds = bounded(members, "replay_window_seconds", 0, WINDOW_MAX)?;
        let is_signed = hmac.is_some() || !members.text("webhook_secret")?.is_empty();
        if !is_signed && (scheme != Scheme::Atlas || replay_window_seconds > 0) {
            let member = if scheme == Scheme::Atlas { "replay_window_seconds" } else { "scheme" };
            return Err(refused(format!("{member} needs the secret that signs calls: hmac or webhook_secret")));
        }
        if replay_window_seconds > 0 && !scheme.can_stamp() {
            let word = scheme.as_str();
            return Err(refused(format!(
                "replay_window_seconds cannot be used with the scheme {word}, which signs no time stamp"
            )));
        }
        Ok(Self {
            time_zone,
            overlap,
            catch_up: bounded(members, "catch_up", 1, CATCH_UP_MAX)?,
            jitter_seconds: bounded(members, "jitter_seconds", 0, JITTER_MAX)?,
            hmac,
            scheme,
            replay_window_seconds,
            map: map(members)?,
        })
    }

    /// The members that are not the default.
    pub(crate) fn add_to(&self, members: &mut Map<String, Value>) {
        let default = Self::default();
        let mut add = |name: &str, value: Value, is_default: bool| {
            if !is_default {
                members.insert(name.to_owned(), value);
            }
        };
        let zone = self.time_zone.as_ref().map_or("", Zone::name);
        add("time_zone", json!(zone), zone.is_empty());
        add("overlap", json!(self.overlap.as_str()), self.overlap == default.overlap);
        add("catch_up", json!(self.catch_up), self.catch_up == default.catch_up);
        add("jitter_seconds", json!(self.jitter_seconds), self.jitter_seconds == 0);
        let hmac = self.hmac.as_ref().map(|name| format!("{SECRET}{name}"));
        add("hmac", json!(hmac), hmac.is_none());
        add("scheme", json!(self.scheme.as_str()), self.scheme == default.scheme);
        add("replay_window_seconds", json!(self.replay_window_seconds), self.replay_window_seconds == 0);
        add("map", json!(self.map), self.map.is_empty());
    }

    /// The members of an input that a call gives: those of the map, or without one all members of the body. The error names the path
    /// that leads nowhere.
    pub fn input_of(&self, body: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        if self.map.is_empty() {
            return Ok(body.clone());
        }
        let at = |(member, path): (&String, &String)| {
            let found = lookup(body, path).ok_or_else(|| path.clone())?;
            Ok((member.clone(), found.clone()))
        };
        self.map.iter().map(at).collect()
    }
}

fn bounded(members: Members<'_>, member: &'static str, default: i64, max: i64) -> Result<u32, DefinitionError> {
    let number = if members.is_absent(member) { default } else { members.whole(member)? };
    let fits = (0..=max).contains(&number);
    let number = u32::try_from(number).ok().filter(|_| fits);
    number.ok_or_else(|| DefinitionError::Rule(format!("{member} must be between 0 and {max}")))
}

fn map(members: Members<'_>) -> Result<BTreeMap<String, String>, DefinitionError> {
    let refused = |text: String| Err(DefinitionError::Rule(text));
    let found = members.object("map")?;
    if found.len() > MAPPED_MAX {
        return refused(format!("map must have at most {MAPPED_MAX} members"));
    }
    let mut map = BTreeMap::new();
    for (member, path) in found {
        let Value::String(path) = path else {
            return refused(format!("map of '{member}' must be a path such as body.actor"));
        };
        let mut steps = path.split('.');
        let first = steps.next() == Some(BODY);
        if !first || steps.clone().count() > STEPS_MAX || steps.any(str::is_empty) {
            return refused(format!("map of '{member}' must be a path such as body.actor, got '{path}'"));
        }
        map.insert(member, path);
    }
    Ok(map)
}

/// The value at a path such as `body.items.0.name`.
fn lookup<'v>(body: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    let mut steps = path.split('.').skip(1);
    let first = steps.next()?;
    steps.try_fold(body.get(first)?, |value, step| match value {
        Value::Object(members) => members.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Definition;

    #[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
    fn parse(members: Value) -> Result<Definition, String> {
        let mut document = json!({"trigger_type": "webhook", "agent_name": "a"});
        let all = document.as_object_mut().expect("members");
        all.extend(members.as_object().cloned().unwrap_or_default());
        Definition::parse(&document).map_err(|error| error.to_string())
    }

    #[test]
    fn rules_are_read_and_written() {
        let rules = json!({
            "time_zone": "Europe/Rome", "overlap": "skip", "catch_up": 3, "jitter_seconds": 30, "hmac": "secret://hook",
            "scheme": "slack", "replay_window_seconds": 300, "map": {"name": "body.actor"}
        });
        let definition = parse(rules.clone()).expect("a definition");
        let mut written = Map::new();
        definition.rules.add_to(&mut written);
        assert_eq!(Value::Object(written), rules);
        assert_eq!(parse(json!({})).map(|definition| definition.rules), Ok(Rules::default()));
    }

    #[test]
    fn wrong_rules_are_refused() {
        let cases = [
            (json!({"time_zone": "Rome"}), "There is no time zone 'Rome'; did you mean 'Europe/Rome'?"),
            (json!({"time_zone": "Europ/Rome"}), "There is no time zone 'Europ/Rome'; did you mean 'Europe/Rome'?"),
            (json!({"time_zone": "here"}), "There is no time zone 'here'; write one such as Europe/Rome"),
            (json!({"overlap": "never"}), "Invalid overlap 'never', must be one of allow, skip, queue, cancel"),
            (json!({"hmac": "hook"}), "hmac must be secret://NAME"),
            (
                json!({"scheme": "gitlab"}),
                "Invalid scheme 'gitlab', must be one of atlas, github, stripe, slack, shopify, standard",
            ),
            (json!({"scheme": "github"}), "scheme needs the secret that signs calls: hmac or webhook_secret"),
            (
                json!({"replay_window_seconds": 60}),
                "replay_window_seconds needs the secret that signs calls: hmac or webhook_secret",
            ),
            (
                json!({"scheme": "github", "webhook_secret": "s", "replay_window_seconds": 60}),
                "replay_window_seconds cannot be used with the scheme github, which signs no time stamp",
            ),
            (json!({"catch_up": -1}), "catch_up must be between 0 and 100"),
            (json!({"catch_up": 101}), "catch_up must be between 0 and 100"),
            (json!({"jitter_seconds": 1e9}), "jitter_seconds must be between 0 and 3600"),
            (json!({"jitter_seconds": 0.5}), "Trigger member 'jitter_seconds' must be an integer, got 0.5"),
            (json!({"map": {"a": 1}}), "map of 'a' must be a path such as body.actor"),
            (json!({"map": {"a": "actor"}}), "map of 'a' must be a path such as body.actor, got 'actor'"),
            (json!({"map": {"a": "body..b"}}), "map of 'a' must be a path such as body.actor, got 'body..b'"),
        ];
        for (members, text) in cases {
            assert_eq!(parse(members), Err(text.to_owned()));
        }
    }

    #[test]
    fn a_map_takes_members_out_of_a_body() {
        let body = json!({"actor": {"names": ["Ada"]}, "n": 1});
        let body = body.as_object().expect("members");
        let of =
            |map: Value| parse(json!({ "map": map })).expect("a definition").rules.input_of(body).map(Value::Object);
        assert_eq!(of(json!({})), Ok(Value::Object(body.clone())));
        assert_eq!(of(json!({"name": "body.actor.names.0", "n": "body.n"})), Ok(json!({"name": "Ada", "n": 1})));
        assert_eq!(of(json!({"name": "body.actor.names.1"})), Err("body.actor.names.1".to_owned()));
        assert_eq!(of(json!({"name": "body.n.x"})), Err("body.n.x".to_owned()));
    }
}
