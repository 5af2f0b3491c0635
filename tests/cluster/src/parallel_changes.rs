//! Two concurrent membership changes: one wins, or both succeed in turn; the membership is never undefined.

use std::path::Path;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::members::{Load, Member, agreed, ask, made_leader, token};
use crate::patience::eventually_async;
use crate::trio::{NAMES, register, trio};

/// This agent never runs here, because there is no worker.
const WAITING: Agent<'static> = Agent { name: "waiting", version: "1.0.0", contract: "", script: "cat" };
/// Number of concurrent clients.
const CLIENTS: usize = 2;
/// Number of acknowledged jobs that show that clients are served.
const SOME: usize = 20;
/// The allowed refusals of a change that conflicts with a concurrent one.
const REFUSALS: [&str; 6] = ["E4001", "E4003", "E6001", "E6002", "E6003", "E6004"];

/// Starts a joining controller without waiting for it.
fn joins(folder: &Path, name: &'static str, through: &Member, token: &str) -> Member {
    Member::begins(folder, name, &["--join", &through.peers.to_string(), "--token", token])
}

async fn remove(at: &Member, name: &str) -> Result<Value, String> {
    ask(at, Method::DELETE, &format!("/api/cluster/members/{name}"), json!({})).await
}

/// Repeats the request until the member is removed; an earlier request may have removed it already.
async fn removed(at: &Member, name: &str) {
    eventually_async("it is removed", async || match remove(at, name).await {
        Err(refused) if !refused.contains("E6001") => Err(refused),
        _ => Ok(()),
    })
    .await;
}

/// Waits until one of two joining controllers is accepted and the other one ends with `reason`; returns the accepted
/// one first.
fn one_of(mut twins: [Member; 2], reason: &str) -> (Member, Member) {
    let ended = crate::eventually("one of the two is refused", crate::LONG, || {
        twins.iter_mut().position(|twin| twin.has_ended())
    });
    let [first, second] = twins;
    let (mut taken, refused) = if ended == 0 { (second, first) } else { (first, second) };
    crate::eventually(reason, crate::LONG, || refused.said(reason).then_some(()));
    taken.has_started();
    (taken, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_that_join_at_once_are_taken_in_once_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let first = Member::first(folder, NAMES[0]);
    register(&first, folder, &WAITING).await;
    let load = Load::start(WAITING.name, CLIENTS, &first);
    load.goes_on(SOME).await;
    let (one, other) = (token(&first).await, token(&first).await);
    let mut second = joins(folder, NAMES[1], &first, &one);
    let mut third = joins(folder, NAMES[2], &first, &other);
    second.has_started();
    third.has_started();
    let group = agreed(&[&first, &second, &third], &NAMES).await;
    let mut numbers: Vec<u64> = group.into_values().collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);

    // Two controllers join with the same name through two members.
    let (one, other) = (token(&first).await, token(&second).await);
    let twins = [joins(&folder.join("a"), "c4", &second, &one), joins(&folder.join("b"), "c4", &third, &other)];
    let (fourth, _) = one_of(twins, "another member has the name \"c4\"");
    let all = [NAMES[0], NAMES[1], NAMES[2], "c4"];
    agreed(&[&first, &second, &third, &fourth], &all).await;

    // Two controllers join with the same token.
    let token = token(&third).await;
    let twins = [joins(folder, "c5", &first, &token), joins(folder, "c6", &second, &token)];
    let (fifth, _) = one_of(twins, "the join token is unknown, used or expired");
    let all = [NAMES[0], NAMES[1], NAMES[2], "c4", fifth.name];
    agreed(&[&first, &second, &third, &fourth, &fifth], &all).await;
    load.goes_on(SOME).await;
    load.check(&[&first, &second, &third, &fourth, &fifth]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_joins_while_another_one_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let [first, second, mut third] = trio(folder, &[&WAITING]).await;
    let load = Load::start(WAITING.name, CLIENTS, &first);
    load.knows(&second);
    load.goes_on(SOME).await;
    let mut fourth = joins(folder, "c4", &second, &token(&first).await);
    // The leader itself receives the request to remove it, and transfers its leadership first.
    ask(&first, Method::POST, "/api/cluster/transfer-leader", json!({"to": "c3"})).await.expect("it has everything");
    let _ = remove(&third, "c3").await;
    removed(&first, "c3").await;
    fourth.has_started();
    agreed(&[&first, &second, &fourth], &["c1", "c2", "c4"]).await;
    assert!(third.ends_by_itself().contains("this member was removed from its cluster"), "{}", third.text());
    load.goes_on(SOME).await;
    load.check(&[&first, &second, &fourth]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removals_at_once_leave_those_who_were_not_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let members = trio(folder.path(), &[&WAITING]).await;
    let load = Load::start(WAITING.name, CLIENTS, &members[0]);
    load.goes_on(SOME).await;
    // Two members are removed; each removal is requested at two controllers.
    made_leader(&members[0]).await;
    let asked = [(0, "c2"), (0, "c3"), (1, "c3"), (2, "c2")];
    let answers = join_all(asked.map(|(at, name)| remove(&members[at], name))).await;
    let told = answers.iter().any(Result::is_ok);
    let refusals = format!("{answers:?}");
    for ((at, name), answer) in asked.iter().zip(answers) {
        match answer {
            Ok(_) => {}
            // A member that is removed during the request may end before it answers.
            Err(refused) if *at > 0 && !refused.contains("E") => {}
            Err(refused) => {
                assert!(REFUSALS.iter().any(|code| refused.contains(code)), "{name} at c{}: {refused}", at + 1)
            }
        }
    }
    // Acknowledged removals are done; the others are requested again.
    for name in ["c2", "c3"] {
        removed(&members[0], name).await;
    }
    agreed(&[&members[0]], &["c1"]).await;
    assert!(told, "nobody was told that anybody is gone: {refusals}");
    load.goes_on(SOME).await;
    load.check(&[&members[0]]).await;
}
