//! Sessions of agents with a `config.yaml`: each turn sees the turns before it once, and what they kept, whatever dies.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::Member;
use crate::pair::Controller;
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

const MEMO: &str = "name: Memo
agent_session: work
auto_continue: true
dynamic_instructions: true
variables:
  - name: colour
    description: A colour.
";

/// Each call of the function makes another text.
const TOOLS: &str = r#"#!/usr/bin/env bash
# @cmd Makes the instructions.
_instructions() {
  echo "Made by $$ at $(date +%s%N) for {{colour}}." >> "$LLM_OUTPUT"
}
"#;

fn agent(folder: &Path, name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let agent = folder.join(name);
    fs::create_dir_all(&agent).expect("a folder");
    for (file, text) in files {
        fs::write(agent.join(file), text).expect("a file");
    }
    pack(&agent).expect("a package").bytes
}

fn worker(folder: &Path, members: &[Member; 3], server: &Server) -> Process {
    let mut command = worker_command(program("atlas-worker"), folder, "w1", &members.iter().collect::<Vec<_>>());
    command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "key");
    Process::start(&mut command)
}

/// The texts of the messages of a request, each with its role. Tool calls and their results are none.
fn said(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages");
    let said = messages.iter().filter_map(|message| {
        let content = &message["content"];
        let parts = content.as_array().map(Vec::as_slice).unwrap_or_default().iter();
        let parts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
        let text = content.as_str().map_or_else(|| parts.concat(), str::to_owned);
        (!text.is_empty()).then(|| format!("{}: {text}", message["role"].as_str().expect("a role")))
    });
    said.collect()
}

/// The message that a request answers.
fn asked(request: &Value) -> String {
    let said = said(request);
    let last = said.iter().rev().find_map(|text| text.strip_prefix("user: "));
    last.expect("a message of the user").to_owned()
}

/// The results of the tools that were called last.
fn results(request: &Value) -> Option<String> {
    let content = &request["messages"].as_array()?.last()?["content"];
    content.as_array()?.iter().any(|part| part["type"] == "tool_result").then(|| content.to_string())
}

fn calls(calls: &[(&str, Value)]) -> Reply {
    let blocks = calls.iter().enumerate().map(
        |(place, (name, input))| json!({"type": "tool_use", "id": format!("call-{place}"), "name": name, "input": input}),
    );
    Reply::Message { content: blocks.collect(), tokens: [10, 5] }
}

fn system(request: &Value) -> String {
    let text = request["system"].as_str().or(request["system"][0]["text"].as_str());
    text.expect("instructions").lines().next().unwrap_or_default().to_owned()
}

async fn send(api: &Api, agent: &str, input: Value) -> String {
    let answer = api.post("/api/jobs", json!({"agent": agent, "input": input})).await;
    answer["id"].as_str().expect("an id").to_owned()
}

/// Waits until the model was asked this often for the answer to a message.
async fn is_asked(server: &Server, (api, job): (&Api, &str), message: &str, times: usize) {
    let count = async || {
        let count = server.requests().iter().filter(|request| asked(request) == message).count();
        if count >= times { Ok(()) } else { Err(api.job(job).await.to_string()) }
    };
    eventually_async("the model is asked", count).await;
}

#[tokio::test]
async fn each_turn_sees_the_earlier_ones_once_wherever_worker_and_leader_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = Mutex::new(BTreeMap::<String, u32>::new());
    let answer = move |request: &Value, _: usize| {
        let (message, results) = (asked(request), results(request));
        let mut seen = seen.lock().expect("not poisoned");
        let times = seen.entry(message.clone()).or_default();
        *times += 1;
        match (message.as_str(), results) {
            ("one" | "two", None) if *times == 1 => Reply::Never,
            ("one", None) => calls(&[
                ("todo__init", json!({"goal": "a house"})),
                ("todo__add", json!({"task": "paint it"})),
                ("todo__done", json!({"id": 1})),
            ]),
            ("two", None) => calls(&[("todo__list", json!({}))]),
            ("one", Some(_)) => Reply::text("first"),
            ("two", Some(results)) => Reply::text(&format!("second {}", results.contains("paint it"))),
            _ => Reply::text("third"),
        }
    };
    let server = Server::start(answer).expect("a server");
    let mut members = trio(folder.path(), &[]).await;
    let api = Api::new(&members[0].http.to_string());
    api.register(agent(folder.path(), "memo", &[("config.yaml", MEMO), ("tools.sh", TOOLS)])).await;

    // The worker dies during the first turn.
    let first = worker(folder.path(), &members, &server);
    let one = send(&api, "memo", json!({"message": "one", "variables": {"colour": "red"}})).await;
    is_asked(&server, (&api, &one), "one", 1).await;
    first.kill();
    let second = worker(folder.path(), &members, &server);
    assert_eq!(api.wait(&one).await["output_data"], json!({"text": "first"}));

    // The leader dies between two turns, maybe before the answer is added.
    let dead = leader(&members).await;
    members[dead].kill();
    leader(&members).await;
    let api = Api::new(&members[(dead + 1) % 3].http.to_string());
    let two = send(&api, "memo", json!({"message": "two"})).await;
    is_asked(&server, (&api, &two), "two", 1).await;

    // Both die during the second turn.
    members[dead].restart();
    let dead = leader(&members).await;
    members[dead].kill();
    second.kill();
    let third = worker(folder.path(), &members, &server);
    let api = Api::new(&members[(dead + 1) % 3].http.to_string());
    assert_eq!(api.wait(&two).await["output_data"], json!({"text": "second true"}), "the todo list is restored");
    let three = send(&api, "memo", json!({"message": "three", "variables": {"colour": "blue"}})).await;
    assert_eq!(api.wait(&three).await["output_data"], json!({"text": "third"}));

    let answered = server.answered();
    let last = |message: &str| answered.iter().rfind(|request| asked(request) == message).expect("answered");
    let history =
        ["user: one", "assistant: first", "user: two", "assistant: second true", "user: three"].map(str::to_owned);
    for (message, length) in [("one", 1), ("two", 3), ("three", 5)] {
        assert_eq!(said(last(message)), history[..length], "{message}");
    }
    assert_eq!(answered.len(), 5, "no call was answered twice");
    // The instructions were computed once, and the value of the variable was kept until another one was given.
    let red = system(last("one"));
    assert!(red.starts_with("Made by ") && red.ends_with(" for red."), "{red}");
    assert_eq!(system(last("two")), red);
    assert_eq!(system(last("three")), red.replace("red", "blue"));

    let conversation = api.get("/api/conversations/session:memo:work").await;
    let contents = conversation["messages"].as_array().expect("messages").iter();
    let contents: Vec<&str> = contents.filter_map(|message| message["content"].as_str()).collect();
    assert_eq!(contents, ["one", "first", "two", "second true", "three", "third"], "{conversation}");
    assert_eq!((&conversation["turns"], &conversation["running_job"]), (&json!(3), &Value::Null), "{conversation}");
    assert_eq!(third.end(Signal::SIGTERM), Some(0));
}

#[tokio::test]
async fn of_two_helpers_at_once_one_is_in_the_session_of_its_agent() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = |request: &Value, _: usize| match (asked(request).as_str(), results(request)) {
        ("lead", None) => {
            let spawn = |prompt: &str| ("agent__spawn", json!({"agent": "kid", "prompt": prompt}));
            calls(&[spawn("work 1"), spawn("work 2")])
        }
        ("lead", Some(results)) if results.contains("output") => Reply::text("done"),
        ("lead", Some(results)) => {
            let ids = results.split("agent_kid_").skip(1).map(|rest| format!("agent_kid_{}", &rest[..8]));
            let ids: std::collections::BTreeSet<String> = ids.collect();
            calls(&ids.iter().map(|id| ("agent__collect", json!({"id": id}))).collect::<Vec<_>>())
        }
        (work, _) if work.starts_with("work") => Reply::Held(Box::new(Reply::text("worked"))),
        _ => Reply::text("again"),
    };
    let server = Server::start(answer).expect("a server");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    api.register(agent(folder.path(), "lead", &[("config.yaml", "name: lead\ncan_spawn_agents: true\n")])).await;
    api.register(agent(folder.path(), "kid", &[("config.yaml", "name: kid\nagent_session: work\n")])).await;
    let mut command = crate::pair::worker_command(folder.path(), &controller);
    command.args(["--places", "8"]);
    command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "key");
    let worker = Process::start(&mut command);
    let lead = send(&api, "lead", json!({"message": "lead"})).await;
    for work in ["work 1", "work 2"] {
        is_asked(&server, (&api, &lead), work, 1).await;
    }
    server.release();
    assert_eq!(api.wait(&lead).await["output_data"], json!({"text": "done"}));

    let kids = api.get("/api/jobs?limit=100&view=full").await;
    let kids: Vec<Value> =
        kids.as_array().expect("jobs").iter().filter(|job| job["agent_name"] == "kid").cloned().collect();
    let (inside, outside): (Vec<&Value>, Vec<&Value>) =
        kids.iter().partition(|kid| kid["metadata"]["_conversation"] == "session:kid:work");
    assert_eq!((inside.len(), outside.len()), (1, 1), "{kids:?}");
    let why = "the conversation \"session:kid:work\" is still answering an earlier message";
    assert_eq!(outside[0]["metadata"]["_session_left"], why, "{outside:?}");
    let path = format!("/api/jobs/{}/logs", outside[0]["id"].as_str().expect("an id"));
    eventually_async("the log says so", async || {
        let logs = api.get(&path).await.to_string();
        if logs.contains("goes on without the session") { Ok(()) } else { Err(logs) }
    })
    .await;

    // The session has the turn of the one that was in it, and goes on.
    let text = inside[0]["input_data"]["message"].as_str().expect("a text");
    let next = send(&api, "kid", json!({"message": "next"})).await;
    assert_eq!(api.wait(&next).await["output_data"], json!({"text": "again"}));
    let answered = server.answered();
    let request = answered.iter().find(|request| asked(request) == "next").expect("answered");
    assert_eq!(said(request), [format!("user: {text}"), "assistant: worked".to_owned(), "user: next".to_owned()]);
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
}
