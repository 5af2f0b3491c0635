//! The bundled agents that work on projects: they change and verify a real one.

use std::fs;
use std::path::Path;
use std::process::Command;

use atlas_llm_server::{Reply, Server};
use atlas_package::{PackFile, pack_files};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker_command};
use crate::process::Process;

/// A bundled agent, with other answers of its model.
pub(crate) fn package(name: &str, mock: &str) -> Vec<u8> {
    let agent = atlas_bundled::bundled().into_iter().find(|agent| agent.dir == name).expect("it is bundled");
    let mut files = agent.files;
    files.retain(|file| file.path != "mock.yaml");
    files.push(PackFile { path: "mock.yaml".to_owned(), bytes: mock.as_bytes().to_vec(), executable: false });
    pack_files(files).expect("a package").bytes
}

/// A project with a function that does not work yet.
fn project(folder: &Path) -> String {
    let project = folder.join("projects/calc");
    fs::create_dir_all(&project).expect("a folder");
    let write = |name: &str, text: &str| fs::write(project.join(name), text).expect("a file");
    write("calc.sh", "add() {\n  echo 0\n}\n");
    write("test.sh", "source calc.sh\n[ \"$(add 2 3)\" = 5 ] || { echo \"add 2 3 is $(add 2 3)\"; exit 1; }\n");
    write(".loki-project.json", r#"{"type": "bash", "check": "bash -n calc.sh", "test": "bash test.sh"}"#);
    project.display().to_string()
}

fn worker(folder: &Path, controller: &Controller, model: Option<&Server>) -> Process {
    let mut command = worker_command(folder, controller);
    command.args(["--agent-env", "ATLAS_PROJECTS"]).env("ATLAS_PROJECTS", folder.join("projects"));
    if let Some(server) = model {
        command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "key");
    }
    Process::start(&mut command)
}

async fn submit(api: &Api, agent: &str, project: &str, message: &str) -> String {
    let input = json!({"message": message, "variables": {"project_dir": project}});
    let body = json!({"agent": agent, "input": input, "questions": "wait"});
    api.post("/api/jobs", body).await["id"].as_str().expect("an id").to_owned()
}

/// Answers the next question of a job, and returns its text.
pub(crate) async fn answer(api: &Api, job: &str, text: &str) -> String {
    let waited = api.get(&format!("/api/jobs/{job}/wait?timeout=60&view=full&questions=true")).await;
    let question = waited["needs_answer"][0].as_str().unwrap_or_else(|| panic!("no question: {waited}")).to_owned();
    let asked = api.get(&format!("/api/questions/{question}")).await;
    api.post(&format!("/api/questions/{question}/answer"), json!({"answer": text})).await;
    asked.to_string()
}

const MOCK: &str = r#"
- match: { regex: "(?s)Plan this change.*complex" }
  text: '{"plan_summary": "Rewrite all.", "files_to_modify": ["calc.sh"], "files_to_create": [], "complexity_score": 8, "risks": ["much"]}'
- match: { text: Plan this change }
  text: '{"plan_summary": "Make add add.", "files_to_modify": ["calc.sh"], "files_to_create": [], "complexity_score": 2, "risks": []}'
- match: { regex: "(?s)never works.*FIX", round: 1 }
  tool_calls:
    - { name: fs_write, arguments: { path: calc.sh, contents: "add() { echo 1; }\n" } }
- match: { text: FIX 1 of 3, round: 1 }
  tool_calls:
    - { name: fs_patch, arguments: { path: calc.sh, contents: "@@\n-  echo $(($1 - $2))\n+  echo $(($1 + $2))\n" } }
- match: { text: FIX }
  text: The sign was wrong.
- match: { text: Implement this change, round: 1 }
  tool_calls:
    - { name: fs_ls, arguments: { path: . } }
    - { name: fs_cat, arguments: { path: calc.sh } }
- match: { text: Implement this change, round: 2 }
  tool_calls:
    - { name: fs_write, arguments: { path: calc.sh, contents: "add() {\n  echo $(($1 - $2))\n}\n" } }
    - { name: execute_command, arguments: { command: bash test.sh } }
- match: { text: Implement this change }
  text: calc.sh adds now.
"#;

#[tokio::test]
async fn coder_changes_and_verifies_a_project() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = project(folder.path());
    let calc = || fs::read_to_string(Path::new(&project).join("calc.sh")).expect("a file");
    let before = calc();
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    api.register(package("coder", MOCK)).await;
    let worker = worker(folder.path(), &controller, None);

    // A person does not want it.
    let job = submit(&api, "coder", &project, "a complex change").await;
    let asked = answer(&api, &job, "no").await;
    assert!(asked.contains("This change is rated 8 of 10") && asked.contains("Rewrite all."), "{asked}");
    let done = api.wait(&job).await;
    let text = |job: &Value| job["output_data"]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text(&done).starts_with("CODER_REJECTED\n\nPlan: Rewrite all."), "{done}");
    assert_eq!(calc(), before);

    // All attempts to fix it fail.
    let job = submit(&api, "coder", &project, "a change that never works").await;
    let done = api.wait(&job).await;
    assert!(text(&done).starts_with("CODER_FAILED\n\nPlan: Make add add.\nFixes: 3 of 3"), "{done}");
    assert!(text(&done).contains("$ bash test.sh\n[exit status 1]\nadd 2 3 is 1"), "{done}");

    // The first try has the wrong sign, and its fix is made once a person allowed the change.
    fs::write(Path::new(&project).join("calc.sh"), &before).expect("a file");
    let job = submit(&api, "coder", &project, "a complex change").await;
    answer(&api, &job, "yes").await;
    let done = api.wait(&job).await;
    assert!(text(&done).starts_with("CODER_COMPLETE\n\nPlan: Rewrite all.\nModified: [\"calc.sh\"]"), "{done}");
    assert_eq!(done["output_data"]["state"]["fix_attempts"], 1, "{done}");
    assert_eq!(calc(), "add() {\n  echo $(($1 + $2))\n}\n");
    let tested = Command::new("bash").arg("test.sh").current_dir(&project).status().expect("bash runs");
    assert!(tested.success());

    // The worker does not open this folder.
    let job = submit(&api, "coder", "/", "a change").await;
    let done = api.wait(&job).await;
    assert!(text(&done).starts_with("CODER_FAILED"), "{done}");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}

fn call(name: &str, input: &Value) -> Reply {
    Reply::call("call-1", name, input)
}

/// The id of the helper that the last call has started.
fn helper(messages: &[Value]) -> Value {
    let content = &messages.last().expect("a message")["content"][0]["content"];
    let text = content.as_str().or(content[0]["text"].as_str()).unwrap_or_default();
    serde_json::from_str::<Value>(text).unwrap_or_default()["id"].clone()
}

/// Plays all models of the team.
fn play(request: &Value) -> Reply {
    let messages = request["messages"].as_array().expect("messages");
    let round = (messages.len() - 1) / 2;
    let system = request["system"].to_string();
    let has = |text: &str| system.contains(text);
    if has("You lead work on a project") {
        return match round {
            0 => call("agent__spawn", &json!({"agent": "explore", "prompt": "Where is add?"})),
            1 | 3 => call("agent__collect", &json!({"id": helper(messages)})),
            2 => call("agent__spawn", &json!({"agent": "coder", "prompt": "Goal: add adds."})),
            _ => Reply::text(&format!("Summary: {}", messages.last().expect("a message"))),
        };
    }
    if has("You find things in a project") {
        return match round {
            0 => call("fs_grep", &json!({"pattern": "^add"})),
            _ => Reply::text(&format!("FINDINGS:\n- {}\n\nEXPLORE_COMPLETE", messages.last().expect("a message"))),
        };
    }
    if has("You plan a change") {
        return Reply::text(
            r#"{"plan_summary": "Make add add.", "files_to_modify": ["calc.sh"], "files_to_create": [], "complexity_score": 2, "risks": []}"#,
        );
    }
    match round {
        0 => call("fs_patch", &json!({"path": "calc.sh", "contents": "-  echo 0\n+  echo $(($1 + $2))\n"})),
        _ => Reply::text("calc.sh adds now."),
    }
}

#[tokio::test]
async fn sisyphus_has_helpers_explore_and_change_its_project() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = project(folder.path());
    let server = Server::start(|request, _| play(request)).expect("a server");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    for name in ["explore", "coder", "sisyphus"] {
        api.register(package(name, "[]")).await;
    }
    let worker = worker(folder.path(), &controller, Some(&server));
    let job = submit(&api, "sisyphus", &project, "Make add work.").await;
    let done = api.wait(&job).await;
    let text = done["output_data"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("CODER_COMPLETE") && text.contains("Build and tests passed"), "{done}");
    let seen = server.requests().iter().map(Value::to_string).collect::<String>();
    assert!(seen.contains("calc.sh:1:add() {"), "explore has found it");
    let tested = Command::new("bash").arg("test.sh").current_dir(&project).status().expect("bash runs");
    assert!(tested.success());
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    assert_eq!(controller.end(), Some(0));
}
