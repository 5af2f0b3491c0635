//! Values of a definition that variables of the environment replace: `TALLY_MODEL` for the agent `tally`.

use serde_json::{Map, Value, json};

/// Members with one value.
const PLAIN: [&str; 2] = ["model", "agent_session"];
/// Members that are numbers.
const NUMBERS: [&str; 2] = ["temperature", "top_p"];
/// Members that are lists of texts.
const LISTS: [&str; 2] = ["global_tools", "mcp_servers"];
/// The member that is a list of variables.
const VARIABLES: &str = "variables";
/// What clears a member.
const CLEARED: &str = "null";
/// Most bytes of a variable.
const BYTES_MAX: usize = 64 << 10;

/// Why a variable of the environment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the variable {variable} of the environment is not usable: {why}")]
pub struct OverrideError {
    /// Its name.
    pub variable: String,
    /// What is wrong.
    pub why: String,
}

/// Members of a definition, with the values that replace its own. Null clears a member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides(Map<String, Value>);

impl Overrides {
    /// Reads the variables for an agent: its name in upper case, with `_` for `-`, then `_MODEL` and so on. A variable that is unset
    /// changes nothing.
    pub fn of(agent: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, OverrideError> {
        let prefix = agent.to_uppercase().replace('-', "_");
        let mut members = Map::new();
        for member in PLAIN.into_iter().chain(NUMBERS).chain(LISTS).chain([VARIABLES]) {
            let name = format!("{prefix}_{}", member.to_uppercase());
            let Some(text) = variable(&name) else { continue };
            let value = value(member, &text).map_err(|why| OverrideError { variable: name, why })?;
            members.insert(member.to_owned(), value);
        }
        Ok(Self(members))
    }

    /// Those of a file, which [`to_json`](Self::to_json) has written.
    pub fn read(document: &Value) -> Result<Self, String> {
        let Some(members) = document.as_object() else { return Err("it is no object".to_owned()) };
        for (member, value) in members {
            checked(member, value)?;
        }
        Ok(Self(members.clone()))
    }

    /// All members, as an object.
    pub fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds others, which have precedence.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Replaces members of a definition. A document that is no object stays as it is: who reads it says so.
    pub fn apply(&self, document: &mut Value) {
        let Some(members) = document.as_object_mut() else { return };
        for (member, value) in &self.0 {
            if member == VARIABLES && !value.is_null() {
                let own = members.remove(VARIABLES);
                members.insert(VARIABLES.to_owned(), variables(own, value));
            } else {
                members.insert(member.clone(), value.clone());
            }
        }
    }
}

/// Entries with a value set that of a variable; all others are the variables of the agent, instead of its own.
fn variables(own: Option<Value>, entries: &Value) -> Value {
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    let (set, defined): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(|entry| entry.get("value").is_some());
    let mut variables = match (own, defined.is_empty()) {
        (Some(own), true) => own,
        _ => Value::Array(defined.into_iter().cloned().collect()),
    };
    for variable in variables.as_array_mut().into_iter().flatten() {
        let given = set.iter().rfind(|entry| entry["name"] == variable["name"]);
        if let (Some(members), Some(given)) = (variable.as_object_mut(), given) {
            members.insert("default".to_owned(), given["value"].clone());
        }
    }
    variables
}

/// The value of a member in the text of a variable.
fn value(member: &str, text: &str) -> Result<Value, String> {
    if text.len() > BYTES_MAX {
        return Err(format!("it has {} bytes, more than {BYTES_MAX}", text.len()));
    }
    if text == CLEARED {
        return Ok(Value::Null);
    }
    let value = if PLAIN.contains(&member) {
        Value::from(text)
    } else if NUMBERS.contains(&member) {
        let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        json!(number.ok_or_else(|| format!("{text:?} is no number"))?)
    } else {
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?
    };
    checked(member, &value)?;
    Ok(value)
}

/// Whether a member can have a value.
fn checked(member: &str, value: &Value) -> Result<(), String> {
    let is_right = match member {
        _ if value.is_null() => {
            PLAIN.iter().chain(&NUMBERS).chain(&LISTS).any(|known| *known == member) || member == VARIABLES
        }
        _ if PLAIN.contains(&member) => value.is_string(),
        _ if NUMBERS.contains(&member) => value.is_number(),
        _ if LISTS.contains(&member) => is_list(value, Value::is_string),
        VARIABLES => is_list(value, is_variable),
        _ => return Err(format!("\"{member}\" cannot be replaced")),
    };
    match (is_right, member) {
        (true, _) => Ok(()),
        (false, VARIABLES) => {
            Err("it must be a list of {name, value}, or of {name, description, default}, whose members are strings"
                .to_owned())
        }
        (false, member) if LISTS.contains(&member) => Err("it must be a list of strings".to_owned()),
        (false, _) => Err("its value has another type".to_owned()),
    }
}

fn is_list(value: &Value, of: fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(of))
}

fn is_variable(entry: &Value) -> bool {
    let text = |member: &str| entry.get(member).is_some_and(Value::is_string);
    let default = entry.get("default").is_none_or(|default| default.is_string() || default.is_null());
    text("name") && default && if entry.get("value").is_some() { text("value") } else { text("description") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn of(variables: &[(&str, &str)]) -> Result<Overrides, OverrideError> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Overrides::of("my-agent", &variable)
    }

    fn document() -> Value {
        json!({
            "name": "x", "model": "m", "temperature": 0.5, "agent_session": "temp", "global_tools": ["a.sh"],
            "variables": [{"name": "who", "description": "d"}, {"name": "where", "description": "d", "default": "here"}],
        })
    }

    /// The definition after variables are applied.
    fn check(variables: &[(&str, &str)], changed: &Value) {
        let mut expected = document();
        expected.as_object_mut().expect("an object").extend(changed.as_object().expect("an object").clone());
        let overrides = of(variables).expect("usable");
        let mut document = document();
        overrides.apply(&mut document);
        assert_eq!(document, expected, "{variables:?}");
        assert_eq!(Overrides::read(&overrides.to_json()), Ok(overrides));
        Config::read(&document).expect("a configuration");
    }

    #[test]
    fn each_member_has_its_variable() {
        check(&[("OTHER_MODEL", "n")], &json!({}));
        let plain = [("MY_AGENT_MODEL", "openai:n"), ("MY_AGENT_TEMPERATURE", "1"), ("MY_AGENT_TOP_P", "0.25")];
        check(&plain, &json!({"model": "openai:n", "temperature": 1.0, "top_p": 0.25}));
        check(&[("MY_AGENT_AGENT_SESSION", "work")], &json!({"agent_session": "work"}));
        let lists = [("MY_AGENT_GLOBAL_TOOLS", r#"["b.py"]"#), ("MY_AGENT_MCP_SERVERS", r#"["s"]"#)];
        check(&lists, &json!({"global_tools": ["b.py"], "mcp_servers": ["s"]}));
        // Instructions are those of the file.
        check(&[("MY_AGENT_INSTRUCTIONS", "x")], &json!({}));
    }

    #[test]
    fn null_clears() {
        let cleared =
            [("MY_AGENT_MODEL", "null"), ("MY_AGENT_TEMPERATURE", "null"), ("MY_AGENT_AGENT_SESSION", "null")];
        check(&cleared, &json!({"model": null, "temperature": null, "agent_session": null}));
        check(&[("MY_AGENT_GLOBAL_TOOLS", "null")], &json!({"global_tools": null}));
        check(&[("MY_AGENT_VARIABLES", "null")], &json!({"variables": null}));
    }

    #[test]
    fn variables_are_set_or_defined() {
        let own = document()["variables"].clone();
        let mut set = own.clone();
        set[0]["default"] = json!("me");
        check(
            &[("MY_AGENT_VARIABLES", r#"[{"name": "who", "value": "me"}, {"name": "none", "value": "x"}]"#)],
            &json!({"variables": set}),
        );
        let other = json!([{"name": "what", "description": "d", "default": "it"}]);
        check(&[("MY_AGENT_VARIABLES", &other.to_string())], &json!({"variables": other}));
        check(&[("MY_AGENT_VARIABLES", "[]")], &json!({"variables": own}));
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        for (name, value, why) in [
            ("TEMPERATURE", "hot", "\"hot\" is no number"),
            ("TOP_P", "inf", "\"inf\" is no number"),
            ("GLOBAL_TOOLS", "a.sh", "it is not JSON: expected value at line 1 column 1"),
            ("MCP_SERVERS", "{}", "it must be a list of strings"),
            ("GLOBAL_TOOLS", "[1]", "it must be a list of strings"),
            (
                "VARIABLES",
                r#"[{"name": "x"}]"#,
                "it must be a list of {name, value}, or of {name, description, default}, whose members are strings",
            ),
            (
                "VARIABLES",
                r#"[{"name": "x", "value": 5}]"#,
                "it must be a list of {name, value}, or of {name, description, default}, whose members are strings",
            ),
        ] {
            let name = format!("MY_AGENT_{name}");
            let error = of(&[(&name, value)]).expect_err("not usable").to_string();
            assert_eq!(error, format!("the variable {name} of the environment is not usable: {why}"));
        }
        assert!(of(&[("MY_AGENT_MODEL", &"m".repeat(BYTES_MAX + 1))]).is_err());
        assert!(Overrides::read(&json!({"instructions": "x"})).is_err() && Overrides::read(&json!([])).is_err());
    }
}
