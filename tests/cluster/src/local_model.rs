//! An agent with a real model: a small one that runs on this machine, behind a server with OpenAI's protocol.

use std::fs;
use std::path::Path;
use std::process::Command;

use atlas_package::pack;
use serde_json::json;

use crate::Process;
use crate::api::Api;
use crate::pair::{Controller, worker_command};

/// Names the Python that has the model and its server.
const PYTHON: &str = "ATLAS_TEST_MODEL_PYTHON";

/// Longer than the test may take, so that the server ends even if the test is killed.
const SERVED_SECONDS: &str = "300";

const CONTRACT: &str = "agent:
  name: say
  version: 1.0.0
  model: { preference: fast }
  provider:
    type: llm
    system_prompt: Answer with one short sentence.
    output_format: text
    max_tokens: 24
    temperature: 0
    stream: STREAM
";

/// The server, and the address of its API. None, with a notice, if there is no model.
fn serve() -> Option<(Process, String)> {
    let Some(python) = std::env::var_os(PYTHON) else {
        atlas_notice::skip(format_args!(
            "{PYTHON} does not name a Python with a model; `cargo xtask test` installs it"
        ));
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("model/serve.py");
    let mut server = Process::start(Command::new(python).arg(script).arg(SERVED_SECONDS));
    let address = server.says("the model is served", |text| {
        Some(text.lines().find_map(|line| line.strip_prefix("serving "))?.to_owned())
    });
    Some((server, format!("{address}/v1")))
}

#[tokio::test]
async fn a_model_on_this_machine_answers() {
    let Some((_server, address)) = serve() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let mut worker = worker_command(folder.path(), &controller);
    for key in ["ATLAS_API_KEY", "ANTHROPIC_API_KEY", "ATLAS_OPENAI_API_KEY"] {
        worker.env_remove(key);
    }
    worker.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", address).env("ATLAS_OPENAI_MODEL_FAST", "smollm2");
    let _worker = Process::start(&mut worker);
    let api = Api::new(&controller.http.to_string());
    let agent = folder.path().join("say");
    fs::create_dir(&agent).expect("a folder");
    // The same answer in one piece and as it forms, because the temperature is 0.
    let mut answers = Vec::new();
    for (version, stream) in [("1.0.0", "false"), ("1.0.1", "true")] {
        let contract = CONTRACT.replace("1.0.0", version).replace("STREAM", stream);
        fs::write(agent.join("agent.yaml"), contract).expect("written");
        api.register(pack(&agent).expect("a package").bytes).await;
        let id = api.submit("say", json!({"text": "Say hello."})).await;
        let job = api.wait(&id).await;
        assert_eq!(job["status"], "completed", "{job}");
        let (used, text) = (&job["metadata"], job["output_data"]["result"].as_str().unwrap_or_default());
        assert_eq!(used["_trace_model"], "smollm2", "{job}");
        let tokens = |name: &str| used[format!("_trace_{name}")].as_u64().unwrap_or_default();
        assert!(tokens("input_tokens") > 10 && (1..=24).contains(&tokens("output_tokens")), "{job}");
        assert!(text.chars().any(char::is_alphabetic), "{job}");
        answers.push(text.to_owned());
        let steps = api.get(&format!("/api/jobs/{id}/steps")).await;
        let kinds: Vec<&str> =
            steps.as_array().into_iter().flatten().filter_map(|step| step["kind"].as_str()).collect();
        assert_eq!(kinds, ["start", "model"], "{steps}");
    }
    assert_eq!(answers[0], answers[1]);
}
