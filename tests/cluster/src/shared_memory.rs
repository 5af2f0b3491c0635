//! Memory that agents share, in a cluster whose leader is killed while they write.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::json;

use crate::Agent;
use crate::api::Api;
use crate::members::get;
use crate::patience::eventually_async;
use crate::trio::{leader, trio, worker};

/// Writes its number into the memory and the knowledge, as programs do by their output.
const SCRIBE: Agent<'static> = Agent {
    name: "scribe",
    version: "1.0.0",
    contract: "  requires: {memory: true, knowledge: {write_domains: [notes]}}\n",
    script: "sed 's/.*\"number\": *\\([0-9]*\\).*/{\"wrote\": \\1, \"_memory_append\": \"line \\1\", \"_knowledge_store\": {\"content\": \"note \\1\", \"domain\": \"notes\"}}/'",
};

const JOBS: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agents_append_is_there_once_although_the_leader_dies() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[&SCRIBE]).await;
    let _worker = worker(folder.path(), "w1", &[&members[0], &members[1], &members[2]]);
    let first = leader(&members).await;
    let api = Api::new(&members[(first + 1) % 3].http.to_string());
    let submit = |number: usize| api.submit("scribe", json!({"number": number}));
    let jobs = join_all((0..JOBS).map(submit)).await;
    // Some have written, others have not.
    eventually_async("a line", async || {
        let memory = get(&members[first], "/api/memory").await?;
        if memory["entries"].as_u64() >= Some(5) { Ok(()) } else { Err(memory.to_string()) }
    })
    .await;
    members[first].kill();
    for job in &jobs {
        let ended = eventually_async("the job ends", async || {
            get(&members[(first + 1) % 3], &format!("/api/jobs/{job}/wait?timeout=30&view=full")).await
        })
        .await;
        assert_eq!((&ended["status"], &ended["output_data"]["_memory_append"]), (&json!("completed"), &json!(null)));
    }
    members[first].restart();
    let shown = eventually_async("it answers", async || get(&members[first], "/api/memory").await).await;
    let text = shown["text"].as_str().expect("a text");
    let lines: BTreeSet<&str> = text.lines().collect();
    assert_eq!((text.lines().count(), lines.len()), (JOBS, JOBS), "each line is there once: {text}");
    for member in &members {
        assert_eq!(get(member, "/api/memory").await.expect("a memory")["text"], shown["text"], "{}", member.name);
        let notes = get(member, "/api/knowledge/search?q=note&limit=1000").await.expect("entries");
        let contents: BTreeSet<&str> =
            notes.as_array().expect("a list").iter().filter_map(|note| note["content"].as_str()).collect();
        assert_eq!((notes.as_array().map(Vec::len), contents.len()), (Some(JOBS), JOBS), "{}", member.name);
    }
}
