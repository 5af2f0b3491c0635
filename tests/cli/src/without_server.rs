//! Errors of `atlasctl` for wrong use, and without a server.

use atlas_cluster_tests::write_agent;
use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::session::Session;

#[test]
fn nothing_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    // Port 1 is reserved, so no server listens there.
    let mut session = Session::new("Nothing answers", folder.path(), Some("http://127.0.0.1:1"));
    session.run("atlasctl job list");
    session.run("atlasctl run hello name=Ada");
    session.run("atlasctl version");
    expect_file!["../transcripts/no-server.txt"].assert_eq(&session.page());
}

#[test]
fn every_verb_says_that_nothing_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(folder.path(), &HELLO);
    let mut session = Session::new("Nothing answers", folder.path(), Some("http://127.0.0.1:1"));
    let verbs = [
        "deploy hello",
        "deploy hello --watch",
        "run x",
        "run x a=b",
        "run x --follow --wait",
        "logs x",
        "logs x -f",
        "logs node/x",
        "explain x",
        "top",
        "doctor",
        "doctor --bundle x.tgz",
        "job list",
        "job list -w",
        "job show x",
        "job watch x",
        "job logs x",
        "job events x",
        "job explain x",
        "job result x",
        "job wait x",
        "job cancel x",
        "job retry x",
        "job resolve x --run-again",
        "job batch retry --yes",
        "agent list",
        "agent search x",
        "agent show x",
        "agent schema x",
        "agent versions x",
        "agent diff x y",
        "agent deprecate x 1.0.0",
        "agent retire x 1.0.0",
        "node list",
        "node list -w",
        "node show x",
        "node gpus",
        "node drain x",
        "node cordon x",
        "node uncordon x",
        "node remove x",
        "cluster status",
        "cluster members",
        "cluster join-token",
        "cluster transfer-leader",
        "cluster remove x --yes",
        "event tail",
        "get job",
        "get job x",
        "get node x -w",
        "describe agent x",
        "apply -f hello",
        "diff -f hello",
        "delete node x",
        "edit node x",
        "wait job x",
        "wait controller x",
    ];
    for verb in verbs {
        let told = session.quiet(&format!("atlasctl {verb} 2>&1; echo exit $?"));
        assert!(told.contains("error[E4002]: could not reach Atlas at http://127.0.0.1:1: "), "{verb}: {told}");
        assert!(told.contains("\nstart one: atlasctl dev"), "{verb}: {told}");
        assert!(told.ends_with("exit 3\n"), "{verb}: {told}");
    }
}

#[test]
fn bad_input_is_told_where_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("broken.json"), "{\"a\": }").expect("written");
    std::fs::create_dir_all(folder.path().join("wrong/tests")).expect("made");
    std::fs::write(folder.path().join("wrong/agent.yaml"), "agent:\n  nmae: x\n  version: 1.0\n").expect("written");
    let mut session = Session::new("Bad input", folder.path(), Some("http://127.0.0.1:1"));
    session.run("atlasctl run x --input @broken.json");
    session.run("atlasctl run x --input @missing.json");
    session.run("echo nonsense | atlasctl run x --input -");
    session.run("atlasctl run x --at yesterday");
    session.run("atlasctl run x --label demo");
    session.run("atlasctl run x --detach --follow");
    session.run("atlasctl deploy wrong");
    session.run("atlasctl test wrong");
    session.run("atlasctl deploy .");
    session.run("atlasctl deploy nowhere");
    session.run("atlasctl test nowhere");
    session.run("atlasctl apply -f broken.json");
    session.run("atlasctl apply -f missing.yaml");
    session.run("atlasctl init ..");
    session.run("atlasctl job list -o template={");
    session.run("atlasctl job list --limit 0");
    session.run("atlasctl --server ftp://x job list");
    session.run("atlasctl docs nothing");
    session.run("atlasctl explain-error e1121 | head -n 1");
    expect_file!["../transcripts/bad-input.txt"].assert_eq(&session.page());
}

#[test]
fn wrong_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = Session::new("Wrong use", folder.path(), None);
    session.run("atlasctl");
    session.run("atlasctl jobs");
    session.run("atlasctl run");
    session.run("atlasctl run hello --input '{'");
    session.run("atlasctl run hello name=Ada --input '{}'");
    session.run("atlasctl job wait x --timeout soon");
    session.run("atlasctl job wait x --timeout -5s");
    session.run("atlasctl job list --limit -1");
    session.run("atlasctl init 'Bad Name'");
    session.run("atlasctl --server 'http://a b' job list");
    session.run("atlasctl --server '' job list");
    session.run("ATLAS_SERVER=, atlasctl job list");
    session.run("ATLAS_SERVER= atlasctl context add x");
    session.run("atlasctl --version");
    session.run("echo '{\"input\": {\"text\": \"one two\"}, \"context\": {}}' | atlasctl agent-exec wordcount");
    expect_file!["../transcripts/wrong-use.txt"].assert_eq(&session.page());
}

#[test]
fn a_broken_program_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, provider: &str, file: &str, text: &str| {
        let dir = folder.path().join(name);
        std::fs::create_dir_all(&dir).expect("made");
        let contract = format!("agent:\n  name: {name}\n  version: 0.1.0\n  provider: {provider}\n");
        std::fs::write(dir.join("agent.yaml"), contract).expect("written");
        if !file.is_empty() {
            std::fs::write(dir.join(file), text).expect("written");
        }
    };
    let base = "from atlas.runtime.base import AgentBase\n";
    write("syntax", "python", "agent.py", "class A:\n    x = = 1\n");
    write("module", "python", "agent.py", &format!("{base}import no_such_module\nclass A(AgentBase):\n    pass\n"));
    write("class", "python", "agent.py", base);
    write("absent", "python", "", "");
    write("mode", "{type: exec, command: [./agent.sh]}", "agent.sh", "#!/bin/sh\n");
    write("gone", "{type: exec, command: [./agent.sh]}", "", "");
    write("command", "exec", "", "");
    let mut session = Session::new("Broken programs", folder.path(), Some("http://127.0.0.1:1"));
    for name in ["syntax", "module", "class", "absent", "mode", "gone", "command"] {
        session.run(&format!("atlasctl deploy {name}"));
    }
    session.run("atlasctl test module");
    session.run("atlasctl deploy module --no-test --dry-run");
    // The modules of a deployment of Pallas are checked as well.
    let file = "name: x\nagents:\n  one: {module: gone, port: 9001}\n";
    std::fs::write(folder.path().join("agents.yaml"), file).expect("written");
    session.run("atlasctl import pallas agents.yaml --dry-run");
    expect_file!["../transcripts/broken-programs.txt"].assert_eq(&session.page());
}
