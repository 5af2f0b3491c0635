//! Commands that follow events, log lines and changes.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use atlas_cluster_tests::Agent;
use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::laptop::Laptop;

/// A script that logs its input.
const TALKS: &str = r#"sed -n 's/.*"text": *"\([^"]*\)".*/it says \1/p' >&2
echo '{}'"#;

#[test]
fn events_of_a_type() {
    let laptop = Laptop::with(&[&HELLO]);
    let mut session = laptop.session("Events of a type");
    while_jobs_run(&laptop, || {
        session.run("atlasctl event tail --type leased --limit 1");
        session.run("atlasctl event tail --type granted --limit 1");
        session.run("atlasctl event tail --type accepted --limit 1 -o 'template={change}: {new_status}'");
    });
    session.run("atlasctl event tail --kind agent --name hello --after 0 --limit 1");
    session.run("atlasctl event tail --kind node --after 0 --limit 1 -o name");
    session.run("atlasctl event tail --kind node,cluster --after 0 --limit 1 -o 'template={kind} {name}: {change}'");
    session.run("atlasctl event tail --kind nodes");
    session.run("atlasctl event tail --type finished");
    expect_file!["../transcripts/events.txt"].assert_eq(&session.page());
}

#[test]
fn logs_of_an_agent_and_of_a_node() {
    let laptop = Laptop::with(&[&HELLO, &Agent { name: "talks", version: "1.0.0", contract: "", script: TALKS }]);
    let mut session = laptop.session("Logs of an agent and of a node");
    session.run("atlasctl logs talks");
    session.quiet("atlasctl run talks text=one");
    session.quiet("atlasctl run hello name=Ada");
    session.quiet("atlasctl run talks text=two");
    session.run("atlasctl logs talks");
    session.run("atlasctl logs agent/talks --jobs 1");
    session.run("atlasctl logs laptop");
    session.run("atlasctl logs node/laptop --since 1h --level error");
    session.run("atlasctl logs talks -o 'template={text}'");
    session.run("atlasctl logs talks -o jsonpath='$[*].text'");
    session.run("atlasctl logs nobody");
    session.run("atlasctl logs controller/c1");
    let mut followed = session.follow("atlasctl logs talks --follow");
    followed.prints("it says two");
    session.quiet("atlasctl run talks text=three");
    followed.prints("it says three");
    session.interrupt(followed);
    expect_file!["../transcripts/logs.txt"].assert_eq(&session.page());
}

#[test]
fn lists_that_go_on() {
    let gates = tempfile::tempdir().expect("a folder");
    let gate = gates.path().join("open");
    let script = format!("until [ -e {} ]; do sleep 0.05; done; echo '{{}}'", gate.display());
    let waits = Agent { name: "waits", version: "1.0.0", contract: "", script: &script };
    let laptop = Laptop::with(&[&HELLO, &waits]);
    let mut session = laptop.session("Lists that go on");
    let id = session.quiet("atlasctl run waits --detach");
    session.quiet(&format!("atlasctl wait job {} --for running", id.trim()));
    let mut followed = session.follow(&format!("atlasctl get job {} --watch --columns agent,status", id.trim()));
    followed.prints("running");
    fs::write(&gate, "").expect("the gate opens");
    session.ends(followed);
    session.run(&format!("atlasctl get job {} -w -o jsonl | cut -c 1-11", id.trim()));
    while_jobs_run(&laptop, || {
        session.run("atlasctl job list --agent hello --limit 1 -w --columns agent | head -n 5");
        session.run(
            "atlasctl job list --filter 'status == \"completed\"' --limit 1 -w -o jsonpath='$[*].status' | head -n 3",
        );
    });
    let mut followed = session.follow("atlasctl node list --watch --columns node,state");
    followed.prints("laptop  ready");
    session.quiet("atlasctl node cordon laptop");
    followed.prints("cordoned");
    session.quiet("atlasctl node uncordon laptop");
    followed.prints("laptop  ready");
    session.interrupt(followed);
    let mut followed = session.follow("atlasctl agent list -w --filter 'name == \"hello\"' --columns agent,version");
    followed.prints("hello");
    session.quiet("atlasctl agent deprecate hello 0.1.0");
    followed.prints("deprecated");
    session.interrupt(followed);
    session.run("atlasctl node list --watch -o json");
    session.run("atlasctl get controller -w");
    session.run("atlasctl get node/nowhere -w");
    expect_file!["../transcripts/lists-that-go-on.txt"].assert_eq(&session.page());
}

/// Runs one job after another while `look` runs, so that there are always new events.
fn while_jobs_run(laptop: &Laptop, look: impl FnOnce()) {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Dropping the guard stops the thread, also if `look` panics; otherwise the scope would wait for the thread
        // forever.
        let _over = Over(&over);
        scope.spawn(|| {
            let mut jobs = laptop.session("");
            while !over.load(Ordering::Relaxed) {
                jobs.quiet("atlasctl run hello name=Ada");
            }
        });
        look();
    });
}

#[test]
fn a_run_follows_the_retries_of_its_contract() {
    let flaky = Agent {
        name: "flaky",
        version: "1.0.0",
        contract: "  retry: { max_retries: 2, backoff_base: 0.25 }",
        // Fails until the file in its input exists.
        script: r#"mark=$(sed -n 's/.*"mark": *"\([^"]*\)".*/\1/p')
[ -e "$mark" ] && echo '{"tried": "again"}' && exit; touch "$mark"; exit 3"#,
    };
    let fails = Agent { name: "fails", script: "exit 3", ..flaky };
    let laptop = Laptop::with(&[&flaky, &fails]);
    let mut session = laptop.session("A run and its retries");
    session.run("atlasctl run flaky mark=$PWD/mark");
    session.run("atlasctl run fails --no-retry-wait");
    session.run("atlasctl run fails");
    session.run("atlasctl run fails -o jsonpath=retry_count -q");
    session.run("atlasctl job show $(atlasctl job list --agent fails --sort created_at --limit 1 -q -o 'jsonpath=$[0].id') | grep retried");
    expect_file!["../transcripts/retries.txt"].assert_eq(&session.page());
}
