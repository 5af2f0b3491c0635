//! Models that are objects: agents call them with keys from the store.

use std::fs;
use std::path::Path;
use std::process::Command;

use atlas_llm_server::{Reply, Server};
use serde_json::{Value, json};

use crate::Dev;
use crate::patience::eventually_async;
use crate::program::program;

const KEY: &str = "sk-canary-9876543210";

const CONTRACT: &str = "agent:
  name: thinker
  version: 1.0.0
  model: { name: small }
  provider: { type: llm }
";

/// Runs `atlasctl` and returns what it printed; it must succeed.
fn atlasctl(dev: &Dev, arguments: &[&str]) -> String {
    let mut command = Command::new(program("atlasctl"));
    let output = command.args(["--server", dev.server()]).args(arguments).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}{}\n{}", text(&output.stdout), text(&output.stderr), dev.text());
    text(&output.stdout)
}

/// Runs `atlasctl`, which must not succeed; returns the exit code.
fn refused(dev: &Dev, arguments: &[&str]) -> Option<i32> {
    let mut command = Command::new(program("atlasctl"));
    let output = command.args(["--server", dev.server()]).args(arguments).output().expect("it runs");
    assert!(!output.status.success(), "{arguments:?}");
    output.status.code()
}

async fn set_secret(dev: &Dev, name: &str, value: &str) {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let put = client.put(format!("{}/api/secrets/{name}", dev.server())).json(&json!({ "value": value }));
    put.send().await.expect("an answer").error_for_status().expect("a success");
}

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

/// A file with a key for secrets.
fn sealing_key(folder: &Path) -> String {
    let sealing = folder.join("secrets.key");
    fs::write(&sealing, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n").expect("a key");
    fs::set_permissions(&sealing, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("permissions");
    sealing.display().to_string()
}

#[tokio::test]
async fn the_leader_asks_a_model_again_that_nobody_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = tempfile::tempdir().expect("a folder");
    let sealing = sealing_key(keys.path());
    let server = Server::start(|_, _| Reply::text("{}")).expect("a server");
    let options = ["--data-dir", "data", "--secrets-key", sealing.as_str(), "--model-probe-every", "1s"];
    let dev = Dev::start(folder.path(), options);
    set_secret(&dev, "small-key", KEY).await;
    let address = server.base_url();
    let add = ["model", "add", "small", "--provider", "anthropic", "--name", "tiny", "--key", "secret://small-key"];
    atlasctl(&dev, &[&add[..], &["--base-url", &address]].concat());
    let state = || {
        let shown: Value =
            serde_json::from_str(&atlasctl(&dev, &["model", "show", "small", "-o", "json"])).expect("JSON");
        shown["status"]["state"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(state(), "reachable");
    drop(server);
    eventually_async("the leader notices that the model is gone", async || match state().as_str() {
        "unreachable" => Ok(()),
        other => Err(other.to_owned()),
    })
    .await;
    assert_eq!(dev.interrupt(), Some(0));
}

#[tokio::test]
async fn an_agent_calls_a_stored_model_with_a_stored_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = tempfile::tempdir().expect("a folder");
    let sealing = sealing_key(keys.path());
    let agent = folder.path().join("agents/thinker");
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join("agent.yaml"), CONTRACT).expect("a contract");
    let server = Server::start(|_, _| Reply::text("{\"answer\": 42}")).expect("a server");
    let dev =
        Dev::start(folder.path(), ["--data-dir", "data", "--agents", "./agents", "--secrets-key", sealing.as_str()]);
    set_secret(&dev, "small-key", KEY).await;
    let address = server.base_url();
    atlasctl(
        &dev,
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
            "--price-in",
            "1",
            "--price-out",
            "2",
        ],
    );
    let job: Value =
        serde_json::from_str(&atlasctl(&dev, &["run", "thinker", "-i", "{}", "-o", "json"])).expect("JSON");
    assert_eq!(job["output_data"], json!({"answer": 42}), "{job}");
    assert_eq!(server.keys(), [KEY]);
    let shown = server.requests()[0].to_string() + &job.to_string() + &atlasctl(&dev, &["job", "list", "-o", "json"]);
    assert!(!shown.contains(KEY), "the key is only in the header");
    let checked: Value =
        serde_json::from_str(&atlasctl(&dev, &["model", "check", "small", "-o", "json"])).expect("JSON");
    assert_eq!((&checked["ok"], &checked["answered_as"]), (&json!(true), &json!("tiny")), "{checked}");
    assert!(checked["latency_ms"].as_f64() > Some(0.0), "{checked}");
    let spent = refused(&dev, &["run", "thinker", "-i", "{}", "--budget", "0.000001", "-o", "json"]);
    assert_eq!((spent, server.requests().len()), (Some(5), 2), "no call is made");
    let jobs: Value =
        serde_json::from_str(&atlasctl(&dev, &["job", "list", "--status", "failed", "-o", "json"])).expect("JSON");
    assert_eq!(jobs[0]["reason"], "budget", "{jobs}");
    let mut all = Vec::new();
    files(&folder.path().join("data"), &mut all);
    assert!(all.len() > 2, "{all:?}");
    for file in all {
        let bytes = fs::read(&file).unwrap_or_default();
        assert!(!bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()), "{}", file.display());
    }
    assert_eq!(dev.interrupt(), Some(0));
}

#[tokio::test]
async fn the_output_of_a_helper_is_summarised_by_the_model_of_the_definition() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = tempfile::tempdir().expect("a folder");
    let sealing = sealing_key(keys.path());
    let write = |name: &str, text: &str| {
        let agent = folder.path().join("agents").join(name);
        fs::create_dir_all(&agent).expect("a folder");
        fs::write(agent.join("config.yaml"), format!("name: {name}\nmodel: big\n{text}")).expect("a definition");
    };
    write("lead", "can_spawn_agents: true\nsummarization_threshold: 10\nsummarization_model: 'openai:small'\n");
    write("kid", "");
    let server = Server::start(|request: &Value, _: usize| {
        let messages = request["messages"].to_string();
        let count = request["messages"].as_array().map_or(0, Vec::len);
        let id = || messages.find("agent_kid_").map(|start| messages[start..start + 18].to_owned()).unwrap_or_default();
        match request["model"].as_str() {
            Some("tiny") => Reply::text("brief"),
            _ if messages.contains("work for it") && count == 1 => Reply::text("a long output of a helper"),
            _ if count == 1 => Reply::call("c", "agent__spawn", &json!({"agent": "kid", "prompt": "work for it"})),
            _ if count == 3 => Reply::call("c", "agent__collect", &json!({ "id": id() })),
            _ if messages.contains("brief") && !messages.contains("a long output") => Reply::text("summarised"),
            _ => Reply::text("whole"),
        }
    })
    .expect("a server");
    let dev = Dev::start(folder.path(), ["--data-dir", "data", "--secrets-key", sealing.as_str()]);
    set_secret(&dev, "small-key", KEY).await;
    let address = server.base_url();
    for (model, name) in [("big", "large"), ("small", "tiny")] {
        let add = ["model", "add", model, "--provider", "anthropic", "--name", name, "--key", "secret://small-key"];
        atlasctl(&dev, &[&add[..], &["--base-url", &address, "--capabilities", "tools"]].concat());
    }
    let agents = folder.path().join("agents");
    atlasctl(&dev, &["deploy", &agents.display().to_string()]);
    let text = atlasctl(&dev, &["run", "lead", "message=go", "-o", "jsonpath={.output_data.text}"]);
    assert_eq!(text.trim(), "summarised");
    let summaries = server.requests().iter().filter(|request| request["model"] == "tiny").count();
    // Adding a model asks it once as well.
    let asked = server.requests().iter().filter(|request| request.to_string().contains("a long output")).count();
    assert!(summaries >= 1 && asked == 1, "{summaries} {asked}");
    assert_eq!(dev.interrupt(), Some(0));
}
