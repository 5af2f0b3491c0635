//! `atlas serve --remote`: the agents of one instance run from another.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::api::Api;
use crate::program::program;

/// A running `atlas serve`, killed when dropped, and the lines that it printed.
pub(crate) struct Serve {
    child: Child,
    lines: Vec<String>,
}

impl Serve {
    fn start(folder: &Path, options: &[&str]) -> Self {
        let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/bundled/exec-echo");
        Self::with_agents(&agents, folder, options)
    }

    /// One with the agents of a folder.
    pub(crate) fn with_agents(agents: &Path, folder: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(program("atlas"));
        command.current_dir(folder).args(["serve", "--host", "127.0.0.1", "--port", "0", "--agents-path"]);
        command.arg(agents).args(options).env_remove("ATLAS_AUTH_TOKEN");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = Vec::new();
        for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
            lines.push(line.expect("text"));
            if lines.last().is_some_and(|line| line.starts_with("Atlas serving on")) {
                break;
            }
        }
        Self { child, lines }
    }

    /// The address after some words.
    pub(crate) fn address(&self, words: &str) -> &str {
        let found = self.lines.iter().find_map(|line| line.strip_prefix(words));
        found.unwrap_or_else(|| panic!("it printed \"{words}\": {:?}", self.lines)).trim()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder(parent: &Path, name: &str) -> PathBuf {
    let folder = parent.join(name);
    std::fs::create_dir(&folder).expect("a folder");
    folder
}

#[tokio::test]
async fn agents_of_another_instance_are_served() {
    let parent = tempfile::tempdir().expect("a folder");
    let far = Serve::start(&folder(parent.path(), "far"), &["--mcp-port", "0", "--auth-token", "sekret"]);
    let far = (far.address("MCP server on").to_owned(), far);
    let remotes = [format!("lab={}@sekret", far.0), "gone=http://127.0.0.1:9/mcp".to_owned()];
    let near = Serve::start(&folder(parent.path(), "near"), &["--remote", &remotes[0], "--remote", &remotes[1]]);
    let api = Api::new(near.address("Atlas serving on"));
    let job = api.submit("lab.exec-echo", json!({ "message": "hello" })).await;
    let job = api.wait(&job).await;
    assert_eq!(job["status"], "completed", "{job}");
    let agents = api.get("/api/agents").await.to_string();
    assert!(agents.contains("lab.exec-echo") && !agents.contains("gone."), "{agents}");
    assert!(!agents.contains("sekret") && !api.get("/api/objects/mcp-server/lab").await.to_string().contains("sekret"));
}
