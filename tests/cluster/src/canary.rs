//! A secret and the key of a model with values that occur nowhere else. Jobs do with them all that agents and model servers do by
//! mistake; afterwards neither value is in any file of the cluster, in any answer, or on its terminal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use atlas_llm_server::{Reply, Server};
use serde_json::json;

use crate::Dev;
use crate::patience::{LONG, eventually};
use crate::program::program;

const SECRET: &str = "c4n4ry/secret+7f3a91d2";
const KEY: &str = "sk-c4n4ry-model-55aa17e9";
/// The key of a model that the worker's environment has.
const OWN_KEY: &str = "sk-c4n4ry-environment-0b6d";

/// What agents do with the secret, each with the start of its contract. All lines are in the contract's own shell script.
const AGENTS: [(&str, &str, &str); 5] = [
    ("prints", "type: exec", r#"echo "plain $TOKEN" >&2; printf %s "user:$TOKEN" | base64 >&2; printf '{"ok": true}'"#),
    ("returns", "type: exec", r#"printf '{"text": "it is %s", "%s": 1, "list": ["%s"]}' "$TOKEN" "$TOKEN" "$TOKEN""#),
    ("fails", "type: exec", r#"echo "could not log in with $TOKEN" >&2; exit 3"#),
    ("talks", "type: exec", r#"echo "no JSON but $TOKEN""#),
    (
        "serves",
        "type: exec, mode: warm",
        r#"while read -r line; do
             t=$(printf %s "$line" | sed 's/.*"TOKEN":"\([^"]*\)".*/\1/'); echo "got $t" >&2
             case $line in *fail*) echo "{\"error\": \"refused $t\"}";; *) echo "{\"output\": {\"token\": \"$t\"}}";; esac
           done"#,
    ),
];

const PYTHON: &str = r#"
from atlas.runtime.base import AgentBase

class Agent(AgentBase):
    async def execute(self, input_data):
        token = self.context.secrets["TOKEN"]
        print("printed", token)
        self.context.execution_metadata["model"] = token
        if input_data.get("fail"):
            raise ValueError(f"no such token: {token!r}")
        return {"token": token, "nested": {token: [token]}}
"#;

fn write_agents(folder: &Path) {
    let write = |name: &str, provider: &str, extra: &str, file: (&str, &str)| {
        let agent = folder.join(name);
        fs::create_dir_all(&agent).expect("a folder");
        fs::write(agent.join(file.0), file.1).expect("a file");
        let contract = format!("agent:\n  name: {name}\n  version: 1.0.0\n{extra}  provider: {{ {provider} }}\n");
        fs::write(agent.join("agent.yaml"), contract).expect("a contract");
    };
    let declared = "  permissions: { secrets: [TOKEN] }\n";
    for (name, provider, script) in AGENTS {
        let provider = format!("{provider}, command: [\"sh\", \"agent.sh\"]");
        write(name, &provider, declared, ("agent.sh", &script.replace("\n             ", "\n")));
    }
    write("snake", "type: python", declared, ("agent.py", PYTHON));
    write("thinks", "type: llm", "  model: { name: small }\n", ("README.md", "It calls a stored model.\n"));
    write("muses", "type: llm", "", ("README.md", "It calls the model of the environment.\n"));
}

/// A provider that repeats keys: in an error, in an answer, and in the arguments of a tool.
fn server() -> Server {
    let reply = |request: &serde_json::Value, number: usize| {
        let key = if request["model"] == "tiny" { KEY } else { OWN_KEY };
        match number % 2 {
            0 => Reply::Error { status: 401, text: format!("invalid x-api-key: {key}") },
            _ => Reply::text(&json!({ "said": format!("your key is {key}") }).to_string()),
        }
    };
    Server::start(reply).expect("a server")
}

fn atlasctl(server: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program("atlasctl"));
    command.args(["--server", server]).args(arguments).env("NO_COLOR", "1").output().expect("it runs")
}

/// What a command prints, on both streams.
fn told(server: &str, arguments: &[&str]) -> String {
    let output = atlasctl(server, arguments);
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn done(server: &str, arguments: &[&str]) -> String {
    let output = atlasctl(server, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The forms in which a value could be kept.
fn forms() -> Vec<(&'static str, String)> {
    use base64::Engine as _;
    let base64 = |value: &str| base64::engine::general_purpose::STANDARD.encode(value);
    let plain = [("secret", SECRET), ("key", KEY), ("own key", OWN_KEY)];
    let mut forms: Vec<_> = plain.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    // The bytes before it decide how a text in base64 begins and ends; the middle of each of the three ways is searched.
    for shift in ["", "x", "xx"] {
        let coded = base64(&format!("{shift}{SECRET}"));
        forms.push(("secret in base64", coded[4..24].to_owned()));
    }
    forms.push(("percent-encoded secret", SECRET.replace('/', "%2F").replace('+', "%2B")));
    forms
}

fn assert_clean(place: &str, bytes: &[u8]) {
    for (name, form) in forms() {
        let found = bytes.windows(form.len()).position(|part| part == form.as_bytes());
        if let Some(at) = found {
            let around = &bytes[at.saturating_sub(80)..(at + form.len() + 80).min(bytes.len())];
            panic!("the {name} is in {place}: {}", String::from_utf8_lossy(around));
        }
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

async fn answer(server: &str, path: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let response = client.get(format!("{server}{path}")).send().await.expect("an answer");
    response.text().await.expect("a body")
}

/// Runs every agent; returns the ids of the jobs.
fn run_all(server: &str) -> Vec<String> {
    let runs = [
        ("prints", "{}"),
        ("returns", "{}"),
        ("fails", "{}"),
        ("talks", "{}"),
        ("serves", "{}"),
        ("serves", r#"{"fail": true}"#),
        ("snake", "{}"),
        ("snake", r#"{"fail": true}"#),
        ("thinks", "{}"),
        ("thinks", r#"{"again": true}"#),
        ("muses", "{}"),
        ("muses", r#"{"again": true}"#),
    ];
    for (agent, input) in runs {
        let output = told(server, &["run", agent, "-i", input, "-o", "json"]);
        assert_clean(&format!("the output of run {agent}"), output.as_bytes());
    }
    let jobs: serde_json::Value = serde_json::from_str(&done(server, &["job", "list", "-o", "json"])).expect("JSON");
    let ids: Vec<_> = jobs.as_array().expect("jobs").iter().filter_map(|job| job["id"].as_str()).collect();
    // `model add` ran one as well, which asked the model for a sign of life.
    assert_eq!(ids.len(), runs.len() + 1, "{jobs}");
    // Each of them had the value: what it did with it is there, with the name in its place.
    let shown = jobs.to_string();
    for text in [
        "it is [redacted:TOKEN]",
        "with [redacted:TOKEN]",
        "refused [redacted:TOKEN]",
        "no such token: '[redacted:TOKEN]",
    ] {
        assert!(shown.contains(text), "{text} is missing: {shown}");
    }
    assert!(shown.contains("your key is [redacted:"), "{shown}");
    ids.into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn no_value_stays_anywhere() {
    if Command::new("python3").arg("--version").output().is_err() {
        atlas_notice::skip("there is no python3");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let value = |name: &str, text: &str| {
        let path = elsewhere.path().join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let (secret, key) = (value("secret", SECRET), value("key", KEY));
    let models = server();
    let address = models.base_url();
    write_agents(&folder.path().join("agents"));
    let environment = [("ANTHROPIC_API_KEY", OWN_KEY), ("ANTHROPIC_BASE_URL", address.as_str())];
    let dev = Dev::start_with(folder.path(), ["--data-dir", "data", "--log", "debug,openraft=off"], environment);
    let server = dev.server().to_owned();
    done(&server, &["secret", "set", "TOKEN", "--file", &secret]);
    done(&server, &["secret", "set", "small-key", "--file", &key]);
    done(
        &server,
        &[
            "model",
            "add",
            "small",
            "--provider",
            "anthropic",
            "--name",
            "tiny",
            "--key",
            "secret://small-key",
            "--base-url",
            &address,
        ],
    );
    let jobs = run_all(&server);
    assert!(models.keys().iter().any(|used| used == KEY) && models.keys().iter().any(|used| used == OWN_KEY));

    for id in &jobs {
        for verb in ["show", "logs", "steps", "tree", "explain"] {
            assert_clean(&format!("job {verb}"), told(&server, &["job", verb, id, "-o", "json"]).as_bytes());
        }
        for rest in ["?view=full", "/steps", "/tree?view=full"] {
            assert_clean(rest, answer(&server, &format!("/api/jobs/{id}{rest}")).await.as_bytes());
        }
    }
    for path in
        ["/api/jobs?view=full", "/api/agents?view=full", "/api/objects/secret", "/api/objects/model", "/metrics"]
    {
        assert_clean(path, answer(&server, path).await.as_bytes());
    }
    let events = told(&server, &["event", "tail", "--after", "0", "--limit", "40", "-o", "jsonl"]);
    assert!(events.contains("TOKEN"), "{events}");
    assert_clean("the events", events.as_bytes());
    for arguments in [["get", "secret", "-o", "yaml"], ["secret", "show", "TOKEN", "small-key"]] {
        assert_clean("atlasctl", done(&server, &arguments).as_bytes());
    }
    let backup = elsewhere.path().join("backup.tar");
    done(&server, &["operator", "snapshot", "save", &backup.display().to_string()]);
    assert_clean("the backup", &fs::read(&backup).expect("a backup"));

    let data = folder.path().join("data");
    eventually("the history has the jobs", LONG, || {
        let mut found = Vec::new();
        files(&data, &mut found);
        found.iter().any(|path| path.ends_with("history.sqlite")).then_some(())
    });
    let (exit, words) = dev.interrupt_with_words();
    assert_eq!(exit, Some(0));
    assert_clean("stderr of the cluster", words.as_bytes());
    let mut all = Vec::new();
    files(folder.path(), &mut all);
    for part in ["controller", "worker"] {
        assert!(all.iter().any(|path| path.starts_with(data.join(part))), "no files of the {part}: {all:?}");
    }
    for file in all {
        assert_clean(&file.display().to_string(), &fs::read(&file).unwrap_or_default());
    }
}
