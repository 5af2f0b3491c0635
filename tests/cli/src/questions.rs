//! Questions of jobs: asked by a model, listed and answered.

use std::fs;

use expect_test::expect_file;

use crate::laptop::Laptop;

const CONTRACT: &str = "agent:
  name: asker
  version: 1.0.0
  requires: { skills: [user__ask] }
  provider: { type: llm }
";

const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: user__ask, arguments: { question: "Which colour?", options: [red, blue] } }
- match: "*"
  text: '{"done": true}'
"#;

#[test]
fn a_job_asks_and_continues_with_the_answer() {
    let laptop = Laptop::with(&[]);
    let agent = laptop.folder().join("asker");
    fs::create_dir(&agent).expect("a folder");
    fs::write(agent.join("agent.yaml"), CONTRACT).expect("written");
    fs::write(agent.join("mock.yaml"), MOCK).expect("written");
    let mut session = laptop.session("A job asks and continues with the answer");
    session.run("atlasctl question list");
    session.run("atlasctl deploy asker --quiet");
    session.run("atlasctl run asker --questions maybe");
    session.run("atlasctl run asker --quiet");
    session.run("atlasctl run asker --questions answer:red");
    session.run("atlasctl run asker --questions wait --quiet");
    session.run("atlasctl question list --columns kind,status,prompt");
    session.run("atlasctl question show $(atlasctl question list -o name)");
    session.run("atlasctl explain $(atlasctl job list -o name --limit 1) | grep asks");
    session.run("atlasctl question answer $(atlasctl question list -o name) ''");
    session.run("atlasctl job answer $(atlasctl job list -o name --limit 1)");
    session.run("atlasctl job answer $(atlasctl job list -o name --limit 1) 2");
    session.run("atlasctl job answer $(atlasctl job list -o name --limit 1) red");
    session.run("atlasctl job wait $(atlasctl job list -o name --limit 1) --quiet");
    session.run("atlasctl question answer $(atlasctl question list --all -o name | tail -1) red");
    session.run("atlasctl question show question-0000000000000001");
    session.run("atlasctl question show blue");
    session.run("atlasctl -n other question list --all");
    expect_file!["../transcripts/questions.txt"].assert_eq(&session.page());
}
