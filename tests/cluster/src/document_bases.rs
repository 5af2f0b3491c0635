//! A document base in a cluster whose leader is killed while documents are added.

use std::collections::BTreeSet;

use futures::future::join_all;
use nix::sys::signal::{Signal, kill};
use reqwest::Method;
use serde_json::{Value, json};

use crate::members::{Member, ask, get};
use crate::patience::eventually_async;
use crate::trio::{leader, trio};

const BATCHES: usize = 40;
const DOCUMENTS: usize = 5;

/// Adds documents, again and again until the cluster says that it has them.
async fn adds(member: &Member, batch: usize) {
    let document = |number: usize| {
        let text = format!("All about lighthouses. This is number{batch}x{number}.");
        json!({"source": format!("{batch}/{number}.md"), "text": text, "metadata": {"batch": batch}})
    };
    let body = json!({"documents": (0..DOCUMENTS).map(document).collect::<Vec<_>>()});
    let added = eventually_async("documents are added", async || {
        ask(member, Method::POST, "/api/bases/sea/documents", body.clone()).await
    })
    .await;
    let told = added["documents"].as_array().expect("a list");
    assert!(told.iter().all(|told| told["status"] != "refused"), "{added}");
}

async fn search(member: &Member, query: &str) -> Value {
    let body = json!({"query": query, "top_k": 100, "explain": true});
    eventually_async("an answer", async || ask(member, Method::POST, "/api/bases/sea/search", body.clone()).await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_there_once_although_the_leader_dies() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[]).await;
    let first = leader(&members).await;
    let (one, two) = ((first + 1) % 3, (first + 2) % 3);
    ask(&members[one], Method::POST, "/api/bases", json!({"name": "sea"})).await.expect("made");
    let pid = members[first].pid();
    let adding = join_all((0..BATCHES).map(|batch| adds(&members[[one, two][batch % 2]], batch)));
    let killing = async {
        // Some are there, others are not.
        eventually_async("some documents", async || {
            let base = get(&members[one], "/api/bases/sea").await?;
            if base["documents"].as_u64() >= Some(20) { Ok(()) } else { Err(base.to_string()) }
        })
        .await;
        kill(pid, Signal::SIGKILL).expect("killed");
    };
    futures::join!(adding, killing);
    members[first].kill();
    members[first].restart();
    eventually_async("it answers", async || get(&members[first], "/api/bases").await).await;

    let expected = search(&members[one], "lighthouses").await;
    assert_eq!(expected["documents"], json!(BATCHES * DOCUMENTS), "each is there once");
    assert_eq!(expected["hits"].as_array().map(Vec::len), Some(100));
    for member in &members {
        assert_eq!(search(member, "lighthouses").await, expected, "{}", member.name);
        let path = "/api/bases/sea/documents?limit=1000";
        let listed = get(member, path).await.expect("documents");
        let sources: BTreeSet<&str> =
            listed["documents"].as_array().expect("a list").iter().filter_map(|one| one["source"].as_str()).collect();
        assert_eq!(sources.len(), BATCHES * DOCUMENTS, "{}", member.name);
        let found = search(member, &format!("number{}x3", BATCHES - 1)).await;
        assert_eq!(found["hits"][0]["source"], json!(format!("{}/3.md", BATCHES - 1)), "{found}");
    }
}
