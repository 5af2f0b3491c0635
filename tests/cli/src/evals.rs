//! Agents are run over data sets, and versions are compared.

use std::fs;
use std::path::Path;

use expect_test::expect_file;

use crate::laptop::Laptop;

const CONTRACT: &str = "agent:
  name: shout
  version: VERSION
  provider: { type: exec, command: [\"./agent.sh\"] }
  input: { schema: { type: object, properties: { text: { type: string } }, required: [text] } }
";

const EVAL: &str = "eval:
  checks:
    - { name: loud, type: regex, field: text, pattern: '^[A-Z !]+$' }
";

const CASES: &str = r#"{"name": "greeting", "input": {"text": "hello"}, "expected": {"text": "HELLO!"}}
{"name": "nothing", "input": {"text": "!"}}
"#;

#[test]
fn agents_are_run_over_data_sets() {
    let laptop = Laptop::with(&[]);
    let publish = |version: &str, script: &str| {
        let folder = laptop.folder().join("shout");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("agent.yaml"), CONTRACT.replace("VERSION", version)).expect("written");
        fs::write(folder.join("eval.yaml"), EVAL).expect("written");
        let file = folder.join("agent.sh");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    };
    let mut session = laptop.session("Agents are run over data sets");
    let read = r#"t=$(sed 's/.*"text": *"\([^"]*\)".*/\1/')"#;
    publish("1.0.0", &format!(r#"{read}; printf '{{"text": "%s!"}}' "$(printf %s "$t" | tr a-z A-Z)""#));
    session.quiet("atlasctl deploy shout");
    publish("1.1.0", &format!(r#"{read}; printf '{{"text": "%s!"}}' "$t""#));
    session.quiet("atlasctl deploy shout");
    fs::write(laptop.folder().join("cases.jsonl"), CASES).expect("written");
    fs::write(laptop.folder().join("wrong.jsonl"), "{\"text\": \"hello\"}\n").expect("written");
    session.run("atlasctl agent eval shout@1.0.0 --data cases.jsonl");
    session.run("atlasctl agent eval shout --data cases.jsonl");
    session.run("atlasctl agent eval shout --data cases.jsonl --against 1.0.0");
    session.run("atlasctl agent eval shout --data cases.jsonl --against 1.0.0 --max-drop 0.5 --min-score 0.4");
    session.run("atlasctl agent eval shout --data wrong.jsonl");
    session.run("atlasctl agent eval shuot --data cases.jsonl");
    session.run("atlasctl agent eval shout --data cases.jsonl --against 7.0.0");
    session.run("atlasctl agent eval shout --data cases.jsonl --min-score 2");
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/bundled/judge");
    session.quiet(&format!("atlasctl deploy {}", judge.display()));
    session.run("atlasctl agent eval shout@1.0.0 --data cases.jsonl --judge judge --criterion 'It is loud.'");
    let tests = laptop.folder().join("shout/tests");
    fs::create_dir(&tests).expect("a folder");
    fs::write(tests.join("quiet.yaml"), "name: quiet\ninput: { text: hello }\noutput: { text: hello! }\n")
        .expect("written");
    session.run("atlasctl test shout");
    session.run("atlasctl test shout --evals");
    // The jobs of both cases ended at about the same time, so either is the newest.
    session.run("atlasctl agent data-set shout@1.0.0 --limit 1 --with-expected -o jsonpath={[*].expected.text} | grep -cxE 'HELLO!|!!'");
    expect_file!["../transcripts/evals.txt"].assert_eq(&session.page());
}
