//! Packaged tools in jobs: they come with the package, ask before what their guards name, and share the folder of a graph with its scripts.

use std::fs;
use std::path::Path;

use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker};

const CONFIG: &str = "name: Filer
global_tools: [fs_write.sh, fs_cat]
variables: [{name: auto_confirm, description: d, default: ''}]
";

const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: fs_write, arguments: { path: notes/a.txt, contents: noted } }
- match: { round: 2 }
  tool_calls:
    - { name: fs_cat, arguments: { path: notes/a.txt } }
- match: "*"
  text: done
"#;

const MOCK_OF_GRAPH: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: fs_write, arguments: { path: notes/a.txt, contents: noted } }
- match: "*"
  text: done
"#;

const GRAPH: &str = "name: g
start: write
global_tools: [fs_write]
nodes:
  write: {type: llm, prompt: go, tools: [fs_write], next: read}
  read: {type: script, script: read.py, next: done}
  done: {type: end, output: '{{found}}'}
";

const READ: &str = "import json, os
path = 'notes/a.txt'
print(json.dumps({'found': open(path).read() if os.path.exists(path) else 'nothing'}))
";

fn package(folder: &Path, name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let agent = folder.join(name);
    fs::create_dir(&agent).expect("a folder");
    for (file, text) in files {
        fs::write(agent.join(file), text).expect("a file");
    }
    pack(&agent).expect("a package").bytes
}

/// Runs a job with a rule for its questions, and returns it.
async fn run(api: &Api, agent: &str, input: Value, rule: &str) -> Value {
    let body = json!({"agent": agent, "input": input, "questions": rule});
    let job = api.post("/api/jobs", body).await["id"].as_str().expect("an id").to_owned();
    api.wait(&job).await
}

#[tokio::test]
async fn guarded_tools_ask_and_graphs_share_their_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    api.register(package(folder.path(), "filer", &[("config.yaml", CONFIG), ("mock.yaml", MOCK)])).await;
    let files = [("graph.yaml", GRAPH), ("read.py", READ), ("mock.yaml", MOCK_OF_GRAPH)];
    api.register(package(folder.path(), "flow", &files)).await;
    let worker = worker(folder.path(), &controller);
    let go = || json!({"message": "go"});

    // Nobody is there to allow it.
    let failed = run(&api, "filer", go(), "fail").await;
    assert!(failed["error"].as_str().is_some_and(|error| error.contains("E3044")), "{failed}");
    let failed = run(&api, "flow", go(), "fail").await;
    assert!(failed["error"].as_str().is_some_and(|error| error.contains("E3044")), "{failed}");

    let allowed = run(&api, "filer", go(), "answer:allow").await;
    assert_eq!(allowed["output_data"], json!({"text": "done"}), "{allowed}");
    let confirmed = run(&api, "filer", json!({"message": "go", "variables": {"auto_confirm": "1"}}), "fail").await;
    assert_eq!(confirmed["output_data"], json!({"text": "done"}), "{confirmed}");

    let found = |job: &Value| job["output_data"]["text"].as_str().unwrap_or_default().to_owned();
    let allowed = run(&api, "flow", go(), "answer:allow").await;
    assert_eq!(found(&allowed), "noted", "{allowed}");
    let denied = run(&api, "flow", go(), "answer:deny").await;
    assert_eq!(found(&denied), "nothing", "{denied}");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}
