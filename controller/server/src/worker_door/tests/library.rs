//! Tests that running attempts share memory and knowledge as their contracts allow, and write nothing twice.

use serde_json::{Value, json};

use super::fake::{Cluster, Worker};
use super::tools::{answer, call, running, running_with};

const APPEND: &str = "atlas.memory.append";
const READ: &str = "atlas.memory.read";
const STORE: &str = "atlas.knowledge.store";
const SEARCH: &str = "atlas.knowledge.search";

fn contract(requires: &Value) -> Value {
    json!({"type": "agent", "name": "tooled", "version": "1.0.0", "requires": requires})
}

async fn started(requires: Value) -> (Cluster, Worker) {
    running(&contract(&requires), false).await
}

#[tokio::test]
async fn a_repeated_append_is_one_entry() {
    let (_cluster, mut worker) = started(json!({"memory": true})).await;
    assert_eq!(answer(&mut worker, call(1, 1, (READ, &json!({})))).await, json!({"text": ""}));
    for _ in 0..2 {
        let appended = answer(&mut worker, call(2, 1, (APPEND, &json!({"text": "tea"})))).await;
        assert_eq!(appended, json!({"status": "appended"}));
    }
    // Another step with the same text is another entry.
    answer(&mut worker, call(3, 1, (APPEND, &json!({"text": "tea"})))).await;
    assert_eq!(answer(&mut worker, call(4, 1, (READ, &json!({})))).await, json!({"text": "tea\ntea\n"}));
    let write = ("atlas.memory.write", &json!({"text": "milk"}));
    assert_eq!(answer(&mut worker, call(5, 1, write)).await, json!({"status": "written"}));
    answer(&mut worker, call(6, 1, (APPEND, &json!({"text": "tea"})))).await;
    // A write that is repeated late takes nothing away.
    answer(&mut worker, call(5, 1, write)).await;
    assert_eq!(answer(&mut worker, call(7, 1, (READ, &json!({})))).await, json!({"text": "milk\ntea\n"}));
}

#[tokio::test]
async fn a_job_reaches_its_own_memories_and_no_others() {
    let (_cluster, mut worker) = started(json!({"memory": true})).await;
    answer(&mut worker, call(1, 1, (APPEND, &json!({"text": "mine", "scope": "agent"})))).await;
    let read = |scope: &str| json!({"scope": scope});
    assert_eq!(answer(&mut worker, call(2, 1, (READ, &read("agent")))).await, json!({"text": "mine\n"}));
    for (number, scope) in [(3, "namespace"), (4, "user")] {
        assert_eq!(answer(&mut worker, call(number, 1, (READ, &read(scope)))).await, json!({"text": ""}), "{scope}");
    }
    for (number, scope) in
        [(5, "user:root"), (6, "agent:other"), (7, "conversation"), (8, "conversation:other"), (9, "team")]
    {
        let refused = answer(&mut worker, call(number, 1, (READ, &read(scope)))).await;
        assert!(refused["refused"].is_string(), "{scope}: {refused}");
    }
}

#[tokio::test]
async fn the_turns_of_a_conversation_share_a_memory() {
    let metadata = br#"{"_conversation":"trip"}"#;
    let contract = contract(&json!({"memory": true}));
    let (_cluster, mut worker) = running_with(Cluster::start().await, &contract, false, metadata).await;
    let append = json!({"text": "by train", "scope": "conversation"});
    assert_eq!(answer(&mut worker, call(1, 1, (APPEND, &append))).await, json!({"status": "appended"}));
    let read = answer(&mut worker, call(2, 1, (READ, &json!({"scope": "conversation"})))).await;
    assert_eq!(read, json!({"text": "by train\n"}));
}

#[tokio::test]
async fn without_the_contract_nothing_is_read_or_written() {
    let (_cluster, mut worker) = started(json!({"platform_tools": true})).await;
    let refused = answer(&mut worker, call(1, 1, (APPEND, &json!({"text": "x"})))).await;
    let expected = "Memory not enabled — set requires.memory: true in contract";
    assert_eq!(refused, json!({"refused": expected}));
    let refused = answer(&mut worker, call(2, 1, (SEARCH, &json!({"query": ""})))).await;
    let expected = "Knowledge not enabled — set requires.knowledge in contract";
    assert_eq!(refused, json!({"refused": expected}));
}

#[tokio::test]
async fn knowledge_is_read_and_written_in_the_domains_of_the_contract() {
    let requires =
        json!({"knowledge": {"enabled": true, "read_domains": ["ops", "people"], "write_domains": ["ops", "hidden"]}});
    let (_cluster, mut worker) = started(requires).await;
    let door = json!({"content": "The door is blue.", "domain": "ops", "tags": ["door"], "metadata": {"weight": 0.5}});
    let stored = answer(&mut worker, call(1, 1, (STORE, &door))).await;
    let id = stored["entry"]["id"].as_str().expect("an id").to_owned();
    assert!(id.starts_with("ops-"), "{stored}");
    assert_eq!(stored["entry"]["metadata"], json!({"weight": 0.5}));
    // A repeat of the step finds what the first try stored.
    assert_eq!(answer(&mut worker, call(1, 1, (STORE, &door))).await, stored);
    let secret = json!({"content": "The door is locked.", "domain": "hidden"});
    answer(&mut worker, call(2, 1, (STORE, &secret))).await;

    let found = answer(&mut worker, call(3, 1, (SEARCH, &json!({"query": "DOOR", "limit": 1})))).await;
    let ids: Vec<&Value> = found["entries"].as_array().expect("entries").iter().map(|entry| &entry["id"]).collect();
    assert_eq!(ids, [&json!(id)], "what may not be read does not count for the limit");

    let denied = answer(&mut worker, call(4, 1, (STORE, &json!({"content": "x", "domain": "people"})))).await;
    assert_eq!(denied, json!({"refused": "Agent not allowed to write to knowledge domain 'people'"}));
    let update = json!({"id": id, "content": "The door is red."});
    let changed = answer(&mut worker, call(5, 1, ("atlas.knowledge.update", &update))).await;
    assert_eq!(
        (&changed["entry"]["content"], &changed["entry"]["tags"]),
        (&json!("The door is red."), &json!(["door"]))
    );
    let unknown = answer(&mut worker, call(6, 1, ("atlas.knowledge.get", &json!({"id": "../x"})))).await;
    assert_eq!(unknown, json!({"entry": null}));
    let bad = answer(&mut worker, call(7, 1, (STORE, &json!({"content": "x", "domain": "../ops"})))).await;
    assert!(bad["refused"].as_str().is_some_and(|why| why.contains("domain")), "{bad}");
}
