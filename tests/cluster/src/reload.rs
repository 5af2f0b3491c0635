//! Hot reload: an agent that changes on disk is registered again, and jobs that run keep what they started with.

use std::fs;

use serde_json::json;

use crate::api::Api;
use crate::{Agent, Dev, LONG, eventually, write_agent};

/// Says its word once the gate is open.
fn saying(word: &str) -> String {
    format!(
        "gate=$(sed -n 's/.*\"gate\": *\"\\([^\"]*\\)\".*/\\1/p')\nwhile [ ! -e \"$gate\" ]; do sleep 0.05; done\nprintf '{{\"word\": \"{word}\"}}'"
    )
}

#[tokio::test]
async fn a_changed_agent_is_registered_again_and_running_jobs_keep_the_old_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let agents = folder.path().join("agents");
    let (one, two) = (saying("one"), saying("two"));
    write_agent(&agents, &Agent { name: "word", version: "1.0.0", contract: "", script: &one });
    let dev = Dev::start(folder.path(), ["--ephemeral", "--agents", "./agents"]);
    let api = Api::new(dev.server());
    let gate = json!({"gate": folder.path().join("gate")});
    let early = api.submit("word", gate.clone()).await;
    write_agent(&agents, &Agent { name: "word", version: "1.0.0", contract: "", script: &two });
    eventually("the agent is registered again", LONG, || dev.text().contains("registered again").then_some(()));
    let late = api.submit("word", gate.clone()).await;
    fs::write(folder.path().join("gate"), "").expect("opened");
    assert_eq!(api.wait(&early).await["output_data"], json!({"word": "one"}));
    assert_eq!(api.wait(&late).await["output_data"], json!({"word": "two"}));
    fs::write(agents.join("word/agent.yaml"), "agent: { name: word }").expect("written");
    eventually("a broken contract is told", LONG, || dev.text().contains("skipped").then_some(()));
    let again = api.submit("word", gate).await;
    assert_eq!(api.wait(&again).await["output_data"], json!({"word": "two"}));
}
