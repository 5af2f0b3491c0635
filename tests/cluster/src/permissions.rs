//! Tools that need the permission of a person, with real programs.

use std::fs;
use std::path::Path;

use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker};

const CONFIG: &str = "name: Careful
variables: [{name: log, description: d, default: LOG}]
tool_permissions:
  - { tool: peek, action: deny }
  - { tool: 'no*', action: ask }
";

const TOOLS: &str = r#"import os

def note(text: str):
    """Notes a text.

    Args:
        text: The text.
    """
    with open(os.environ["LLM_AGENT_VAR_LOG"], "a") as log:
        log.write(text + "\n")
    return "noted"

def peek():
    """Peeks."""
    raise SystemExit("it was called")
"#;

const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: note, arguments: { text: one } }
    - { name: peek, arguments: {} }
- match: { round: 2 }
  tool_calls:
    - { name: note, arguments: { text: two } }
- match: "*"
  text: done
"#;

async fn submit(api: &Api, rule: &str) -> String {
    let body = json!({"agent": "careful", "input": {"message": "go"}, "questions": rule});
    api.post("/api/jobs", body).await["id"].as_str().expect("an id").to_owned()
}

/// Answers the next question of a job, and returns its text.
async fn answer(api: &Api, job: &str, text: &str) -> String {
    let waited = api.get(&format!("/api/jobs/{job}/wait?timeout=30&view=full&questions=true")).await;
    let question = waited["needs_answer"][0].as_str().unwrap_or_else(|| panic!("no question: {waited}")).to_owned();
    let answered = api.post(&format!("/api/questions/{question}/answer"), json!({"answer": text})).await;
    answered["prompt"].as_str().or(answered["question"].as_str()).unwrap_or_default().to_owned()
}

/// The results of the tools in the steps of a job, and its answers.
async fn kinds(api: &Api, job: &str) -> Vec<String> {
    let steps = api.get(&format!("/api/jobs/{job}/steps")).await;
    let steps = steps.as_array().cloned().unwrap_or_default();
    steps.iter().filter_map(|step| step["kind"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_guarded_tool_is_called_once_a_person_allowed_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, agent) = (folder.path().join("log"), folder.path().join("careful"));
    fs::create_dir(&agent).expect("a folder");
    fs::write(agent.join("config.yaml"), CONFIG.replace("LOG", &log.display().to_string())).expect("written");
    fs::write(agent.join("tools.py"), TOOLS).expect("written");
    fs::write(agent.join("mock.yaml"), MOCK).expect("written");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    api.register(pack(&agent).expect("a package").bytes).await;
    let worker = worker(folder.path(), &controller);
    let noted = |log: &Path| fs::read_to_string(log).unwrap_or_default();

    let job = submit(&api, "wait").await;
    answer(&api, &job, "allow").await;
    // The answer was for one call.
    answer(&api, &job, "deny").await;
    let done = api.wait(&job).await;
    assert_eq!((&done["output_data"], noted(&log).as_str()), (&json!({"text": "done"}), "one\n"), "{done}");
    let expected = ["start", "model", "question", "tools", "model", "question", "model"];
    assert_eq!(kinds(&api, &job).await, expected);

    let job = submit(&api, "wait").await;
    answer(&api, &job, "allow for this job").await;
    let done = api.wait(&job).await;
    assert_eq!((&done["status"], noted(&log).as_str()), (&json!("completed"), "one\none\ntwo\n"), "{done}");

    // Nobody is there to answer.
    let job = submit(&api, "fail").await;
    let failed = api.wait(&job).await;
    let error = failed["error"].as_str().unwrap_or_default();
    assert!(error.contains("E3044"), "{failed}");
    let job = submit(&api, "answer:deny").await;
    let done = api.wait(&job).await;
    assert_eq!((&done["status"], noted(&log).lines().count()), (&json!("completed"), 3), "{done}");
    let denied: Value = api.get(&format!("/api/jobs/{job}")).await;
    assert_eq!(denied["status"], "completed");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}
