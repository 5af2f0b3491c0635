//! The agents of a peer: each is registered here as `PEER.AGENT`, with its version, its schemas and its time limit (compatibility §19.6).

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::LABEL;
use crate::client::Client;
use crate::command::mcp::server::ask::{self, Question};
use crate::context::Context;
use crate::failure::Failure;

/// The time limit of an agent whose peer tells none.
const TIMEOUT_SECONDS: f64 = 120.0;

/// What happened to the agents of a peer.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) registered: Vec<String>,
    /// Sentences about the others.
    pub(super) left_out: Vec<String>,
}

/// Registers the agents that the peer has now.
pub(super) async fn register(
    client: &Client,
    peer: &str,
    wait: Duration,
    context: Option<&Context>,
) -> Result<Found, Failure> {
    let listed = ask::ask(client, peer, Question::Call("atlas.registry.list", json!({})), wait, context).await?;
    let mut found = Found::default();
    for agent in listed["agents"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let Some(name) = agent["name"].as_str() else { continue };
        let describe = Question::Call("atlas.registry.describe", json!({ "name": name }));
        let asked = ask::ask(client, peer, describe, wait, context).await;
        let registered = match asked {
            Ok(described) => ask::register(client, &contract(peer, name, &described).to_string()).await,
            Err(failure) => Err(failure),
        };
        match registered {
            Ok(version) => found.registered.push(format!("{peer}.{name}@{version}")),
            Err(failure) => found.left_out.push(format!("{peer}.{name} is left out: {}", failure.message)),
        }
    }
    Ok(found)
}

/// The contract of an agent that runs an agent of a peer. JSON is YAML.
fn contract(peer: &str, name: &str, described: &Value) -> Value {
    let member = |name: &str| described.get(name).filter(|value| !value.is_null()).cloned();
    let schema = |name: &str| member(name).unwrap_or_else(|| json!({ "type": "object" }));
    let mut agent = Map::from_iter([
        ("name".to_owned(), json!(format!("{peer}.{name}"))),
        ("version".to_owned(), member("version").unwrap_or_else(|| "0.0.0".into())),
        ("description".to_owned(), member("description").unwrap_or_else(|| "".into())),
        ("input".to_owned(), json!({ "schema": schema("input_schema") })),
        ("output".to_owned(), json!({ "schema": schema("output_schema") })),
        ("execution_timeout".to_owned(), member("execution_timeout").unwrap_or_else(|| TIMEOUT_SECONDS.into())),
        ("provider".to_owned(), json!({ "type": "mcp", "server": peer, "agent": name })),
        ("labels".to_owned(), json!({ LABEL: peer })),
    ]);
    agent.extend(["type", "capabilities"].into_iter().filter_map(|name| Some((name.to_owned(), member(name)?))));
    json!({ "agent": agent })
}

/// Retires the agents of a peer, and returns how many.
pub(super) async fn retire(client: &Client, peer: &str) -> Result<usize, Failure> {
    let agents = client.get(&["api", "agents"], &[("view", "full"), ("all", "true")]).await?;
    let mut retired = 0;
    for agent in agents.as_array().map(Vec::as_slice).unwrap_or_default() {
        let (Some(name), Some(version)) = (agent["name"].as_str(), agent["version"].as_str()) else { continue };
        if agent["labels"][LABEL] == peer && agent["retired"] != true {
            client.delete(&["api", "agents", name, "versions", version]).await?;
            retired += 1;
        }
    }
    Ok(retired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_of_a_peer_has_its_schemas_and_calls_it() {
        let described = json!({
            "name": "echo", "version": "1.2.0", "type": "agent", "description": "Says it \"again\".\n\ttwice",
            "capabilities": ["text"], "input_schema": {"type": "object", "required": ["message"]}, "output_schema": null,
            "execution_timeout": 7.5,
        });
        let text = contract("lab", "echo", &described).to_string();
        let contract = atlas_contract::parse(text.as_bytes()).expect("a contract");
        assert_eq!((contract.name.as_str(), contract.version_text.as_str()), ("lab.echo", "1.2.0"));
        assert_eq!(contract.description, "Says it \"again\".\n\ttwice");
        assert_eq!((contract.execution_timeout, contract.input_schema["required"][0].as_str()), (7.5, Some("message")));
        assert_eq!(contract.run_spec().servers, ["lab"]);
        assert!(contract.warnings.is_empty(), "{:?}", contract.warnings);
    }
}
