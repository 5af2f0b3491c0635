//! An upgrade as described on the operating pages: one cluster with programs of two versions, which are replaced one
//! after the other under load (B.43).
//!
//! The older program is the current one with `--level-max` set to the previous level. If `ATLAS_TEST_OLDER_BIN_DIR` is
//! the folder of an older release, its programs are used instead.

use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::members::{Load, Member, ask, get, jobs, token, voters};
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::older_programs;
use crate::trio::{self, NAMES, leader, register};

/// Returns its input.
const ECHO: Agent<'static> = Agent { name: "echo", version: "1.0.0", contract: "", script: "cat" };
/// Number of concurrent clients.
const CLIENTS: usize = 2;
/// Number of acknowledged jobs that show that clients are served.
const SOME: usize = 10;
/// The level of the older program. Deprecation, which the test uses, came with the next level.
const BEFORE: u64 = 2;

/// Sets the older program for the next starts of a member.
fn older(member: &mut Member) {
    match older_programs() {
        Some(folder) => member.runs_program(folder.join("atlas-controller"), &[]),
        None => member.runs_program(crate::program("atlas-controller"), &["--level-max", &BEFORE.to_string()]),
    }
}

/// Sets the current program for the next starts of a member.
fn current(member: &mut Member) {
    member.runs_program(crate::program("atlas-controller"), &[]);
}

/// Starts a worker of the older or the current version.
fn worker(folder: &std::path::Path, name: &str, members: &[&Member], old: bool) -> Process {
    let program = older_programs().filter(|_| old).map(|folder| folder.join("atlas-worker"));
    trio::worker_of(program.unwrap_or_else(|| crate::program("atlas-worker")), folder, name, members)
}

/// Deprecates an agent, which only the current program can do.
async fn deprecate(member: &Member) -> Result<Value, String> {
    let body = json!({"message": "use another one"});
    ask(member, Method::POST, "/api/agents/echo/versions/1.0.0/deprecate", body).await
}

/// Submits a job for the year 2100, which an older program would start immediately.
async fn submit_for_later(member: &Member) -> Result<Value, String> {
    let body = json!({"agent": "echo", "input": {}, "at": 4_102_444_800_u64});
    ask(member, Method::POST, "/api/jobs", body).await
}

/// The level of the cluster, as a member of the current version reports it.
async fn level(member: &Member) -> u64 {
    get(member, "/api/cluster").await.expect("it answers")["level"].as_u64().expect("a number")
}

/// How many places for jobs of `llm` agents the cluster counts on a node, once it is registered.
async fn llm_places(member: &Member, node: &str) -> u64 {
    let path = format!("/api/nodes/{node}");
    let found = eventually_async("the node is registered", async || get(member, &path).await).await;
    found["llm_places"].as_u64().expect("a number")
}

/// Stops a member in order and starts it again. As the page says, it then waits until all members are voters and up to
/// date.
async fn replace(members: &mut [Member; 3], which: usize, how: fn(&mut Member), load: &Load) {
    assert_eq!(members[which].end(), Some(0));
    how(&mut members[which]);
    members[which].restart();
    let name = members[which].name;
    for member in members.iter() {
        voters(member, &NAMES).await;
    }
    eventually_async("it is near the others", async || {
        let status = get(&members[which], "/api/cluster").await?;
        let applied = status["applied"].as_u64().unwrap_or(0);
        if applied + 64 >= status["commit"].as_u64().unwrap_or(u64::MAX) {
            Ok(())
        } else {
            Err(format!("{name}: {status}"))
        }
    })
    .await;
    load.goes_on(SOME).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_program_after_the_other_is_replaced_under_load_and_back_while_that_is_possible() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut first = Member::prepared(folder, NAMES[0]);
    older(&mut first);
    first.restart();
    register(&first, folder, &ECHO).await;
    let mut members = [first, Member::prepared(folder, NAMES[1]), Member::prepared(folder, NAMES[2])];
    for which in [1, 2] {
        older(&mut members[which]);
        let (join, token) = (members[0].peers.to_string(), token(&members[0]).await);
        members[which].restart_with(&["--join", &join, "--token", &token]);
    }
    voters(&members[2], &NAMES).await;
    let old = worker(folder, "w1", &members.each_ref(), true);
    let load = Load::start(ECHO.name, CLIENTS, &members[0]);
    load.knows(&members[1]);
    load.knows(&members[2]);
    load.goes_on(SOME).await;

    // The leader is replaced last.
    let last = leader(&members).await;
    let (one, other) = ((last + 1) % 3, (last + 2) % 3);
    replace(&mut members, one, current, &load).await;
    replace(&mut members, other, current, &load).await;
    for member in [one, other] {
        let refused = deprecate(&members[member]).await.expect_err("one of three does not know it");
        assert!(refused.contains("E4007"), "{refused}");
        let refused = submit_for_later(&members[member]).await.expect_err("its leader would not see when");
        assert!(refused.contains("E4007"), "{refused}");
    }
    assert_eq!(level(&members[one]).await, BEFORE);
    // First two workers of two versions, then only the newer one.
    let _new = worker(folder, "w2", &members.each_ref(), false);
    load.goes_on(SOME).await;
    assert_eq!(llm_places(&members[one], "w2").await, 0, "one of three does not count them");
    let drain = ask(&members[one], Method::POST, "/api/nodes/w1/drain", json!({})).await;
    drain.expect("a drain");
    eventually_async("nothing runs on the older worker", async || {
        let running = get(&members[one], "/api/jobs?status=running&view=full&limit=1000").await?;
        let there = running.as_array().expect("an array").iter().filter(|job| job["node"] == "w1").count();
        if there == 0 { Ok(()) } else { Err(there.to_string()) }
    })
    .await;
    assert_eq!(old.end(nix::sys::signal::Signal::SIGTERM), Some(0));

    // One member is downgraded: before the level is raised, the log has nothing that the older program cannot read.
    replace(&mut members, one, older, &load).await;
    replace(&mut members, one, current, &load).await;
    replace(&mut members, last, current, &load).await;
    eventually_async("the level is raised", async || {
        let status = get(&members[last], "/api/cluster").await?;
        if status["level"] == status["level_known"] { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    assert!(level(&members[one]).await > BEFORE);
    deprecate(&members[last]).await.expect("all know it now");
    eventually_async("the worker's places for llm agents count", async || {
        match llm_places(&members[one], "w2").await {
            256 => Ok(()),
            places => Err(places.to_string()),
        }
    })
    .await;

    // After the level is raised, no downgrade is possible: the older program reports this and stops, instead of
    // skipping unknown commands.
    if older_programs().is_some() {
        assert_eq!(members[one].end(), Some(0));
        older(&mut members[one]);
        let words = members[one].restart_to_its_end();
        assert!(words.contains("level"), "{words}");
        current(&mut members[one]);
        members[one].restart();
    }
    load.goes_on(SOME).await;
    let acknowledged = load.acknowledged();
    load.check(&members.each_ref()).await;
    eventually_async("all have completed", async || {
        let completed = jobs(&members[last], "&status=completed").await;
        let missing: Vec<_> = acknowledged.values().filter(|id| !completed.contains(*id)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?}")) }
    })
    .await;
}
