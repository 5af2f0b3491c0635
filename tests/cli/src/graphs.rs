//! Graphs: checked and drawn, without a server.

use std::fs;

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
