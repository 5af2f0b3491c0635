//! Agents with helpers: each helper is a job, which is started once whatever dies, and whose questions and messages reach its team.

mod graphs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::Member;
use crate::patience::{LONG, eventually, eventually_async};
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

/// Helpers of the first test.
const HELPERS: usize = 3;

fn agent(folder: &Path, name: &str, settings: &str) -> Vec<u8> {
    let agent = folder.join(name);
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join("config.yaml"), format!("name: {name}\n{settings}\n")).expect("a file");
    pack(&agent).expect("a package").bytes
}

/// The first message, and the results of the calls of the last round.
fn read(request: &Value) -> (String, usize, Vec<Value>) {
    let messages = request["messages"].as_array().expect("messages");
    let first = match &messages[0]["content"] {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    let results = messages.last().and_then(|last| last["content"].as_array()).cloned().unwrap_or_default();
    let results = results.iter().filter(|part| part["type"] == "tool_result").map(|part| {
        let content = &part["content"];
        let text = content.as_str().or(content[0]["text"].as_str()).unwrap_or_default();
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    });
    (first, (messages.len() - 1) / 2, results.collect())
}

fn calls(calls: &[(&str, Value)]) -> Reply {
    let blocks = calls.iter().enumerate().map(
        |(place, (name, input))| json!({"type": "tool_use", "id": format!("call-{place}"), "name": name, "input": input}),
    );
    Reply::Message { content: blocks.collect(), tokens: [10, 5] }
}

async fn start(folder: &Path, members: &[Member; 3], server: &Server) -> (Api, Process) {
    let api = Api::new(&members[0].http.to_string());
    api.register(agent(folder, "lead", "can_spawn_agents: true")).await;
    api.register(agent(folder, "kid", "")).await;
    (api, worker(folder, members, server))
}

fn worker(folder: &Path, members: &[Member; 3], server: &Server) -> Process {
    let mut command = worker_command(program("atlas-worker"), folder, "w1", &members.iter().collect::<Vec<_>>());
    command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "key");
    Process::start(&mut command)
}

/// Kills the worker when all helpers wait for the model, and the leader when they do so again. Then the model answers.
async fn disturb(
    folder: &Path,
    members: &mut [Member; 3],
    (server, first): (&Server, Process),
    all_wait: impl Fn(usize),
) -> (Api, Process) {
    all_wait(1);
    first.kill();
    let second = worker(folder, members, server);
    all_wait(2);
    let dead = leader(members).await;
    members[dead].kill();
    server.release();
    (Api::new(&members[(dead + 1) % members.len()].http.to_string()), second)
}

/// Waits until so many answers of the model are recorded: a call that is under way would be made again after the worker's death.
async fn recorded(api: &Api, job: &str, answers: usize) {
    let count = async || {
        let steps = api.get(&format!("/api/jobs/{job}/steps")).await;
        let models = steps.as_array().into_iter().flatten().filter(|step| step["kind"] == "model").count();
        if models >= answers { Ok(()) } else { Err(steps.to_string()) }
    };
    eventually_async("the answers are recorded", count).await;
}

async fn jobs(api: &Api, agent: &str) -> Vec<Value> {
    let all = api.get("/api/jobs?limit=100&view=full").await;
    let all = all.as_array().or(all["jobs"].as_array()).cloned().unwrap_or_default();
    all.into_iter().filter(|job| job["agent_name"] == agent).collect()
}

#[tokio::test]
async fn each_helper_works_once_wherever_worker_and_leader_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = Arc::new(Mutex::new(BTreeMap::<String, u32>::new()));
    let answer = move |request: &Value, _: usize| {
        let (first, round, results) = read(request);
        if let Some(number) = first.strip_prefix("work ") {
            let reply = Reply::text(&format!("result {number}"));
            let mut seen = seen.lock().expect("not poisoned");
            let times = seen.entry(first.clone()).or_default();
            *times += 1;
            return if *times == 1 { Reply::Never } else { Reply::Held(Box::new(reply)) };
        }
        match round {
            0 => {
                let prompts: Vec<_> = (0..HELPERS).map(|number| format!("work {number}")).collect();
                let spawn = |prompt| ("agent__spawn", json!({"agent": "kid", "prompt": prompt}));
                calls(&prompts.iter().map(spawn).collect::<Vec<_>>())
            }
            1 => {
                let collect = |result: &Value| ("agent__collect", json!({"id": result["id"]}));
                calls(&results.iter().map(collect).collect::<Vec<_>>())
            }
            _ => {
                let outputs: Vec<&str> = results.iter().filter_map(|result| result["output"].as_str()).collect();
                Reply::text(&outputs.join(", "))
            }
        }
    };
    let server = Server::start(answer).expect("a server");
    let mut members = trio(folder.path(), &[]).await;
    let (api, first) = start(folder.path(), &members, &server).await;
    let job = api.submit("lead", json!({"message": "lead"})).await;
    let all_wait = |times: usize| {
        eventually("all helpers wait for the model", LONG, || {
            let waiting = server.requests().iter().filter(|request| read(request).0.starts_with("work")).count();
            (waiting >= times * HELPERS).then_some(())
        });
    };
    all_wait(1);
    recorded(&api, &job, 2).await;
    let (api, second) = disturb(folder.path(), &mut members, (&server, first), all_wait).await;
    let done = api.wait(&job).await;
    assert_eq!(done["output_data"], json!({"text": "result 0, result 1, result 2"}), "{done}");
    let kids = jobs(&api, "kid").await;
    assert_eq!(kids.len(), HELPERS, "{kids:?}");
    assert!(kids.iter().all(|kid| kid["status"] == "completed"), "{kids:?}");
    let answered: Vec<_> = server.answered().iter().map(|request| (read(request).0, read(request).1)).collect();
    let different: BTreeSet<_> = answered.iter().cloned().collect();
    assert_eq!(
        (answered.len(), different.len()),
        (HELPERS + 3, HELPERS + 3),
        "no call was answered twice: {answered:?}"
    );
    // The record can be replayed without a model.
    let steps = api.get(&format!("/api/jobs/{job}/steps")).await;
    let kinds: Vec<&str> = steps.as_array().expect("steps").iter().filter_map(|step| step["kind"].as_str()).collect();
    let expected = ["start", "model", "effect", "effect", "effect", "model", "effect", "effect", "effect", "model"];
    assert_eq!(kinds, expected);
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}

#[tokio::test]
async fn questions_and_messages_reach_the_team() {
    talk(|folder| agent(folder, "lead", "can_spawn_agents: true")).await;
}

/// An agent `lead` answers the question of its helper, and they tell each other something.
async fn talk(lead: impl Fn(&Path) -> Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = |request: &Value, _: usize| {
        let (first, round, results) = read(request);
        let result = results.first().cloned().unwrap_or_default();
        let id = || {
            let text = request["messages"].to_string();
            let start = text.find("agent_kid_").expect("the id of the helper");
            text[start..start + "agent_kid_".len() + 8].to_owned()
        };
        match (first.as_str(), round) {
            ("kid", 0) => calls(&[("user__ask", json!({"question": "Which colour?", "options": ["red", "blue"]}))]),
            ("kid", 1) => {
                let colour = result["answer"].as_str().unwrap_or("none");
                calls(&[
                    ("agent__check_inbox", json!({})),
                    ("agent__send_message", json!({"id": "parent", "message": format!("it is {colour}")})),
                ])
            }
            ("kid", _) => Reply::text(&format!(
                "{} {} {}",
                result["count"], result["messages"][0]["from"], result["messages"][0]["payload"]["content"]
            )),
            (_, 0) => calls(&[
                ("agent__spawn", json!({"agent": "kid", "prompt": "kid"})),
                ("agent__spawn", json!({"agent": "nobody", "prompt": "kid"})),
            ]),
            (_, 1) => {
                assert_eq!(results[1]["tool_call_error"], "Supervisor tool failed: there is no agent \"nobody\"");
                calls(&[
                    ("agent__send_message", json!({"id": id(), "message": "hurry"})),
                    ("agent__send_message", json!({"id": "agent_kid_00000000", "message": "hurry"})),
                ])
            }
            (_, 2) => {
                assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!("ok"), &json!("error")));
                calls(&[("agent__collect", json!({"id": id()}))])
            }
            (_, 3) => {
                let question = &result["pending_escalations"][0];
                assert_eq!(question["question"], "[ask] Which colour?", "{result}");
                assert_eq!(question["options"], json!(["red", "blue"]), "{result}");
                let reply = |id: &Value| json!({"escalation_id": id, "reply": "blue"});
                calls(&[
                    ("agent__reply_escalation", reply(&question["escalation_id"])),
                    ("agent__reply_escalation", reply(&json!("esc_00000000"))),
                ])
            }
            (_, 4) => {
                assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!("ok"), &json!("error")));
                calls(&[("agent__collect", json!({"id": id()})), ("agent__check_inbox", json!({}))])
            }
            (_, _) => Reply::text(&format!(
                "{} | {} {}",
                result["output"],
                results[1]["messages"][0]["payload"]["content"],
                results[1]["messages"][0]["from"] == json!(id())
            )),
        }
    };
    let server = Server::start(answer).expect("a server");
    let members = trio(folder.path(), &[]).await;
    let api = Api::new(&members[0].http.to_string());
    api.register(lead(folder.path())).await;
    api.register(agent(folder.path(), "kid", "")).await;
    let worker = worker(folder.path(), &members, &server);
    let job = api.submit("lead", json!({"message": "lead"})).await;
    let done = api.wait(&job).await;
    let text = done["output_data"]["text"].as_str().unwrap_or_else(|| panic!("{done}"));
    assert_eq!(text, r#""1 \"lead\" \"hurry\"" | "it is blue" true"#);
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
}

#[tokio::test]
async fn a_helper_goes_on_when_its_question_is_open_for_too_long() {
    let folder = tempfile::tempdir().expect("a folder");
    let went_on = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&went_on);
    let answer = move |request: &Value, _: usize| {
        let (first, round, results) = read(request);
        let result = results.first().cloned().unwrap_or_default();
        match (first.as_str(), round) {
            // The time is that of its own definition, whatever the model says.
            ("kid", 0) => calls(&[("user__input", json!({"question": "Which?", "timeout_seconds": 3600}))]),
            ("kid", _) => {
                noted.store(true, Ordering::SeqCst);
                Reply::text(&format!("{} {}", result["error"], result["fallback"]))
            }
            (_, 0) => calls(&[("agent__spawn", json!({"agent": "brief", "prompt": "kid"}))]),
            // It does nothing until the helper goes on.
            (_, 1) => Reply::Held(Box::new(calls(&[("agent__collect", json!({"id": result["id"]}))]))),
            (_, _) => Reply::text(result["output"].as_str().unwrap_or("no output")),
        }
    };
    let server = Server::start(answer).expect("a server");
    let members = trio(folder.path(), &[]).await;
    let (api, worker) = start(folder.path(), &members, &server).await;
    api.register(agent(folder.path(), "brief", "escalation_timeout: 1")).await;
    let job = api.submit("lead", json!({"message": "lead"})).await;
    eventually("the helper goes on", LONG, || went_on.load(Ordering::SeqCst).then_some(()));
    server.release();
    let done = api.wait(&job).await;
    let text = done["output_data"]["text"].as_str().unwrap_or_else(|| panic!("{done}"));
    assert_eq!(text, r#""the question was not answered in time" "use your own judgment and go on""#);
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
}

#[tokio::test]
async fn an_agent_that_stops_is_reminded_of_its_helpers_and_then_they_are_cancelled() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = |request: &Value, _: usize| {
        let (first, round, _) = read(request);
        match (first.as_str(), round) {
            ("kid", _) => Reply::Never,
            (_, 0) => calls(&[("agent__spawn", json!({"agent": "kid", "prompt": "kid"}))]),
            (_, round) => Reply::text(&format!("done {round}")),
        }
    };
    let server = Server::start(answer).expect("a server");
    let members = trio(folder.path(), &[]).await;
    let (api, worker) = start(folder.path(), &members, &server).await;
    let job = api.submit("lead", json!({"message": "lead"})).await;
    let done = api.wait(&job).await;
    assert_eq!(done["output_data"], json!({"text": "done 4"}), "{done}");
    let reminded =
        server.requests().iter().map(Value::to_string).filter(|text| text.contains("SYSTEM REMINDER")).count();
    assert_eq!(reminded, 3);
    let kid = jobs(&api, "kid").await.remove(0);
    let kid = api.wait(kid["id"].as_str().expect("an id")).await;
    assert_eq!(kid["status"], "cancelled", "{kid}");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
}

/// Agents in the middle of the tree, and helpers of each.
const MIDDLE: usize = 5;
const EACH: usize = 5;
/// The settings of those that have helpers.
const LEADS: &str = "can_spawn_agents: true\nmax_concurrent_agents: 5\nsummarization_threshold: 1000000";

/// The contents of messages by their sender, each in the order of arrival.
fn by_sender(inbox: &Value) -> BTreeMap<String, Vec<String>> {
    let mut senders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in inbox["messages"].as_array().into_iter().flatten() {
        let content = message["payload"]["content"].as_str().unwrap_or_default();
        let (sender, what) = content.split_once(' ').unwrap_or((content, ""));
        senders.entry(sender.to_owned()).or_default().push(what.to_owned());
    }
    senders
}

fn outputs(results: &[Value]) -> String {
    results.iter().filter_map(|result| result["output"].as_str()).collect::<Vec<_>>().join("; ")
}

/// What an agent of the tree does in a round: the first one has five helpers, each of them has five, and those tell them two things.
fn play_tree(first: &str, round: usize, results: &[Value], heard: &Mutex<BTreeMap<String, String>>) -> Reply {
    let spawn = |agent: &str, prompts: Vec<String>| {
        calls(
            &prompts
                .iter()
                .map(|prompt| ("agent__spawn", json!({"agent": agent, "prompt": prompt})))
                .collect::<Vec<_>>(),
        )
    };
    let collect =
        || calls(&results.iter().map(|result| ("agent__collect", json!({"id": result["id"]}))).collect::<Vec<_>>());
    let tell =
        |what: &str| calls(&[("agent__send_message", json!({"id": "parent", "message": format!("{first} {what}")}))]);
    match (first.split(':').next().unwrap_or_default(), round) {
        ("lead", 0) => spawn("mid", (0..MIDDLE).map(|number| format!("mid:{number}")).collect()),
        ("mid", 0) => spawn("kid", (0..EACH).map(|number| format!("kid:{first}:{number}")).collect()),
        ("lead" | "mid", 1) => collect(),
        ("mid", 2) => {
            heard.lock().expect("not poisoned").insert(first.to_owned(), outputs(results));
            calls(&[("agent__check_inbox", json!({}))])
        }
        ("mid", _) => {
            let done = heard.lock().expect("not poisoned").get(first).cloned().unwrap_or_default();
            Reply::text(&format!("{first} [{done}] {:?}", by_sender(&results[0])))
        }
        ("kid", 0) => tell("begins"),
        ("kid", 1) => tell("ends"),
        ("kid", _) => Reply::text("done"),
        (_, _) => Reply::text(&outputs(results)),
    }
}

#[tokio::test]
async fn a_tree_of_thirty_agents_works_once_wherever_worker_and_leader_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let (seen, heard) = (Mutex::new(BTreeMap::<String, u32>::new()), Mutex::new(BTreeMap::new()));
    let answer = move |request: &Value, _: usize| {
        let (first, round, results) = read(request);
        let reply = play_tree(&first, round, &results, &heard);
        if !first.starts_with("kid") || round != 1 {
            return reply;
        }
        // Each helper is under way when the worker dies, and again when the leader dies.
        let mut seen = seen.lock().expect("not poisoned");
        let times = seen.entry(first).or_default();
        *times += 1;
        if *times == 1 { Reply::Never } else { Reply::Held(Box::new(reply)) }
    };
    let server = Server::start(answer).expect("a server");
    let mut members = trio(folder.path(), &[]).await;
    let api = Api::new(&members[0].http.to_string());
    for (name, settings) in [("lead", LEADS), ("mid", LEADS), ("kid", "")] {
        api.register(agent(folder.path(), name, settings)).await;
    }
    let first = worker(folder.path(), &members, &server);
    let job = api.submit("lead", json!({"message": "lead"})).await;
    let all_wait = |times: usize| {
        eventually("all helpers wait for the model", LONG, || {
            let waits = |request: &Value| matches!(read(request), (first, 1, _) if first.starts_with("kid"));
            let waiting = server.requests().iter().filter(|request| waits(request)).count();
            (waiting >= times * MIDDLE * EACH).then_some(())
        });
    };
    all_wait(1);
    recorded(&api, &job, 2).await;
    for middle in jobs(&api, "mid").await {
        recorded(&api, middle["id"].as_str().expect("an id"), 2).await;
    }
    let (api, second) = disturb(folder.path(), &mut members, (&server, first), all_wait).await;
    let done = api.wait(&job).await;
    let middle = |number: usize| {
        let told = ["begins".to_owned(), "ends".to_owned()].to_vec();
        let senders: BTreeMap<String, Vec<String>> =
            (0..EACH).map(|kid| (format!("kid:mid:{number}:{kid}"), told.clone())).collect();
        format!("mid:{number} [{}] {senders:?}", ["done"; EACH].join("; "))
    };
    let expected = (0..MIDDLE).map(middle).collect::<Vec<_>>().join("; ");
    assert_eq!(done["output_data"], json!({ "text": expected }), "{done}");
    for (name, count) in [("mid", MIDDLE), ("kid", MIDDLE * EACH)] {
        let jobs = jobs(&api, name).await;
        assert_eq!(jobs.len(), count, "{name}");
        assert!(jobs.iter().all(|job| job["status"] == "completed"), "{jobs:?}");
    }
    let answered: Vec<_> = server.answered().iter().map(|request| (read(request).0, read(request).1)).collect();
    let different: BTreeSet<_> = answered.iter().cloned().collect();
    let requests = 3 + 4 * MIDDLE + 3 * MIDDLE * EACH;
    assert_eq!((answered.len(), different.len()), (requests, requests), "no call was answered twice: {answered:?}");
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}
