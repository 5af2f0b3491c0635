//! Hot reload: an agent that changes on disk is registered again, and running jobs keep the old version.

use std::fs;

use serde_json::json;

use crate::api::Api;
use crate::{Agent, Dev, LONG, eventually, write_agent};

/// A script that returns `word` when the gate exists.
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
    eventually("the agent is registered again", LONG, || {
        dev.text().contains("registered word 1.0.0 again").then_some(())
    });
    let late = api.submit("word", gate.clone()).await;
    fs::write(folder.path().join("gate"), "").expect("opened");
    assert_eq!(api.wait(&early).await["output_data"], json!({"word": "one"}));
    assert_eq!(api.wait(&late).await["output_data"], json!({"word": "two"}));
    fs::write(agents.join("word/agent.yaml"), "agent: { name: word }").expect("written");
    eventually("a broken contract is told", LONG, || dev.text().contains("is not valid").then_some(()));
    let again = api.submit("word", gate).await;
    assert_eq!(api.wait(&again).await["output_data"], json!({"word": "two"}));
}

#[tokio::test]
async fn dev_checks_as_deploy_does_and_retires_what_was_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let agents = folder.path().join("agents");
    let script = "printf '{}'";
    write_agent(&agents, &Agent { name: "word", version: "0.1.0", contract: "", script });
    let dev = Dev::start(folder.path(), ["--ephemeral", "--agents", "./agents"]);
    let tells = |text: &str| eventually(text, LONG, || dev.text().contains(text).then_some(()));
    tells("registered word 0.1.0   ./agents/word");
    write_agent(&agents, &Agent { name: "word", version: "0.2.0", contract: "  provder: exec", script });
    tells("registered word 0.2.0   ./agents/word");
    tells("/agent/provder: unknown key, ignored; did you mean \"provider\"?");
    let wrong = "agent:\n  name: word\n  version: 0.3\n  execution_timeout: 5\n  capabilities: 7\n";
    fs::write(agents.join("word/agent.yaml"), wrong).expect("written");
    tells("at /agent/version");
    tells("at /agent/capabilities");
    let negative = "agent:\n  name: word\n  version: 0.3.0\n  provider: {type: exec, command: [./run.sh]}\n  execution_timeout: -1\n  retry: {max_retries: -2}\n";
    fs::write(agents.join("word/agent.yaml"), negative).expect("written");
    tells("at /agent/execution_timeout");
    tells("at /agent/retry/max_retries");
    let missing = "agent:\n  name: word\n  version: 0.3.0\n  provider: {type: exec, command: [./gone.sh]}\n";
    fs::write(agents.join("word/agent.yaml"), missing).expect("written");
    tells("error[E1123]: the program of word 0.3.0 cannot be started");
    fs::remove_dir_all(agents.join("word")).expect("removed");
    tells("retired word 0.1.0: ./agents/word was deleted");
    tells("retired word 0.2.0: ./agents/word was deleted");
    let api = Api::new(dev.server());
    assert_eq!(api.get("/api/agents").await, json!([]));
    write_agent(&agents, &Agent { name: "word", version: "0.2.0", contract: "", script });
    eventually("it is back", LONG, || (dev.text().matches("registered word 0.2.0").count() == 2).then_some(()));
    assert_eq!(api.wait(&api.submit("word", json!({})).await).await["status"], "completed");
}
