//! The OpenAPI document.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::LIMIT_MAX;
use crate::catalogue::{Entry, UNKNOWN_PATH};
use crate::operations::operation::{Body, Content, Kind, Operation, Parameter, ParameterLocation, Success, Verb};
use crate::operations::operations;
use crate::types::{self, Shape, of, schemas};

/// The document, JSON.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(write);
    &DOCUMENT
}

/// The groups of operations, each with what begins the paths of its own.
const TAGS: &[(&str, &str, &[&str])] = &[
    ("jobs", "Submitting, reading and changing jobs.", &["/api/jobs"]),
    ("traces", "What ended jobs did.", &["/api/traces"]),
    ("events", "Changes of all jobs, as a stream.", &["/api/events", "/ws"]),
    ("chains", "Runs of chains.", &["/api/chains"]),
    ("questions", "What jobs ask people.", &["/api/questions"]),
    ("agents", "Agent versions and their contracts.", &["/api/agents"]),
    ("conversations", "Messages to agents and their answers.", &["/api/conversations", "/.well-known/mcp/"]),
    ("library", "Memory and knowledge that agents share.", &["/api/memory", "/api/knowledge/"]),
    ("bases", "Document bases: documents that people and agents search.", &["/api/bases"]),
    ("openai", "OpenAI's interface: models and agents for its clients.", &["/v1/"]),
    ("nodes", "Workers and their hardware.", &["/api/nodes"]),
    ("objects", "Configuration as documents, of every kind.", &["/api/objects", "/api/secrets", "/api/models"]),
    ("triggers", "Rules that start jobs at times, or when their address is called.", &["/api/triggers", "/api/hooks/"]),
    ("cluster", "The controllers, their membership and backups.", &["/api/cluster"]),
    ("access", "Who may do what.", &["/api/auth/", "/api/audit", "/.well-known/oauth-protected-resource/"]),
    ("figures", "Health, statistics and metrics.", &["/api/health", "/api/ready", "/api/metrics", "/metrics"]),
    ("interface", "The program and this interface.", &["/api/version", "/api/openapi.json", "/errors/"]),
    (
        "policies",
        "Skills, policies, orchestrators and logins at MCP servers.",
        &["/api/skills", "/api/security/", "/api/policies/", "/api/orchestrator", "/api/mcp-servers"],
    ),
];

fn tags_of(path: &str) -> impl Iterator<Item = &'static str> {
    let begins = move |prefixes: &[&str]| prefixes.iter().any(|prefix| path.starts_with(prefix));
    TAGS.iter().filter(move |(_, _, prefixes)| begins(prefixes)).map(|(name, ..)| *name)
}

fn write() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations() {
        let methods = paths.entry(operation.path).or_insert_with(|| json!({}));
        methods[verb(operation.verb)] = described(operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Atlas",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Agents under contracts, run on a cluster. Bodies are read as JSON whatever their type.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "tags": TAGS.iter().map(|(name, says, _)| json!({ "name": name, "description": says })).collect::<Value>(),
        "paths": paths,
        "components": { "schemas": schemas(), "headers": headers() },
    })
}

fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::Post => "post",
        Verb::Put => "put",
        Verb::Delete => "delete",
    }
}

fn described(operation: &Operation) -> Value {
    let mut members = json!({
        "operationId": operation.id.name(), "summary": operation.says, "tags": tags_of(operation.path).collect::<Value>(),
        "x-atlas-right": operation.right.as_str(),
    });
    let named = operation.path_parameters().map(|name| {
        json!({
            "name": name, "in": "path", "required": true, "description": path_parameter(name),
            "schema": { "type": "string", "minLength": 1 },
        })
    });
    let others = operation.parameters().map(|one| parameter(one, operation.compatible));
    let parameters: Vec<Value> = named.chain(others).collect();
    if !parameters.is_empty() {
        members["parameters"] = parameters.into();
    }
    if let Some(body) = body(operation.body) {
        members["requestBody"] = body;
    }
    let mut answers = Map::new();
    for success in operation.successes {
        answers.insert(success.status.as_str().to_owned(), answer(success));
    }
    let is_openai = operation.has_openai_errors();
    for (status, entries) in operation.refusals() {
        answers.insert(status.as_str().to_owned(), refusal(&entries, is_openai));
    }
    for status in FAILED_CALLS.iter().filter(|_| is_openai) {
        answers.entry(*status).or_insert_with(|| refusal(&[], true));
    }
    members["responses"] = answers.into();
    members
}

/// The parameters of a path.
pub(crate) fn path_parameter(name: &str) -> &'static str {
    match name {
        "id" => "a job id, or a unique prefix of it",
        "model" => "the name of a model, an agent or a chain",
        "form" => "`model`, `agent` or `chain`",
        "version" => "three numbers",
        "member" => "a member's number or name",
        "agent" => "an agent's name",
        "code" => "`E` and four digits",
        _ => "its name",
    }
}

fn parameter(parameter: &Parameter, compatible: bool) -> Value {
    let place = match parameter.place {
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
    };
    let schema = match parameter.kind {
        Kind::Limit if !compatible => json!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX }),
        Kind::Text | Kind::Lenient | Kind::Limit => json!({ "type": "string" }),
        Kind::Key => json!({ "type": "string", "minLength": 1, "maxLength": 255 }),
        Kind::Word(words) if !compatible => json!({ "type": "string", "enum": words }),
        // Other words count as absent, so any text is valid.
        Kind::Word(words) => json!({ "type": "string", "examples": words }),
        Kind::Whole => json!({ "type": "integer", "minimum": 0 }),
        Kind::Number => json!({ "type": "number" }),
    };
    json!({ "name": parameter.name, "in": place, "description": parameter.says, "schema": schema })
}

fn body(body: Body) -> Option<Value> {
    let json = |shape, required: bool| {
        Some(json!({ "required": required, "content": { "application/json": { "schema": reference(shape) } } }))
    };
    match body {
        Body::None => None,
        Body::Json(shape) => json(shape, true),
        Body::MaybeJson(shape) => json(shape, false),
        Body::Package => {
            let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
            Some(json!({ "required": true, "content": { "application/octet-stream": bytes } }))
        }
    }
}

fn answer(success: &Success) -> Value {
    let mut contents = Map::new();
    for content in success.contents {
        let (kind, body) = match content {
            Content::Json(shape) => ("application/json", json!({ "schema": reference(*shape) })),
            Content::List(shape) => {
                ("application/json", json!({ "schema": { "type": "array", "items": reference(*shape) } }))
            }
            Content::Events(shape) => {
                let says = format!("events whose data are JSON of the schema {}", shape.name());
                ("text/event-stream", json!({ "schema": { "type": "string", "description": says } }))
            }
            Content::Other(kind) => (*kind, json!({})),
        };
        contents.insert(kind.to_owned(), body);
    }
    let mut answer = json!({ "description": success.says, "headers": header_references(&["X-Atlas-Index"]) });
    if !contents.is_empty() {
        answer["content"] = contents.into();
    }
    answer
}

/// The statuses of calls that fail at the provider of a model, and of requests that OpenAI's interface refuses.
const FAILED_CALLS: &[&str] = &["400", "404", "409", "413", "429", "500", "502", "503", "504"];

fn refusal(entries: &[Entry], is_openai: bool) -> Value {
    let says: Vec<String> = entries.iter().map(|entry| format!("{} {}", entry.code, entry.title)).collect();
    let says = if says.is_empty() { vec!["the model, or the form of the request".to_owned()] } else { says };
    let mut contents = json!({
        "application/json": { "schema": reference(of::<types::Error>()) },
        "application/problem+json": { "schema": reference(of::<types::Problem>()) },
    });
    if is_openai {
        contents = json!({ "application/json": { "schema": reference(of::<types::ApiError>()) } });
    }
    if entries.contains(&UNKNOWN_PATH) {
        contents["text/plain"] = json!({});
    }
    json!({
        "description": says.join("; "),
        "headers": header_references(&["X-Atlas-Index", "Atlas-Error-Code", "Retry-After"]),
        "content": contents,
    })
}

fn reference(shape: Shape) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", shape.name()) })
}

fn header_references(names: &[&str]) -> Map<String, Value> {
    let one = |name: &&str| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }));
    names.iter().map(one).collect()
}

fn headers() -> Value {
    json!({
        "X-Atlas-Index": {
            "description": "number of log entries applied by the controller; a client that sends it back never reads an older state",
            "schema": { "type": "integer" },
        },
        "Atlas-Error-Code": {
            "description": "the error code; the reference has a page for it",
            "schema": { "type": "string", "pattern": "^E[0-9]{4}$" },
        },
        "Retry-After": {
            "description": "seconds until a repeat may succeed",
            "schema": { "type": "integer" },
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every value of a member of that name, at any depth.
    fn gather(value: &Value, name: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get(name).and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|member| gather(member, name, found));
            }
            Value::Array(items) => items.iter().for_each(|item| gather(item, name, found)),
            _ => {}
        }
    }

    #[test]
    fn every_operation_is_in_one_group() {
        for operation in operations() {
            assert_eq!(tags_of(operation.path).count(), 1, "{}", operation.path);
        }
        let tags = |path: &str| document()["paths"][path]["get"]["tags"].clone();
        assert_eq!((tags("/api/jobs/{id}"), tags("/metrics")), (json!(["jobs"]), json!(["figures"])));
    }

    #[test]
    fn members_and_parameters_of_known_words_tell_them() {
        let at = |pointer: &str| document().pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(at("/components/schemas/Change/properties/change/enum/0"), "submitted");
        assert_eq!(at("/components/schemas/Job/properties/reason/enum/1"), "queued");
        let view = json!({ "type": "string", "enum": ["full", "plain"] });
        assert_eq!(at("/paths/~1api~1agents/get/parameters/6/schema"), view);
        let parameters = at("/paths/~1api~1jobs/get/parameters");
        let view = parameters.as_array().expect("a list").iter().find(|parameter| parameter["name"] == "view");
        let lenient = json!({ "type": "string", "examples": ["full", "plain"] });
        assert_eq!(view.map(|view| &view["schema"]), Some(&lenient));
    }

    #[test]
    fn every_schema_that_is_named_exists_and_is_used() {
        let mut named = BTreeSet::new();
        gather(document(), "$ref", &mut named);
        let exists = |name: &String| document().pointer(name.trim_start_matches('#')).is_some();
        assert_eq!(named.iter().find(|name| !exists(name)), None);
        // Those of events are named in words.
        let events = ["Change", "ClusterEvent", "Line"];
        let used = |name: &String| named.contains(&format!("#/components/schemas/{name}"));
        let unused = schemas().keys().find(|name| !used(name) && !events.contains(&name.as_str())).cloned();
        assert_eq!(unused, None);
    }
}
