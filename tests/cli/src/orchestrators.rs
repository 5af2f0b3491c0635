//! Orchestrators: selected, tried as a candidate, and what happens to jobs.

use std::fs;

use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::laptop::Laptop;

const CONTRACT: &str = "agent: { name: strict, version: 1.0.0, type: orchestrator }\n";

const PROGRAM: &str = r#"from atlas.orchestrator.protocol import RoutingDecision


class Strict:
    async def route(self, job, registry):
        if "name" not in job.input_data:
            return RoutingDecision(action="reject", metadata={"reason": "nobody to greet"})
        return RoutingDecision(priority=5)

    async def on_job_complete(self, job):
        pass

    async def on_job_failed(self, job):
        pass
"#;

#[test]
fn an_orchestrator_is_tried_and_selected() {
    let laptop = Laptop::with(&[&HELLO]);
    let agent = laptop.folder().join("strict");
    fs::create_dir(&agent).expect("a folder");
    fs::write(agent.join("agent.yaml"), CONTRACT).expect("written");
    fs::write(agent.join("agent.py"), PROGRAM).expect("written");
    let mut session = laptop.session("An orchestrator is tried and selected");
    session.run("atlasctl orchestrator show");
    session.run("atlasctl deploy strict --quiet");
    session.run("atlasctl orchestrator list");
    session.run("atlasctl orchestrator set nobody");
    session.run("atlasctl orchestrator set hello");
    session.run("atlasctl orchestrator set strict --deadline 5s --fallback reject");
    session.run("atlasctl orchestrator show");
    session.run("atlasctl run hello name=Ada --quiet");
    session.run("atlasctl run hello --quiet");
    session.run("atlasctl run strict --quiet");
    session.run("atlasctl -n other orchestrator show");
    session.run("atlasctl orchestrator compare");
    session.run("atlasctl orchestrator set nobody --shadow");
    session.run("atlasctl orchestrator set strict --shadow");
    session.run("atlasctl orchestrator reset");
    session.run("atlasctl orchestrator show");
    session.run("atlasctl orchestrator rollback");
    session.run("atlasctl orchestrator show");
    expect_file!["../transcripts/orchestrators.txt"].assert_eq(&session.page());
}

const RULES: &str = r#"orchestrator:
  name: office
  description: Rules of the office.
  rules:
    - name: nobody
      if: "!has(job.input_data.name)"
      reject: nobody to greet
    - name: loud
      if: job.input_data.name == job.input_data.name.upperAscii() && labels.team == "quiet"
      reject: no shouting
    - if: agent.name == "hello" && size(job.input_data.name) > 3
      priority: 5
"#;

#[test]
fn rules_are_tried_selected_and_explained() {
    let laptop = Laptop::with(&[&HELLO]);
    fs::write(laptop.folder().join("rules.yaml"), RULES).expect("written");
    let wrong = RULES.replace("job.input_data.name.upperAscii()", "job.input_data.name.shout()");
    fs::write(laptop.folder().join("wrong.yaml"), wrong).expect("written");
    let mut session = laptop.session("Rules decide on jobs");
    session.run("atlasctl orchestrator set wrong.yaml");
    session.run("atlasctl orchestrator set rules.yaml --shadow");
    session.run("atlasctl orchestrator list");
    session.run("atlasctl orchestrator swap");
    session.run("atlasctl run hello name=Ada --quiet");
    session.run("atlasctl run hello name=ADA --label team=quiet --quiet");
    session.run("atlasctl run hello name=Grace --label team=loud --quiet");
    session.run("atlasctl job list --agent hello --limit 2 -o name 2>/dev/null | tail -1 | xargs atlasctl job explain | grep orchestrator");
    session.run("atlasctl job list --agent hello --limit 1 -o name 2>/dev/null | xargs atlasctl job explain | grep orchestrator");
    session.run("atlasctl delete orchestrator office --yes");
    session.run("atlasctl orchestrator reset > /dev/null && atlasctl delete orchestrator office --yes");
    expect_file!["../transcripts/rules.txt"].assert_eq(&session.page());
}
