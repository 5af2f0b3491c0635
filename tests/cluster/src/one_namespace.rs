//! A person with a role in one namespace, at a cluster with tokens and certificates of its own: what the command line shows, and how a client
//! of MCP that it connects gets in.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::pair::Controller;
use crate::program::program;
use crate::{Agent, write_agent};

struct Desk {
    folder: tempfile::TempDir,
    _controller: Controller,
}

impl Desk {
    /// A cluster whose only agent is in the namespace `team`, the context `root`, and the context `ops` of an operator of that namespace.
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = folder.path().join("keys");
        let made = atlasctl(folder.path()).args(["operator", "init"]).arg(&keys).output().expect("it runs");
        assert!(made.status.success(), "{made:?}");
        let path = |name: &str| keys.join(name).display().to_string();
        let (root, tls) = (path("root.token"), keys.display().to_string());
        let options = ["--auth", "tokens", "--root-token-file", &root, "--tls-dir", &tls];
        let controller = Controller::start_with(folder.path(), &options);
        let server = format!("https://{}", controller.http);
        let desk = Self { folder, _controller: controller };
        let add = |name: &str, token: &str| {
            desk.must(&[
                "--server",
                &server,
                "--ca-file",
                &path("ca.pem"),
                "context",
                "add",
                name,
                "--token-file",
                token,
            ]);
        };
        add("root", &root);
        write_agent(desk.folder.path(), &Agent { name: "mail", version: "1.0.0", contract: "", script: "cat" });
        desk.must(&["--context", "root", "-n", "team", "deploy", &desk.path("mail")]);
        desk.must(&["--context", "root", "auth", "token", "create", "olga", "--to", &desk.path("olga.token")]);
        desk.must(&["--context", "root", "auth", "bind", "olga", "operator", "-n", "team"]);
        add("ops", &desk.path("olga.token"));
        desk
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The exit code of a command, and all that it printed.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = atlasctl(self.folder.path()).args(arguments).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    fn must(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {out}{err}");
        out
    }

    fn ops(&self, arguments: &[&str]) -> (i32, String, String) {
        self.run(&[&["--context", "ops", "-n", "team"], arguments].concat())
    }
}

/// The command line, with a configuration file that is not at the usual place.
fn atlasctl(folder: &Path) -> Command {
    let mut command = Command::new(program("atlasctl"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", folder);
    command.env("ATLAS_CONFIG", folder.join("contexts.toml")).current_dir(folder);
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_in_one_namespace_shows_that_namespace_and_says_what_is_left_out() {
    let desk = Desk::start();
    let (code, out, err) = desk.ops(&["policy", "why", "mail"]);
    assert!(code == 0 && out.starts_with("allowed   submit mail 1.0.0 as olga"), "{out}{err}");

    let (code, job, err) = desk.ops(&["run", "mail", "--detach", "-o", "json"]);
    assert_eq!(code, 0, "{job}{err}");
    let (code, out, err) = desk.ops(&["top"]);
    assert_eq!(code, 0, "{out}{err}");
    let counts = |line: &str| line.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>();
    assert!(out.lines().any(|line| counts(line) == ["team", "1", "0"]), "{out}");
    for part in ["left out: figures: olga lacks", "left out: nodes: olga lacks the right nodes.read in the cluster"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (_, out, err) = desk.ops(&["doctor"]);
    for line in [
        "skip  cluster       not checked: olga lacks the right cluster.read in the cluster",
        "skip  metrics       not checked: olga lacks the right metrics.read in the cluster",
        "skip  workers       not checked: olga lacks the right nodes.read in the cluster",
        "queue         1",
        "ok    doubts        no jobs in doubt",
    ] {
        assert!(out.contains(line), "{line}: {out}{err}");
    }
    // In a namespace in which she has no role, nothing is left to show.
    for verb in ["top", "doctor"] {
        let (code, out, err) = desk.run(&["--context", "ops", "-n", "other", verb]);
        assert!(code == 5 && err.contains("E2107"), "{verb}: {code} {out}{err}");
    }

    // What belongs to the cluster is found whatever the namespace.
    let tokens = desk.must(&["--context", "root", "-n", "team", "auth", "token", "list", "-o", "name"]);
    assert_eq!(tokens, "token/olga\n");
    let audit = desk.must(&["--context", "root", "-n", "team", "audit", "query", "-o", "jsonl"]);
    assert!(!audit.is_empty() && audit.lines().all(|line| line.contains(r#""namespace":"team""#)), "{audit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_printed_for_a_client_of_mcp_lets_it_in() {
    let desk = Desk::start();
    let (code, printed, err) = desk.ops(&["mcp", "connect", "--print", "json"]);
    assert_eq!(code, 0, "{printed}{err}");
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    let entry = &printed["mcpServers"]["atlas"];
    let token = fs::read_to_string(desk.path("olga.token")).expect("a token");
    assert!(!printed.to_string().contains(token.trim()), "{printed}");

    // Clients give programs few variables.
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let mut command = Command::new(text(&entry["command"]));
    command.args(entry["args"].as_array().expect("a list").iter().map(text)).env_clear().env("HOME", "/nowhere");
    command.envs(entry["env"].as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))));
    command.current_dir(PathBuf::from("/")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut bridge = command.spawn().expect("it starts");
    let (mut to, mut from) =
        (bridge.stdin.take().expect("piped"), BufReader::new(bridge.stdout.take().expect("piped")));
    let mut ask = |method: &str, params: Value| {
        writeln!(to, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).expect("written");
        let mut line = String::new();
        from.read_line(&mut line).expect("an answer");
        line
    };
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
    let hello = ask("initialize", hello);
    assert!(hello.contains("serverInfo"), "{hello}");
    let found = ask("tools/call", json!({"name": "agents_search", "arguments": {"query": "mail"}}));
    assert!(found.contains("mail") && found.contains("1.0.0"), "{found}");
    drop(to);
    assert!(bridge.wait().expect("it ends").success());

    // The same in other namespaces and without the context: the agent is not there, and a token that is nowhere else is not copied.
    let mut command = atlasctl(desk.folder.path());
    let kept = command.env("ATLAS_TOKEN", token.trim()).args(["mcp", "connect", "--print", "json"]).output();
    let kept = kept.expect("it runs");
    let said = String::from_utf8_lossy(&kept.stderr).into_owned();
    assert!(kept.status.code() == Some(2) && said.contains("ATLAS_TOKEN") && kept.stdout.is_empty(), "{said}");
}
