//! Approvals and the other ways to submit: the commands, batches, chains, triggers and the server of MCP of Atlas for Python.

use std::fs;
use std::process::{Command, Output};

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::Rig;
use crate::patience::eventually_async;
use crate::program::program;

const RIGHTS: [&str; 5] = ["agents.read", "jobs.read", "jobs.submit", "objects.write", "questions.answer"];

/// Runs `atlasctl` as a person.
fn atlasctl(rig: &Rig, token: &str, arguments: &[&str]) -> Output {
    let server = format!("http://{}", rig.controller.http);
    let mut command = Command::new(program("atlasctl"));
    command.args(["--server", &server]).args(arguments).current_dir(rig.folder.path());
    command.env("ATLAS_TOKEN", token).env("HOME", rig.folder.path()).env("NO_COLOR", "1");
    command.env_remove("XDG_CONFIG_HOME").output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The jobs that wait for an approval, the oldest first, once there are so many.
async fn waiting(rig: &Rig, count: usize) -> Vec<String> {
    eventually_async(&format!("{count} jobs wait"), async || {
        let open = rig.get("/api/questions").await;
        let jobs: Vec<String> =
            open.as_array().into_iter().flatten().filter_map(|one| one["job"].as_str().map(str::to_owned)).collect();
        if jobs.len() == count { Ok(jobs) } else { Err(open.to_string()) }
    })
    .await
}

#[tokio::test]
async fn every_command_that_submits_makes_jobs_that_wait() {
    let rig = Rig::start(false).await;
    let (ann, bob) = (rig.person("ann", &RIGHTS).await, rig.person("bob", &RIGHTS).await);

    // Without a terminal the command ends, and names who may answer.
    let output = atlasctl(&rig, &ann, &["run", "mail", "to=one"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(12), "{said}");
    let who = "for whoever has the right questions.answer, except whoever submitted the job: atlasctl question show";
    assert!(said.contains("E3105") && said.contains(who), "{said}");
    let [one] = waiting(&rig, 1).await.try_into().expect("one");
    let shown = text(&atlasctl(&rig, &ann, &["job", "show", &one]).stdout);
    let demanded = "mail, demanded by the rule \"mails\" of the policy \"base\": to be given by whoever has the right";
    assert!(shown.contains(demanded) && shown.contains("atlasctl question show"), "{shown}");
    let waited = atlasctl(&rig, &ann, &["job", "wait", &one]);
    assert!(waited.status.code() == Some(12) && text(&waited.stderr).contains(who), "{waited:?}");
    let refused = atlasctl(&rig, &ann, &["job", "answer", &one, "approve"]);
    assert!(text(&refused.stderr).contains("E3042"), "{refused:?}");

    // Many at once, for later, a chain, and a trigger.
    fs::write(rig.folder.path().join("lines"), "{\"to\": \"two\"}\n{\"to\": \"three\"}\n").expect("written");
    let many = atlasctl(&rig, &ann, &["run", "mail", "--from", "lines"]);
    assert!(many.status.success(), "{many:?}");
    waiting(&rig, 3).await;
    let later = atlasctl(&rig, &ann, &["run", "mail", "to=four", "--at", "+1s"]);
    assert!(later.status.success(), "{later:?}");
    waiting(&rig, 4).await;
    fs::write(rig.folder.path().join("chain.yaml"), "chain:\n  name: c\n  steps:\n    - agent: mail\n")
        .expect("written");
    let chain = atlasctl(&rig, &ann, &["chain", "run", "chain.yaml", "to=five", "--detach"]);
    assert!(chain.status.success(), "{chain:?}");
    waiting(&rig, 5).await;
    let trigger =
        json!({ "id": "hook", "trigger_type": "webhook", "agent_name": "mail", "input_data": { "to": "six" } });
    let made = rig.ask(Method::POST, "/api/triggers", &ann, trigger).await;
    assert!(made.0 < 300, "{made:?}");
    let fired = atlasctl(&rig, &ann, &["trigger", "fire", "hook"]);
    assert!(fired.status.success(), "{fired:?}");
    let jobs = waiting(&rig, 6).await;
    assert_eq!(rig.runs(), [Value::Null; 0]);

    for job in &jobs {
        let answered = atlasctl(&rig, &bob, &["job", "answer", job, "approve"]);
        assert!(answered.status.success(), "{answered:?}");
        rig.becomes(job, "completed", "").await;
    }
    let mut ran: Vec<String> = rig.runs().iter().map(|input| input["to"].as_str().expect("text").to_owned()).collect();
    ran.sort();
    assert_eq!(ran, ["five", "four", "one", "six", "three", "two"]);
}

#[tokio::test]
async fn the_tools_of_atlas_for_python_wait() {
    let options = ["--mcp-compatible-listen", "127.0.0.1:0", "--mcp-all-agents", "true"];
    let rig = Rig::start_with(false, &options).await;
    let (ann, bob) = (rig.person("ann", &RIGHTS).await, rig.person("bob", &RIGHTS).await);
    let log = rig.controller.text();
    let line = log.lines().find(|line| line.contains("compatible MCP server started")).expect("it is logged");
    let address = line.split_whitespace().find_map(|word| word.strip_prefix("address=")).expect("an address");
    let (url, http) = (format!("http://{address}/mcp"), reqwest::Client::new());
    let send = async |session: &str, message: Value| {
        let request = http.post(&url).bearer_auth(&ann).header("accept", "application/json").json(&message);
        let request = if session.is_empty() { request } else { request.header("mcp-session-id", session) };
        request.send().await.expect("an answer")
    };
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" }
    });
    let opened = send("", json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })).await;
    let session = opened.headers()["mcp-session-id"].to_str().expect("text").to_owned();
    for (number, (tool, arguments)) in
        [("mail", json!({ "to": "one" })), ("atlas.exec.run", json!({ "agent": "mail", "input": { "to": "two" } }))]
            .into_iter()
            .enumerate()
    {
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let answers = async {
            let [job] = waiting(&rig, 1).await.try_into().expect("one");
            assert_eq!((rig.job(&job).await["principal"].clone(), rig.runs().len()), (json!("ann"), number));
            assert_eq!(rig.answer(&ann, &job, "approve").await.0, 403);
            assert_eq!(rig.answer(&bob, &job, "approve").await.0, 200);
        };
        let (called, ()) = tokio::join!(send(&session, call), answers);
        let called = called.text().await.expect("a body");
        assert!(called.contains("sent"), "{tool}: {called}");
        assert_eq!(rig.runs().len(), number + 1);
    }
}
