//! Graphs, and agents with a `config.yaml`, through `kill -9` of their worker and of the leader: no model call that was answered is
//! made again, and no script or tool that ended runs again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::Member;
use crate::patience::{LONG, eventually};
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

/// Rounds of a job: each has a script or a tool, and a model call.
const ROUNDS: u64 = 5;

/// What a request is: the number of its job, and its round from 0.
type Place = fn(&Value) -> (u64, u64);

/// Job `n` gets no answer in round `n` the first time, and waits there the second time.
fn server(place: Place, reply: fn(u64, u64) -> Reply) -> Server {
    let seen = Arc::new(Mutex::new(BTreeMap::<(u64, u64), u32>::new()));
    let answer = move |request: &Value, _: usize| {
        let (job, round) = place(request);
        let mut seen = seen.lock().expect("not poisoned");
        let times = seen.entry((job, round)).or_default();
        *times += 1;
        match (job == round, *times) {
            (true, 1) => Reply::Never,
            (true, 2) => Reply::Held(Box::new(reply(job, round))),
            _ => reply(job, round),
        }
    };
    Server::start(answer).expect("a server")
}

fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages");
    messages.iter().filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
}

/// Runs a job a round, kills the worker and the leader while each job waits in another round, and returns the outputs.
async fn survive(folder: &Path, package: Vec<u8>, agent: &str, server: Server, place: Place) -> Vec<Value> {
    let mut members = trio(folder, &[]).await;
    let start = |members: &[Member; 3]| {
        let all: Vec<_> = members.iter().collect();
        let mut command = worker_command(program("atlas-worker"), folder, "w1", &all);
        command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "key");
        Process::start(&mut command)
    };
    let all_wait = |times: usize| {
        eventually("each job waits in its round", LONG, || {
            let waiting = server.requests().iter().map(place).filter(|(job, round)| job == round).count();
            (waiting >= times * ROUNDS as usize).then_some(())
        });
    };
    let worker = start(&members);
    let api = Api::new(&members[0].http.to_string());
    api.register(package).await;
    let mut jobs = Vec::new();
    for job in 0..ROUNDS {
        jobs.push(api.submit(agent, json!({"message": format!("job {job}")})).await);
    }
    all_wait(1);
    worker.kill();
    let worker = start(&members);
    all_wait(2);
    let dead = leader(&members).await;
    members[dead].kill();
    server.release();
    let api = Api::new(&members[(dead + 1) % members.len()].http.to_string());
    let mut outputs = Vec::new();
    for id in &jobs {
        let job = api.wait(id).await;
        assert!(job["attempt"].as_u64() >= Some(2), "{job}");
        outputs.push(job["output_data"].clone());
    }
    let answered: Vec<(u64, u64)> = server.answered().iter().map(place).collect();
    let expected: BTreeSet<(u64, u64)> =
        (0..ROUNDS).flat_map(|job| (0..ROUNDS).map(move |round| (job, round))).collect();
    assert_eq!(answered.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(answered.len(), expected.len(), "no call was answered twice");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    outputs
}

/// The lines that scripts or tools wrote, each of which is expected once.
fn check_log(log: &Path, expected: impl Iterator<Item = String>) {
    let text = fs::read_to_string(log).expect("a log");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<String> = expected.collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

const NOTE: &str = r#"import json, os
state = json.loads(os.environ["GRAPH_STATE"])
with open(os.environ["LLM_AGENT_VAR_LOG"], "a") as log:
    log.write(f"{state['initial_prompt']} round {state['round']}\n")
print(json.dumps({"round": state["round"] + 1}))
"#;

/// A graph with a script and a model node a round.
fn graph(folder: &Path, log: &Path) -> Vec<u8> {
    let agent = folder.join("walker");
    fs::create_dir_all(&agent).expect("a folder");
    let mut text = format!(
        "name: walker\nstart: s0\ninitial_state: {{round: 0}}\nvariables: [{{name: log, description: d, default: '{}'}}]\nnodes:\n",
        log.display()
    );
    for round in 0..ROUNDS {
        let next = if round + 1 == ROUNDS { "done".to_owned() } else { format!("s{}", round + 1) };
        writeln!(text, "  s{round}: {{type: script, script: note.py, next: m{round}}}").expect("a text");
        writeln!(
            text,
            "  m{round}: {{type: llm, prompt: '{{{{initial_prompt}}}} round {round}', next: {next}, state_updates: {{last: '{{{{output}}}}'}}}}"
        )
        .expect("a text");
    }
    text.push_str("  done: {type: end, output: '{{initial_prompt}}: {{last}}'}\n");
    fs::write(agent.join("graph.yaml"), text).expect("a graph");
    fs::write(agent.join("note.py"), NOTE).expect("a script");
    pack(&agent).expect("a package").bytes
}

#[tokio::test]
async fn a_graph_goes_on_after_its_recorded_work_wherever_worker_and_leader_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let package = graph(folder.path(), &log);
    let place: Place = |request| {
        let text = texts(request).remove(0);
        let words: Vec<&str> = text.split(' ').collect();
        (words[1].parse().expect("a number"), words[3].parse().expect("a number"))
    };
    let server = server(place, |job, round| Reply::text(&format!("answer {job} {round}")));
    let outputs = survive(folder.path(), package, "walker", server, place).await;
    for (job, output) in outputs.iter().enumerate() {
        assert_eq!(output["text"], format!("job {job}: answer {job} {}", ROUNDS - 1), "{output}");
        assert_eq!(output["state"]["round"], ROUNDS, "{output}");
    }
    check_log(&log, (0..ROUNDS).flat_map(|job| (0..ROUNDS).map(move |round| format!("job {job} round {round}"))));
}

const TOOLS: &str = r#"import os

def note(job: int, round: int):
    """Notes a round.

    Args:
        job: The job.
        round: The round.
    """
    with open(os.environ["LLM_AGENT_VAR_LOG"], "a") as log:
        log.write(f"job {job} round {round}\n")
    return "noted"
"#;

/// An agent that calls its own tool in each round but the last.
fn normal(folder: &Path, log: &Path) -> Vec<u8> {
    let agent = folder.join("noter");
    fs::create_dir_all(&agent).expect("a folder");
    let text = format!(
        "name: Noter\ninstructions: Note all rounds.\nvariables: [{{name: log, description: d, default: '{}'}}]\n",
        log.display()
    );
    fs::write(agent.join("config.yaml"), text).expect("a configuration");
    fs::write(agent.join("tools.py"), TOOLS).expect("tools");
    pack(&agent).expect("a package").bytes
}

#[tokio::test]
async fn a_tool_that_ended_does_not_run_again_wherever_worker_and_leader_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let package = normal(folder.path(), &log);
    let place: Place = |request| {
        let job = texts(request).remove(0).split(' ').nth(1).and_then(|job| job.parse().ok());
        let messages = request["messages"].as_array().expect("messages").len() as u64;
        (job.expect("a number"), (messages - 1) / 2)
    };
    let server = server(place, |job, round| match round + 1 {
        ROUNDS => Reply::text(&format!("job {job} is done")),
        _ => Reply::call(&format!("call-{job}-{round}"), "note", &json!({"job": job, "round": round})),
    });
    let outputs = survive(folder.path(), package, "noter", server, place).await;
    for (job, output) in outputs.iter().enumerate() {
        assert_eq!(*output, json!({"text": format!("job {job} is done")}));
    }
    check_log(&log, (0..ROUNDS).flat_map(|job| (0..ROUNDS - 1).map(move |round| format!("job {job} round {round}"))));
}
