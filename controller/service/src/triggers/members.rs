//! The members of triggers: which there are, which clients change, and what happens to others.

use serde_json::{Map, Value};

use crate::{Error, Service};

/// Members that clients may change, as in Atlas for Python.
const CHANGEABLE: [&str; 11] = [
    "name",
    "enabled",
    "agent_name",
    "chain_name",
    "input_data",
    "priority",
    "metadata",
    "cron_expr",
    "interval_seconds",
    "fire_at",
    "webhook_secret",
];
/// Members of ours that clients may change.
const RULES: [&str; 8] =
    ["time_zone", "overlap", "catch_up", "jitter_seconds", "hmac", "scheme", "replay_window_seconds", "map"];

/// Members that are shown and that clients may send back: they name the trigger, or the cluster writes them.
const SHOWN: [&str; 14] = [
    "id",
    "trigger_type",
    "last_fired",
    "next_fire",
    "fire_count",
    "last_job_id",
    "created_at",
    "namespace",
    "revision",
    "missed",
    "error",
    "warnings",
    "firings",
    "rearmed",
];

/// Most unknown members that are named.
const IGNORED_MAX: usize = 8;

impl Service {
    /// Warnings about the members of an accepted document that no trigger has.
    pub fn ignored_trigger_members(document: &Value) -> Vec<String> {
        let members = document.get("trigger").unwrap_or(document).as_object();
        let mut unknown = members.into_iter().flat_map(Map::keys).filter(|name| !is_known(name));
        let warning = |name: &String| {
            let shown: String = name.chars().take(64).flat_map(char::escape_default).collect();
            let meant = atlas_contract::nearest(name, known()).map(|meant| format!("; did you mean '{meant}'?"));
            format!("the member '{shown}' is ignored{}", meant.unwrap_or_default())
        };
        let mut warnings: Vec<String> = unknown.by_ref().take(IGNORED_MAX).map(warning).collect();
        let more = unknown.count();
        if more > 0 {
            warnings.push(format!("more members that are ignored: {more}"));
        }
        warnings
    }
}

/// Refuses a member that no trigger has, if it looks like one of Atlas's own, or if the caller is `strict`. Clients of Atlas for Python
/// may send others, which mean nothing.
pub(super) fn refuse_unknown(members: &Map<String, Value>, strict: bool) -> Result<(), Error> {
    for name in members.keys().filter(|name| !is_known(name)) {
        let near = rule_meant(name);
        let meant = near.or_else(|| atlas_contract::nearest(name, known()));
        let meant = meant.map(|meant| format!("; did you mean '{meant}'?")).unwrap_or_default();
        if strict || near.is_some() {
            return Err(Error::Malformed(format!("a trigger has no member '{name}'{meant}")));
        }
    }
    Ok(())
}

/// Whether clients may change a member.
pub(super) fn may_change(name: &str) -> bool {
    CHANGEABLE.contains(&name) || RULES.contains(&name)
}

/// The members of a trigger.
fn known() -> impl Iterator<Item = &'static str> {
    CHANGEABLE.into_iter().chain(RULES).chain(SHOWN)
}

fn is_known(name: &str) -> bool {
    known().any(|known| known == name)
}

/// The member of ours that a name looks like.
fn rule_meant(name: &str) -> Option<&'static str> {
    let alike = RULES.into_iter().find(|rule| rule.replace('_', "") == name.replace('_', "").to_lowercase());
    alike.or_else(|| atlas_contract::nearest(name, RULES))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_no_trigger_has_are_named() {
        let ignored = |document| Service::ignored_trigger_members(&document).join("\n");
        assert_eq!(ignored(json!({"name": "n", "agent_name": "a", "time_zone": "UTC", "fire_count": 1})), "");
        assert_eq!(
            ignored(json!({"trigger": {"inputdata": {}, "owner\n": "me"}})),
            "the member 'inputdata' is ignored; did you mean 'input_data'?\nthe member 'owner\\n' is ignored"
        );
        let many = Map::from_iter((0..10).map(|number| (format!("x{number}{number}{number}"), Value::Null)));
        assert!(ignored(many.into()).ends_with("the member 'x777' is ignored\nmore members that are ignored: 2"));
    }

    #[test]
    fn what_looks_like_a_member_of_ours_is_refused() {
        let refused = |member: &str, strict| {
            let members = Map::from_iter([(member.to_owned(), Value::Null)]);
            refuse_unknown(&members, strict).err().map(|error| error.to_string())
        };
        assert_eq!(refused("owner", false), None);
        assert_eq!(refused("owner", true).as_deref(), Some("a trigger has no member 'owner'"));
        let near = "a trigger has no member 'timezone'; did you mean 'time_zone'?";
        assert_eq!(refused("timezone", false).as_deref(), Some(near));
    }
}
