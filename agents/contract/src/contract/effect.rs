//! Which keys of a contract have an effect, and for which kinds of providers. A key that is accepted and does nothing is a warning.
//!
//! A test compares the table with the keys that the rules accept.

use serde_json::Value;

use super::ProviderKind;
use crate::violation::escaped;
use crate::warning::Warning;

use ProviderKind::{Chain, Exec, Graph, Llm, LokiAgent, Mcp, Node, Python};

/// What happens to a key.
#[derive(Debug, Clone, Copy)]
enum Effect {
    /// It always counts.
    Always,
    /// It counts for these kinds of providers.
    For(&'static [ProviderKind]),
    /// It is accepted for compatibility, and does nothing.
    Never(&'static str),
}

use Effect::{Always, For, Never};

/// The kinds that take a place on a node.
const ON_NODES: &[ProviderKind] = &[Python, Node, Exec, Llm, Graph, LokiAgent, Mcp];
/// The kinds with processes of their own, also those of tools and scripts.
const PROCESSES: &[ProviderKind] = &[Python, Node, Exec, Graph, LokiAgent];
/// The kinds whose program is the author's.
const PROGRAMS: &[ProviderKind] = &[Python, Node, Exec];
/// The kinds whose jobs search document bases; programs of exec only if they are durable, and nodes of graphs that list the tool.
const SEARCHERS: &[ProviderKind] = &[Python, Node, Exec, Llm, Graph, LokiAgent];
/// The kinds whose jobs use shared memory and knowledge; nodes of graphs list the tools for it.
const LIBRARY: &[ProviderKind] = &[Python, Node, Exec, Llm, Graph, LokiAgent];
/// The kinds whose jobs call models; agents in Python and of Node.js can ask for their tier.
const MODELS: &[ProviderKind] = &[Python, Node, Llm, Graph, LokiAgent];

/// The keys, as pointers below `/agent`; `*` is an item of a list. What is below a key without a row has its row.
const KEYS: &[(Effect, &[&str])] = &[
    (
        Always,
        &[
            "name",
            "version",
            "type",
            "description",
            "input",
            "output",
            "capabilities",
            "retry",
            "effects",
            "concurrency",
            "max_failures",
            "rate",
            "per_key",
            "title",
            "conversation",
            "labels",
            "execution_timeout",
            "queue_timeout",
            "requires",
            "requires/platform_tools",
            "requires/spawn_agents",
            "requires/skills",
            "requires/agents",
            "requires/secrets",
            "provider",
            "provider/type",
            "permissions",
            "permissions/secrets",
            "model",
            "dependencies",
        ],
    ),
    (For(MODELS), &["model/preference", "model/name", "model/others"]),
    (Never("the caller of a job never chooses its model"), &["model/override_allowed"]),
    (For(LIBRARY), &["requires/memory", "requires/knowledge"]),
    (For(SEARCHERS), &["requires/documents"]),
    (For(&[Llm, Graph, LokiAgent]), &["requires/mcp_servers"]),
    (For(&[Exec]), &["provider/command", "provider/mode"]),
    (
        For(&[Llm]),
        &[
            "provider/system_prompt",
            "provider/focus",
            "provider/output_format",
            "provider/max_iterations",
            "provider/enforce_schema",
            "provider/repair_rounds",
            "provider/parallel_tools",
            "provider/partial_at_limit",
            "provider/images",
            "provider/messages",
            "provider/settings",
            "provider/documents",
            "provider/direct",
            "provider/temperature",
            "provider/top_p",
        ],
    ),
    (
        For(&[Llm, LokiAgent]),
        &[
            "provider/max_tokens",
            "provider/top_k",
            "provider/stop",
            "provider/reasoning_effort",
            "provider/loop_repeat_threshold",
            "provider/probe",
        ],
    ),
    (
        For(&[Llm, Graph, LokiAgent]),
        &[
            "provider/stream",
            "provider/answers_helpers",
            "provider/question_timeout_seconds",
            "provider/outage_wait_seconds",
            "provider/tool_permissions",
        ],
    ),
    (For(&[LokiAgent]), &["provider/session"]),
    (For(&[Mcp]), &["provider/server", "provider/tool", "provider/agent"]),
    (For(&[Chain]), &["provider/steps", "provider/orchestrator"]),
    (For(ON_NODES), &["hardware", "startup_timeout", "max_attempts"]),
    (For(&[Python]), &["dependencies/packages"]),
    (
        For(PROCESSES),
        &[
            "permissions/filesystem",
            "permissions/file_system",
            "permissions/network",
            "permissions/max_memory_mb",
            "permissions/max_cpu_seconds",
        ],
    ),
    (For(PROGRAMS), &["permissions/isolation", "permissions/container_image", "durable", "replay"]),
    (Never("requires.spawn_agents decides"), &["permissions/spawn"]),
];

/// The row of a key, or of the nearest key above it.
fn effect(key: &str) -> Option<Effect> {
    let row = KEYS.iter().find(|(_, keys)| keys.contains(&key)).map(|(effect, _)| *effect);
    row.or_else(|| effect(key.rsplit_once('/')?.0))
}

/// The keys of a document without effect.
pub(super) fn without(document: &Value, kind: ProviderKind) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(agent) = document.get("agent") {
        walk(agent, "", kind, &mut warnings);
    }
    warnings
}

fn walk(value: &Value, key: &str, kind: ProviderKind, warnings: &mut Vec<Warning>) {
    let Some(members) = value.as_object() else { return };
    for (name, value) in members {
        let inner = if key.is_empty() { escaped(name) } else { format!("{key}/{}", escaped(name)) };
        let known = KEYS.iter().any(|(_, keys)| keys.contains(&inner.as_str()));
        if !known {
            continue;
        }
        let warning = |message: String| Warning::new(format!("/agent/{inner}"), message);
        match effect(&inner) {
            Some(Never(why)) if !is_default(&inner, value) => {
                warnings.push(warning("has no effect".to_owned()).with_hint(why));
            }
            Some(For(kinds)) if !kinds.contains(&kind) && !is_default(&inner, value) => {
                let message = format!("has no effect for the provider {}", kind.as_str());
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
                warnings.push(warning(message).with_hint(format!("it counts for {}", kinds.join(", "))));
            }
            _ => walk(value, &inner, kind, warnings),
        }
    }
}

/// Whether a value asks for nothing.
fn is_default(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => *flag == (key == "model/override_allowed"),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => {
            text.is_empty()
                || matches!((key, text.as_str()), ("permissions/isolation", "process") | ("replay", "normal"))
        }
        Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::parse;

    /// The keys that the rules accept, as pointers below `/agent`.
    fn accepted(rules: &Value, at: &str, found: &mut Vec<String>) {
        let own = rules.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, inner) in own {
            let key = if at.is_empty() { name.clone() } else { format!("{at}/{name}") };
            found.push(key.clone());
            accepted(inner, &key, found);
        }
        for branch in rules.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
            accepted(branch, at, found);
        }
        if let Some(items) = rules.get("items") {
            accepted(items, &format!("{at}/*"), found);
        }
    }

    #[test]
    fn each_key_that_is_accepted_has_a_row_and_each_row_a_key() {
        let rules: Value = serde_json::from_str(include_str!("rules.json")).expect("JSON");
        let mut keys = Vec::new();
        accepted(&rules["properties"]["agent"], "", &mut keys);
        assert!(keys.len() > 100, "{}", keys.len());
        for key in &keys {
            assert!(effect(key).is_some(), "\"{key}\" is accepted: add to the table whether it has an effect");
        }
        for row in KEYS.iter().flat_map(|(_, keys)| *keys) {
            assert!(keys.iter().any(|key| key == row), "\"{row}\" is in the table and is not accepted");
        }
        let mut rows: Vec<&str> = KEYS.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
        rows.sort_unstable();
        let count = rows.len();
        rows.dedup();
        assert_eq!(rows.len(), count, "a key has two rows");
        // Keys of a mapping whose members differ in their effect have rows of their own.
        for (key, _) in keys
            .iter()
            .filter_map(|key| key.split_once('/'))
            .filter(|(top, _)| ["requires", "provider", "permissions", "model", "dependencies"].contains(top))
        {
            let below =
                keys.iter().filter(|other| other.matches('/').count() == 1 && other.starts_with(&format!("{key}/")));
            below.for_each(|other| assert!(rows.contains(&other.as_str()), "\"{other}\" has no row of its own"));
        }
    }

    #[test]
    fn keys_without_effect_are_warnings() {
        let text = "agent: {name: a, version: 1.0.0, provider: {type: exec, command: [a], max_tokens: 5, session: x}, \
                    model: {override_allowed: false, name: m}, requires: {memory: true, knowledge: {read_domains: [x]}}, \
                    permissions: {spawn: true}, dependencies: {packages: [x]}}";
        let warnings = parse(text.as_bytes()).expect("a contract").warnings;
        let told: String = warnings.iter().map(|warning| format!("{warning}\n")).collect();
        expect![[r#"
            /agent/provider/max_tokens: has no effect for the provider exec; it counts for llm, normal
            /agent/provider/session: has no effect for the provider exec; it counts for normal
            /agent/model/override_allowed: has no effect; the caller of a job never chooses its model
            /agent/model/name: has no effect for the provider exec; it counts for python, node, llm, graph, normal
            /agent/permissions/spawn: has no effect; requires.spawn_agents decides
            /agent/dependencies/packages: has no effect for the provider exec; it counts for python
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn memory_and_knowledge_count_for_programs_and_models() {
        let of = |provider: &str, requires: &str| {
            let text = format!("agent: {{name: a, version: 1.0.0, provider: {provider}, requires: {requires}}}");
            let warnings = parse(text.as_bytes()).expect("a contract").warnings;
            warnings.iter().map(|warning| format!("{warning}\n")).collect::<String>()
        };
        let requires = "{memory: true, knowledge: {write_domains: [x]}}";
        for provider in ["python", "node", "{type: exec, command: [a]}", "llm", "graph", "normal"] {
            assert_eq!(of(provider, requires), "", "{provider}");
        }
        assert_eq!(of("llm", "{memory: user}"), "");
        expect![[r#"
            /agent/requires/memory: has no effect for the provider chain; it counts for python, node, exec, llm, graph, normal
            /agent/requires/knowledge: has no effect for the provider chain; it counts for python, node, exec, llm, graph, normal
            /agent/requires/documents: has no effect for the provider chain; it counts for python, node, exec, llm, graph, normal
        "#]]
        .assert_eq(&of(
            "{type: chain, steps: [{agent: b}]}",
            "{memory: true, knowledge: {write_domains: [x]}, documents: [x]}",
        ));
    }

    #[test]
    fn programs_without_a_host_search_documents_if_they_are_durable() {
        let of = |durable: &str| {
            let provider = "provider: {type: exec, command: [a]}, requires: {documents: [x]}";
            let text = format!("agent: {{name: a, version: 1.0.0, {provider}{durable}}}");
            let warnings = parse(text.as_bytes()).expect("a contract").warnings;
            warnings.iter().map(|warning| format!("{warning}\n")).collect::<String>()
        };
        assert_eq!(of(", durable: true"), "");
        assert_eq!(of(""), "/agent/requires/documents: has no effect; it counts with durable: true\n");
    }

    #[test]
    fn what_asks_for_nothing_is_no_warning() {
        let text = "agent: {name: a, version: 1.0.0, provider: {type: chain, steps: [{agent: b}]}, model: {override_allowed: true}, \
                    requires: {memory: false, knowledge: false}, permissions: {spawn: false, isolation: process}}";
        assert_eq!(parse(text.as_bytes()).expect("a contract").warnings, []);
    }
}
