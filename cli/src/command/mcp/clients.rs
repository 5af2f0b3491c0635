//! The clients that can be connected, and how each is told about a server.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::context::Bridge;

/// The name of the server in clients.
pub(super) const NAME: &str = "atlas";

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Vscode,
    Cursor,
    Codex,
    Gemini,
    Zed,
}

/// How a client is told about a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Way {
    /// By a command of its own.
    Commands { add: Vec<String>, remove: Vec<String> },
    /// By an entry in a JSON file.
    File { path: PathBuf, section: &'static str, entry: Value },
}

/// What a client's configuration depends on.
pub(super) struct Surroundings<'a> {
    /// The address of the gateway; none if clients reach it only through this program.
    pub(super) url: Option<&'a str>,
    /// How clients start this program.
    pub(super) bridge: &'a Bridge,
    /// This program.
    pub(super) program: &'a Path,
    /// The home folder.
    pub(super) home: &'a Path,
}

impl Surroundings<'_> {
    /// The arguments with which this program is the server of a client.
    fn arguments(&self) -> Vec<String> {
        let verb = ["mcp", "stdio"].map(str::to_owned);
        self.bridge.arguments.iter().cloned().chain(verb).collect()
    }

    /// The entry of a client that starts this program.
    fn started(&self) -> Value {
        let mut entry = json!({ "command": self.program, "args": self.arguments() });
        if !self.bridge.variables.is_empty() {
            entry["env"] = self.bridge.variables.iter().cloned().collect();
        }
        entry
    }

    /// An entry that also names the transport.
    fn typed(&self) -> Value {
        match self.url {
            Some(url) => json!({ "type": "http", "url": url }),
            None => {
                let mut entry = json!({ "type": "stdio" });
                if let (Value::Object(entry), Value::Object(started)) = (&mut entry, self.started()) {
                    entry.extend(started);
                }
                entry
            }
        }
    }

    /// An entry with the address in this member.
    fn entry(&self, member: &str) -> Value {
        self.url.map_or_else(|| self.started(), |url| json!({ member: url }))
    }

    /// The command of a client that adds the server. `address` are the words before and after the name if the server has an address.
    fn added(&self, client: &str, address: impl Fn(&str) -> (Vec<String>, Vec<String>)) -> Vec<String> {
        let mut words = [client, "mcp", "add"].map(str::to_owned).to_vec();
        match self.url {
            Some(url) => {
                let (before, after) = address(url);
                words.extend(before);
                words.push(NAME.to_owned());
                words.extend(after);
            }
            None => {
                // An option that takes several values must not take the name.
                words.push(NAME.to_owned());
                let variable = |(name, value): &(String, String)| ["--env".to_owned(), format!("{name}={value}")];
                words.extend(self.bridge.variables.iter().flat_map(variable));
                words.extend(["--".to_owned(), self.program.display().to_string()]);
                words.extend(self.arguments());
            }
        }
        words
    }
}

impl Client {
    /// The word on the command line.
    pub(super) fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// How the client is told. Files of a project are in the current folder.
    pub(super) fn way(self, around: &Surroundings<'_>) -> Way {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let file = |path: PathBuf, section, entry| Way::File { path, section, entry };
        match self {
            Self::ClaudeCode => Way::Commands {
                add: around.added("claude", |url| (words(&["--transport", "http"]), words(&[url]))),
                remove: words(&["claude", "mcp", "remove", NAME]),
            },
            Self::Codex => Way::Commands {
                add: around.added("codex", |url| (Vec::new(), words(&["--url", url]))),
                remove: words(&["codex", "mcp", "remove", NAME]),
            },
            Self::Vscode => file(".vscode/mcp.json".into(), "servers", around.typed()),
            Self::Cursor => file(".cursor/mcp.json".into(), "mcpServers", around.entry("url")),
            Self::Gemini => file(".gemini/settings.json".into(), "mcpServers", around.entry("httpUrl")),
            Self::Zed => file(around.home.join(".config/zed/settings.json"), "context_servers", around.entry("url")),
            // It reads only commands from its file.
            Self::ClaudeDesktop => {
                file(around.home.join(".config/Claude/claude_desktop_config.json"), "mcpServers", around.started())
            }
        }
    }
}

/// The configuration that most clients read, for those that are not in the list.
pub(super) fn general(around: &Surroundings<'_>) -> Value {
    json!({ "mcpServers": { NAME: around.typed() } })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(url: Option<&str>, bridge: &Bridge, expected: &Expect) {
        let around = Surroundings { url, bridge, program: Path::new("/bin/atlasctl"), home: Path::new("/users/ann") };
        let shown = |client: &Client| match client.way(&around) {
            Way::Commands { add, .. } => format!("{}: {}\n", client.word(), add.join(" ")),
            Way::File { entry, .. } => format!("{}: {entry}\n", client.word()),
        };
        let all: String = Client::value_variants().iter().map(shown).collect();
        expected.assert_eq(&format!("{all}others: {}\n", general(&around)));
    }

    #[test]
    fn a_cluster_that_lets_everybody_in_has_an_address() {
        let bridge =
            Bridge { arguments: vec!["--server".to_owned(), "http://c1:7400".to_owned()], ..Bridge::default() };
        check(
            Some("http://c1:7400/mcp?namespace=a"),
            &bridge,
            &expect![[r#"
            claude-code: claude mcp add --transport http atlas http://c1:7400/mcp?namespace=a
            claude-desktop: {"command":"/bin/atlasctl","args":["--server","http://c1:7400","mcp","stdio"]}
            vscode: {"type":"http","url":"http://c1:7400/mcp?namespace=a"}
            cursor: {"url":"http://c1:7400/mcp?namespace=a"}
            codex: codex mcp add atlas --url http://c1:7400/mcp?namespace=a
            gemini: {"httpUrl":"http://c1:7400/mcp?namespace=a"}
            zed: {"url":"http://c1:7400/mcp?namespace=a"}
            others: {"mcpServers":{"atlas":{"type":"http","url":"http://c1:7400/mcp?namespace=a"}}}
        "#]],
        );
    }

    #[test]
    fn every_client_starts_the_bridge_of_a_context_with_a_token() {
        let arguments = ["--context", "prod", "--namespace", "team-a"].map(str::to_owned).to_vec();
        let variables = vec![("ATLAS_CONFIG".to_owned(), "/etc/atlas.toml".to_owned())];
        check(
            None,
            &Bridge { arguments, variables },
            &expect![[r#"
            claude-code: claude mcp add atlas --env ATLAS_CONFIG=/etc/atlas.toml -- /bin/atlasctl --context prod --namespace team-a mcp stdio
            claude-desktop: {"command":"/bin/atlasctl","args":["--context","prod","--namespace","team-a","mcp","stdio"],"env":{"ATLAS_CONFIG":"/etc/atlas.toml"}}
            vscode: {"type":"stdio","command":"/bin/atlasctl","args":["--context","prod","--namespace","team-a","mcp","stdio"],"env":{"ATLAS_CONFIG":"/etc/atlas.toml"}}
            cursor: {"command":"/bin/atlasctl","args":["--context","prod","--namespace","team-a","mcp","stdio"],"env":{"ATLAS_CONFIG":"/etc/atlas.toml"}}
            codex: codex mcp add atlas --env ATLAS_CONFIG=/etc/atlas.toml -- /bin/atlasctl --context prod --namespace team-a mcp stdio
            gemini: {"command":"/bin/atlasctl","args":["--context","prod","--namespace","team-a","mcp","stdio"],"env":{"ATLAS_CONFIG":"/etc/atlas.toml"}}
            zed: {"command":"/bin/atlasctl","args":["--context","prod","--namespace","team-a","mcp","stdio"],"env":{"ATLAS_CONFIG":"/etc/atlas.toml"}}
            others: {"mcpServers":{"atlas":{"type":"stdio","command":"/bin/atlasctl","args":["--context","prod","--namespace","team-a","mcp","stdio"],"env":{"ATLAS_CONFIG":"/etc/atlas.toml"}}}}
        "#]],
        );
    }
}
