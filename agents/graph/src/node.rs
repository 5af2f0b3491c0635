//! Reads one node of a document.

use serde_json::Value;

use crate::fields::Fields;
use crate::finding::member;
use crate::graph::{Agent, Approval, Input, Kind, Llm, MapNode, Next, Node, OnItemError, Rag, Script};
use crate::load::{LoadErrorKind, TYPES};

/// Fields of `rag` nodes that later versions of Loki have for other stores, and no search here follows.
const UNSUPPORTED_RAG: [&str; 4] = ["driver", "extractor_model", "extractor_prompt", "graph_hops"];
/// Fields of `llm` nodes that have no effect.
const UNUSED_LLM: [&str; 2] = ["skills_enabled", "enabled_skills"];

/// Reads the node with this key.
pub(crate) fn read(key: &str, mut fields: Fields<'_, '_>) -> Node {
    fields.label("id");
    let description = fields.label("description");
    let next = next(&mut fields);
    let kind_name = fields.text("type");
    let kind = match kind_name.as_str() {
        "llm" => llm(&mut fields, key),
        "script" => Kind::Script(Script {
            script: fields.text("script"),
            timeout: fields.count_or("timeout", 30),
            fallback: fields.text_or_none("fallback"),
        }),
        "approval" => Kind::Approval(Approval {
            question: fields.text("question"),
            options: fields.texts("options"),
            routes: fields.text_map("routes"),
            on_other: fields.text("on_other"),
            timeout: fields.count_or_none("timeout"),
            on_timeout: fields.text_or_none("on_timeout"),
        }),
        "input" => Kind::Input(Input {
            question: fields.text("question"),
            default: fields.text_or_none("default"),
            validation: fields.text_or_none("validation"),
        }),
        "rag" => rag(&mut fields, key),
        "map" => map(&mut fields),
        "agent" => Kind::Agent(Agent {
            agent: fields.text("agent"),
            prompt: fields.text("prompt"),
            timeout: fields.count_or_none("timeout"),
            output_schema: schema(&mut fields),
        }),
        "end" => Kind::End { output: fields.text_or("output", "") },
        name => {
            if fields.value("type").is_some_and(Value::is_string) {
                let pointer = member(&fields.at, "type");
                let kind = LoadErrorKind::UnknownType { name: name.to_owned() };
                let hint = fields.reading.nearest(name, &TYPES);
                let hint = hint.unwrap_or_else(|| format!("the types are: {}", TYPES.join(", ")));
                fields.reading.error(kind, &pointer, Some(hint));
            }
            Kind::End { output: String::new() }
        }
    };
    let is_known = TYPES.contains(&kind_name.as_str());
    // A map writes its results, and nothing else.
    let updates = if kind_name == "map" { None } else { fields.text_map_or_none("state_updates") };
    // The fields of an unknown type are unknown as well.
    if is_known || kind_name.is_empty() {
        fields.finish(Some(key));
    }
    Node { id: key.to_owned(), description, next, updates, kind }
}

fn next(fields: &mut Fields<'_, '_>) -> Option<Next> {
    let value = fields.value_or_none("next")?;
    let text = |item: &Value| item.as_str().map(str::to_owned);
    let next = match value {
        Value::String(target) => Some(Next::One(target.clone())),
        Value::Array(items) => items.iter().map(text).collect::<Option<_>>().map(Next::Many),
        _ => None,
    };
    if next.is_none() {
        fields.wrong("next", "a node id or a list of node ids", value);
    }
    next
}

fn schema(fields: &mut Fields<'_, '_>) -> Option<Value> {
    fields.value_or_none("output_schema").cloned()
}

fn llm(fields: &mut Fields<'_, '_>, key: &str) -> Kind {
    let llm = Llm {
        prompt: fields.text("prompt"),
        instructions: fields.text_or_none("instructions"),
        tools: fields.texts_or_none("tools"),
        model: fields.text_or_none("model"),
        temperature: fields.number_or_none("temperature"),
        top_p: fields.number_or_none("top_p"),
        reasoning_effort: fields.text_or_none("reasoning_effort"),
        fallback: fields.text_or_none("fallback"),
        max_attempts: fields.count_or("max_attempts", 1),
        max_iterations: fields.count_or("max_iterations", 10),
        output_schema: schema(fields),
        timeout: fields.count_or_none("timeout"),
    };
    fields.unused(&UNUSED_LLM, Some(key));
    Kind::Llm(Box::new(llm))
}

fn rag(fields: &mut Fields<'_, '_>, key: &str) -> Kind {
    let rag = Rag {
        documents: fields.texts("documents"),
        query: fields.text_or_none("query"),
        top_k: fields.count_or_none("top_k"),
        embedding_model: fields.text_or_none("embedding_model"),
        chunk_size: fields.count_or_none("chunk_size"),
        chunk_overlap: fields.count_or_none("chunk_overlap"),
        reranker_model: fields.text_or_none("reranker_model"),
        batch_size: fields.count_or_none("batch_size"),
        timeout: fields.count_or_none("timeout"),
    };
    fields.unsupported(&UNSUPPORTED_RAG, Some(key));
    Kind::Rag(Box::new(rag))
}

fn map(fields: &mut Fields<'_, '_>) -> Kind {
    let on_item_error = fields.text_or_none("on_item_error").and_then(|word| {
        let known = match word.as_str() {
            "fail" => Some(OnItemError::Fail),
            "null" => Some(OnItemError::Null),
            "skip" => Some(OnItemError::Skip),
            _ => None,
        };
        if known.is_none() {
            fields.wrong("on_item_error", "\"fail\", \"null\" or \"skip\"", &Value::from(word));
        }
        known
    });
    Kind::Map(MapNode {
        over: fields.text("over"),
        item: fields.text("as"),
        branch: fields.text("branch"),
        collect_into: fields.text("collect_into"),
        output_key: fields.text_or("output_key", "output"),
        max_concurrency: fields.size_or_none("max_concurrency"),
        on_item_error,
    })
}
