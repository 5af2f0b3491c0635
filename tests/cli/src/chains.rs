//! Chains: minute 5:00 of the first ten minutes, and the verbs around it.

use std::fs;

use atlas_cluster_tests::Agent;
use atlas_llm_server::{Reply, Server};
use expect_test::expect_file;
use serde_json::json;

use crate::first_minutes::HELLO;
use crate::laptop::Laptop;

/// An agent whose output only a model could convert.
const SIGN: Agent<'static> = Agent {
    name: "sign",
    version: "1.0.0",
    contract: "  input:
    schema:
      type: object
      properties: { zzz: { type: string } }
      required: [zzz]",
    script: "cat",
};

/// An agent to which no greeting can be converted.
const COUNT: Agent<'static> = Agent {
    name: "count",
    version: "1.0.0",
    contract: "  input:
    schema:
      type: object
      properties: { n: { type: integer } }
      required: [n]",
    script: "cat",
};

const CHAIN: &str = "chain:
  name: greet-and-sum
  description: Greets by a summary.
  steps:
    - agent: summarize
    - agent: hello
      input_map: { name: summary }
";

#[test]
fn two_agents_are_chained() {
    let laptop = Laptop::with(&[&HELLO, &SIGN, &COUNT]);
    let write = |name: &str, text: &str| fs::write(laptop.folder().join(name), text).expect("written");
    write("README.md", "Atlas runs agents.\n");
    write("chain.yaml", CHAIN);
    write("signed.yaml", "name: signed\nsteps: [{agent: hello}, {agent: sign}]\n");
    write("counted.yaml", "name: counted\nsteps: [{agent: hello}, {agent: count}]\n");
    write("unknown.yaml", "name: unknown\nsteps: [{agent: hello}, {agent: gone}]\n");
    write("empty.yaml", "name: empty\n");
    write("no-chain.yaml", "steps: []\n");
    let mut session = laptop.session("Two agents are chained");
    session.run("atlasctl chain list");
    session.run("atlasctl init summarize --template llm && atlasctl deploy ./summarize 2>/dev/null");
    session.run("cat chain.yaml");
    session.run("atlasctl chain check chain.yaml");
    session.run("atlasctl deploy chain.yaml && atlasctl run greet-and-sum text=@README.md");
    session
        .run("atlasctl chain run greet-and-sum text=@README.md --follow 2>&1 | sed 's/ [0-9]* in, / <tokens> in, /'");
    session.run("atlasctl chain run chain.yaml --input '{\"text\":\"a\"}' -o jsonpath=result.success");
    session.run("atlasctl run greet-and-sum text=a --detach");
    session.run("atlasctl run greet-and-sum text=a --budget 1");
    session.run("atlasctl run greet-and-sum wrong=a");
    session.run("atlasctl chain list");
    session.run("atlasctl chain show greet-and-sum | grep -v -e uid -e created -e updated -e revision");
    session.run("atlasctl chain graph greet-and-sum");
    session.run("atlasctl chain graph greet-and-sum --mermaid");
    session.run("atlasctl chain check signed.yaml");
    session.run("atlasctl chain check signed.yaml --no-bridge");
    session.run("atlasctl chain check counted.yaml");
    session.run("atlasctl chain check unknown.yaml");
    session.run("atlasctl chain check empty.yaml");
    session.run("atlasctl chain check no-chain.yaml");
    session.run("atlasctl chain check gone.yaml");
    session.run("atlasctl chain check gone");
    session.run("atlasctl deploy summarize/agent.yaml");
    session.run("atlasctl deploy empty.yaml");
    session.run("atlasctl deploy chain.yaml --dry-run");
    session.run("atlasctl run gone");
    session.run("atlasctl __complete chain show gr");
    session.run("atlasctl __complete run gr");
    session.run("atlasctl delete chain/greet-and-sum && atlasctl chain list -o name");
    expect_file!["../transcripts/chains.txt"].assert_eq(&session.page());
}

/// Steps side by side, one of them under a condition.
const TRIAGE: &str = "chain:
  name: triage
  steps:
    - agent: sort
    - agent: hello
      name: greeting
      atlas: { after: [step_0], timeout: 30, retry: { max_retries: 1, backoff_base: 0.1 } }
    - agent: alarm
      name: alarm
      atlas: { after: [step_0], if: \"output.priority == 'high'\", otherwise: end }
    - agent: report
      atlas: { after: [greeting, alarm] }
      input_map:
        text: $.greeting.greeting
        ticket: $.alarm.ticket
";

#[test]
fn branches_run_side_by_side() {
    let agent = |name, input, script| Agent { name, version: "1.0.0", contract: input, script };
    let sort = agent(
        "sort",
        "  output:
    schema:
      type: object
      properties: { name: { type: string }, priority: { type: string } }
      required: [name, priority]",
        r#"read -r line; case "$line" in *fire*) echo '{"name":"Ada","priority":"high"}';; *) echo '{"name":"Ada","priority":"low"}';; esac"#,
    );
    let alarm = agent(
        "alarm",
        "  output:
    schema:
      type: object
      properties: { ticket: { type: string } }
      required: [ticket]",
        r#"echo '{"ticket":"T-1"}'"#,
    );
    let report = agent(
        "report",
        "  input:
    schema:
      type: object
      properties: { text: { type: string }, ticket: { type: string } }
      required: [text]
  output:
    schema:
      type: object
      properties: { input: { type: object } }",
        r#"read -r line; case "$line" in *T-1*) echo '{"input":{"alarm":true}}';; *) echo '{"input":{"alarm":false}}';; esac"#,
    );
    let laptop = Laptop::with(&[&HELLO, &sort, &alarm, &report]);
    let write = |name: &str, text: &str| fs::write(laptop.folder().join(name), text).expect("written");
    write("triage.yaml", TRIAGE);
    write("wrong.yaml", &TRIAGE.replace("output.priority ==", "output.priority ="));
    write("late.yaml", &TRIAGE.replace("after: [step_0], timeout", "after: [alarm], timeout"));
    let mut session = laptop.session("Branches run side by side");
    session.run("atlasctl chain check triage.yaml");
    session.run("atlasctl chain graph triage.yaml");
    session.run("atlasctl chain graph triage.yaml --mermaid");
    session.run("atlasctl chain check wrong.yaml");
    session.run("atlasctl deploy late.yaml");
    session.run("atlasctl deploy triage.yaml && atlasctl run triage about=fire 2>&1 | sort -k3");
    session.run("atlasctl chain run triage about=tea 2>&1 | sort -k3");
    expect_file!["../transcripts/branches.txt"].assert_eq(&session.page());
}

/// A model that answers wrong, then right, then never right.
#[test]
fn a_model_connects_two_agents() {
    let server = Server::start(|_, number| {
        let text = match number {
            0 => "I cannot do that",
            1 => "```json\n{\"zzz\": \"converted\"}\n```",
            _ => "{}",
        };
        Reply::Message { content: vec![json!({"type": "text", "text": text})], tokens: [10, 5] }
    });
    let server = server.expect("a server");
    let laptop = Laptop::with(&[&HELLO, &SIGN]);
    fs::write(laptop.folder().join("signed.yaml"), "name: signed\nsteps: [{agent: hello}, {agent: sign}]\n")
        .expect("written");
    let mut session = laptop.session("A model connects two agents");
    session.run("atlasctl chain run signed.yaml name=Ada");
    // A variable that cargo sets for every test, and so for the worker of `dev`.
    session.quiet(&format!(
        "atlasctl model add fast --provider anthropic --name tiny --base-url {} --key '${{CARGO_PKG_NAME}}'",
        server.base_url()
    ));
    session.run("atlasctl chain check signed.yaml");
    session.run("atlasctl chain run signed.yaml name=Ada");
    session.run("atlasctl job list --agent chain-bridge --columns status,labels | tr -s ' '");
    session.run("atlasctl chain run signed.yaml name=Ada");
    expect_file!["../transcripts/chain-bridge.txt"].assert_eq(&session.page());
}

/// Fails until its second attempt, which finds a file.
const FLAKY: Agent<'static> = Agent {
    name: "flaky",
    version: "1.0.0",
    contract: "  retry: { max_retries: 1, backoff_base: 0.1 }
  permissions: { filesystem: [read, write] }
  input:
    schema:
      type: object
      properties: { at: { type: string } }
      required: [at]
  output:
    schema:
      type: object
      properties: { at: { type: string } }
      required: [at]",
    script: r#"at=$(sed -n 's/.*"at": *"\([^"]*\)".*/\1/p')
if [ -e "$at" ]; then printf '{"at": "%s"}' "$at"; else touch "$at"; echo not yet >&2; exit 1; fi"#,
};

/// Returns what its contract does not permit.
const WRONG: Agent<'static> = Agent {
    name: "wrong",
    version: "1.0.0",
    contract: "  output:
    schema:
      type: object
      properties: { n: { type: integer } }
      required: [n]",
    script: r#"echo '{"n": "three"}'"#,
};

const BROKEN: &str = "name: broken
desciption: x
steps:
  - agent: flaky
  - agent: hello
    name: greet
    input_map: { name: $.att, nmae: at }
";

#[test]
fn an_execution_answers_the_verbs_of_jobs() {
    let laptop = Laptop::with(&[&HELLO, &FLAKY, &WRONG, &COUNT]);
    let write = |name: &str, text: &str| fs::write(laptop.folder().join(name), text).expect("written");
    write("good.yaml", "name: good\nsteps: [{agent: flaky}, {agent: hello, name: greet, input_map: {name: at}}]\n");
    write("bad.yaml", "name: bad\nsteps: [{agent: hello}, {agent: wrong}]\n");
    write("counting.yaml", "name: counting\nsteps: [{agent: count}]\n");
    write("broken.yaml", BROKEN);
    let mut session = laptop.session("A run of a chain answers the verbs of jobs");
    session.quiet("atlasctl deploy good.yaml bad.yaml");
    let started = session.run("atlasctl run good at=$PWD/first --detach").trim().to_owned();
    let times = r"sed -E 's/[0-9.]+ (ms|s)/<time>/g; s/ *━+//; s/<1 ms/<time>/g' | tr -s ' '";
    session.run(&format!("atlasctl job wait {started}"));
    session.run(&format!("atlasctl job show {started} | {times}"));
    session.run(&format!("atlasctl job tree {started} | {times}"));
    session.run(&format!("atlasctl job logs {started} | tr -s ' '"));
    session.run(&format!("atlasctl job cost {started}"));
    session.run(&format!("atlasctl job trace {started} -o jsonpath=trace.steps[*].status"));
    session.run(&format!("atlasctl job result {started} | sed 's|/.*/|<folder>/|'"));
    session.run(&format!("atlasctl wait job {started} --for completed"));
    session.run(&format!("atlasctl job events {started} -o name"));
    session.run(&format!("atlasctl job watch {started} --quiet -o name"));
    session.run(&format!("atlasctl job steps {started}"));
    session.run(&format!("atlasctl job explain {started}"));
    session.run(&format!("atlasctl job cancel {started}"));
    // One document, whatever the number of jobs.
    session.run(&format!("atlasctl job events {started} -o json | grep -c '^\\['"));
    session.run(&format!("atlasctl job watch {started} --quiet -o json | grep -c '^\\['"));
    session.run(&format!("atlasctl job steps {started} --quiet -o json"));
    session.run(&format!("atlasctl job show {started} {started} --quiet -o json | grep -c '^\\['"));
    let again = session.run(&format!("atlasctl job retry {started}")).trim().to_owned();
    session.run(&format!("atlasctl job wait {again} --quiet | sed 's|/.*/|<folder>/|'"));
    for verb in [
        "retry ID --resume",
        "fork ID --from-step 1",
        "answer ID yes",
        "message ID --text hi",
        "resolve ID --run-again",
        "erase ID --yes",
    ] {
        session.run(&format!("atlasctl job {}", verb.replace("ID", &started)));
    }
    session.run("atlasctl chain runs --status completed -o csv | cut -d, -f2-4");
    // One key starts one run.
    let keyed = |arguments: &str| format!("atlasctl run good {arguments} --idempotency-key once --detach --quiet");
    let first = session.run(&keyed("at=$PWD/keyed")).trim().to_owned();
    assert_eq!(session.run(&keyed("at=$PWD/keyed")).trim(), first);
    session.run(&keyed("at=$PWD/other"));
    // Values get the types that the first agent wants.
    session.run("atlasctl chain run counting.yaml n=5 m=5");
    // The id of a failed job leads to its retry.
    let first = session.quiet(&format!("atlasctl job tree {started} -o jsonpath=children[0].id"));
    session.run(&format!("atlasctl job wait {} | sed 's|/.*/|<folder>/|'", first.trim()));
    session.run(&format!("atlasctl job wait {} --no-retry-wait", first.trim()));
    session.run(&format!("atlasctl job tree {} | {times}", first.trim()));
    session.run("atlasctl run bad name=Ada");
    session.run("atlasctl chain check broken.yaml");
    expect_file!["../transcripts/chain-runs.txt"].assert_eq(&session.page());
}
