//! Agents of Loki that run at the same time or inside each other: questions of nested graphs are seen at the first run, agents that take
//! too long end, and runs share nothing.

use std::fs;
use std::path::Path;

use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::coder::answer;
use crate::pair::{Controller, worker, worker_command};
use crate::process::Process;

const INNER: &str = "name: inner
start: ask
nodes:
  ask: {type: approval, question: 'go on?', options: [yes, no], routes: {yes: done, no: done}, on_other: done, state_updates: {said: '{{choice}}'}}
  done: {type: end, output: 'inner {{said}}'}
";

async fn register(api: &Api, folder: &Path, name: &str, file: &str, text: &str) {
    let agent = folder.join(name);
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join(file), text).expect("a file");
    api.register(pack(&agent).expect("a package").bytes).await;
}

fn outer(seconds: u32) -> String {
    format!(
        "name: outer\nstart: a\nnodes:\n  a: {{type: agent, agent: inner, prompt: p, timeout: {seconds}, next: e, state_updates: {{x: '{{{{output}}}}'}}}}\n  e: {{type: end, output: 'outer: {{{{x}}}}'}}\n"
    )
}

async fn submit(api: &Api, agent: &str, rule: Option<&str>) -> String {
    let body = json!({"agent": agent, "input": {"message": "go"}, "questions": rule});
    api.post("/api/jobs", body).await["id"].as_str().expect("an id").to_owned()
}

/// T32 and T33.
#[tokio::test]
async fn a_question_of_a_nested_graph_is_one_of_the_first_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    register(&api, folder.path(), "inner", "graph.yaml", INNER).await;
    register(&api, folder.path(), "outer", "graph.yaml", &outer(300)).await;
    register(&api, folder.path(), "hasty", "graph.yaml", &outer(1)).await;
    let worker = worker(folder.path(), &controller);

    // Nobody is there to answer.
    let job = submit(&api, "inner", None).await;
    let failed = api.wait(&job).await;
    assert!(failed["error"].as_str().unwrap_or_default().contains("E3044"), "{failed}");

    let job = submit(&api, "outer", Some("wait")).await;
    answer(&api, &job, "yes").await;
    let done = api.wait(&job).await;
    assert_eq!(done["output_data"]["text"], "outer: inner yes", "{done}");

    // The rule of the first run is that of all below it.
    let job = submit(&api, "outer", Some("answer:no")).await;
    let done = api.wait(&job).await;
    assert_eq!(done["output_data"]["text"], "outer: inner no", "{done}");

    let job = submit(&api, "hasty", Some("wait")).await;
    let failed = api.wait(&job).await;
    assert!(failed["error"].as_str().unwrap_or_default().contains("agent \"inner\" timed out after 1 s"), "{failed}");
    let all = api.get("/api/jobs?limit=100&view=full").await;
    let all = all.as_array().or(all["jobs"].as_array()).cloned().unwrap_or_default();
    let last = all.iter().find(|job| job["agent_name"] == "inner").expect("the newest first");
    let ended = api.wait(last["id"].as_str().expect("an id")).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}

/// What agent `n` does: it makes a list, then the call that repeats itself twice, and answers with the list.
fn play(request: &Value) -> Reply {
    let messages = request["messages"].as_array().expect("messages");
    let first = &messages[0]["content"];
    let first = first.as_str().or(first[0]["text"].as_str()).unwrap_or_default().to_owned();
    let call = |name: &str, input: Value| Reply::call("call-1", name, &input);
    match messages.len() {
        1 => call("todo__init", json!({"goal": format!("goal of {first}")})),
        3 => call("todo__add", json!({"task": format!("task of {first}")})),
        5 => call("todo__done", json!({"id": 1})),
        7 | 9 => call("todo__list", json!({})),
        _ => {
            let content = &messages[messages.len() - 1]["content"][0]["content"];
            Reply::text(content.as_str().or(content[0]["text"].as_str()).unwrap_or_default())
        }
    }
}

#[tokio::test]
async fn agents_at_the_same_time_have_their_own_lists_and_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    let server = Server::start(|request: &Value, _: usize| play(request)).expect("a server");
    let mut command = worker_command(folder.path(), &controller);
    command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "key");
    let worker = Process::start(&mut command);
    let mut jobs = Vec::new();
    for number in 0..10 {
        let name = format!("agent{number}");
        register(&api, folder.path(), &name, "config.yaml", &format!("name: {name}\nauto_continue: true\n")).await;
        let body = json!({"agent": name, "input": {"message": name}});
        jobs.push((name, api.post("/api/jobs", body).await["id"].as_str().expect("an id").to_owned()));
    }
    for (name, job) in jobs {
        let done = api.wait(&job).await;
        let list: Value =
            serde_json::from_str(done["output_data"]["text"].as_str().unwrap_or_default()).unwrap_or_default();
        let task = json!({"id": 1, "desc": format!("task of {name}"), "done": true});
        assert_eq!(list, json!({"goal": format!("goal of {name}"), "todos": [task]}), "{done}");
    }
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}
