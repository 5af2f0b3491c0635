//! Agents with models and tools through `kill -9` of workers and of the leader at random moments: no finished model call is made again,
//! and no tool is called twice.
//!
//! A seed chooses who is killed and after how many calls; so a kill comes while calls are on their way, before or after their record. A call of
//! a later round shows that those before it were recorded. What a tool was asked for before its worker was lost, the model hears as unknown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use atlas_llm_server::downstream::Downstream;
use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::Member;
use crate::patience::{LONG, eventually};
use crate::process::Process;
use crate::program::program;
use crate::rng::Rng;
use crate::trio::{leader, trio, worker_command};

/// Jobs of the agent with tools, and of the graph.
const AGENTS: u64 = 24;
const GRAPHS: u64 = 12;
/// Model calls of a job. Those of the agent call a tool, except the last one.
const ROUNDS: u64 = 6;
const KILLS: usize = 6;

const THINKER: &str = "agent:
  name: thinker
  version: 1.0.0
  execution_timeout: 300
  retry: { max_retries: 0 }
  provider: { type: llm, max_iterations: 20 }
  requires: { mcp_servers: [lab] }
";

/// A model call: the kind of the agent, the number of the job, and the round.
type Place = (&'static str, u64, u64);

fn place(request: &Value) -> Place {
    let messages = request["messages"].as_array().expect("messages");
    let said = messages[0]["content"].as_str().expect("a text");
    match serde_json::from_str::<Value>(said) {
        Ok(input) => ("thinker", input["job"].as_u64().expect("a number"), (messages.len() as u64 - 1) / 2),
        Err(_) => {
            let words: Vec<&str> = said.split(' ').collect();
            ("walker", words[1].parse().expect("a number"), words[3].parse().expect("a number"))
        }
    }
}

/// Answers after up to 40 ms, so that kills meet calls under way.
fn server() -> Server {
    let answer = |request: &Value, number: usize| {
        let (kind, job, round) = place(request);
        let tool = request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
        let reply = match tool.into_iter().find(|name| name.ends_with("tell")) {
            Some(tool) if round + 1 < ROUNDS => {
                Reply::call(&format!("call-{job}-{round}"), tool, &json!({ "job": job, "round": round }))
            }
            _ if kind == "thinker" => Reply::text(&json!({ "job": job }).to_string()),
            _ => Reply::text(&format!("answer {job} {round}")),
        };
        let pause = Rng::new(number as u64).below(40);
        Reply::After(Duration::from_millis(pause), Box::new(reply))
    };
    Server::start(answer).expect("a server")
}

fn package(folder: &Path, name: &str, file: &str, text: &str) -> Vec<u8> {
    let agent = folder.join(name);
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join(file), text).expect("a file");
    pack(&agent).expect("a package").bytes
}

fn walker() -> (String, String) {
    let contract = "agent:\n  name: walker\n  version: 1.0.0\n  execution_timeout: 300\n  retry: { max_retries: 0 }\n  provider: { type: graph }\n";
    let mut graph = "name: walker\nstart: m0\nnodes:\n".to_owned();
    for round in 0..ROUNDS {
        let next = if round + 1 == ROUNDS { "done".to_owned() } else { format!("m{}", round + 1) };
        writeln!(graph, "  m{round}: {{type: llm, prompt: '{{{{initial_prompt}}}} round {round}', next: {next}}}")
            .expect("a text");
    }
    graph.push_str("  done: {type: end}\n");
    (contract.to_owned(), graph)
}

/// What was called although it was finished.
fn repeated(calls: &[Place], tools: &[(u64, u64)]) -> Vec<String> {
    let mut latest = BTreeMap::new();
    let mut found = Vec::new();
    for (kind, job, round) in calls {
        let latest = latest.entry((kind, job)).or_insert(*round);
        if round < latest {
            found.push(format!("round {round} of {kind} {job} was called again after round {latest}"));
        }
        *latest = (*latest).max(*round);
    }
    let mut counts = BTreeMap::<_, u32>::new();
    tools.iter().for_each(|call| *counts.entry(call).or_default() += 1);
    let twice = counts.iter().filter(|(_, count)| **count > 1);
    found
        .extend(twice.map(|((job, round), count)| format!("the tool of round {round} of job {job} ran {count} times")));
    found
}

#[test]
fn repeated_calls_are_found() {
    let calls = [("a", 1, 0), ("a", 2, 0), ("a", 1, 0), ("a", 1, 1), ("b", 1, 0), ("a", 2, 1), ("a", 2, 0)];
    assert_eq!(repeated(&calls[..6], &[(1, 0), (2, 0)]), [] as [String; 0], "the first calls of a round can be lost");
    let found = repeated(&calls, &[(1, 0), (1, 0)]);
    assert_eq!(found, ["round 0 of a 2 was called again after round 1", "the tool of round 0 of job 1 ran 2 times"]);
}

#[tokio::test]
async fn no_finished_call_is_made_again_whenever_workers_and_leaders_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, behind) = (server(), Downstream::start().expect("a server"));
    let mut members = trio(folder.path(), &[]).await;
    let api = Api::new(&members[0].http.to_string());
    let spec = json!({ "transport": "http", "url": behind.url() });
    let (status, _, answer) = api.try_put("/api/objects/mcp-server/lab", json!({ "spec": spec })).await;
    assert_eq!(status, 200, "{answer}");
    api.register(package(folder.path(), "thinker", "agent.yaml", THINKER)).await;
    let (contract, graph) = walker();
    package(folder.path(), "walker", "graph.yaml", &graph);
    api.register(package(folder.path(), "walker", "agent.yaml", &contract)).await;
    let start = |members: &[Member; 3], name: &str| {
        let all: Vec<_> = members.iter().collect();
        let mut command = worker_command(program("atlas-worker"), folder.path(), name, &all);
        command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "key");
        Process::start(&mut command)
    };
    let names = ["w1", "w2"];
    let mut workers = names.map(|name| Some(start(&members, name)));
    let mut jobs = Vec::new();
    for job in 0..AGENTS {
        jobs.push(api.submit("thinker", json!({ "job": job })).await);
    }
    for job in 0..GRAPHS {
        jobs.push(api.submit("walker", json!({ "message": format!("job {job}") })).await);
    }
    let calls = || server.requests().len() + behind.of("tools/call").len();
    let mut rng = Rng::new(37);
    let mut target = 0;
    let first = rng.below(2) as usize;
    for kill in 0..KILLS {
        target = calls().max(target) + rng.range(5, 25) as usize;
        eventually("calls are made", LONG, || (calls() >= target).then_some(()));
        if kill % 2 == first {
            let dead = leader(&members).await;
            members[dead].kill();
            members[dead].restart();
        } else {
            let place = rng.below(2) as usize;
            workers[place].take().expect("a worker").kill();
            workers[place] = Some(start(&members, names[place]));
        }
    }
    leader(&members).await;
    let api = Api::new(&members[0].http.to_string());
    for mut id in jobs {
        loop {
            let job = api.wait(&id).await;
            if job["status"] == "completed" {
                break;
            }
            // It was on a worker that was lost three times. It goes on from its recorded steps.
            assert!(job["error"].to_string().contains("lease"), "{job}");
            let again = api.post(&format!("/api/jobs/{id}/retry?resume=true"), json!({})).await;
            again["id"].as_str().expect("an id").clone_into(&mut id);
        }
    }
    let made: Vec<Place> = server.requests().iter().map(place).collect();
    let number = |noted: &Value, name: &str| noted["params"]["arguments"][name].as_u64().expect("a number");
    let tools: Vec<(u64, u64)> = behind
        .of("tools/call")
        .iter()
        .map(|noted| (number(&noted.body, "job"), number(&noted.body, "round")))
        .collect();
    assert_eq!(repeated(&made, &tools), [] as [String; 0]);
    // Each was made, and only those of lost attempts more than once.
    let mut distinct = made.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len() as u64, (AGENTS + GRAPHS) * ROUNDS);
    assert!(!tools.is_empty());
    for worker in workers.into_iter().flatten() {
        assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    }
}
