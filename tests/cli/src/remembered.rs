//! What agents know together: a bundled agent that remembers its user, a summary that a model writes in place of old entries, a bundled
//! agent that answers from a document base, and bases that come from Loki.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use atlas_llm_server::{Reply, Server};
use expect_test::expect_file;

use crate::laptop::Laptop;
use crate::session::Session;

fn deploy(session: &mut Session<'_>, agent: &str) {
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/bundled");
    session.quiet(&format!("atlasctl deploy {}", agents.join(agent).display()));
}

#[test]
fn a_user_is_remembered_and_old_entries_are_compacted() {
    let answers = Mutex::new(Vec::new());
    let server = Server::start(move |request, _| {
        let mut answers = answers.lock().expect("not poisoned");
        answers.push(request["messages"][0]["content"].to_string());
        match answers.len() {
            1 => Reply::text(" \n"),
            2 => Reply::text(&"It likes to say more than it was told. ".repeat(20)),
            _ => Reply::text("Ada drinks tea, and lives in Bern.\n"),
        }
    });
    let server = server.expect("a server");
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("Memories");
    deploy(&mut session, "assistant");
    session.run("atlasctl run assistant message='What do I like?' -o jsonpath={.output_data.answer}");
    session.run("atlasctl run assistant message='Remember that I prefer tea.' -o jsonpath={.output_data.answer}");
    session.run("atlasctl run assistant message='What do I like?' -o jsonpath={.output_data.answer}");
    session.run("atlasctl memory show");
    let user = session.quiet("atlasctl get memory -o name").trim().to_owned();
    assert!(user.starts_with("memory/user:"), "{user}");
    session.run(&format!(
        "atlasctl memory show --scope {}",
        user.trim_start_matches("memory/").split('@').next().expect("a scope")
    ));

    for text in ["Ada likes tea.", "Ada drinks tea every day.", "Ada lives in Bern.", "Ada has a dog."] {
        session.quiet(&format!("atlasctl memory append '{text}'"));
    }
    session.run("atlasctl memory compact --model gone");
    let base = server.base_url();
    session.quiet(&format!(
        "atlasctl model add tiny --provider anthropic --name tiny --base-url {base} --key '${{CARGO_PKG_NAME}}' --no-probe"
    ));
    session.run("atlasctl memory compact --model tiny");
    session.run("atlasctl memory compact --model tiny --keep 1");
    session.run("atlasctl memory compact --model tiny --keep 1");
    session.run("atlasctl memory show");
    session.run("atlasctl memory compact --model tiny --keep 1");
    session.run("atlasctl memory show");
    session.run("atlasctl memory history --columns by,kind,text");
    session.run("atlasctl memory compact --model tiny --keep 1");
    session.run("atlasctl memory compact");
    expect_file!["../transcripts/memories.txt"].assert_eq(&session.page());
}

const LOKI: &str = "\
embedding_model: openai:text-embedding-3-small
chunk_size: 1500
chunk_overlap: 75
reranker_model: null
top_k: 4
batch_size: null
next_file_id: 3
document_paths:
- /srv/handbook/**/*.md
files:
  0:
    hash: 9f86d081
    path: /srv/handbook/leave.md
    documents:
    - page_content: |-
        # Leave

        Everyone has thirty days of leave a year. Ask your lead
      metadata: {}
    - page_content: Ask your lead two weeks ahead.
      metadata: {}
  1:
    hash: 60303ae2
    path: /srv/handbook/laptops.md
    documents:
    - page_content: A laptop is replaced after four years.
      metadata: {}
  2:
    hash: e3b0c442
    path: /srv/handbook/empty.md
    documents: []
vectors:
  0-0: AACAPwAAAAA=
  0-1: AACAPwAAAAA=
  1-0: AACAPwAAAAA=
";

#[test]
fn questions_are_answered_from_a_base_of_loki() {
    let laptop = Laptop::with(&[]);
    fs::create_dir(laptop.folder().join("rags")).expect("a folder");
    fs::write(laptop.folder().join("rags/documents.yaml"), LOKI).expect("written");
    fs::write(laptop.folder().join("rags/other.yaml"), "name: other\n").expect("written");
    let mut session = laptop.session("A base of Loki");
    deploy(&mut session, "ask-base");
    session.run("atlasctl run ask-base question='When is a laptop replaced?' -o jsonpath={.output_data.answer}");
    session.run("atlasctl rag import rags/documents.yaml");
    session.run("atlasctl rag show documents");
    session.run("atlasctl rag export documents --jsonl");
    session.run("atlasctl run ask-base question='When is a laptop replaced?' -o jsonpath={.output_data}");
    session.run("atlasctl run ask-base question='How many days of \"leave\"?' -o jsonpath={.output_data.sources}");
    session.run("atlasctl rag import rags/*.yaml");
    session.run("atlasctl rag import rags/*.yaml --name both");
    session.run("atlasctl rag import rags/gone.yaml");
    session.run("atlasctl rag create documents --top-k 2 --replace");
    session.run("atlasctl rag import rags/documents.yaml");
    session.run("atlasctl rag import rags/documents.yaml --name handbook -o name");
    expect_file!["../transcripts/loki-bases.txt"].assert_eq(&session.page());
}
