//! Models whose provider gives access tokens: a person logs in by the command line, agents call the model, the leader renews the token.
//! No token, and no secret of the client, is in any file, in any answer, or on the terminal.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use atlas_llm_server::issuer::{CLIENT_SECRET, Issuer};
use atlas_llm_server::{Reply, Server};
use serde_json::{Value, json};

use crate::Dev;
use crate::program::program;

const CONTRACT: &str = "agent:
  name: thinker
  version: 1.0.0
  model: { name: work }
  provider: { type: llm }
";

/// What tokens, codes and the secret of the client begin with.
const CANARY: &str = "canary";

fn atlasctl(dev: &Dev, arguments: &[&str]) -> Output {
    let mut command = Command::new(program("atlasctl"));
    command.args(["--server", dev.server()]).args(arguments).env("NO_COLOR", "1").output().expect("it runs")
}

/// Runs a command that must succeed; what it prints on both streams has no token.
pub(crate) fn done(dev: &Dev, arguments: &[&str]) -> String {
    let output = atlasctl(dev, arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}\n{}", text(&output.stderr), dev.text());
    assert_clean(&format!("{arguments:?}"), &output.stdout);
    assert_clean(&format!("{arguments:?}"), &output.stderr);
    text(&output.stdout)
}

/// Runs a command that must not succeed, and returns what it says.
pub(crate) fn refused(dev: &Dev, arguments: &[&str]) -> String {
    let output = atlasctl(dev, arguments);
    assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    assert_clean(&format!("{arguments:?}"), &output.stderr);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn assert_clean(place: &str, bytes: &[u8]) {
    if let Some(at) = bytes.windows(CANARY.len()).position(|part| part == CANARY.as_bytes()) {
        let around = &bytes[at.saturating_sub(80)..(at + 80).min(bytes.len())];
        panic!("a token is in {place}: {}", String::from_utf8_lossy(around));
    }
}

/// Ends a cluster. Neither its words nor its files have a token.
pub(crate) fn end_clean(dev: Dev, folder: &Path) {
    let (exit, words) = dev.interrupt_with_words();
    assert_eq!(exit, Some(0));
    assert_clean("stderr of the cluster", words.as_bytes());
    let mut all = Vec::new();
    files(folder, &mut all);
    for file in all {
        assert_clean(&file.display().to_string(), &fs::read(&file).unwrap_or_default());
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

/// A cluster with a model that has a login, and an agent that calls it.
fn cluster(folder: &Path, issuer: &Issuer, models: &Server) -> Dev {
    let agent = folder.join("agents/thinker");
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join("agent.yaml"), CONTRACT).expect("a contract");
    let options = ["--data-dir", "data", "--agents", "./agents", "--log", "debug,openraft=off"];
    let dev = Dev::start(folder, options);
    let secret = folder.with_extension("secret");
    fs::write(&secret, CLIENT_SECRET).expect("a file");
    done(&dev, &["secret", "set", "work-client", "--file", &secret.display().to_string()]);
    fs::remove_file(&secret).expect("removed");
    let mut login = issuer.login();
    login["client_secret"] = "secret://work-client".into();
    let model = json!({
        "kind": "model", "metadata": {"name": "work"},
        "spec": {"provider": "anthropic", "name": "tiny", "base_url": models.base_url(), "login": login},
    });
    let file = folder.join("work.json");
    fs::write(&file, model.to_string()).expect("a file");
    done(&dev, &["apply", "-f", &file.display().to_string()]);
    dev
}

/// A login that waits for the browser, and the address that it printed.
fn begin(dev: &Dev) -> (Child, String) {
    let mut command = Command::new(program("atlasctl"));
    command.args(["--server", dev.server(), "model", "login", "work", "--no-browser"]).env("NO_COLOR", "1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().expect("stderr")).read_line(&mut line).expect("a line");
    let url = line.trim().strip_prefix("log in at: ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (child, url)
}

/// What the browser shows in the end.
pub(crate) async fn browse(url: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    client.get(url).send().await.expect("an answer").text().await.expect("a text")
}

/// Logs in as a person does.
async fn log_in(dev: &Dev) {
    let (mut child, url) = begin(dev);
    assert_eq!(browse(&url).await, "The login is complete. You can close this window.");
    let mut printed = String::new();
    child.stdout.as_mut().expect("stdout").read_to_string(&mut printed).expect("text");
    assert!(child.wait().expect("ended").success(), "{printed}");
    assert_eq!(printed, "model work   logged in   the cluster renews the access token\n");
}

fn run(dev: &Dev) -> Value {
    serde_json::from_str(&done(dev, &["run", "thinker", "-i", "{}", "-o", "json"])).expect("JSON")
}

#[tokio::test]
async fn a_person_logs_in_and_the_leader_renews_the_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let issuer = Issuer::start(3_600).expect("an issuer");
    let reply = |_: &Value, _| Reply::text("{\"answer\": 42}");
    let models = Server::guarded(reply, issuer.accepts()).expect("a server");
    let dev = cluster(folder.path(), &issuer, &models);

    let text = refused(&dev, &["run", "thinker", "-i", "{}"]);
    assert!(text.contains("nobody has logged in; log in again: atlasctl model login work"), "{text}");
    log_in(&dev).await;
    assert_eq!(run(&dev)["output_data"]["answer"], 42);
    assert_eq!((issuer.refreshed(), models.keys()), (0, vec!["canary-access-0001".to_owned()]));

    // The provider refuses the token of four jobs at the same time: one refresh, and the issuer takes each refresh token once.
    issuer.expire();
    let jobs: Vec<String> =
        (0..4).map(|_| done(&dev, &["run", "thinker", "-i", "{}", "--detach", "-o", "name"])).collect();
    for job in &jobs {
        done(&dev, &["job", "wait", job.trim()]);
    }
    assert_eq!((issuer.refreshed(), models.keys().len()), (1, 5));
    // Tokens that expire at once by their own time are renewed before they are used.
    issuer.set_expires_in(30);
    issuer.expire();
    run(&dev);
    run(&dev);
    assert_eq!(issuer.refreshed(), 3);
    let secret: Value =
        serde_json::from_str(&done(&dev, &["secret", "show", "work.login", "-o", "json"])).expect("JSON");
    assert_eq!((&secret["spec"]["readers"], &secret["spec"]["renewal"]), (&json!([]), &Value::Null));

    // The issuer ends the login: the error says what to do, and a login mends it.
    issuer.end();
    let text = refused(&dev, &["run", "thinker", "-i", "{}"]);
    assert!(
        text.contains("E3207")
            && text.contains("invalid_grant: the issuer says no; log in again: atlasctl model login work"),
        "{text}"
    );
    issuer.set_expires_in(3_600);
    log_in(&dev).await;
    run(&dev);
    done(&dev, &["model", "logout", "work"]);
    let text = refused(&dev, &["model", "logout", "work"]);
    assert!(text.contains("there is no login of model \"work\""), "{text}");
    refused(&dev, &["run", "thinker", "-i", "{}"]);

    let listed: Value = serde_json::from_str(&done(&dev, &["job", "list", "-o", "json"])).expect("JSON");
    for job in listed.as_array().expect("jobs") {
        let id = job["id"].as_str().expect("an id");
        for verb in ["show", "logs", "steps", "explain"] {
            done(&dev, &["job", verb, id, "-o", "json"]);
        }
    }
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    for path in ["/api/jobs?view=full", "/api/objects/secret", "/api/objects/model", "/api/traces", "/metrics"] {
        let answer = client.get(format!("{}{path}", dev.server())).send().await.expect("an answer");
        assert_clean(path, &answer.bytes().await.expect("a body"));
    }
    done(&dev, &["event", "tail", "--after", "0", "--limit", "40", "-o", "jsonl"]);
    end_clean(dev, folder.path());
}

#[tokio::test]
async fn logins_on_another_device_and_logins_that_fail() {
    let folder = tempfile::tempdir().expect("a folder");
    let issuer = Issuer::start(3_600).expect("an issuer");
    let reply = |_: &Value, _| Reply::text("{\"answer\": 42}");
    let models = Server::guarded(reply, issuer.accepts()).expect("a server");
    let dev = cluster(folder.path(), &issuer, &models);

    // Another page sends the browser to the listener: its code is not taken.
    let (mut child, url) = begin(&dev);
    let callback = url.split("redirect_uri=").nth(1).and_then(|rest| rest.split('&').next()).expect("an address");
    let callback = callback.replace("%3A", ":").replace("%2F", "/");
    let shown = browse(&format!("{callback}?code=stolen&state=other")).await;
    assert_eq!(shown, "The login failed: the state is not that of this login.");
    assert_eq!(child.wait().expect("ended").code(), Some(5));
    assert!(refused(&dev, &["run", "thinker", "-i", "{}"]).contains("nobody has logged in"));

    let output = atlasctl(&dev, &["model", "login", "work", "--device"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "open http://127.0.0.1/d and type the code AB-CD\n");
    assert!(output.status.success());
    assert_clean("the login", &output.stdout);
    assert_eq!(run(&dev)["output_data"]["answer"], 42);
    let text = refused(&dev, &["model", "login", "thinker"]);
    assert!(text.contains("thinker"), "{text}");
    assert_eq!(dev.interrupt(), Some(0));
}
