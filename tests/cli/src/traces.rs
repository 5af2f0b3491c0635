//! Traces of jobs.

use std::fs;

use atlas_cluster_tests::{Agent, write_agent};
use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::laptop::Laptop;

#[test]
fn a_trace_shows_what_a_job_did() {
    let breaks = Agent { name: "breaks", version: "1.0.0", contract: "", script: "echo 'no paper' >&2; exit 3" };
    let laptop = Laptop::with(&[&HELLO, &breaks]);
    let polite = laptop.folder().join("polite");
    write_agent(&polite, &Agent { name: "polite", ..HELLO });
    let checks = "eval:
  agent_name: polite
  checks:
    - { name: greets, type: contains, field: greeting, expected: Hello }
    - { name: is formal, type: contains, field: greeting, expected: Dear }
";
    fs::write(polite.join("polite/eval.yaml"), checks).expect("written");
    let mut session = laptop.session("Traces");
    let show = |agent: &str| {
        format!("atlasctl job list --agent {agent} -o name | xargs atlasctl trace show | sed 's/  */ /g'")
    };
    session.run("atlasctl run hello name=Ada");
    session.run(&show("hello"));
    session.run("atlasctl run breaks");
    session.run(&show("breaks"));
    session.run("atlasctl deploy polite/polite -q && atlasctl run polite name=Ada");
    session.run(&show("polite"));
    session.run("atlasctl init summarize --template llm -q && atlasctl deploy ./summarize -q");
    session.run("atlasctl run summarize text=Atlas -q");
    session.run(&show("summarize"));
    session.run("atlasctl job list --agent polite -o name | xargs atlasctl trace show -o jsonpath=trace.status");
    session.run("atlasctl trace show job-0000000000000000");
    expect_file!["../transcripts/traces.txt"].assert_eq(&session.page());
}
