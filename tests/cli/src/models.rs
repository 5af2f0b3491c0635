//! Models: adding, listing and removing them, and the tiers and prices.

use expect_test::expect_file;

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
    session.run("atlasctl model add fast --provider openai --name gpt-4o-mini --key '${OPENAI_API_KEY}'");
    session.run("atlasctl model add fast --provider openai --name gpt-4o-mini --key '${OPENAI_API_KEY}' --fallback local --replace");
    session.run("atlasctl model add large --provider openai --name example --key sk-live-4711");
    session.run("atlasctl model add large --provider openai --name example --header x-api-key=sk-live-4711");
    session.run("atlasctl model add large --provider openai --name example --price-in 1e3 --price-out 1");
    session.run("atlasctl model add large --provider gizmo --name example");
    session.run("atlasctl model add large --provider openai --name example --fallback gone");
    session.run("atlasctl model tier powerful local");
    session.run("atlasctl model tier");
    session.run("atlasctl model tier balanced gone");
    session.run("atlasctl model list -o wide");
    session.run("atlasctl model show fast | grep -v -e uid -e created -e updated -e revision");
    session.run("atlasctl model remove local");
    session.run("atlasctl model tier powerful --reset");
    session.run("atlasctl model remove fast local");
    session.run("atlasctl model prices gpt-4o --day 2025-01-01");
    session.run("atlasctl model prices gpt-4o-mini -o jsonl");
    session.run("atlasctl model prices --day 2025-02-30");
    expect_file!["../transcripts/models.txt"].assert_eq(&session.page());
}
