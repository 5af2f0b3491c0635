//! A backup is made while clients submit, and restored next to its original cluster.

use std::path::Path;
use std::process::Command;

use atlas_package::pack;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::{Load, Member, ask, get, token, voters};
use crate::patience::eventually_async;
use crate::program::program;
use crate::{Agent, write_agent};

/// This agent never runs here, because there is no worker.
const WAITING: Agent<'static> = Agent { name: "waiting", version: "1.0.0", contract: "", script: "cat" };
/// Number of concurrent clients.
const CLIENTS: usize = 4;
/// Number of acknowledged jobs that show that clients are served.
const SOME: usize = 60;

/// Runs `atlasctl operator snapshot …`, which must succeed.
fn snapshot(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(program("atlasctl"));
    let output = command.args(["operator", "snapshot"]).args(arguments).current_dir(folder).output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_under_load_has_everything_that_was_acknowledged_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_agent(folder, &WAITING);
    let first = Member::first(folder, "c1");
    Api::new(&first.http.to_string()).register(pack(&folder.join("waiting")).expect("a package").bytes).await;
    let second = Member::joining(folder, "c2", &first, &token(&first).await);
    voters(&second, &["c1", "c2"]).await;
    let load = Load::start("waiting", CLIENTS, &first);
    load.knows(&second);
    load.goes_on(SOME).await;

    let before = load.acknowledged();
    let server = format!("http://{}", second.http);
    let (at, saved) = (folder.to_owned(), "atlas.tar");
    let save = move || snapshot(&at, &["save", saved, "--server", &server]);
    atlas_env::Env::system().spawn_blocking("save", save).join().await.expect("it ends well");
    load.goes_on(SOME).await;
    snapshot(folder, &["inspect", saved]);
    // The other controller knows of it.
    let made = async || {
        let cluster = get(&first, "/api/cluster").await?;
        let of =
            |name: &str| cluster["members"].as_array()?.iter().find(|one| one["name"] == name)?["backup_at"].as_f64();
        assert_eq!(of("c1"), None);
        of("c2").ok_or_else(|| cluster.to_string())
    };
    assert!(eventually_async("the first controller knows of the backup", made).await > 1.7e9);
    load.check(&[&first, &second]).await;

    let data = folder.join("r1");
    snapshot(folder, &["restore", saved, "--data-dir", &data.to_string_lossy()]);
    let restored = Member::first(folder, "r1");
    // The default name of `restore`.
    assert_eq!(voters(&restored, &["c1"]).await, "c1");
    assert!(before.len() >= SOME);
    for (key, id) in &before {
        let path = format!("/api/jobs/{id}?view=full");
        let told = |job: Value| {
            ["id", "agent_name", "input_data", "status", "priority", "request_id"].map(|name| job[name].clone())
        };
        let there = told(get(&first, &path).await.expect("it was acknowledged"));
        assert_eq!(told(get(&restored, &path).await.expect("it is in the backup")), there, "{key}");
    }
    // A repeated request with the same key creates no second job.
    let (key, id) = before.first_key_value().expect("some");
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let again = client.post(format!("http://{}/api/jobs", restored.http)).header("Idempotency-Key", key);
    let again: Value = again
        .json(&json!({"agent": "waiting", "input": {}}))
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(again["id"], json!(id));
    // The restored cluster has a different id, and accepts jobs.
    let cluster = async |member: &Member| get(member, "/api/cluster").await.expect("answers")["cluster_id"].clone();
    assert_ne!(cluster(&restored).await, cluster(&first).await);
    ask(&restored, Method::POST, "/api/jobs", json!({"agent": "waiting", "input": {}})).await.expect("it takes jobs");
}
