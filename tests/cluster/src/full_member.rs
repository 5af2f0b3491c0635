//! One of three controllers has a full disk (B.38): the cluster serves, the member refuses writes, transfers its
//! leadership, and recovers by itself when there is space again, even if it was killed in between.
//!
//! Its twin with one controller is in [`crate::disk_full`].

use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::members::{Load, Member, ask, get, made_leader, token, voters};
use crate::patience::eventually_async;
use crate::small::Small;
use crate::trio::{NAMES, register};

/// This agent never runs here, because there is no worker.
const WAITING: Agent<'static> = Agent { name: "waiting", version: "1.0.0", contract: "", script: "cat" };
/// Number of concurrent clients, which submit to any controller that accepts the job.
const CLIENTS: usize = 3;
/// Number of acknowledged jobs that show that clients are served.
const SOME: usize = 40;
/// Size of the disk, and options that fit this size.
const MIB: u64 = 64;
const OPTIONS: [&str; 4] = ["--disk-reserve", "8MiB", "--disk-ballast", "4MiB"];

/// Waits until a controller reports this state of its disk.
async fn room(member: &Member, wanted: &str) {
    eventually_async("the controller sees its disk", async || {
        let disk = get(member, "/api/cluster").await?["disk"].clone();
        if disk["room"] == wanted { Ok(()) } else { Err(disk.to_string()) }
    })
    .await;
}

/// Submits a payload that is too large for the log, so that the asked controller must store it as an artifact.
async fn large(member: &Member) -> Result<Value, String> {
    let body = json!({"agent": "waiting", "input": {"text": "x".repeat(200_000)}});
    ask(member, Method::POST, "/api/jobs", body).await
}

/// Waits until `seen_by` reports a leader other than `member`.
async fn leads_no_more(member: &Member, seen_by: &Member) {
    eventually_async("another one leads", async || {
        let status = get(seen_by, "/api/cluster").await?;
        let other = status["leader"].as_str().is_some_and(|leader| leader != member.name);
        if other { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_serves_while_the_disk_of_one_member_is_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(small) = Small::mount(folder.path().join("small"), MIB) else { return };
    let first = Member::first(folder.path(), NAMES[0]);
    register(&first, folder.path(), &WAITING).await;
    let second = Member::joining(folder.path(), NAMES[1], &first, &token(&first).await);
    let mut third = Member::joining_with(&small.0, NAMES[2], &first, &token(&first).await, &OPTIONS);
    voters(&third, &NAMES).await;
    let load = Load::start(WAITING.name, CLIENTS, &first);
    load.knows(&second);
    load.knows(&third);
    load.goes_on(SOME).await;

    // A follower with a full disk: the other two members are a majority.
    made_leader(&first).await;
    small.fill(0);
    room(&third, "none").await;
    let refused = large(&third).await.expect_err("it has no room for it");
    assert!(refused.contains("507") && refused.contains("E4009"), "{refused}");
    large(&second).await.expect("two others have room");
    load.goes_on(SOME).await;
    let (_, known) = load.acknowledged().pop_last().expect("some");
    eventually_async("everybody sees which member is short of room", async || {
        let members = get(&first, "/api/cluster/members").await?;
        let short =
            |name| members.as_array()?.iter().find(|member| member["name"] == name)?["short_of_space"].as_bool();
        if NAMES.map(short) == [Some(false), Some(false), Some(true)] { Ok(()) } else { Err(members.to_string()) }
    })
    .await;
    // If the member is killed in this state, it restarts, serves stale reads, and catches up when there is space.
    third.kill();
    third.restart_with(&OPTIONS);
    eventually_async("it reads", async || get(&third, "/api/jobs?consistency=stale").await).await;
    load.goes_on(SOME).await;
    small.free();
    room(&third, "ample").await;
    eventually_async("it has caught up", async || get(&third, &format!("/api/jobs/{known}")).await).await;
    large(&third).await.expect("there is room again");

    // A leader with a full disk transfers its leadership to a member with space.
    ask(&first, Method::POST, "/api/cluster/transfer-leader", json!({"to": "c3"})).await.expect("it has caught up");
    small.fill(0);
    leads_no_more(&third, &first).await;
    load.goes_on(SOME).await;
    let refused = large(&third).await.expect_err("it has no room for it");
    assert!(refused.contains("507") && refused.contains("E4009"), "{refused}");
    small.free();
    room(&third, "ample").await;
    load.goes_on(SOME).await;
    load.check(&[&first, &second, &third]).await;
}
