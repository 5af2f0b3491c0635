//! Agents that call deployed skills, with real programs on a worker with one place for processes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker_with};

const WORDS: &str = r#"
async def execute(input_data):
    return {"words": len(input_data["text"].split())}
"#;

const CALLER: &str = r#"
from atlas.runtime.base import AgentBase

class Caller(AgentBase):
    async def execute(self, input_data):
        return await self.context.skill(input_data["skill"], input_data["input"])
"#;

const MODEL: &str = "agent:
  name: model
  version: 1.0.0
  requires: { skills: ['words@^1.0.0', shout] }
  provider: { type: llm }
";

const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: words, arguments: { text: a b c } }
    - { name: shout, arguments: { text: hey } }
    - { name: words, arguments: {} }
- match: "*"
  text: '{"done": true}'
"#;

fn folder(above: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = above.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    for (path, text) in files {
        fs::write(folder.join(path), text).expect("written");
    }
    folder
}

async fn agent(api: &Api, above: &Path, name: &str, files: &[(&str, &str)]) {
    api.register(atlas_package::pack(&folder(above, name, files)).expect("a package").bytes).await;
}

async fn skill(api: &Api, above: &Path, name: &str, files: &[(&str, &str)]) {
    api.deploy_skill(atlas_package::pack_skill(&folder(above, name, files)).expect("a package").bytes).await;
}

fn caller(name: &str, skills: &str) -> String {
    format!("agent: {{ name: {name}, version: 1.0.0, execution_timeout: 60, requires: {{ skills: [{skills}] }} }}")
}

#[tokio::test]
async fn agents_call_skills_in_python_and_of_programs() {
    let dir = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(dir.path());
    let api = Api::new(&controller.http.to_string());
    let _worker = worker_with(dir.path(), &controller, &["--places", "1"]);
    let above = dir.path();
    skill(&api, above, "words", &[("skill.yaml", "{ name: words, version: 1.4.0 }"), ("skill.py", WORDS)]).await;
    let shout = "{ name: shout, version: 1.0.0, provider: { type: exec, command: [sh, shout.sh] } }";
    let program = "cat > /dev/null; echo '{\"loud\": true}'";
    skill(&api, above, "shout", &[("skill.yaml", shout), ("shout.sh", program)]).await;
    agent(&api, above, "model", &[("agent.yaml", MODEL), ("mock.yaml", MOCK)]).await;
    let python = caller("python", "words, shout");
    agent(&api, above, "python", &[("agent.yaml", &python), ("agent.py", CALLER)]).await;
    let newer = caller("newer", "'words@^2.0.0'");
    agent(&api, above, "newer", &[("agent.yaml", &newer), ("agent.py", CALLER)]).await;

    let job = api.wait(&api.submit("model", json!({})).await).await;
    assert_eq!(job["output_data"], json!({"done": true}), "{job}");
    let steps = api.get(&format!("/api/jobs/{}/steps", job["id"].as_str().expect("an id"))).await;
    let children: Vec<&Value> =
        steps.as_array().expect("steps").iter().filter(|step| step["kind"] == "child").collect();
    let ends: Vec<String> = children.iter().map(|step| step["outcome"].to_string()).collect();
    let words = r#"{"completed":{"words":3}}"#;
    assert_eq!(ends, [words, r#"{"completed":{"loud":true}}"#, r#"{"failed":"'text'"}"#], "{steps}");

    // The caller lends its only place to the skill.
    let call = |skill: &str| json!({"skill": skill, "input": {"text": "a b"}});
    let job = api.wait(&api.submit("python", call("words")).await).await;
    assert_eq!(job["output_data"], json!({"words": 2}), "{job}");
    let job = api.wait(&api.submit("python", call("shout")).await).await;
    assert_eq!(job["output_data"], json!({"loud": true}), "{job}");
    let job = api.wait(&api.submit("newer", call("words")).await).await;
    let why = "Skill resolution failed: Skill 'words' has version 1.4.0, and 'words@^2.0.0' is required";
    assert_eq!(job["error"], why, "{job}");
    // Jobs of skills are in a namespace of their own.
    let jobs = api.get("/api/jobs?limit=100").await;
    assert_eq!(jobs.as_array().map(Vec::len), Some(4), "{jobs}");
}
