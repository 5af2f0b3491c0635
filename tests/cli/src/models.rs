//! Models: adding, listing and removing them, and the tiers and prices.

use atlas_llm_server::{Reply, Server};
use expect_test::expect_file;
use serde_json::json;

use crate::laptop::Laptop;

#[test]
fn models_are_added_given_tiers_and_removed() {
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("Models are added, given tiers and removed");
    session.run("atlasctl model list");
    session.run(
        "atlasctl model add local --provider ollama --name llama3.2 --base-url http://127.0.0.1:11434 --context-window 8192",
    );
    session.run(
        "atlasctl model add fast --provider openai --name example-mini --key secret://openai-key --price-in 0.40 --price-out 1.60 \
         --capabilities tools,json_schema --fallback local --concurrency 8",
    );
    session.run("atlasctl model add fast --provider openai --name gpt-4o-mini --key '${EXAMPLE_API_KEY}'");
    session.run("atlasctl model add fast --provider openai --name gpt-4o-mini --key '${EXAMPLE_API_KEY}' --fallback local --replace");
    session.run("atlasctl model add large --provider openai --name example --key sk-live-4711");
    session.run("atlasctl model add large --provider openai --name example --header x-api-key=sk-live-4711");
    session.run("atlasctl model add large --provider openai --name example --price-in 1e3 --price-out 1");
    session.run("atlasctl model add large --provider gizmo --name example");
    session.run("atlasctl model add large --provider openai --name example --fallback gone");
    session.run("atlasctl model tier powerful local");
    session.run("atlasctl model tier");
    session.run("atlasctl model tier balanced gone");
    session.run("atlasctl model list -o wide");
    session.run("atlasctl model show fast | grep -v -e uid -e created -e updated -e revision -e checked_at");
    session.run("atlasctl model remove local");
    session.run("atlasctl model tier powerful --reset");
    session.run("atlasctl model remove fast local");
    session.run("atlasctl model prices gpt-4o --day 2025-01-01");
    session.run("atlasctl model prices gpt-4o-mini -o jsonl");
    session.run("atlasctl model prices --day 2025-02-30");
    expect_file!["../transcripts/models.txt"].assert_eq(&session.page());
}

/// The beginning of a conversation with a model behind a contract: first its prepared answers, then a provider.
#[test]
fn a_model_behind_a_contract() {
    let server = Server::start(|request, number| {
        let summary =
            format!("{{\"summary\": \"Answer {number} of {}.\"}}", request["model"].as_str().unwrap_or_default());
        let content = vec![json!({"type": "text", "text": summary})];
        Reply::Message { content, tokens: [1_204, 96] }
    });
    let server = server.expect("a server");
    let laptop = Laptop::with(&[]);
    std::fs::write(laptop.folder().join("README.md"), "Atlas runs agents.\n").expect("written");
    let mut session = laptop.session("A model behind a contract");
    session.run("atlasctl init summarize --template llm && atlasctl deploy ./summarize");
    session.run("atlasctl run summarize text=@README.md");
    // A variable that cargo sets for every test, and so for the worker of `dev`.
    let add = |name: &str, id: &str| {
        let base = server.base_url();
        format!(
            "atlasctl model add {name} --provider anthropic --name {id} --base-url {base} --key '${{CARGO_PKG_NAME}}'"
        )
    };
    session.run(&format!("{} --price-in 0.40 --price-out 1.60", add("fast", "tiny")));
    session.run(&add("large", "unknown-model"));
    session.run("atlasctl run summarize text=@README.md --budget 0.01");
    session.run("atlasctl model check fast");
    session.run("atlasctl model list --columns name,state,reason | tr -s ' '");
    session.run(
        "atlasctl job replay $(atlasctl job list --limit 100 --filter 'agent_name==\"summarize\"' -o name | head -1)",
    );
    let job = session.quiet("atlasctl job list --limit 100 --filter 'agent_name==\"summarize\"' -o name | head -1");
    let job = job.trim();
    session.run(&format!("atlasctl job steps {job} | awk '{{print $1, $2}}'"));
    session
        .run(&format!("atlasctl job fork {job} --from-step 1 -o name > fork.txt && atlasctl job wait $(cat fork.txt)"));
    session.run("atlasctl job replay $(cat fork.txt)");
    session.run(&format!("atlasctl job fork {job} --from-step 7"));
    session.run(&format!("atlasctl job fork {job} --from-step 1 --model nowhere"));
    session.run(&format!("{} --price-in 2 --price-out 8", add("other", "huge")));
    session.run(&format!(
        "atlasctl job fork {job} --from-step 1 --model other -o name > fork.txt && atlasctl job wait $(cat fork.txt)"
    ));
    session.run("atlasctl job show $(cat fork.txt) | grep -e fork -e models -e output");
    session.run("atlasctl job steps $(cat fork.txt) | awk '{print $1, $2}'");
    session.run("atlasctl job replay $(cat fork.txt)");
    session.run("atlasctl init hello && atlasctl deploy hello 2>/dev/null && atlasctl run hello name=Ada --detach > plain.txt; atlasctl job wait $(cat plain.txt) && atlasctl job replay $(cat plain.txt)");
    session.run("atlasctl model tier fast large && atlasctl run summarize text=x --budget 0.01");
    expect_file!["../transcripts/model-behind-a-contract.txt"].assert_eq(&session.page());
}
