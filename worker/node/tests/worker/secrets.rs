//! Secrets of attempts: who gets them, and that nothing else shows them.

use std::collections::BTreeMap;

use atlas_types::{Assignment, AttachedSecret, Attachment, Attachments, SecretSource, SecretText};

use crate::support::{End, Stage, python, shell, without_python};

const CANARY: &str = "c4n4ry/+value";

fn secrets(names: &[&str]) -> Attachments {
    let secret = || AttachedSecret { source: SecretSource::Value(SecretText::new(CANARY)), declared: true };
    let secrets: BTreeMap<_, _> = names.iter().map(|name| ((*name).to_owned(), secret())).collect();
    Attachments::new([Attachment::Secrets(secrets)])
}

/// Runs one job of an agent with the secrets `KEY` and `other-key`. Returns its end and its lines.
async fn run(stage: &mut Stage, files: &[(&'static str, String)], attempts: usize) -> (Vec<End>, Vec<String>) {
    let agent = stage.controller.publish_owned(files);
    let mut ends = Vec::new();
    for _ in 0..attempts {
        let assignment = stage.controller.assignment(&agent, "{}");
        let attachments = secrets(&["KEY", "other-key"]);
        ends.push(stage.session.run(&Assignment { attachments, ..assignment }).await);
    }
    let lines = stage.session.events.iter().map(|event| format!("{}: {}", event.level, event.text)).collect();
    (ends, lines)
}

const DECLARED: &str = "  permissions: {secrets: [KEY, other-key]}\n";

#[tokio::test]
async fn an_exec_agent_gets_variables() {
    let mut stage = Stage::set().await;
    let script = r#"printf '{"key": %d, "other": %d, "context": %d}' ${#KEY} ${#OTHER_KEY} "$(grep -c secrets)""#;
    let (ends, _) = run(&mut stage, &shell(script, DECLARED), 1).await;
    assert_eq!(ends[0].output(&stage.controller), r#"{"key": 13, "other": 13, "context": 0}"#);
    // An agent that does not declare them gets none, even if they came with its lease.
    let (ends, _) = run(&mut stage, &shell(script, "  description: other\n"), 1).await;
    assert_eq!(ends[0].output(&stage.controller), r#"{"key": 0, "other": 0, "context": 0}"#);
    stage.node.shutdown().await;
}

#[tokio::test]
async fn a_warm_process_gets_secrets_with_each_input() {
    let mut stage = Stage::set().await;
    let script = r#"while read -r line; do n=$(printf %s "$line" | grep -c '"KEY":"c4n4ry/+value"'); echo "{\"output\": {\"n\": $n, \"v\": ${#KEY}}}"; done"#;
    let files: Vec<_> = shell(script, DECLARED)
        .into_iter()
        .map(|(name, text)| (name, text.replace("type: exec", "type: exec\n    mode: warm")))
        .collect();
    let (ends, _) = run(&mut stage, &files, 2).await;
    for end in &ends {
        assert_eq!(end.output(&stage.controller), r#"{"n": 1, "v": 0}"#);
    }
    stage.node.shutdown().await;
}

#[tokio::test]
async fn a_python_agent_gets_secrets_in_its_context() {
    if without_python() {
        return;
    }
    let mut stage = Stage::set().await;
    let code = r#"
from atlas.runtime.base import AgentBase
import os

class Agent(AgentBase):
    async def execute(self, input_data):
        secrets = self.context.secrets
        print("printed", secrets["KEY"])
        variables = [name for name, value in os.environ.items() if "c4n4ry" in value]
        return {"names": sorted(secrets), "length": len(secrets["KEY"]), "variables": variables}
"#;
    let (ends, lines) = run(&mut stage, &python(code, DECLARED), 2).await;
    for end in &ends {
        assert_eq!(end.output(&stage.controller), r#"{"names":["KEY","other-key"],"length":13,"variables":[]}"#);
    }
    assert_eq!(lines, ["info: printed [redacted:KEY]", "info: printed [redacted:KEY]"]);
    stage.node.shutdown().await;
}

#[tokio::test]
async fn lines_and_errors_show_names() {
    let mut stage = Stage::set().await;
    let script = r#"echo "plain $KEY" >&2; printf %s "user:$KEY" | base64 >&2; echo "not JSON $KEY""#;
    let (ends, lines) = run(&mut stage, &shell(script, DECLARED), 1).await;
    let error = ends[0].error();
    assert!(error.ends_with("stdout: not JSON [redacted:KEY]\n"), "{error}");
    assert_eq!(lines[0], "info: plain [redacted:KEY]");
    assert!(lines[1].contains("[redacted:KEY]"), "{}", lines[1]);
    let (ends, _) = run(&mut stage, &shell(r#"echo "failed with $KEY" >&2; exit 3"#, DECLARED), 1).await;
    assert_eq!(ends[0].error(), "Process exited with code 3: failed with [redacted:KEY]");
    let schema = "  output: {schema: {type: object, properties: {a: {type: integer}}}}\n";
    let script = r#"printf '{"a": "%s"}' "$KEY""#;
    let (ends, _) = run(&mut stage, &shell(script, &format!("{DECLARED}{schema}")), 1).await;
    assert_eq!(ends[0].error(), "Output validation: '[redacted:KEY]' is not of type 'integer'");
    stage.node.shutdown().await;
}

#[tokio::test]
async fn a_secret_that_is_nowhere_fails_the_attempt() {
    let mut stage = Stage::set().await;
    let files = shell("echo '{}'", "  permissions: {secrets: [KEY, NOWHERE]}\n");
    let (ends, _) = run(&mut stage, &files, 1).await;
    assert_eq!(ends[0].error(), "Secret resolution failed: Secret 'NOWHERE' not found");
    stage.node.shutdown().await;
}
