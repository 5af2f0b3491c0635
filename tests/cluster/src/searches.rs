//! Searches by models: vectors of chunks that did not change are not made again, and no batch is paid for twice when a worker is lost.

use std::fs;
use std::path::Path;

use atlas_llm_server::searches::{Searches, Then};
use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::patience::{LONG, eventually};
use crate::process::Process;
use crate::program::program;
use crate::trio::{trio, worker_command};

const GRAPH: &str = "name: finder
start: find
nodes:
  find:
    type: rag
    documents: [notes]
    top_k: 1
    embedding_model: small
    reranker_model: rank
    batch_size: 1
    state_updates: {found: '{{output.sources}}'}
    next: done
  done: {type: end, output: '{{found}}'}
";
const CONFIG: &str = "name: reader
documents: [notes]
rag_embedding_model: small
rag_top_k: 1
rag_template: 'Q: __INPUT__ C: __CONTEXT__ S: __SOURCES__'
";
/// The question, which has the letters of the last note alone, and no word of any.
const QUESTION: &str = "zzz";
const NOTES: [(&str, &str); 4] =
    [("a.md", "aaaa alfa"), ("b.md", "bbbb beta"), ("c.md", "cccc core"), ("z.md", "zz zzzz zip")];

/// The package of an agent with notes.
fn package(folder: &Path, name: &str, (file, definition): (&str, &str), notes: &[(&str, &str)]) -> Vec<u8> {
    let agent = folder.join(name);
    fs::create_dir_all(agent.join("notes")).expect("a folder");
    fs::write(agent.join(file), definition).expect("a definition");
    for (note, text) in notes {
        fs::write(agent.join("notes").join(note), text).expect("a note");
    }
    pack(&agent).expect("a package").bytes
}

async fn add_models(api: &Api, server: &Searches) {
    let spec = |kind: &str| {
        // One chunk is all that a call can hold.
        json!({
            "provider": "openai", "name": kind, "type": kind, "base_url": server.url("v1"), "key": "${TINY_KEY}",
            "context_window": if kind == "embedding" { 1_000 } else { 100_000 },
        })
    };
    for (name, kind) in [("small", "embedding"), ("rank", "reranker")] {
        let (status, _, answer) =
            api.try_put(&format!("/api/objects/model/{name}"), json!({ "spec": spec(kind) })).await;
        assert!((200..300).contains(&status), "{answer}");
    }
}

/// The texts of the calls for vectors that were answered, in order; the question has none of the words of a note.
fn embedded(server: &Searches) -> Vec<String> {
    let asked = server.answered().into_iter().filter(|asked| asked.path == "/v1/embeddings");
    asked.flat_map(|asked| asked.texts).filter(|text| text != QUESTION).collect()
}

#[tokio::test]
async fn a_second_run_embeds_only_what_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Searches::start(|_, _| Then::Answer).expect("a server");
    let members = trio(folder.path(), &[]).await;
    let api = Api::new(&members[0].http.to_string());
    add_models(&api, &server).await;
    let all: Vec<_> = members.iter().collect();
    let mut command = worker_command(program("atlas-worker"), folder.path(), "w1", &all);
    let worker = Process::start(command.env("TINY_KEY", "key"));
    let mut notes = NOTES;
    let run = async |notes: &[(&str, &str)]| {
        api.register(package(folder.path(), "finder", ("graph.yaml", GRAPH), notes)).await;
        let job = api.submit("finder", json!({ "message": QUESTION })).await;
        api.wait(&job).await
    };
    let job = run(&notes).await;
    assert_eq!(job["output_data"]["text"], json!(r#"["notes/z.md"]"#), "{job}");
    let mut texts = embedded(&server);
    texts.sort();
    assert_eq!(texts, NOTES.map(|(_, text)| text));
    let ranked = server.answered().into_iter().filter(|asked| asked.path == "/v1/rerank").count();
    assert_eq!(ranked, 1);
    let job = run(&notes).await;
    assert_eq!(job["output_data"]["text"], json!(r#"["notes/z.md"]"#), "{job}");
    assert_eq!(embedded(&server).len(), 4, "nothing changed");
    notes[1] = ("b.md", "zzzzzz");
    let job = run(&notes).await;
    assert_eq!(job["output_data"]["text"], json!(r#"["notes/b.md"]"#), "{job}");
    assert_eq!(embedded(&server)[4..], ["zzzzzz"], "one note changed");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
}

/// Runs a job, kills the worker while the third batch waits, and lets another worker, which has kept nothing, go on.
async fn survive(folder: &Path, agent: &str, package: Vec<u8>) -> (Value, Vec<Value>) {
    let server = Searches::start(|_, number| if number == 2 { Then::Never } else { Then::Answer }).expect("a server");
    let chat = Server::start(|_, _| Reply::text("said")).expect("a server");
    let members = trio(folder, &[]).await;
    let api = Api::new(&members[0].http.to_string());
    add_models(&api, &server).await;
    api.register(package).await;
    let start = |name: &str| {
        let all: Vec<_> = members.iter().collect();
        let mut command = worker_command(program("atlas-worker"), folder, name, &all);
        command.env("ANTHROPIC_BASE_URL", chat.base_url()).env("ANTHROPIC_API_KEY", "key");
        Process::start(command.env("TINY_KEY", "key"))
    };
    let worker = start("w1");
    let job = api.submit(agent, json!({ "message": QUESTION })).await;
    eventually("the third batch waits", LONG, || (server.arrived().len() == 3).then_some(()));
    worker.kill();
    let worker = start("w2");
    let ended = api.wait(&job).await;
    assert!(ended["attempt"].as_u64() >= Some(2), "{ended}");
    let mut texts = embedded(&server);
    texts.sort();
    assert_eq!(texts, NOTES.map(|(_, text)| text), "each batch was answered once");
    assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    (ended["output_data"].clone(), chat.requests())
}

#[tokio::test]
async fn a_graph_pays_no_batch_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let package = package(folder.path(), "finder", ("graph.yaml", GRAPH), &NOTES);
    let (output, _) = survive(folder.path(), "finder", package).await;
    assert_eq!(output["text"], r#"["notes/z.md"]"#, "{output}");
}

#[tokio::test]
async fn an_agent_with_documents_pays_no_batch_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let package = package(folder.path(), "reader", ("config.yaml", CONFIG), &NOTES);
    let (output, requests) = survive(folder.path(), "reader", package).await;
    assert_eq!(output, json!({"text": "said"}));
    let said = requests[0]["messages"][0]["content"].to_string();
    assert!(said.contains("Q: zzz C: Source: notes/z.md\\nzz zzzz zip S: - notes/z.md"), "{said}");
}
