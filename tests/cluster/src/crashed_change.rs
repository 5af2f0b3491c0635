//! `kill -9` of all members during a membership change (B.42): after the restart, all members agree on the
//! membership, clients can repeat their requests, and no acknowledged data is lost.

use std::time::Duration;

use atlas_env::Env;
use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::members::{Load, Member, agreed, ask, get, token};
use crate::patience::eventually_async;
use crate::trio::{NAMES, trio};

/// This agent never runs here, because there is no worker.
const WAITING: Agent<'static> = Agent { name: "waiting", version: "1.0.0", contract: "", script: "cat" };
/// Number of concurrent clients.
const CLIENTS: usize = 2;
/// Number of acknowledged jobs that show that clients are served.
const SOME: usize = 20;
/// The member that joins and is removed again.
const FOURTH: &str = "c4";

/// The moment at which all members are killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// This long after the request.
    After(Duration),
    /// As soon as the status of a member fulfils this condition.
    Seen(fn(&Value) -> bool),
}

/// Moments of a join: before any member can know of it, shortly after the request, when there is a learner, and while
/// the learner becomes a voter.
const OF_JOIN: [Moment; 4] = [
    Moment::After(Duration::from_millis(5)),
    Moment::After(Duration::from_millis(100)),
    Moment::Seen(|status| role(status).is_some()),
    Moment::Seen(|status| status["changing"] == true || role(status).is_some_and(|role| role != "learner")),
];

/// Moments of a removal.
const OF_REMOVAL: [Moment; 4] = [
    Moment::After(Duration::ZERO),
    Moment::After(Duration::from_millis(10)),
    Moment::Seen(|status| status["changing"] == true || role(status).is_none()),
    Moment::Seen(|status| role(status).is_none()),
];

/// The role of the fourth member in a status.
fn role(status: &Value) -> Option<&str> {
    status["members"].as_array()?.iter().find(|member| member["name"] == FOURTH)?["role"].as_str()
}

impl Moment {
    async fn wait(self, member: &Member) {
        match self {
            Self::After(time) => Env::system().clock.sleep(time).await,
            Self::Seen(seen) => loop {
                // Polled without a pause, because the condition holds only for the time of two commits.
                match get(member, "/api/cluster").await {
                    Ok(status) if seen(&status) => return,
                    _ => {}
                }
            },
        }
    }
}

/// `kill -9` of all members.
fn kill_all<'m>(members: impl IntoIterator<Item = &'m mut Member>) {
    members.into_iter().for_each(Member::kill);
}

/// Restarts all members in parallel.
fn restart_all<'m>(members: impl IntoIterator<Item = &'m mut Member>) {
    std::thread::scope(|scope| {
        for member in members {
            scope.spawn(|| member.restart());
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_dies_in_the_midst_of_a_change_is_one_group_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[&WAITING]).await;
    let load = Load::start(WAITING.name, CLIENTS, &members[0]);
    load.knows(&members[1]);
    load.knows(&members[2]);
    let mut numbers = Vec::new();
    for (round, (of_join, of_removal)) in OF_JOIN.into_iter().zip(OF_REMOVAL).enumerate() {
        load.goes_on(SOME).await;
        let at = folder.path().join(format!("round-{round}"));
        let join = [
            "--join".to_owned(),
            members[(round + 1) % 3].peers.to_string(),
            "--token".to_owned(),
            token(&members[round % 3]).await,
        ];
        let join = join.each_ref().map(String::as_str);
        let mut fourth = Member::begins(&at, FOURTH, &join);
        let seen = tokio::time::timeout(crate::LONG, of_join.wait(&members[0])).await;
        seen.unwrap_or_else(|_| panic!("round {round}: the join is not seen\n{}", fourth.text()));
        kill_all(members.iter_mut().chain([&mut fourth]));
        restart_all(&mut members);
        // The fourth member repeats its request to join, or finds that it is a member already.
        fourth.restart_with(&join);
        let all = [&members[0], &members[1], &members[2], &fourth];
        let group = agreed(&all, &[NAMES[0], NAMES[1], NAMES[2], FOURTH]).await;
        numbers.push(group[FOURTH]);
        load.goes_on(SOME).await;

        let (asked, path) = (members[round % 3].http, format!("/api/cluster/members/{FOURTH}"));
        let url = format!("http://{asked}{path}");
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        // The answer is ignored: mostly, the asked member is killed before it answers.
        let asking = Env::system().spawn("remove", async move { drop(client.delete(url).send().await) });
        let seen = tokio::time::timeout(crate::LONG, of_removal.wait(&members[(round + 1) % 3])).await;
        seen.unwrap_or_else(|_| panic!("round {round}: the removal is not seen"));
        kill_all(members.iter_mut().chain([&mut fourth]));
        asking.join().await.expect("no panic");
        restart_all(&mut members);
        eventually_async("it is removed", async || match ask(&members[0], Method::DELETE, &path, json!({})).await {
            Ok(_) => Ok(()),
            // The first request has removed the member.
            Err(refused) if refused.contains("E6001") => Ok(()),
            Err(refused) => Err(refused),
        })
        .await;
        agreed(&members.each_ref(), &NAMES).await;
        let words = fourth.restart_to_its_end();
        assert!(words.contains("this member was removed from its cluster"), "round {round}: {words}");
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "a number was given twice: {numbers:?}");
    load.goes_on(SOME).await;
    load.check(&members.each_ref()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_learner_that_loses_its_disk_on_the_way_in_comes_again_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let members = trio(folder.path(), &[&WAITING]).await;
    let through = members[1].peers.to_string();
    let mut fourth = Member::begins(folder.path(), FOURTH, &["--join", &through, "--token", &token(&members[0]).await]);
    Moment::Seen(|status| role(status).is_some()).wait(&members[0]).await;
    fourth.kill();
    fourth.wipe();
    let status = get(&members[0], "/api/cluster").await.expect("it answers");
    if role(&status) != Some("learner") {
        // The fourth member is a voter already, so it must be removed like any lost voter before it can join again.
        let path = format!("/api/cluster/members/{FOURTH}");
        ask(&members[0], Method::DELETE, &path, json!({})).await.expect("three of four can do it");
    }
    fourth.restart_with(&["--join", &through, "--token", &token(&members[0]).await]);
    let [first, second, third] = &members;
    let group = agreed(&[first, second, third, &fourth], &[NAMES[0], NAMES[1], NAMES[2], FOURTH]).await;
    assert_eq!(group[FOURTH], 5, "a number is given once: {status}");
}
