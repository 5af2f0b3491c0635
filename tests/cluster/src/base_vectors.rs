//! Vectors of document bases: made once for each text, whatever dies, and refused if another model made them.

use std::path::Path;

use atlas_llm_server::searches::{Searches, Then};
use nix::sys::signal::{Signal, kill};
use reqwest::Method;
use serde_json::{Value, json};

use crate::members::{Member, ask, get};
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

/// The letters of the last document, and no word of any.
const QUESTION: &str = "zzz";
/// Another one.
const WORD: &str = "core";
const NOTES: [(&str, &str); 4] =
    [("a.md", "aaaa alfa"), ("b.md", "bbbb beta"), ("c.md", "cccc core"), ("z.md", "zz zzzz zip")];

async fn add_model(member: &Member, server: &Searches, name: &str, (kind, model): (&str, &str)) {
    let spec = json!({
        "provider": "openai", "name": model, "type": kind, "base_url": server.url("v1"), "key": "${TINY_KEY}",
        "context_window": 100_000,
    });
    eventually_async("a model", async || {
        ask(member, Method::PUT, &format!("/api/objects/model/{name}"), json!({"spec": spec.clone()})).await
    })
    .await;
}

async fn add(member: &Member, notes: &[(&str, &str)]) {
    let documents: Vec<Value> = notes.iter().map(|(source, text)| json!({"source": source, "text": text})).collect();
    let body = json!({"documents": documents});
    eventually_async("documents are added", async || {
        ask(member, Method::POST, "/api/bases/sea/documents", body.clone()).await
    })
    .await;
}

/// Waits until the vectors of the base are in a state.
async fn state(member: &Member, wanted: &str) -> Value {
    eventually_async("the vectors", async || {
        let base = get(member, "/api/bases/sea").await?;
        if base["vectors"]["state"] == wanted { Ok(base) } else { Err(base.to_string()) }
    })
    .await
}

async fn search(member: &Member, query: Value) -> Value {
    eventually_async("an answer", async || ask(member, Method::POST, "/api/bases/sea/search", query.clone()).await)
        .await
}

/// The texts of the calls for vectors that were answered, without questions.
fn embedded(server: &Searches) -> Vec<String> {
    let asked = server.answered().into_iter().filter(|asked| asked.path == "/v1/embeddings");
    let mut texts: Vec<String> =
        asked.flat_map(|asked| asked.texts).filter(|text| text != QUESTION && text != WORD).collect();
    texts.sort();
    texts
}

fn worker(folder: &Path, name: &str, members: &[Member]) -> Process {
    let all: Vec<_> = members.iter().collect();
    let mut command = worker_command(program("atlas-worker"), folder, name, &all);
    Process::start(command.env("TINY_KEY", "key"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_found_by_vectors_and_ranked() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Searches::start(|_, _| Then::Answer).expect("a server");
    let members = trio(folder.path(), &[]).await;
    let member = &members[0];
    add_model(member, &server, "small", ("embedding", "small")).await;
    add_model(member, &server, "rank", ("reranker", "rank")).await;
    let worker = worker(folder.path(), "w1", &members);
    ask(member, Method::POST, "/api/bases", json!({"name": "sea", "embedding": "small"})).await.expect("made");
    add(member, &NOTES).await;
    let base = state(member, "ready").await;
    assert_eq!((&base["vectors"]["chunks"], &base["vectors"]["missing"]), (&json!(4), &json!(0)), "{base}");
    assert_eq!(embedded(&server), NOTES.map(|(_, text)| text));

    let question = json!({"query": QUESTION, "top_k": 1, "explain": true});
    for member in &members {
        let found = search(member, question.clone()).await;
        assert_eq!(found["hits"][0]["source"], "z.md", "{found}");
        assert!(found["hits"][0]["by_words"].is_null() && found["hits"][0]["by_vector"]["place"] == 1, "{found}");
        assert_eq!(found["without_vector"], 0);
    }
    let words = search(member, json!({"query": QUESTION, "words_only": true})).await;
    assert_eq!(words["hits"], json!([]), "no word is shared");
    let asked = server.answered().into_iter().filter(|asked| asked.texts == [QUESTION]).count();
    assert!((1..=3).contains(&asked), "each controller keeps the vector of a question, {asked}");

    ask(member, Method::PUT, "/api/bases/sea", json!({"reranker": "rank"})).await.expect("changed");
    let ranked = search(member, json!({"query": WORD, "top_k": 1, "explain": true})).await;
    assert_eq!(ranked["hits"][0]["source"], "c.md", "{ranked}");
    assert_eq!(ranked["hits"][0]["by_model"]["place"], 1, "{ranked}");

    add(member, &[("b.md", "zzzzzz"), ("d.md", "aaaa alfa")]).await;
    let base = state(member, "ready").await;
    assert_eq!(base["vectors"]["chunks"], 5, "{base}");
    assert_eq!(embedded(&server).len(), 5, "one text is new, and equal texts are one");

    // Another model makes other vectors.
    add_model(member, &server, "small", ("embedding", "large")).await;
    add(member, &[("e.md", "eeee")]).await;
    let base = state(member, "failed").await;
    let error = base["vectors"]["error"].as_str().expect("a reason");
    assert!(error.contains("atlasctl rag rebuild sea --vectors"), "{error}");
    let refused = ask(member, Method::POST, "/api/bases/sea/search", json!({"query": "other"})).await;
    assert!(refused.as_ref().is_err_and(|why| why.contains("rebuild sea --vectors")), "{refused:?}");
    ask(member, Method::POST, "/api/bases/sea/rebuild", json!({"vectors": true})).await.expect("rebuilt");
    state(member, "ready").await;
    assert_eq!(search(member, question).await["hits"][0]["source"], "b.md");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_is_paid_for_twice_when_worker_and_leader_die() {
    // Three jobs, two of them of several calls.
    const DOCUMENTS: usize = 600;
    let folder = tempfile::tempdir().expect("a folder");
    let server = Searches::start(|_, number| if number == 1 { Then::Never } else { Then::Answer }).expect("a server");
    let mut members = trio(folder.path(), &[]).await;
    let first = leader(&members).await;
    let other = (first + 1) % 3;
    let texts: Vec<(String, String)> =
        (0..DOCUMENTS).map(|number| (format!("{number:03}.md"), format!("text number {number:03}"))).collect();
    let notes: Vec<(&str, &str)> = texts.iter().map(|(source, text)| (source.as_str(), text.as_str())).collect();
    ask(&members[other], Method::POST, "/api/bases", json!({"name": "sea"})).await.expect("made");
    add(&members[other], &notes).await;
    add_model(&members[other], &server, "small", ("embedding", "small")).await;
    let doomed = worker(folder.path(), "w1", &members);
    ask(&members[other], Method::PUT, "/api/bases/sea", json!({"embedding": "small"})).await.expect("changed");
    eventually_async("a call that waits, and two jobs that are done", async || {
        let done = get(&members[other], "/api/jobs?agent=document-models&status=completed").await?;
        let (waiting, done) = (server.arrived().len() - server.answered().len(), done.as_array().map_or(0, Vec::len));
        if waiting == 1 && done == 2 { Ok(()) } else { Err(format!("{done} jobs, {waiting} calls")) }
    })
    .await;
    kill(members[first].pid(), Signal::SIGKILL).expect("killed");
    doomed.kill();
    members[first].kill();
    members[first].restart();
    let worker = worker(folder.path(), "w2", &members);
    let base = state(&members[other], "ready").await;
    assert_eq!(base["vectors"]["chunks"], json!(DOCUMENTS), "{base}");
    let expected: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    assert_eq!(embedded(&server), expected, "each text once");
    assert_eq!(server.arrived().len(), server.answered().len() + 1, "only the call that nobody answered is made again");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
}
