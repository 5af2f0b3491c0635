//! Agents with a model through `kill -9` of their worker and of the leader: no call that was answered is made again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::patience::{LONG, eventually};
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

/// Rounds of an agent. The last one ends it.
const ROUNDS: u64 = 20;

const CONTRACT: &str = "agent:
  name: thinker
  version: 1.0.0
  execution_timeout: 300
  provider: { type: llm, max_iterations: 20 }
";

/// What a request is: the number of its job, and its round from 0.
fn place(request: &Value) -> (u64, u64) {
    let messages = request["messages"].as_array().expect("messages");
    let input = messages[0]["content"].as_str().expect("the input");
    let input: Value = serde_json::from_str(input).expect("JSON");
    (input["job"].as_u64().expect("a number"), (messages.len() as u64 - 1) / 2)
}

/// Job `n` gets no answer in round `n` the first time, and waits there the second time. So at the first kill each job has
/// just finished another step, from step 0 to the last but one.
fn server() -> Server {
    let seen = Arc::new(Mutex::new(BTreeMap::<(u64, u64), u32>::new()));
    let answer = move |request: &Value, _: usize| {
        let (job, round) = place(request);
        let mut seen = seen.lock().expect("not poisoned");
        let times = seen.entry((job, round)).or_default();
        *times += 1;
        let reply = match round + 1 {
            ROUNDS => Reply::text(&json!({"job": job, "rounds": ROUNDS}).to_string()),
            _ => Reply::call(&format!("call-{job}-{round}"), "look", &json!({"round": round})),
        };
        match (job == round, *times) {
            (true, 1) => Reply::Never,
            (true, 2) => Reply::Held(Box::new(reply)),
            _ => reply,
        }
    };
    Server::start(answer).expect("a server")
}

/// Waits until every job has made its request that waits, this often.
fn all_wait(server: &Server, times: usize) {
    eventually("each job waits in its round", LONG, || {
        let waiting = server.requests().iter().map(place).filter(|(job, round)| job == round).count();
        (waiting >= times * ROUNDS as usize).then_some(())
    });
}

fn thinker(folder: &Path) -> Vec<u8> {
    let agent = folder.join("thinker");
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join("agent.yaml"), CONTRACT).expect("a contract");
    pack(&agent).expect("a package").bytes
}

#[tokio::test]
async fn no_answered_call_is_made_again_wherever_worker_and_leader_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server();
    let mut members = trio(folder.path(), &[]).await;
    let start = |members: &[crate::members::Member; 3]| {
        let all: Vec<_> = members.iter().collect();
        let mut command = worker_command(program("atlas-worker"), folder.path(), "w1", &all);
        command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "key");
        Process::start(&mut command)
    };
    let worker = start(&members);
    let api = Api::new(&members[0].http.to_string());
    api.register(thinker(folder.path())).await;
    let mut jobs = Vec::new();
    for job in 0..ROUNDS {
        jobs.push(api.submit("thinker", json!({"job": job})).await);
    }
    all_wait(&server, 1);
    worker.kill();
    let worker = start(&members);
    all_wait(&server, 2);
    let dead = leader(&members).await;
    members[dead].kill();
    server.release();
    let api = Api::new(&members[(dead + 1) % members.len()].http.to_string());
    for (number, id) in jobs.iter().enumerate() {
        let job = api.wait(id).await;
        assert_eq!(job["output_data"], json!({"job": number, "rounds": ROUNDS}), "{job}");
        assert!(job["attempt"].as_u64() >= Some(2), "{job}");
        let metadata = &job["metadata"];
        assert_eq!(metadata["_trace_input_tokens"], json!(ROUNDS * 10), "each answer counts once: {job}");
    }
    let answered: Vec<(u64, u64)> = server.answered().iter().map(place).collect();
    let expected: BTreeSet<(u64, u64)> =
        (0..ROUNDS).flat_map(|job| (0..ROUNDS).map(move |round| (job, round))).collect();
    assert_eq!(answered.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(answered.len(), expected.len(), "no call was answered twice");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
}
