//! What a model sees of memory, knowledge and document bases: a part of its system text, and four tools.

use atlas_contract::{Requires, SharedBy};
use atlas_model::{Tool, ToolCall};
use atlas_turn::{OfferedTool, Outcome};
use serde_json::{Value, json};

use super::{APPEND, Known, READ, SEARCH, SEARCH_DOCUMENTS, STORE};

/// Characters of an entry in the system text.
const SHOWN_CHARS: usize = 200;

const MEMORY_READ: &str = "memory_read";
const MEMORY_APPEND: &str = "memory_append";
const KNOWLEDGE_STORE: &str = "knowledge_store";
const KNOWLEDGE_SEARCH: &str = "knowledge_search";
const DOCUMENTS_SEARCH: &str = "search_documents";

/// The tools that a contract enables: name, description and schema of the arguments.
pub(in crate::provider) fn offered(requires: &Requires) -> Vec<(&'static str, &'static str, Value)> {
    let mut tools = Vec::new();
    if let Some(shared) = requires.memory {
        let schema = json!({
            "type": "object",
            "properties": {"entry": {"type": "string", "description": "The text to append."}},
            "required": ["entry"],
        });
        let about = match shared {
            SharedBy::Namespace => "Appends an entry to the memory that all agents share.",
            SharedBy::Agent => "Appends an entry to your memory, which all your jobs share.",
            SharedBy::User => {
                "Appends an entry to the memory of the user who asks you, which later jobs of this user are told."
            }
            SharedBy::Conversation => "Appends an entry to the memory of this conversation.",
        };
        tools.push((MEMORY_APPEND, about, schema));
    }
    if requires.knowledge.enabled {
        let schema = json!({
            "type": "object",
            "properties": {
                "content": {"type": "string", "description": "The knowledge to keep."},
                "domain": {"type": "string", "description": "Its domain; general if not given."},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["content"],
        });
        tools.push((KNOWLEDGE_STORE, "Stores an entry in the knowledge base.", schema));
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "domain": {"type": "string", "description": "Only entries of this domain."},
                "limit": {"type": "integer", "description": "Most entries; 10 if not given."},
            },
            "required": ["query"],
        });
        tools.push((KNOWLEDGE_SEARCH, "Searches the knowledge base.", schema));
    }
    if !requires.documents.is_empty() {
        let schema = json!({
            "type": "object",
            "properties": {
                "base": {"type": "string", "enum": requires.documents, "description": "The document base."},
                "query": {"type": "string", "description": "Words to look for."},
                "top_k": {"type": "integer", "description": "Most parts of documents, 1 to 100."},
                "source": {"type": "string", "description": "Only documents whose sources begin with it."},
                "metadata": {"type": "object", "description": "Only documents with these members in their metadata."},
            },
            "required": ["base", "query"],
        });
        tools.push((DOCUMENTS_SEARCH, "Finds the parts of documents that fit a question, with their sources.", schema));
    }
    tools
}

/// The tool of this name that a node of a graph lists, if the contract enables it. Nodes are told nothing at their beginning, and read.
pub(in crate::provider) fn listed(requires: &Requires, name: &str) -> Option<OfferedTool> {
    if !requires.shared_tools().contains(&name) {
        return None;
    }
    let read = (MEMORY_READ, "Reads the memory.", json!({"type": "object", "properties": {}}));
    let (name, description, input_schema) =
        offered(requires).into_iter().chain([read]).find(|(offered, ..)| *offered == name)?;
    let tool = Tool { name: name.to_owned(), description: description.to_owned(), input_schema };
    Some(OfferedTool { name: name.to_owned(), tool })
}

/// The system text with what the agent is told at its beginning.
pub(in crate::provider) fn system(text: &str, known: &Known) -> String {
    let mut parts: Vec<String> = Some(text.to_owned()).filter(|text| !text.is_empty()).into_iter().collect();
    if let Some(memory) = known.memory.as_ref().filter(|memory| !memory.is_empty()) {
        parts.push(format!("## Shared Memory\n{memory}"));
    }
    let shown = |entry: &Value| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let content: String = text("content").chars().take(SHOWN_CHARS).collect();
        format!("- [{}] {content}", text("domain"))
    };
    let lines: Vec<String> = known.knowledge.iter().flatten().map(shown).collect();
    if !lines.is_empty() {
        parts.push(format!("## Relevant Knowledge\n{}", lines.join("\n")));
    }
    parts.join("\n\n")
}

/// The entries in the answer to a search: `[{id, domain, content, tags}]`.
pub(super) fn hits(found: &Value) -> Vec<Value> {
    let entries = found.get("entries").and_then(Value::as_array).into_iter().flatten();
    let member = |entry: &Value, name: &str| entry.get(name).cloned().unwrap_or_default();
    let hit = |entry: &Value| {
        let [id, domain, content, tags] = ["id", "domain", "content", "tags"].map(|name| member(entry, name));
        json!({"id": id, "domain": domain, "content": content, "tags": tags})
    };
    entries.map(hit).collect()
}

/// The parts of documents in the answer to a search: `[{source, text, metadata}]`.
fn parts(found: &Value) -> Vec<Value> {
    let part = |hit: &Value| {
        let mut part = json!({"source": hit["source"], "text": hit["text"]});
        if hit["metadata"].as_object().is_some_and(|metadata| !metadata.is_empty()) {
            part["metadata"] = hit["metadata"].clone();
        }
        part
    };
    found.get("hits").and_then(Value::as_array).into_iter().flatten().map(part).collect()
}

/// The tool of the platform behind a model call, and its arguments. What the schema requires is there: others are not made.
pub(super) fn asked(call: &ToolCall) -> (&'static str, Value) {
    let given = &call.arguments;
    let (tool, mut arguments, optional): (_, _, &[&str]) = match call.name.as_str() {
        MEMORY_READ => (READ, json!({}), &[]),
        MEMORY_APPEND => (APPEND, json!({"text": given["entry"]}), &[]),
        KNOWLEDGE_STORE => (STORE, json!({"content": given["content"]}), &["domain", "tags"]),
        DOCUMENTS_SEARCH => (
            SEARCH_DOCUMENTS,
            json!({"base": given["base"], "query": given["query"]}),
            &["top_k", "source", "metadata"],
        ),
        _ => (SEARCH, json!({"query": given["query"]}), &["domain", "limit"]),
    };
    for name in optional {
        if let Some(value) = given.get(*name).filter(|value| !value.is_null()) {
            arguments[*name] = value.clone();
        }
    }
    (tool, arguments)
}

/// What the model is told of an answer.
pub(super) fn outcome(call: &ToolCall, answer: &Value) -> Outcome {
    Outcome::Value(match call.name.as_str() {
        MEMORY_READ => json!({"memory": answer["text"]}),
        MEMORY_APPEND => json!({"status": "appended"}),
        KNOWLEDGE_STORE => json!({"status": "stored", "id": answer["entry"]["id"]}),
        DOCUMENTS_SEARCH => parts(answer).into(),
        _ => hits(answer).into(),
    })
}

/// What the model is told of a refusal.
pub(super) fn refused(why: String) -> Outcome {
    let kind = if why.starts_with("Agent not allowed to ") { "PermissionError" } else { "RuntimeError" };
    Outcome::error(kind, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_text_has_what_is_there() {
        let entry = json!({"id": "e1", "domain": "ops", "content": "é".repeat(201), "tags": []});
        let known = Known { memory: Some("a\nb\n".to_owned()), knowledge: Some(vec![entry]) };
        let knowledge = format!("## Relevant Knowledge\n- [ops] {}", "é".repeat(200));
        let memory = "## Shared Memory\na\nb\n";
        assert_eq!(system("Be brief.", &known), format!("Be brief.\n\n{memory}\n\n{knowledge}"));
        let nothing = Known { memory: Some(String::new()), knowledge: Some(Vec::new()) };
        assert_eq!((system("x", &nothing), system("", &Known::default())), ("x".to_owned(), String::new()));
    }

    #[test]
    fn calls_are_those_of_the_platform() {
        let call = |name: &str, arguments: Value| {
            asked(&ToolCall { id: "1".to_owned(), name: name.to_owned(), arguments, opaque: Value::Null })
        };
        assert_eq!(call(MEMORY_APPEND, json!({"entry": "x"})), (APPEND, json!({"text": "x"})));
        let store = json!({"content": "c", "domain": null, "tags": ["t"], "other": 1});
        assert_eq!(call(KNOWLEDGE_STORE, store), (STORE, json!({"content": "c", "tags": ["t"]})));
        let search = json!({"query": "q", "limit": 2});
        assert_eq!(call(KNOWLEDGE_SEARCH, search.clone()), (SEARCH, search));
        let search = json!({"base": "handbook", "query": "q", "top_k": 2, "metadata": {"team": "ops"}});
        assert_eq!(call(DOCUMENTS_SEARCH, search.clone()), (SEARCH_DOCUMENTS, search));
    }

    #[test]
    fn a_model_gets_parts_with_their_sources() {
        let hit = json!({"source": "a.md", "text": "t", "score": 1.5, "document": "ab", "chunk": 1, "metadata": {}});
        let tagged = json!({"source": "b.md", "text": "u", "metadata": {"team": "ops"}});
        let expected = json!([{"source": "a.md", "text": "t"}, tagged]);
        assert_eq!(Value::Array(parts(&json!({"hits": [hit, tagged]}))), expected);
    }
}
