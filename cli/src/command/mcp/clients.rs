//! The clients that can be connected, and how each is told about a server.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

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
    /// The address of the gateway.
    pub(super) url: &'a str,
    /// The address of the controller.
    pub(super) server: &'a str,
    /// This program.
    pub(super) program: &'a Path,
    /// The home folder.
    pub(super) home: &'a Path,
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
        let url = around.url;
        match self {
            Self::ClaudeCode => Way::Commands {
                add: words(&["claude", "mcp", "add", "--transport", "http", NAME, url]),
                remove: words(&["claude", "mcp", "remove", NAME]),
            },
            Self::Codex => Way::Commands {
                add: words(&["codex", "mcp", "add", NAME, "--url", url]),
                remove: words(&["codex", "mcp", "remove", NAME]),
            },
            Self::Vscode => file(".vscode/mcp.json".into(), "servers", json!({ "type": "http", "url": url })),
            Self::Cursor => file(".cursor/mcp.json".into(), "mcpServers", json!({ "url": url })),
            Self::Gemini => file(".gemini/settings.json".into(), "mcpServers", json!({ "httpUrl": url })),
            Self::Zed => file(around.home.join(".config/zed/settings.json"), "context_servers", json!({ "url": url })),
            // It reads only commands from its file.
            Self::ClaudeDesktop => file(
                around.home.join(".config/Claude/claude_desktop_config.json"),
                "mcpServers",
                json!({ "command": around.program, "args": ["--server", around.server, "mcp", "stdio"] }),
            ),
        }
    }
}

/// The configuration that most clients read, for those that are not in the list.
pub(super) fn general(url: &str) -> Value {
    json!({ "mcpServers": { NAME: { "type": "http", "url": url } } })
}
