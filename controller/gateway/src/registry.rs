//! The registry document, `/.well-known/mcp/server.json`: which agents there are, and where. It is made of the agents that are registered at the
//! moment.

use atlas_service::ServedAgent;
use serde_json::{Value, json};

use crate::view::iso_seconds;

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";
/// Most characters of a description, by the schema.
const DESCRIPTION_MAX: usize = 100;

/// How the document names and addresses the agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryOptions {
    /// The prefix of names, such as `com.example`.
    pub namespace: String,
    /// The address of the gateway as clients see it, without a slash at its end. None: that of the request.
    pub url: Option<String>,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self { namespace: "local.atlas".to_owned(), url: None }
    }
}

/// The document. `url` tells the address of an agent.
pub(crate) fn document(options: &RegistryOptions, agents: &[ServedAgent], url: impl Fn(&str) -> String) -> Value {
    let servers = agents.iter().map(|served| entry(options, served, &url(served.agent.agent.name.as_str())));
    json!({ "servers": servers.collect::<Vec<_>>() })
}

fn entry(options: &RegistryOptions, served: &ServedAgent, url: &str) -> Value {
    let (agent, contract) = (&served.agent.agent, &served.agent.contract);
    let name = agent.name.as_str();
    let title = contract.text("/title");
    let mut server = json!({
        "$schema": SCHEMA,
        "name": format!("{}/{}", options.namespace, name.replace('_', "-")),
        "title": if title.is_empty() { title_case(name) } else { title.to_owned() },
        "description": description(contract.text("/description"), name),
        "version": agent.version.to_string(),
        "remotes": [{ "type": "streamable-http", "url": url }],
    });
    if let Some(capabilities) = &served.capabilities {
        server["capabilities"] = capabilities.clone();
    }
    let official = json!({ "status": "active", "updatedAt": iso_seconds(agent.registered_at), "isLatest": true });
    json!({ "server": server, "_meta": { OFFICIAL: official } })
}

/// As Python's `str.title`: the first letter of each run of letters is large, the others are small.
fn title_case(name: &str) -> String {
    let (mut title, mut inside) = (String::new(), false);
    for letter in name.chars() {
        match inside {
            true => title.extend(letter.to_lowercase()),
            false => title.extend(letter.to_uppercase()),
        }
        inside = letter.is_alphabetic();
    }
    title
}

/// Between 1 and 100 characters, as the schema asks.
fn description(text: &str, name: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = if text.is_empty() { format!("The agent {name}") } else { text };
    match text.char_indices().nth(DESCRIPTION_MAX) {
        None => text,
        Some(_) => text.chars().take(DESCRIPTION_MAX - 1).chain(['\u{2026}']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_descriptions_are_supplied() {
        assert_eq!(title_case("tech_research"), "Tech_Research");
        assert_eq!(title_case("my-HTTP agent2b"), "My-Http Agent2B");
        assert_eq!(description("", "jarvis"), "The agent jarvis");
        assert_eq!(description(" a\n b ", "x"), "a b");
        let long = description(&"\u{e9}".repeat(200), "x");
        assert_eq!((long.chars().count(), long.chars().last()), (100, Some('\u{2026}')));
        assert_eq!(description(&"x".repeat(100), "x").len(), 100);
    }
}
