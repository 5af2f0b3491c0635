//! `atlasctl policy why`.

use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl policy why`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The agent, optionally with a version.
    #[arg(value_name = "AGENT[@VERSION]", value_parser = names::agent)]
    agent: String,
    /// Ask about deploying the agent instead of submitting a job.
    #[arg(long, conflicts_with_all = ["input", "priority"])]
    deploy: bool,
    /// The input of the job as JSON, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// The priority of the job.
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    priority: i64,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (agent, version) = match options.agent.split_once('@') {
        Some((agent, version)) => (agent, Some(version)),
        None => (options.agent.as_str(), None),
    };
    let mut question = json!({ "agent": agent, "version": version });
    if options.deploy {
        question["operation"] = "deploy".into();
    } else {
        question["priority"] = options.priority.into();
        question["input"] = match &options.input {
            Some(text) => input::whole(text, "--input")?,
            None => json!({}),
        };
    }
    let value = context.client()?.post(&["api", "policies", "explain"], &[], &question).await?;
    let allowed = value["allowed"] == true;
    let text = told(&value);
    let names = value["policies"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names = names.map(|name| format!("policy/{name}")).collect();
    context.show(&Shown { value, text, names })?;
    Ok(if allowed { Exit::Done } else { Exit::Denied })
}

/// The decision, each policy's part in it, and what is left of the permissions.
fn told(value: &Value) -> String {
    let word = |member: &str| value[member].as_str().unwrap_or_default();
    let allowed = match (word("effect"), value["allowed"] == true) {
        ("ask", _) => "waits for an approval",
        (_, true) => "allowed",
        (_, false) => "denied",
    };
    let mut text =
        format!("{allowed}   {} {} {} as {}\n", word("operation"), word("agent"), word("version"), word("principal"));
    let decisions = value["decisions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if decisions.is_empty() {
        text += "  no policy counts here\n";
    }
    for decision in decisions {
        let word = |member: &str| decision[member].as_str();
        let says = match (word("effect"), decision["allowed"] == true) {
            (Some("ask"), _) => "asks",
            (_, true) => "allows",
            (_, false) => "denies",
        };
        let by = match (word("rule"), decision["allowed"] == true) {
            (Some(rule), _) => format!(" by the rule \"{rule}\""),
            (None, true) => ": no rule holds".to_owned(),
            (None, false) => String::new(),
        };
        let why = word("why").map(|why| format!(": {why}")).unwrap_or_default();
        text += &format!("  {} {says}{by}{why}\n", word("policy").unwrap_or_default());
    }
    text + &permissions(value)
}

/// What policies leave the agent of a job; nothing if there are none.
pub(crate) fn left(value: &Value) -> String {
    let policies: Vec<&str> = value["policies"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if policies.is_empty() {
        return String::new();
    }
    format!("  policies   {}\n{}", policies.join(", "), permissions(value))
}

/// One line with the permissions.
fn permissions(value: &Value) -> String {
    let Some(permissions) = value["permissions"].as_object().filter(|permissions| !permissions.is_empty()) else {
        return String::new();
    };
    let list = |member: &str| {
        let words: Vec<&str> =
            permissions.get(member).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    };
    let amount = |member: &str, unit: &str| match permissions.get(member).and_then(Value::as_i64) {
        Some(amount) if amount > 0 => format!("{amount} {unit}"),
        _ => "no limit".to_owned(),
    };
    format!(
        "  permits    files {} · network {} · secrets {} · memory {} · processor {}\n",
        list("filesystem"),
        list("network"),
        list("secrets"),
        amount("max_memory_mb", "MB"),
        amount("max_cpu_seconds", "s"),
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_rule_is_told() {
        let value = json!({
            "allowed": false, "operation": "submit", "principal": "ann", "agent": "mail", "version": "1.0.0",
            "decisions": [
                {"policy": "base", "rule": null, "allowed": true, "why": null},
                {"policy": "night", "rule": "ci may", "allowed": true, "why": null},
                {"policy": "production", "rule": "large", "allowed": false, "why": "wait for the night"},
                {"policy": "secrets", "rule": null, "allowed": false, "why": "Secret 'db' is not in the allowed secrets whitelist"},
            ],
            "permissions": {"filesystem": ["read"], "network": [], "secrets": ["db"], "max_memory_mb": 512, "max_cpu_seconds": 0},
            "policies": ["base", "night", "production", "secrets"],
        });
        expect![[r#"
            denied   submit mail 1.0.0 as ann
              base allows: no rule holds
              night allows by the rule "ci may"
              production denies by the rule "large": wait for the night
              secrets denies: Secret 'db' is not in the allowed secrets whitelist
              permits    files read · network none · secrets db · memory 512 MB · processor no limit
        "#]]
        .assert_eq(&told(&value));
        let asks = json!({
            "allowed": true, "effect": "ask", "operation": "submit", "principal": "ann", "agent": "mail", "version": "1.0.0",
            "decisions": [{"policy": "base", "rule": "to all", "allowed": true, "effect": "ask", "why": "a person looks first"}],
        });
        expect![[r#"
            waits for an approval   submit mail 1.0.0 as ann
              base asks by the rule "to all": a person looks first
        "#]]
        .assert_eq(&told(&asks));
        // An `expect!` takes away the indentation that all lines share.
        let expected = "  policies   base, night, production, secrets\n\
                        \x20 permits    files read · network none · secrets db · memory 512 MB · processor no limit\n";
        assert_eq!(left(&value), expected);
        assert_eq!(left(&json!({"permissions": {}, "policies": []})), "");
    }
}
