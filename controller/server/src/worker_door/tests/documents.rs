//! Tests that running attempts search the document bases that their contracts name, and no others.

use atlas_api::types::{BaseDraft, DocumentDraft};
use atlas_service::Caller;
use atlas_types::{COLLECT, Door};
use serde_json::{Value, json};

use super::fake::{Cluster, Worker};
use super::tools::{answer, call, running};

const SEARCH: &str = "atlas.documents.search";

async fn started(requires: Value) -> (Cluster, Worker) {
    let contract = json!({"type": "agent", "name": "tooled", "version": "1.0.0", "requires": requires});
    let (cluster, worker) = running(&contract, false).await;
    let (bases, caller) = (cluster.controller.service().bases(), Caller::anonymous(Door::Local));
    for name in ["handbook", "salaries"] {
        let draft = BaseDraft { name: name.to_owned(), ..BaseDraft::default() };
        bases.create(&caller, draft).await.expect("made");
        let document = DocumentDraft {
            source: "leave.md".to_owned(),
            text: "Thirty days of leave.".to_owned(),
            ..DocumentDraft::default()
        };
        bases.add(&caller, name, vec![document]).await.expect("added");
    }
    (cluster, worker)
}

#[tokio::test]
async fn a_job_searches_the_bases_that_its_contract_names() {
    let (_cluster, mut worker) = started(json!({"documents": ["handbook", "gone"]})).await;
    let search = |base: &str| json!({"base": base, "query": "days of leave", "top_k": 3, "source": null});
    let found = answer(&mut worker, call(1, 1, (SEARCH, &search("handbook")))).await;
    let hit = &found["hits"][0];
    assert_eq!((&hit["source"], &hit["text"]), (&json!("leave.md"), &json!("Thirty days of leave.")), "{found}");
    let refusal = "Agent not allowed to search the document base 'salaries' — name it in requires.documents";
    let refused = answer(&mut worker, call(2, 1, (SEARCH, &search("salaries")))).await;
    assert_eq!(refused, json!({"refused": refusal}));
    let refused = answer(&mut worker, call(3, 1, (SEARCH, &search("gone")))).await;
    assert_eq!(refused, json!({"refused": "no such base: \"gone\""}));
    let unknown = json!({"base": "handbook", "query": "x", "limit": 3});
    let refused = answer(&mut worker, call(4, 1, (SEARCH, &unknown))).await;
    assert!(refused["refused"].as_str().is_some_and(|why| why.contains("limit")), "{refused}");
}

#[tokio::test]
async fn without_the_contract_nothing_is_searched() {
    for requires in [json!({"platform_tools": true}), json!({"skills": [SEARCH]})] {
        let (_cluster, mut worker) = started(requires).await;
        let search = json!({"base": "handbook", "query": "leave"});
        let refused = answer(&mut worker, call(1, 1, (SEARCH, &search))).await;
        assert!(refused["refused"].as_str().is_some_and(|why| why.starts_with("Agent not allowed to")), "{refused}");
    }
}

#[tokio::test]
async fn documents_are_handed_over_by_no_other_job() {
    let (_cluster, mut worker) = started(json!({"documents": ["handbook"]})).await;
    for (number, verb) in ["begin", "put", "keep", "end", "other"].into_iter().enumerate() {
        let tool = format!("{COLLECT}{verb}");
        let arguments =
            json!({"base": "handbook", "from": "x", "documents": [], "seen": [], "sources": [], "errors": []});
        let refused = answer(&mut worker, call(number as u64 + 1, 1, (&tool, &arguments))).await;
        assert_eq!(refused, json!({"refused": format!("Unknown tool: {tool}")}));
    }
}
