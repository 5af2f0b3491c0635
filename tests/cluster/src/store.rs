//! Large payloads, and jobs that have left the state, are available on every controller while others are killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use atlas_package::pack;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::{Member, ask, get, token, voters};
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;
use crate::{Agent, write_agent};

/// Returns its whole document, so that the output is as large as the input.
const ECHO: Agent<'static> = Agent { name: "echo", version: "1.0.0", contract: "", script: "cat" };

/// Number of ended jobs, more than the state keeps.
const PRUNED: usize = 1_400;

#[tokio::test]
async fn large_inputs_and_outputs_outlive_the_controller_that_took_them() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(folder.path(), &ECHO);
    let mut one = Member::first(folder.path(), "c1");
    let (mut two, three) = trio(folder.path(), &one).await;
    register(&one, folder.path()).await;
    let _worker = worker(folder.path(), &[&one, &two, &three]);
    let done = submit(&two, 1).await;
    ended(&three, &done, 1).await;
    // The controller that stored the input is killed right after its acknowledgement.
    let id = submit(&two, 2).await;
    two.kill();
    let leader = voters(&one, &["c1", "c2", "c3"]).await;
    for member in [&one, &three] {
        ended(member, &id, 2).await;
    }
    // The leader, which stored the output, is killed after the other controller is back.
    two.restart();
    ended(&two, &id, 2).await;
    assert_eq!(get(&two, "/api/cluster").await.expect("an answer")["leader"], json!(leader));
    let id = submit(&three, 3).await;
    ended(&one, &id, 3).await;
    one.kill();
    for member in [&two, &three] {
        ended(member, &id, 3).await;
        ended(member, &done, 1).await;
    }
    // One artifact on its disk is lost and another is damaged; the controller can read all of them, and repairs its
    // copies.
    let artifacts = files(&folder.path().join("c1/artifacts"));
    assert!(artifacts.len() >= 3, "{artifacts:?}");
    fs::remove_file(&artifacts[0]).expect("removable");
    fs::write(&artifacts[1], "damaged").expect("writable");
    one.restart();
    for (id, number) in [(&done, 1), (&id, 3)] {
        ended(&one, id, number).await;
    }
    eventually_async("what was lost is fetched", async || {
        if artifacts[0].exists() { Ok(()) } else { Err(format!("{artifacts:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_controller_that_joins_late_answers_for_jobs_that_it_never_saw() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(folder.path(), &ECHO);
    // The controller keeps so little log that the joining one gets a snapshot, which has only the latest ended jobs.
    let one = Member::first_with(folder.path(), "c1", &["--snapshot-log", "64KiB"]);
    register(&one, folder.path()).await;
    let _worker = worker(folder.path(), &[&one]);
    let large = submit(&one, 7).await;
    ended(&one, &large, 7).await;
    let mut old = Vec::with_capacity(PRUNED);
    for _ in 0..PRUNED {
        old.push(fail(&one).await);
    }
    // When the second snapshot is taken, the log before the first one is purged.
    let first = another_snapshot(&one, folder.path(), None).await;
    another_snapshot(&one, folder.path(), Some(first)).await;
    let two = Member::joining(folder.path(), "c2", &one, &token(&one).await);
    voters(&one, &["c1", "c2"]).await;
    assert!(two.said("received a snapshot"), "it got the whole log: nothing was missed");
    // The joined controller is a voter, so its history is complete. The other one is needed only to confirm its reads.
    for id in old.iter().step_by(61).chain([&large]) {
        assert_eq!(job(&two, id).await, job(&one, id).await);
    }
    ended(&two, &large, 7).await;
    for page in ["/api/jobs?limit=500", "/api/jobs?limit=500&offset=1000"] {
        let (ours, theirs) = (get(&two, page).await.expect("a list"), get(&one, page).await.expect("a list"));
        assert_eq!(ours, theirs);
        assert!(ours.as_array().is_none_or(|jobs| !jobs.is_empty()));
    }
    assert_eq!(files(&folder.path().join("c1/artifacts")).len(), files(&folder.path().join("c2/artifacts")).len());
}

/// Joins two more controllers and waits until all three are voters.
async fn trio(folder: &Path, first: &Member) -> (Member, Member) {
    let two = Member::joining(folder, "c2", first, &token(first).await);
    let three = Member::joining(folder, "c3", first, &token(first).await);
    voters(first, &["c1", "c2", "c3"]).await;
    (two, three)
}

async fn register(member: &Member, folder: &Path) {
    let package = pack(&folder.join("echo")).expect("a package").bytes;
    Api::new(&member.http.to_string()).register(package).await;
}

fn worker(folder: &Path, controllers: &[&Member]) -> Process {
    let doors: Vec<String> = controllers.iter().map(|member| member.workers.to_string()).collect();
    let mut command = Command::new(program("atlas-worker"));
    command.args(["--node", "w1", "--controller", &doors.join(",")]).arg("--data-dir").arg(folder.join("worker"));
    Process::start(&mut command)
}

/// An input that is too large to be inline in the log.
fn input(number: u64) -> Value {
    json!({"number": number, "text": "x".repeat(200_000)})
}

/// Submits a job with a large input; returns the id from the acknowledgement.
async fn submit(member: &Member, number: u64) -> String {
    let body = json!({"agent": "echo", "input": input(number)});
    let answer = ask(member, Method::POST, "/api/jobs", body).await.expect("an acknowledgement");
    answer["id"].as_str().expect("an id").to_owned()
}

/// Submits a job that fails immediately.
async fn fail(member: &Member) -> String {
    let answer = ask(member, Method::POST, "/api/jobs", json!({"agent": "nobody", "input": {}})).await;
    answer.expect("an acknowledgement")["id"].as_str().expect("an id").to_owned()
}

/// Waits until a job has completed at a controller; checks its large input and output.
async fn ended(member: &Member, id: &str, number: u64) {
    let job = eventually_async("the job has ended", async || {
        let job = get(member, &format!("/api/jobs/{id}")).await?;
        if job["status"] == "completed" { Ok(job) } else { Err(job["status"].to_string()) }
    })
    .await;
    for payload in [&job["input_data"], &job["output_data"]["input"]] {
        let told = payload.to_string();
        assert!(*payload == input(number), "{} bytes: {told:.200}", told.len());
    }
}

async fn job(member: &Member, id: &str) -> Value {
    eventually_async("a job", async || get(member, &format!("/api/jobs/{id}")).await).await
}

/// Submits jobs until there is a snapshot newer than `known`; returns its name.
async fn another_snapshot(member: &Member, folder: &Path, known: Option<String>) -> String {
    eventually_async("a snapshot", async || {
        fail(member).await;
        let found = files(&folder.join("c1/raft/snapshots")).into_iter();
        let names = found.filter(|path| path.extension().is_some_and(|extension| extension == "snap"));
        let latest = names.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).max();
        latest.filter(|latest| known.as_ref() != Some(latest)).ok_or_else(|| format!("{known:?}"))
    })
    .await
}

/// The files in a folder and its subfolders, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
