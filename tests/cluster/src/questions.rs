//! Agents that ask people, with real programs: a question outlives all processes, and the first answer stands.

use std::fs;
use std::path::Path;

use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;

const CONTRACT: &str = "agent:
  name: asker
  version: 1.0.0
  execution_timeout: 300
  requires: { skills: [user__ask] }
  provider: { type: llm }
";

const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: user__ask, arguments: { question: "Which colour?", options: '["red", "blue"]' } }
- match: "*"
  text: '{"done": true}'
"#;

async fn cluster(folder: &Path) -> (Controller, Api) {
    let controller = Controller::start(folder);
    let api = Api::new(&controller.http.to_string());
    let agent = folder.join("asker");
    fs::create_dir(&agent).expect("a folder");
    fs::write(agent.join("agent.yaml"), CONTRACT).expect("written");
    fs::write(agent.join("mock.yaml"), MOCK).expect("written");
    api.register(pack(&agent).expect("a package").bytes).await;
    (controller, api)
}

async fn submit(api: &Api, rule: Option<&str>) -> String {
    let answer = api.post("/api/jobs", json!({"agent": "asker", "input": {}, "questions": rule})).await;
    answer["id"].as_str().expect("an id").to_owned()
}

/// The result of the question in the journal of a job.
async fn result(api: &Api, job: &str) -> Value {
    let steps = api.get(&format!("/api/jobs/{job}/steps")).await;
    let steps = steps.as_array().cloned().unwrap_or_default();
    let found = steps.into_iter().find(|step| step["kind"] == "question");
    found.map(|step| step["outcome"]["ended"].clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_question_outlives_all_processes_and_the_first_answer_stands() {
    let folder = tempfile::tempdir().expect("a folder");
    let (controller, api) = cluster(folder.path()).await;
    let first = worker(folder.path(), &controller);
    let job = submit(&api, Some("wait")).await;
    let waited = api.get(&format!("/api/jobs/{job}/wait?timeout=30&view=full&questions=true")).await;
    let question = waited["needs_answer"][0].as_str().expect("a question").to_owned();
    eventually_async("the job parks", async || {
        let job = api.job(&job).await;
        if job["reason"] == "parked" { Ok(()) } else { Err(job.to_string()) }
    })
    .await;
    first.kill();
    let controller = controller.kill_and_restart(folder.path());
    let open = api.get(&format!("/api/questions?job={job}")).await;
    let (id, options) = (json!(question), json!(["red", "blue"]));
    assert_eq!((&open[0]["id"], &open[0]["status"], &open[0]["options"]), (&id, &json!("open"), &options), "{open}");
    let second = worker(folder.path(), &controller);
    let path = format!("/api/questions/{question}/answer");
    for (body, status, code) in [
        (json!({"answer": ["red"]}), 400, "E3043"),
        (json!({"answer": " "}), 400, "E3043"),
        (json!({"answer": "x".repeat(20_000)}), 413, "E3006"),
        (json!({}), 400, "E1104"),
    ] {
        let (found, found_code, answer) = api.try_post(&path, body).await;
        assert_eq!((found, found_code.as_str()), (status, code), "{answer}");
    }
    assert_eq!(
        api.try_post("/api/questions/question-0000000000000001/answer", json!({"answer": "x"})).await.1,
        "E3040"
    );
    let answered = api.post(&path, json!({"text": "blue"})).await;
    assert_eq!((&answered["status"], &answered["answer"]), (&json!("answered"), &json!("blue")), "{answered}");
    assert_eq!(api.try_post(&path, json!({"answer": "red"})).await.1, "E3041");
    let ended = api.wait(&job).await;
    assert_eq!(ended["output_data"], json!({"done": true}), "{ended}");
    assert_eq!(result(&api, &job).await, json!({"answer": "blue"}));
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}

#[tokio::test]
async fn the_rule_of_a_job_says_what_becomes_of_its_questions() {
    let folder = tempfile::tempdir().expect("a folder");
    let (controller, api) = cluster(folder.path()).await;
    let worker = worker(folder.path(), &controller);
    let failed = api.wait(&submit(&api, None).await).await;
    let error = failed["error"].as_str().unwrap_or_default();
    assert!(failed["status"] == "failed" && error.starts_with("E3044") && error.contains("Which colour?"), "{failed}");
    let ruled = submit(&api, Some("answer:red")).await;
    assert_eq!(api.wait(&ruled).await["output_data"], json!({"done": true}));
    assert_eq!(result(&api, &ruled).await, json!({"answer": "red"}));
    let cancelled = submit(&api, Some("wait")).await;
    api.get(&format!("/api/jobs/{cancelled}/wait?timeout=30&view=full&questions=true")).await;
    api.post(&format!("/api/jobs/{cancelled}/cancel"), json!({})).await;
    assert_eq!(api.wait(&cancelled).await["status"], "cancelled");
    let closed = api.get(&format!("/api/questions?status=all&job={cancelled}")).await;
    assert_eq!(closed[0]["status"], "cancelled", "{closed}");
    let (status, code, answer) = api.try_post("/api/jobs", json!({"agent": "asker", "questions": "maybe"})).await;
    assert_eq!((status, code.as_str()), (400, "E1104"), "{answer}");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
}
