//! Graphs: checked and drawn, without a server.

use std::fs;
use std::path::Path;

use expect_test::expect_file;

use crate::laptop::Laptop;

const GRAPH: &str = "name: review
start: draft
nodes:
  draft: { type: llm, prompt: \"Write about {{initial_prompt}}.\", next: check }
  check: { type: script, script: check.py, next: done, fallback: failed }
  done: { type: end, output: \"{{verdict}}\" }
  failed: { type: end, output: FAILED }
";

#[test]
fn graphs_are_checked_and_drawn() {
    let laptop = Laptop::with(&[]);
    let write = |folder: &str, graph: &str| {
        let folder = laptop.folder().join(folder);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("graph.yaml"), graph).expect("written");
        fs::write(folder.join("check.py"), "print('{}')\n").expect("written");
    };
    write("review", GRAPH);
    write("wrong", &GRAPH.replace("next: done", "next: donee"));
    write("broken", "name: [\n");
    let mut session = laptop.session("Graphs are checked and drawn");
    session.run("atlasctl graph check review");
    session.run("atlasctl graph check wrong");
    session.run("atlasctl graph check broken");
    session.run("atlasctl graph check nowhere");
    session.run("atlasctl graph show review");
    session.run("atlasctl graph show review --mermaid");
    expect_file!["../transcripts/graphs.txt"].assert_eq(&session.page());
}

/// The console output in the pages on graphs and Loki agents.
#[test]
fn graphs_and_normal_agents_run() {
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("Graphs and Loki agents run");
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/bundled");
    for agent in ["brief", "tally"] {
        session.quiet(&format!("atlasctl deploy {}", agents.join(agent).display()));
    }
    session.run("atlasctl run brief message='A lease lets one node run a job.' -o jsonpath={.output_data.text}");
    session.run(
        "atlasctl run tally message='How many words does \"to be or not to be\" have?' -o jsonpath={.output_data.text}",
    );
    let write = |file: &str, text: &str| {
        let folder = laptop.folder().join("gate");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(file), text).expect("written");
    };
    write("graph.yaml", GATE);
    write(
        "work.sh",
        "[ \"$LLM_AGENT_VAR_MODE\" = works ] || { echo 'no such mode' >&2; exit 3; }\necho '{\"done\": true}'\n",
    );
    session.run("atlasctl deploy gate");
    session.run("atlasctl graph run gate message=x --questions answer:yes");
    session.run("atlasctl graph run gate --input '{\"message\":\"x\",\"variables\":{\"mode\":\"works\"}}' --questions answer:yes -o jsonpath={.output_data.text}");
    session.run("atlasctl graph run gate message=x");
    let id = session.run("atlasctl run gate --input '{\"message\":\"x\",\"variables\":{\"mode\":\"works\"}}' --questions answer:yes --detach");
    session.run(&format!("atlasctl graph watch {}", id.trim()));
    let loki = |file: &str, text: &str| {
        let path = laptop.folder().join("loki").join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("written");
    };
    loki("agents/gate/graph.yaml", GATE);
    loki("agents/gate/work.sh", "echo '{}'\n");
    loki(
        "agents/talk/config.yaml",
        "name: Talk\nversion: '2.1'\nglobal_tools: [now.sh]\ndocuments: [notes, 'https://example.com/tides']\n",
    );
    loki("agents/talk/notes/tides.md", "The moon causes the tides.\n");
    loki("functions/tools/now.sh", "# @describe Tells the time.\nmain() { date > \"$LLM_OUTPUT\"; }\n");
    session.run("atlasctl import loki loki --replace");
    expect_file!["../transcripts/graph-runs.txt"].assert_eq(&session.page());
}

const GATE: &str = "name: gate
start: ok
variables:
  - { name: mode, description: How it works., default: fails }
nodes:
  ok: { type: approval, question: \"Do {{initial_prompt}}?\", options: [\"yes\"], routes: { \"yes\": work }, on_other: stop }
  work: { type: script, script: work.sh, next: done }
  done: { type: end, output: \"{{initial_prompt}} is done\" }
  stop: { type: end, output: stopped }
";
