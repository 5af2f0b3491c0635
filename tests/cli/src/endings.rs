//! What `run` says about a job that ended: a text that is not whole, and where to read on after a failure.

use std::fs;

use expect_test::expect_file;

use crate::laptop::Laptop;

const WRITER: &str = "agent:
  name: writer
  version: 1.0.0
  provider: { type: llm, output_format: text, max_tokens: 20 }
";

const EXEC: &str = "agent:
  name: NAME
  version: 1.0.0
  provider: { type: exec, command: [\"./agent.sh\"] }
";

#[test]
fn ends_of_jobs_say_what_is_missing_and_where_to_read_on() {
    let laptop = Laptop::with(&[]);
    let folder = laptop.folder().join("writer");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("agent.yaml"), WRITER).expect("written");
    fs::write(folder.join("mock.yaml"), "- {match: '*', text: Once upon a, stop: length}\n").expect("written");
    for (name, script) in [("silent", "exit 3"), ("talker", "echo half way >&2; exit 3")] {
        let folder = laptop.folder().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("agent.yaml"), EXEC.replace("NAME", name)).expect("written");
        let file = folder.join("agent.sh");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    }
    let mut session = laptop.session("Ends of jobs");
    session.quiet("atlasctl deploy writer");
    session.quiet("atlasctl deploy silent");
    session.quiet("atlasctl deploy talker");
    session.run("atlasctl run writer");
    session.run("atlasctl run silent");
    session.run("atlasctl run talker");
    session.run("atlasctl job list --status failed -o jsonpath='{[*].error_code}'");
    expect_file!["../transcripts/endings.txt"].assert_eq(&session.page());
}
