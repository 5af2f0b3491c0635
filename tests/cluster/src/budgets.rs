//! A budget holds for the whole tree of a job: helpers at the same time, on workers that die, over a change of leader.

use std::fs;
use std::path::Path;

use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::ask;
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

/// Helpers of the first job, and the calls that each of them would make.
const HELPERS: usize = 4;
const ROUNDS: usize = 20;
/// What each answer costs: 200 tokens at a dollar per million.
const CALL_NANODOLLARS: u64 = 200_000;
const BUDGET_NANODOLLARS: u64 = 12_000_000;

fn agent(folder: &Path, name: &str, settings: &str) -> Vec<u8> {
    let agent = folder.join(name);
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join("config.yaml"), format!("name: {name}\nmodel: dear\n{settings}\n")).expect("a file");
    pack(&agent).expect("a package").bytes
}

fn calls(calls: &[(&str, Value)]) -> Reply {
    let block = |(place, (name, input)): (usize, &(&str, Value))| json!({"type": "tool_use", "id": format!("call-{place}"), "name": name, "input": input});
    Reply::Message { content: calls.iter().enumerate().map(block).collect(), tokens: [200, 0] }
}

/// The first job spawns all helpers and collects them. Each helper calls a tool that nobody has, again and again.
fn answer(request: &Value) -> Reply {
    let messages = request["messages"].as_array().expect("messages");
    let (first, round) = (messages[0].to_string(), (messages.len() - 1) / 2);
    if first.contains("work ") {
        return match round {
            ROUNDS.. => Reply::Message { content: vec![json!({"type": "text", "text": "done"})], tokens: [200, 0] },
            round => calls(&[("nothing", json!({ "round": round }))]),
        };
    }
    let results = messages.last().and_then(|last| last["content"].as_array()).cloned().unwrap_or_default();
    let results = results.iter().filter(|part| part["type"] == "tool_result").map(|part| {
        let content = &part["content"];
        let text = content.as_str().or(content[0]["text"].as_str()).unwrap_or_default();
        serde_json::from_str::<Value>(text).unwrap_or_default()
    });
    match round {
        0 => {
            let spawn = |number| ("agent__spawn", json!({"agent": "kid", "prompt": format!("work {number}")}));
            calls(&(0..HELPERS).map(spawn).collect::<Vec<_>>())
        }
        1 => {
            let collect = |result: Value| ("agent__collect", json!({"id": result["id"]}));
            calls(&results.map(collect).collect::<Vec<_>>())
        }
        _ => Reply::Message { content: vec![json!({"type": "text", "text": "all done"})], tokens: [200, 0] },
    }
}

#[tokio::test]
async fn helpers_draw_on_the_budget_of_the_first_job_whoever_dies() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(|request: &Value, _: usize| answer(request)).expect("a server");
    let mut members = trio(folder.path(), &[]).await;
    let spec = json!({"provider": "anthropic", "name": "dear", "base_url": server.base_url(), "key": "${DEAR_KEY}",
        "prices": {"input": "1", "output": "0"}, "capabilities": ["tools"]});
    ask(&members[0], Method::PUT, "/api/objects/model/dear", json!({ "spec": spec })).await.expect("a model");
    let api = Api::new(&members[0].http.to_string());
    api.register(agent(folder.path(), "lead", "can_spawn_agents: true")).await;
    api.register(agent(folder.path(), "kid", "")).await;
    let worker = |name: &str, members: &[_; 3]| {
        let mut command =
            worker_command(program("atlas-worker"), folder.path(), name, &members.iter().collect::<Vec<_>>());
        Process::start(command.env("DEAR_KEY", "key"))
    };
    let (first, second) = (worker("w1", &members), worker("w2", &members));

    let body = json!({"agent": "lead", "input": {"message": "lead"}, "budget_usd": "0.012"});
    let job = api.post("/api/jobs", body).await["id"].as_str().expect("an id").to_owned();
    let answered = async |count: usize| {
        let enough = async || match server.answered().len() {
            answers if answers >= count => Ok(()),
            answers => Err(format!("{answers} answers; the job is {}", api.job(&job).await)),
        };
        eventually_async("the model has answered", enough).await;
    };
    answered(6).await;
    first.kill();
    answered(10).await;
    let dead = leader(&members).await;
    members[dead].kill();
    let api = Api::new(&members[(dead + 1) % members.len()].http.to_string());
    let ended = api.wait(&job).await;

    let all = api.get("/api/jobs?limit=100&view=full").await;
    let all = all.as_array().or(all["jobs"].as_array()).cloned().unwrap_or_default();
    let kids: Vec<&Value> = all.iter().filter(|job| job["agent_name"] == "kid").collect();
    assert_eq!(kids.len(), HELPERS, "{all:?}");
    let over = |job: &&&Value| job["status"] == "failed" && job["metadata"]["_error_code"] == "E3203";
    assert!(kids.iter().any(|job| over(&job)), "no helper ran out of the budget: {kids:?}");
    let mut recorded = 0;
    for job in kids.iter().map(|kid| kid["id"].as_str().expect("an id")).chain([job.as_str()]) {
        let steps = api.get(&format!("/api/jobs/{job}/steps")).await;
        recorded += steps.as_array().into_iter().flatten().filter(|step| step["kind"] == "model").count() as u64;
    }
    assert!(recorded * CALL_NANODOLLARS <= BUDGET_NANODOLLARS, "{recorded} calls are recorded: {ended}");
    // What the tree could reserve was used: a call holds at most a few tenths of the budget.
    assert!(recorded * CALL_NANODOLLARS >= BUDGET_NANODOLLARS / 2, "{recorded} calls are recorded: {ended}");
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}
