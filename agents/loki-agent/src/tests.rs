//! Documents and what is read from them.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::Config;

#[track_caller]
fn check(document: &Value, expected: &Expect) {
    let shown = match Config::read(document) {
        Ok(config) => format!("{config:#?}\n"),
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&shown);
}

#[test]
fn a_name_is_enough() {
    check(
        &json!({"name": "a"}),
        &expect![[r#"
            Config {
                name: "a",
                description: "",
                version: "",
                model: None,
                temperature: None,
                top_p: None,
                session: None,
                instructions: "",
                dynamic_instructions: false,
                variables: [],
                conversation_starters: [],
                documents: [],
                rag_embedding_model: None,
                rag_reranker_model: None,
                rag_top_k: None,
                rag_chunk_size: None,
                rag_chunk_overlap: None,
                rag_template: None,
                global_tools: [],
                mcp_servers: [],
                tool_permissions: [],
                auto_continue: AutoContinueLayer {
                    enabled: None,
                    max: None,
                    inject: None,
                    prompt: None,
                },
                helpers: Settings {
                    spawns: false,
                    concurrent: 4,
                    depth: 3,
                    summarize_from: 4000,
                    escalation_timeout_ms: 300000,
                },
                inject_spawn_instructions: true,
                summarization_model: None,
                compression_threshold: None,
                unknown: [],
            }
        "#]],
    );
}

#[test]
fn all_members_are_read() {
    check(
        &json!({
            "name": "coder", "description": "d", "version": "1", "model": "openai:gpt", "temperature": 0, "top_p": 0.5,
            "agent_session": "temp", "instructions": "i", "dynamic_instructions": true,
            "variables": [{"name": "v", "description": "d", "default": "x"}, {"name": "w", "description": "d"}],
            "conversation_starters": ["s"], "documents": ["u"],
            "rag_embedding_model": "e", "rag_reranker_model": "r", "rag_top_k": 3, "rag_chunk_size": 500,
            "rag_chunk_overlap": 20, "rag_template": "__INPUT__ __CONTEXT__", "global_tools": ["fs_cat.sh"], "mcp_servers": ["m"],
            "auto_continue": true, "max_auto_continues": 3, "inject_todo_instructions": false, "continuation_prompt": "p",
            "can_spawn_agents": true, "max_concurrent_agents": 2, "max_agent_depth": 1, "inject_spawn_instructions": false,
            "summarization_model": "m", "summarization_threshold": 9, "escalation_timeout": 5, "compression_threshold": 7,
            "colour": "red",
        }),
        &expect![[r#"
            Config {
                name: "coder",
                description: "d",
                version: "1",
                model: Some(
                    "openai:gpt",
                ),
                temperature: Some(
                    0.0,
                ),
                top_p: Some(
                    0.5,
                ),
                session: Some(
                    "temp",
                ),
                instructions: "i",
                dynamic_instructions: true,
                variables: [
                    Variable {
                        name: "v",
                        description: "d",
                        default: Some(
                            "x",
                        ),
                    },
                    Variable {
                        name: "w",
                        description: "d",
                        default: None,
                    },
                ],
                conversation_starters: [
                    "s",
                ],
                documents: [
                    "u",
                ],
                rag_embedding_model: Some(
                    "e",
                ),
                rag_reranker_model: Some(
                    "r",
                ),
                rag_top_k: Some(
                    3,
                ),
                rag_chunk_size: Some(
                    500,
                ),
                rag_chunk_overlap: Some(
                    20,
                ),
                rag_template: Some(
                    "__INPUT__ __CONTEXT__",
                ),
                global_tools: [
                    "fs_cat.sh",
                ],
                mcp_servers: [
                    "m",
                ],
                tool_permissions: [],
                auto_continue: AutoContinueLayer {
                    enabled: Some(
                        true,
                    ),
                    max: Some(
                        3,
                    ),
                    inject: Some(
                        false,
                    ),
                    prompt: Some(
                        "p",
                    ),
                },
                helpers: Settings {
                    spawns: true,
                    concurrent: 2,
                    depth: 1,
                    summarize_from: 9,
                    escalation_timeout_ms: 5000,
                },
                inject_spawn_instructions: false,
                summarization_model: Some(
                    "m",
                ),
                compression_threshold: Some(
                    7,
                ),
                unknown: [
                    "colour",
                ],
            }
        "#]],
    );
}

#[test]
fn what_is_wrong_is_named() {
    check(
        &json!([]),
        &expect![[r#"
        a configuration is a map of names and values, and this is a list
    "#]],
    );
    check(
        &json!({"description": "x"}),
        &expect![[r#"
        "name" is required
    "#]],
    );
    check(
        &json!({"name": 5}),
        &expect![[r#"
        "name" must be a text, and is a number
    "#]],
    );
    check(
        &json!({"name": "a", "max_agent_depth": -1}),
        &expect![[r#"
        "max_agent_depth" must be a whole number from 0, and is a number
    "#]],
    );
    check(
        &json!({"name": "a", "auto_continue": "yes"}),
        &expect![[r#"
        "auto_continue" must be true or false, and is a text
    "#]],
    );
    check(
        &json!({"name": "a", "global_tools": ["a", 1]}),
        &expect![[r#"
            "global_tools" must be a list of strings, and is another list
        "#]],
    );
    check(
        &json!({"name": "a", "variables": [{"name": "v"}]}),
        &expect![[r#"
        "variables[0].description" is required
    "#]],
    );
    check(
        &json!({"name": "a", "rag_top_k": 0}),
        &expect![[r#"
        "rag_top_k" must be a whole number from 1 to 100, and is a number
    "#]],
    );
    check(
        &json!({"name": "a", "rag_chunk_overlap": 1000}),
        &expect![[r#"
        "rag_chunk_overlap" is 1000, and must be less than "rag_chunk_size", which is 1000
    "#]],
    );
    check(
        &json!({"name": "a", "rag_template": "__INPUT__ and __SOURCES__"}),
        &expect![[r#"
        "rag_template" has no __CONTEXT__; it needs __INPUT__ and __CONTEXT__, and can have __SOURCES__
    "#]],
    );
    check(
        &json!({"name": "a", "documents": vec!["x"; 1001]}),
        &expect![[r#"
        "documents" has 1001 items, more than 1000
    "#]],
    );
}

/// Each member of the format is in one of the tables, or has a field that is read elsewhere (`tests/tidy` looks for that).
#[test]
fn the_tables_name_members_of_the_format() {
    let members = Config::members();
    assert!(members.len() > 25, "{members:?}");
    for name in crate::WITHOUT_EFFECT.iter().map(|(name, _)| name).chain(&crate::OF_HELPERS) {
        assert!(members.contains(name), "{name}");
    }
}
