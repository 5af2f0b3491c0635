//! The protocols of OpenAI: chat completions, which many other servers understand too, and responses.

pub mod chat;
mod families;
pub mod known;
pub mod responses;

use atlas_model::{Request, Usage};
use http::header::HeaderName;
use serde_json::Value;

use crate::{EncodeError, Endpoint, Parts, Secret, json as read, percent};

pub use chat::Chat;
pub use responses::Responses;

/// Who asks.
#[derive(Debug, Clone, Default)]
pub enum Access {
    /// A server that wants no key.
    #[default]
    Open,
    /// `Authorization: Bearer`, and the header `OpenAI-Organization` where an organisation is given.
    Bearer { key: Secret, organization: Option<String> },
    /// Azure: the header `api-key`, deployments in the path, and the version of the API as a parameter.
    Azure { key: Secret, api_version: String },
}

/// The version of Azure's chat API that requests name by default.
pub const AZURE_API_VERSION: &str = "2024-12-01-preview";

impl Access {
    pub(crate) fn sign(&self, parts: &mut Parts) -> Result<(), EncodeError> {
        match self {
            Self::Open => Ok(()),
            Self::Bearer { key, organization } => {
                parts.bearer(key)?;
                organization.as_ref().map_or(Ok(()), |name| parts.header("openai-organization", name))
            }
            Self::Azure { key, .. } => parts.secret_header("api-key", key.expose()),
        }
    }
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The request for the list of models.
fn probe(access: &Access, endpoint: &Endpoint) -> Result<Option<Parts>, EncodeError> {
    let mut parts = Parts::get(match access {
        Access::Azure { api_version, .. } => {
            endpoint.url(&format!("/openai/models?api-version={}", percent::encode(api_version, "")))
        }
        _ => endpoint.url("/models"),
    });
    access.sign(&mut parts)?;
    parts.endpoint_headers(endpoint)?;
    Ok(Some(parts))
}

/// Whether the list of models has a model. Azure lists models and not deployments, so its list says nothing.
fn has_model(access: &Access, model: &str, body: &[u8]) -> bool {
    let list = read::parse(body).unwrap_or_default();
    let models = read::list(&list, "/data").iter().chain(list.as_array().into_iter().flatten());
    matches!(access, Access::Azure { .. }) || models.into_iter().any(|entry| read::text(entry, "/id") == Some(model))
}

/// Key, headers of the endpoint and idempotency key.
fn finish(access: &Access, endpoint: &Endpoint, request: &Request, parts: &mut Parts) -> Result<(), EncodeError> {
    access.sign(parts)?;
    if let Some(key) = &request.idempotency_key {
        parts.header(IDEMPOTENCY_KEY.as_str(), key)?;
    }
    parts.endpoint_headers(endpoint)
}

/// Whether the provider can promise to follow a schema: each object lists all its properties as required and allows no others.
fn is_strict(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    if let Some(properties) = members.get("properties").and_then(Value::as_object) {
        let required = read::list(schema, "/required");
        let all = properties.keys().all(|name| required.iter().any(|other| other == name));
        if !all || members.get("additionalProperties") != Some(&Value::Bool(false)) {
            return false;
        }
    } else if members.get("type").is_some_and(|kind| kind == "object") {
        return false;
    }
    let listed = |name: &str| members.get(name).and_then(Value::as_object).into_iter().flat_map(|map| map.values());
    let inner = listed("properties").chain(listed("$defs")).chain(members.get("items"));
    inner.chain(read::list(schema, "/anyOf")).all(is_strict)
        && !["oneOf", "allOf", "not", "patternProperties"].iter().any(|name| members.contains_key(*name))
}

/// Tokens in the terms of both protocols. `names` are the members of input and output.
fn usage(usage: &Value, names: [&str; 2]) -> Usage {
    let [input_name, output_name] = names;
    let first =
        |pointers: &[String]| pointers.iter().map(|pointer| read::count(usage, pointer)).find(|count| *count > 0);
    let (input, mut output) =
        (read::count(usage, &format!("/{input_name}")), read::count(usage, &format!("/{output_name}")));
    let details = |side: &str, name: &str| format!("/{side}_details/{name}");
    let cache_read = first(&[
        details(input_name, "cached_tokens"),
        "/prompt_cache_hit_tokens".to_owned(),
        "/cached_tokens".to_owned(),
    ]);
    let cache_write = first(&[details(input_name, "cache_write_tokens"), details(input_name, "cache_creation_tokens")]);
    let reasoning = first(&[details(output_name, "reasoning_tokens"), "/reasoning_tokens".to_owned()]).unwrap_or(0);
    // Some servers count reasoning beside the output and not as part of it. Their total tells.
    let apart = input.saturating_add(output).saturating_add(reasoning);
    if reasoning > 0 && read::count(usage, "/total_tokens") == apart {
        output = output.saturating_add(reasoning);
    }
    let bounded = |part: Option<u64>, whole: u64| part.unwrap_or(0).min(whole);
    Usage {
        input,
        output,
        cache_read: bounded(cache_read, input),
        cache_write: bounded(cache_write, input),
        reasoning: reasoning.min(output),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strict_schemas_are_recognised() {
        let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        assert!(is_strict(&object(json!({"a": {"type": "string"}}), &["a"])));
        assert!(is_strict(&object(json!({"a": {"type": "array", "items": object(json!({}), &[])}}), &["a"])));
        assert!(!is_strict(&object(json!({"a": {"type": "string"}}), &[])));
        assert!(!is_strict(&object(json!({"a": {"type": "object"}}), &["a"])));
        assert!(!is_strict(&object(json!({"a": {"oneOf": []}}), &["a"])));
        assert!(!is_strict(&json!({"type": "object", "properties": {}})));
        assert!(!is_strict(&json!(true)));
    }

    #[test]
    fn usage_is_counted_alike() {
        let names = ["prompt_tokens", "completion_tokens"];
        let counted = |value: Value| {
            let usage = usage(&value, names);
            (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
        };
        let openai = json!({
            "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 3},
        });
        assert_eq!(counted(openai), (10, 5, 4, 0, 3));
        let apart = json!({
            "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 18,
            "completion_tokens_details": {"reasoning_tokens": 3},
        });
        assert_eq!(counted(apart), (10, 8, 0, 0, 3));
        assert_eq!(counted(json!({"prompt_tokens": 9, "prompt_cache_hit_tokens": 7})), (9, 0, 7, 0, 0));
        assert_eq!(counted(json!({"prompt_tokens": -1, "completion_tokens": "x"})), (0, 0, 0, 0, 0));
    }
}
