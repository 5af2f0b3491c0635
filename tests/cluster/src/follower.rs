//! Followers: they forward writes, read every acknowledged write, and mark stale reads.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::api::Api;
use crate::members::{Load, Member, ask, get};
use crate::trio::{leader, trio};

/// This agent never runs here, because there is no worker.
const WAITING: Agent<'static> = Agent { name: "waiting", version: "1.0.0", contract: "", script: "cat" };
/// Number of writes that are read at another member.
const ROUNDS: usize = 30;
/// Number of additional clients, whose writes make followers lag behind.
const CLIENTS: usize = 1;
/// Longest wait of a request while there is no leader.
const NO_LEADER_MAX: Duration = Duration::from_secs(20);

/// The status, one header and the body of an answer.
async fn answer(member: &Member, path: &str, index: Option<&str>, header: &str) -> (u16, Option<String>, Value) {
    let client = reqwest::Client::builder().no_proxy().timeout(NO_LEADER_MAX).build().expect("a client");
    let mut request = client.get(format!("http://{}{path}", member.http));
    if let Some(index) = index {
        request = request.header("X-Atlas-Index", index);
    }
    let answer = request.send().await.expect("an answer");
    let told = answer.headers().get(header).map(|value| value.to_str().expect("text").to_owned());
    (answer.status().as_u16(), told, answer.json().await.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_controller_acknowledged_every_other_one_reads_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let members = trio(folder.path(), &[&WAITING]).await;
    let load = Load::start(WAITING.name, CLIENTS, &members[0]);
    load.knows(&members[1]);
    load.knows(&members[2]);
    for round in 0..ROUNDS {
        // The three members take turns in writing, reading and cancelling; two of them are followers.
        let [writer, reader, ender] = [0, 1, 2].map(|place| &members[(round + place) % 3]);
        let submitted =
            ask(writer, Method::POST, "/api/jobs", json!({"agent": "waiting", "input": {"n": round}})).await;
        let id = submitted.expect("a follower forwards it")["id"].as_str().expect("an id").to_owned();
        let path = format!("/api/jobs/{id}");
        let (status, marked, job) = answer(reader, &path, None, "atlas-consistency").await;
        assert_eq!((status, marked), (200, None), "{} does not read what {} took", reader.name, writer.name);
        assert_eq!((&job["status"], &job["input_data"]), (&json!("pending"), &json!({"n": round})));
        let newest = get(reader, "/api/jobs?limit=200").await.expect("a list");
        assert!(newest.as_array().expect("an array").iter().any(|job| job["id"] == json!(id)), "{id} is not listed");
        let ended = ask(ender, Method::POST, &format!("{path}/cancel"), json!({})).await;
        assert_eq!(ended.expect("a follower forwards it")["cancelled"], json!(true));
        for other in [writer, reader] {
            assert_eq!(get(other, &path).await.expect("a job")["status"], json!("cancelled"), "at {}", other.name);
        }
    }
    load.check(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_read_says_so_and_is_never_older_than_its_client_allows() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[&WAITING]).await;
    let leads = leader(&members).await;
    let (follower, third) = ((leads + 1) % 3, (leads + 2) % 3);
    let mut last = String::new();
    for _ in 0..ROUNDS {
        last = Api::new(&members[leads].http.to_string()).submit("waiting", json!({})).await;
        let path = format!("/api/jobs/{last}");
        let (_, index, _) = answer(&members[leads], &path, None, "x-atlas-index").await;
        let index = index.expect("every answer tells it");
        // With the index of an earlier answer, a stale read at another member includes that state.
        let stale = format!("{path}?consistency=stale");
        let (status, marked, job) = answer(&members[follower], &stale, Some(&index), "atlas-consistency").await;
        assert_eq!((status, marked.as_deref(), &job["id"]), (200, Some("stale"), &json!(last)));
        let (_, seen, _) = answer(&members[follower], &stale, Some(&index), "x-atlas-index").await;
        let number = |text: &str| text.parse::<u64>().expect("a number");
        assert!(number(&seen.expect("every answer tells it")) >= number(&index));
    }
    // Without a majority, consistent reads fail, and stale reads are answered and marked as stale.
    members[leads].kill();
    members[third].kill();
    let (path, member) = (format!("/api/jobs/{last}"), &members[follower]);
    let (status, code, _) = answer(member, &path, None, "atlas-error-code").await;
    assert_eq!((status, code.as_deref()), (503, Some("E4001")));
    let (status, marked, job) = answer(member, &format!("{path}?consistency=stale"), None, "atlas-consistency").await;
    assert_eq!((status, marked.as_deref(), &job["id"]), (200, Some("stale"), &json!(last)));
    let refused = ask(member, Method::POST, "/api/jobs", json!({"agent": "waiting", "input": {}})).await;
    let refused = refused.expect_err("nobody can take it");
    assert!(refused.contains("503"), "{refused}");
    // As soon as there is a majority again, reads succeed.
    members[third].restart();
    crate::patience::eventually_async("a majority serves", async || get(&members[follower], &path).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_without_a_majority_refuses_nothing_by_what_it_knows() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[&WAITING]).await;
    let leads = leader(&members).await;
    for follower in [1, 2] {
        members[(leads + follower) % 3].kill();
    }
    // The member still considers itself the leader, but another leader could have registered the agent meanwhile.
    let submission = json!({"agent": "unheard-of", "input": {}});
    let refused = ask(&members[leads], Method::POST, "/api/jobs?validate=refuse", submission).await;
    let refused = refused.expect_err("nobody confirms that there is no such agent");
    assert!(refused.contains("503"), "{refused}");
}
