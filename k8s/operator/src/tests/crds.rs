//! The definitions of the resources in the chart follow from the schemas of the cluster's objects.

use crate::kind::{GROUP, Kind, VERSION};
use atlas_objects::KINDS;
use expect_test::expect_file;
use serde_json::{Map, Value, json};

/// Words of a schema that definitions of resources know as well, with the same meaning.
const KEPT: [&str; 9] = [
    "description",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "required",
];
/// Members of specs that the cluster alone writes.
const WRITTEN_BY_THE_CLUSTER: [&str; 2] = ["rearmed", "webhook_secret"];

/// A schema as a definition of a resource may have it (a "structural" one): each place has one type or accepts everything. What is lost
/// here is checked by the cluster, and its answer is in the status.
fn structural(schema: &Value) -> Value {
    let mut kept: Map<String, Value> = Map::new();
    for (word, value) in schema.as_object().into_iter().flatten() {
        if KEPT.contains(&word.as_str()) {
            kept.insert(word.clone(), value.clone());
        }
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let values = schema["enum"].as_array();
    let (is_nullable, types): (bool, Vec<&str>) =
        (types.contains(&"null"), types.into_iter().filter(|one| *one != "null").collect());
    let one = match (&types[..], values) {
        (&[one], _) => one,
        (&[], Some(values)) if values.iter().all(|value| value.is_string() || value.is_null()) => {
            if values.contains(&Value::Null) {
                kept.insert("nullable".to_owned(), json!(true));
            } else {
                kept.insert("enum".to_owned(), json!(values));
            }
            kept.insert("type".to_owned(), json!("string"));
            return Value::Object(kept);
        }
        _ => {
            kept.retain(|word, _| word == "description");
            kept.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
            return Value::Object(kept);
        }
    };
    kept.insert("type".to_owned(), json!(one));
    if is_nullable {
        kept.insert("nullable".to_owned(), json!(true));
    }
    match one {
        "array" => {
            kept.insert("items".to_owned(), structural(&schema["items"]));
        }
        "object" => {
            if let Some(members) = schema["properties"].as_object() {
                let members = members.iter().filter(|(name, _)| !WRITTEN_BY_THE_CLUSTER.contains(&name.as_str()));
                let members: Map<_, _> = members.map(|(name, schema)| (name.clone(), structural(schema))).collect();
                kept.insert("properties".to_owned(), Value::Object(members));
            } else if schema["additionalProperties"].is_object() {
                kept.insert("additionalProperties".to_owned(), structural(&schema["additionalProperties"]));
            } else {
                kept.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
            }
        }
        _ => {}
    }
    Value::Object(kept)
}

fn agent() -> Value {
    json!({
        "type": "object",
        "required": ["files"],
        "description": "A version of an agent. Its name and number are those of its contract.",
        "properties": {
            "files": {
                "type": "object", "maxProperties": 256, "additionalProperties": {"type": "string"},
                "description": "The files of the agent's folder by path, such as agent.yaml."
            },
            "executable": {
                "type": "array", "maxItems": 256, "items": {"type": "string"},
                "description": "Paths of the files that are programs."
            },
            "deprecated": {
                "type": "string", "maxLength": 1024,
                "description": "Marks the version as deprecated: what to use in its place."
            }
        }
    })
}

fn status() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let number = |description: &str| json!({"type": "integer", "format": "int64", "description": description});
    json!({
        "type": "object",
        "properties": {
            "observedGeneration": number("The generation of the resource that the operator saw last."),
            "namespace": text("The namespace of the cluster."),
            "object": text("What the cluster has."),
            "revision": number("The revision of the object."),
            "versions": {
                "type": "array", "maxItems": 32, "items": {"type": "string"},
                "description": "Agent versions that the resource registered."
            },
            "conditions": {
                "type": "array", "maxItems": 8,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object",
                    "required": ["type", "status", "reason", "message", "lastTransitionTime"],
                    "properties": {
                        "type": {"type": "string", "maxLength": 316},
                        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                        "reason": {"type": "string", "maxLength": 1024},
                        "message": {"type": "string", "maxLength": 32768},
                        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                        "lastTransitionTime": {"type": "string", "format": "date-time"}
                    }
                }
            }
        }
    })
}

fn definition(kind: Kind) -> Value {
    let spec = match kind.object() {
        None => agent(),
        Some(word) => {
            let object = KINDS.into_iter().find(|object| object.name() == word).expect("a kind of object");
            let mut spec = structural(&object.schema());
            spec["description"] = json!(object.about());
            spec
        }
    };
    let mut schema = json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status(),
        }
    });
    if kind != Kind::Namespace {
        schema["required"] = json!(["spec"]);
    }
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{GROUP}", kind.plural()),
            // Helm would delete all resources together with their definition, and so the objects of the cluster.
            "annotations": {"helm.sh/resource-policy": "keep"}
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name(), "listKind": format!("{}List", kind.name()), "plural": kind.plural(),
                "singular": kind.name().to_lowercase(), "categories": ["atlas"]
            },
            "versions": [{
                "name": VERSION, "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    column("Object", ".status.object"),
                    column("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
                    column("Reason", ".status.conditions[?(@.type==\"Ready\")].reason"),
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": schema},
            }]
        }
    })
}

/// Writes JSON as YAML in blocks; texts are quoted as JSON quotes them, which YAML reads.
fn yaml(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let is_block = |value: &Value| match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => items.iter().any(Value::is_object),
        _ => false,
    };
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                text.push_str(&format!("{indent}{name}:"));
                if is_block(value) {
                    text.push('\n');
                    yaml(value, depth + 1, text);
                } else {
                    text.push_str(&format!(" {value}\n"));
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                yaml(item, depth + 1, &mut inner);
                text.push_str(&format!("{indent}- {}", inner.trim_start()));
            }
        }
        other => text.push_str(&format!("{indent}{other}\n")),
    }
}

#[test]
fn generated_definitions_of_resources_are_fresh() {
    let mut text = String::from("# Generated by `cargo xtask fix` from the schemas of the cluster's objects.\n");
    for kind in Kind::ALL {
        text.push_str("---\n");
        let definition = definition(kind);
        let from = text.len();
        yaml(&definition, 0, &mut text);
        let read = atlas_contract::yaml::load_core(&text.as_bytes()[from..], atlas_contract::yaml::Budget::default());
        assert_eq!(read.expect("YAML").value, definition, "{}", kind.name());
    }
    expect_file!["../../../chart/files/crds.yaml"].assert_eq(&text);
}

/// What the API server asks of a schema: one type at each place, and none of the words that it refuses.
fn check(schema: &Value, place: &str) {
    let accepts_all = schema["x-kubernetes-preserve-unknown-fields"] == true;
    assert!(accepts_all || schema["type"].is_string(), "{place} has no type");
    assert!(schema["properties"].is_null() || schema["additionalProperties"].is_null(), "{place} has both");
    for word in ["$ref", "$defs", "uniqueItems", "exclusiveMinimum", "anyOf", "oneOf", "const", "default"] {
        assert!(schema[word].is_null(), "{place}: {word}");
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        check(member, &format!("{place}.{name}"));
    }
    for inner in ["items", "additionalProperties"].iter().filter(|inner| schema[**inner].is_object()) {
        check(&schema[*inner], &format!("{place}[]"));
    }
}

#[test]
fn the_definitions_are_structural() {
    for kind in Kind::ALL {
        let definition = definition(kind);
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            check(&schema["properties"][part], &format!("{} {part}", kind.name()));
        }
    }
}
