//! The registry document, `/.well-known/mcp/server.json`: which agents there are, and where. It is made of the agents that are registered at the
//! moment.

use std::collections::BTreeMap;

use atlas_service::ServedAgent;
use serde_json::{Value, json};

use crate::names;
use crate::view::iso_seconds;

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";
/// The longest name of an agent in the document; with the namespace, the schema allows 200 characters.
const NAME_MAX: usize = 100;
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
    let names = slugs(agents.iter().map(|served| served.agent.agent.name.as_str()).collect());
    let servers = agents
        .iter()
        .zip(&names)
        .map(|(served, slug)| entry(options, served, slug, &url(served.agent.agent.name.as_str())));
    json!({ "servers": servers.collect::<Vec<_>>() })
}

/// The names of agents in the document: `-` for `_`, and only letters that the schema allows. Names that would be equal keep their `_`.
fn slugs(agents: Vec<&str>) -> Vec<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let plain = |name: &str| match name.len() <= NAME_MAX && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => names::changed(name),
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in &agents {
        *counts.entry(plain(name).replace('_', "-")).or_default() += 1;
    }
    let slug = |name: &str| {
        let plain = plain(name);
        let slug = plain.replace('_', "-");
        if counts.get(&slug) == Some(&1) { slug } else { plain }
    };
    agents.into_iter().map(slug).collect()
}

fn entry(options: &RegistryOptions, served: &ServedAgent, slug: &str, url: &str) -> Value {
    let (agent, contract) = (&served.agent.agent, &served.agent.contract);
    let name = agent.name.as_str();
    let title = contract.text("/title");
    let mut server = json!({
        "$schema": SCHEMA,
        "name": format!("{}/{slug}", options.namespace),
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
    fn names_are_unique_and_legal() {
        assert_eq!(slugs(vec!["tech_research"]), ["tech-research"]);
        assert_eq!(slugs(vec!["a-b", "a_b", "c"]), ["a-b", "a_b", "c"]);
        assert_eq!(slugs(vec!["a_b-c", "a-b_c"]), ["a_b-c", "a-b_c"]);
        let strange = slugs(vec!["a b", "gr\u{fc}\u{df}e", &"x".repeat(150)]);
        let is_legal =
            |name: &String| name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
        assert!(strange.iter().all(is_legal) && strange[0].starts_with("a-b-"), "{strange:?}");
    }

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
