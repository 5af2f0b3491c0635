//! A cluster grows, loses and replaces members, and transfers leadership, while clients submit and lose no job.

use std::time::Duration;

use atlas_package::pack;
use reqwest::Method;
use serde_json::json;

use crate::api::Api;
use crate::members::{Load, Member, ask, get, refused, token, voters};
use crate::patience::eventually_async;
use crate::{Agent, write_agent};

/// This agent never runs here, because there is no worker.
const WAITING: Agent<'static> = Agent { name: "waiting", version: "1.0.0", contract: "", script: "cat" };
/// Number of concurrent clients.
const CLIENTS: usize = 4;
/// Number of acknowledged jobs that show that clients are served.
const SOME: usize = 40;
/// An address on which no controller listens.
const NOBODY: &str = "127.0.0.1:1";
/// Longest wait of a client during an orderly transfer of leadership, on a machine that may be building at the same
/// time. The term shows that no election timeout was needed.
const HAND_OVER_MAX: Duration = Duration::from_secs(15);

/// The first controller of a cluster, and clients that submit to it.
async fn begin(folder: &std::path::Path) -> (Member, Load) {
    write_agent(folder, &WAITING);
    let first = Member::first(folder, "c1");
    let package = pack(&folder.join("waiting")).expect("a package").bytes;
    Api::new(&first.http.to_string()).register(package).await;
    let load = Load::start("waiting", CLIENTS, &first);
    load.goes_on(SOME).await;
    (first, load)
}

/// Three controllers, all voters.
async fn three(folder: &std::path::Path) -> ([Member; 3], Load) {
    let (first, load) = begin(folder).await;
    let second = Member::joining(folder, "c2", &first, &token(&first).await);
    load.knows(&second);
    // A controller can join through any member.
    let third = Member::joining(folder, "c3", &second, &token(&second).await);
    load.knows(&third);
    voters(&third, &["c1", "c2", "c3"]).await;
    load.goes_on(SOME).await;
    ([first, second, third], load)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_controller_becomes_three_and_survives_the_death_of_its_leader() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut members, load) = three(folder.path()).await;
    for _ in 0..2 {
        let leader = voters(&members[0], &["c1", "c2", "c3"]).await;
        let leader = members.iter().position(|member| member.name == leader).expect("a member");
        members[leader].kill();
        load.goes_on(SOME).await;
        members[leader].restart();
        load.goes_on(SOME).await;
    }
    let jobs = load.check(&members.each_ref()).await;
    assert!(jobs > 6 * SOME, "{jobs} jobs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_lost_for_good_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let ([first, mut second, mut third], load) = three(folder.path()).await;
    third.kill();
    let none =
        ask(&first, Method::DELETE, "/api/cluster/members/c9", json!({})).await.expect_err("nobody is called so");
    assert!(none.contains("E6001"), "{none}");
    let removed = ask(&second, Method::DELETE, "/api/cluster/members/c3", json!({})).await;
    assert_eq!(removed.expect("two of three can do it"), json!({ "removed": true }));
    voters(&first, &["c1", "c2"]).await;
    let used = token(&first).await;
    let fourth = Member::joining(folder.path(), "c4", &first, &used);
    load.knows(&fourth);
    voters(&fourth, &["c1", "c2", "c4"]).await;
    let members = get(&fourth, "/api/cluster/members").await.expect("any member answers");
    let number = |name: &str| {
        members
            .as_array()
            .expect("an array")
            .iter()
            .find(|member| member["name"] == name)
            .map(|member| member["id"].clone())
    };
    assert_eq!(number("c4"), Some(json!(4)), "the number of the lost one is never used again: {members}");
    let text = refused(folder.path(), "c5", &second, &used);
    assert!(text.contains("the join token is unknown, used or expired"), "{text}");
    // A removed member stays removed, although it still has its data.
    let text = third.restart_to_its_end();
    assert!(text.contains("this member was removed from its cluster"), "{text}");
    load.goes_on(SOME).await;
    // The cluster continues with two of its three members.
    second.kill();
    load.goes_on(SOME).await;
    second.restart();
    load.check(&[&first, &second, &fourth]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_lost_its_disk_is_taken_in_once_the_one_it_was_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let ([first, second, mut third], load) = three(folder.path()).await;
    third.kill();
    third.wipe();
    let token = token(&first).await;
    let text = third.restart_to_its_end_with(&["--join", &second.peers.to_string(), "--token", &token]);
    assert!(text.contains("another member has the name \"c3\""), "{text}");
    let removed = ask(&first, Method::DELETE, "/api/cluster/members/c3", json!({})).await;
    assert_eq!(removed.expect("two of three can do it"), json!({ "removed": true }));
    third.restart_with(&["--join", &second.peers.to_string(), "--token", &token]);
    voters(&third, &["c1", "c2", "c3"]).await;
    load.goes_on(SOME).await;
    load.check(&[&first, &second, &third]).await;
}

#[test]
fn a_controller_that_was_to_join_does_not_begin_on_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = format!("join-{}", "0".repeat(32));
    let mut joining = Member::asking_in_vain(folder.path(), "c2", &["--join", NOBODY, "--token", &token]);
    joining.kill();
    let text = joining.restart_to_its_end();
    assert!(text.contains("this directory belongs to a controller that was joining a cluster"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_ends_in_order_hands_over_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut members, load) = three(folder.path()).await;
    let moved = ask(&members[0], Method::POST, "/api/cluster/transfer-leader", json!({ "to": "c3" })).await;
    assert_eq!(moved.expect("it has everything")["leader"], json!("c3"));
    assert_eq!(voters(&members[1], &["c1", "c2", "c3"]).await, "c3");
    load.goes_on(SOME).await;
    let term = get(&members[0], "/api/cluster").await.expect("answers")["term"].as_u64().expect("a number");
    load.forget_waits();
    assert_eq!(members[2].end(), Some(0));
    load.goes_on(SOME).await;
    let longest = load.longest();
    assert!(longest < HAND_OVER_MAX, "{longest:?}");
    let after = eventually_async("a leader", async || {
        let status = get(&members[0], "/api/cluster").await?;
        if status["leader"].is_null() || status["leader"] == "c3" { Err(status.to_string()) } else { Ok(status) }
    });
    assert_eq!(after.await["term"], json!(term + 1), "one vote, and it was won");
    members[2].restart();
    load.check(&members.each_ref()).await;
}
