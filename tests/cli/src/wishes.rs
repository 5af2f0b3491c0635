//! Folders of documents, and pruning.

use std::fs;

use atlas_cluster_tests::{Agent, write_agent};
use expect_test::expect_file;

use crate::first_minutes::HELLO;
use crate::laptop::Laptop;

#[test]
fn a_folder_of_documents_is_checked_whole_and_pruned_by_label() {
    let laptop = Laptop::with(&[&Agent { name: "alone", ..HELLO }]);
    let shop = laptop.folder().join("shop");
    let labelled = format!("  labels: {{ set: shop }}\n{}", HELLO.contract);
    let hello = Agent { contract: &labelled, ..HELLO };
    write_agent(&shop, &hello);
    write_agent(&shop, &Agent { name: "polite", ..hello });
    let write = |name: &str, text: &str| fs::write(shop.join(name), text).expect("written");
    write("nodes.yml", "# Our machine.\n---\nid: laptop\nhealth: ready\ncordoned: true\n---\n");
    let mut session = laptop.session("Folders of documents");
    session.run("atlasctl diff -f shop");
    session.run("atlasctl apply -f shop");
    session.run("atlasctl apply -f shop -o name");
    write("a.yaml", "id: laptop\nhealth: ready\ncordoned: false\n---\n{agent_name: x, input_data: {}}\n---\n[\n");
    write("b.json", "{\"a\": 1}");
    session.run("atlasctl apply -f shop");
    session.run("atlasctl diff -f shop");
    write("a.yaml", "{id: absent, health: ready, cordoned: false}\n---\n{name: x, version: 1.0.0, digest: none}\n");
    write("b.json", "{\"id\": \"gone\", \"health\": \"ready\", \"cordoned\": true}");
    write("nodes.yml", "id: laptop\nhealth: ready\ncordoned: false\n");
    session.run("atlasctl apply -f shop");
    session.run("atlasctl node list --columns node,state");
    for name in ["a.yaml", "b.json"] {
        fs::remove_file(shop.join(name)).expect("removed");
    }
    fs::remove_dir_all(shop.join("polite")).expect("removed");
    write_agent(&shop, &Agent { version: "0.2.0", ..hello });
    session.run("atlasctl apply -f shop --prune");
    session.run("atlasctl apply -f shop --prune -l set=other");
    session.run("atlasctl apply -f shop/nodes.yml --prune -l set=shop");
    session.run("atlasctl diff -f shop --prune -l set=other");
    session.run("atlasctl diff -f shop --prune -l set=shop");
    session.run("atlasctl diff -f shop --prune -l set=shop -o jsonl");
    session.run("atlasctl apply -f shop --prune -l set=shop --dry-run");
    session.run("atlasctl apply -f shop --prune -l set=shop");
    session.run("atlasctl agent list --all -o name");
    session.run("atlasctl apply -f shop --prune -l set=shop --yes");
    session.run("atlasctl agent list --all --columns agent,version");
    session.run("atlasctl apply -f shop --prune -l set=shop");
    session.run("atlasctl diff -f shop --prune -l set=shop");
    write_agent(&shop, &Agent { name: "broken", ..hello });
    write_agent(&shop, &Agent { name: "broken-too", ..hello });
    for name in ["broken", "broken-too"] {
        fs::remove_file(shop.join(name).join("agent.sh")).expect("removed");
    }
    session.run("atlasctl apply -f shop/broken");
    session.run("atlasctl apply -f shop --dry-run");
    expect_file!["../transcripts/folders-of-documents.txt"].assert_eq(&session.page());
}
