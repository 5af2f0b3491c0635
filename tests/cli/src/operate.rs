//! Versions, wishes, contexts, and what is wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use atlas_cluster_tests::{Agent, Dev, LONG, eventually, write_agent};
use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::session::Session;

#[test]
fn versions_and_wishes() {
    let folder = tempfile::tempdir().expect("a folder");
    let wishes = folder.path().join("wishes");
    write_agent(&wishes, &HELLO);
    let dev = Dev::start(folder.path(), ["--ephemeral"]);
    let mut session = Session::new("Versions and wishes", folder.path(), Some(dev.server()));
    session.run("atlasctl diff -f wishes");
    session.run("atlasctl apply -f wishes --dry-run");
    session.run("atlasctl apply -f wishes");
    session.run("atlasctl apply -f wishes");
    session.run("atlasctl diff -f wishes");
    session.run("atlasctl get agent -o yaml | atlasctl apply -f -");
    session.run("atlasctl get node/laptop -o yaml > node.yaml; atlasctl apply -f node.yaml");
    session.run("sed -i 's/cordoned: false/cordoned: true/' node.yaml; atlasctl diff -f node.yaml");
    session.run("atlasctl apply -f node.yaml; atlasctl node list --columns node,state");
    session.run("atlasctl node uncordon laptop");
    let newer = HELLO.contract.replace("minLength: 1", "minLength: 2");
    write_agent(&wishes, &Agent { version: "0.2.0", contract: &newer, ..HELLO });
    session.run("atlasctl apply -f wishes");
    session.run("atlasctl agent versions hello");
    session.run("atlasctl agent diff hello@0.1.0 hello");
    session.run("atlasctl agent diff hello wishes/hello");
    session.run("atlasctl delete agent hello");
    session.run("atlasctl delete agent/hello@0.1.0");
    session.run("atlasctl agent versions hello -o name");
    session.run("atlasctl run hello --version 0.1.0 name=Ada");
    session.run("atlasctl run hello --version '^0.2.0' name=Ada -q");
    session.run("atlasctl describe node laptop");
    session.run("atlasctl get job --limit 1 --columns agent,status");
    session.run("atlasctl get pods");
    session.run("atlasctl describe agent nobody");
    session.run("echo '{agent_name: x, input_data: {}}' | atlasctl apply -f -");
    session.run("echo '{name: x, version: 1.0.0, digest: none}' | atlasctl apply -f -");
    expect_file!["../transcripts/wishes.txt"].assert_eq(&session.page());
}

#[test]
fn what_waits_is_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let agents = folder.path().join("agents");
    let waits = Agent { name: "waits", version: "1.0.0", contract: "  concurrency: 1", script: "sleep 60; echo '{}'" };
    write_agent(&agents, &waits);
    let dev = Dev::start(folder.path(), ["--ephemeral", "--agents", "./agents"]);
    let mut session = Session::new("What waits", folder.path(), Some(dev.server()));
    let first = session.quiet("atlasctl run waits --detach --idempotency-key a");
    assert_eq!(session.quiet("atlasctl run waits --detach --idempotency-key a"), first);
    let first = first.trim();
    let second = session.quiet("atlasctl run waits --detach --label batch=1 --priority 3");
    let second = second.trim();
    eventually("the first runs", LONG, || {
        session.quiet("atlasctl job list --status running -o name").contains(first).then_some(())
    });
    session.run(&format!("atlasctl explain {second}"));
    session.run(&format!("atlasctl explain {first}"));
    session.run("atlasctl run waits --timeout 100ms --label batch=1");
    session.run(&format!("atlasctl job result {second}"));
    session.run("atlasctl job batch cancel --label batch=1 --dry-run --sort age -o 'jsonpath=$[*].gone'");
    session.run("atlasctl job batch cancel --label batch=1 < /dev/null");
    session.run("atlasctl job batch cancel --label batch=1 --yes -o 'template=done'");
    session.run(&format!("atlasctl job wait {second}"));
    session.run(&format!("atlasctl delete job/{first}"));
    session.run(&format!("atlasctl job wait {first}"));
    session.run(&format!("atlasctl job retry {first} -o 'template=again'"));
    session.quiet("atlasctl job batch cancel --yes");
    expect_file!["../transcripts/waits.txt"].assert_eq(&session.page());
}

#[test]
fn clusters_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(folder.path(), ["--ephemeral"]);
    let mut session = Session::new("Clusters by name", folder.path(), None);
    let config = "ATLAS_CONFIG=./atlas.toml atlasctl";
    session.run(&format!("{config} context list"));
    session.run(&format!("{config} context add here --server {}", dev.server()));
    session.run(&format!("{config} context add there --server http://127.0.0.1:1"));
    session.run(&format!("{config} context list"));
    session.run("stat -c %a atlas.toml");
    session.run(&format!("{config} node list -o name"));
    session.run(&format!("{config} --context there node list"));
    session.run(&format!("{config} context use ther"));
    session.run(&format!("{config} config set hints off"));
    session.run(&format!("{config} job list"));
    session.run(&format!("{config} context remove here"));
    session.run(&format!("{config} context show"));
    fs::set_permissions(folder.path().join("atlas.toml"), fs::Permissions::from_mode(0o644)).expect("set");
    session.run(&format!("{config} context list"));
    session.run(&format!("{config} --server {} node list -o name", dev.server()));
    session.run(&format!("{config} node list -o name"));
    expect_file!["../transcripts/contexts.txt"].assert_eq(&session.page());
}

#[test]
fn doctor_finds_nothing_and_something() {
    let folder = tempfile::tempdir().expect("a folder");
    let dev = Dev::start(folder.path(), ["--ephemeral"]);
    let mut session = Session::new("Doctor", folder.path(), Some(dev.server()));
    // How fast the disk is and how full depends on the machine.
    session.run("atlasctl doctor | grep -v storage");
    session.quiet("atlasctl node cordon laptop");
    session.run("atlasctl doctor -q > warnings.txt; echo $?; grep workers warnings.txt");
    session.run("atlasctl docs | head -n 4");
    session.run("atlasctl docs fixtures | head -n 1");
    session.run("atlasctl docs fixture");
    session.run("atlasctl completion bash | head -n 1");
    session.run("atlasctl completion tcsh");
    expect_file!["../transcripts/doctor.txt"].assert_eq(&session.page());
}
