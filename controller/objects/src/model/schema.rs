//! The JSON Schema of models. Doors check it; it refuses unknown members, which would be typing errors.

use atlas_model::{
    FALLBACKS_MAX, HEADERS_MAX, NAME_BYTES_MAX, PATCH_BYTES_MAX, Provider, SCOPES_MAX, URL_BYTES_MAX, VALUE_BYTES_MAX,
};
use serde_json::{Map, Value, json};

pub(super) fn schema() -> Value {
    let mut properties = Map::new();
    for part in [connection(), money(), behaviour()] {
        if let Value::Object(part) = part {
            properties.extend(part);
        }
    }
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["provider", "name"],
        "properties": properties,
    })
}

fn connection() -> Value {
    let providers = Provider::ALL.map(Provider::as_str);
    let texts = |description: &str| {
        json!({
            "type": "object", "maxProperties": HEADERS_MAX,
            "additionalProperties": { "type": "string", "maxLength": VALUE_BYTES_MAX },
            "description": description,
        })
    };
    json!({
        "provider": {
            "enum": providers,
            "description": "The protocol. `openai` also reaches every server that is compatible with OpenAI's chat completions."
        },
        "name": {
            "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX,
            "description": "The id that the provider knows the model by."
        },
        "type": {
            "enum": ["chat", "embedding", "reranker"], "default": "chat",
            "description": "What the model is for."
        },
        "base_url": {
            "type": ["string", "null"], "maxLength": URL_BYTES_MAX,
            "description": "The address of the API. Without it, that of the provider; `azure` needs one."
        },
        "key": {
            "type": ["string", "null"],
            "description": "Where the key comes from: `secret://NAME`, or `${VARIABLE}` of the worker's environment. Never the key itself."
        },
        "login": login(),
        "forward_inbound_auth": {
            "type": "boolean", "default": false,
            "description": "Pass on the `Authorization` header of the request that a job came from. `key`, `login` or such a header in `headers` wins."
        },
        "headers": texts(
            "More headers of each request. Values may contain references, such as `Bearer {{NAME}}`; those of headers with credentials must."
        ),
        "parameters": texts(
            "What only some providers have: `api_version` (azure), `organization` (openai), `project` and `location` (vertex), `region` \
             and `access_key_id` (bedrock). Values may be references; those of `secret_access_key`, `session_token` and `credentials` must."
        ),
        "patch": patch(),
    })
}

fn login() -> Value {
    let text = |description: &str| json!({ "type": ["string", "null"], "description": description });
    let url = |description: &str| json!({ "type": ["string", "null"], "maxLength": URL_BYTES_MAX, "description": description });
    let texts = |description: &str| {
        json!({
            "type": "object", "maxProperties": HEADERS_MAX,
            "additionalProperties": { "type": "string", "maxLength": VALUE_BYTES_MAX },
            "description": description,
        })
    };
    json!({
        "type": ["object", "null"],
        "additionalProperties": false,
        "required": ["client_id"],
        "description": "Where access tokens come from, if the provider wants them instead of a key: `atlasctl model login NAME`.",
        "properties": {
            "issuer": {
                "enum": ["claude", "gemini", null],
                "description": "An issuer whose addresses and scopes are known. The other members replace them."
            },
            "client_id": {
                "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX,
                "description": "The id of the client that you registered with the issuer."
            },
            "client_secret": text("The secret of that client, `secret://NAME` in the store."),
            "authorize_url": url("The login page."),
            "token_url": url("Where codes are exchanged for tokens, and tokens renewed."),
            "device_url": url("Where codes for other devices come from."),
            "scopes": {
                "type": ["array", "null"], "maxItems": SCOPES_MAX, "items": { "type": "string" },
                "description": "What the tokens are good for."
            },
            "code_page": url("The page that shows `CODE#STATE` to be pasted. Without it, the browser is sent to the machine of the person."),
            "body": { "enum": ["form", "json", null], "description": "The form of requests for tokens, by default `form`." },
            "headers": texts("Headers of requests for tokens. They contain no credentials."),
            "parameters": texts("Further parameters of the login page."),
        }
    })
}

/// Fractions would become text in the canonical document, so a patch with one is written as text.
fn patch() -> Value {
    let whole = json!({ "$ref": "#/properties/patch/$defs/whole" });
    json!({
        "type": ["object", "null"],
        "additionalProperties": false,
        "$defs": {
            "whole": {
                "type": ["null", "boolean", "integer", "string", "array", "object"],
                "items": whole,
                "additionalProperties": whole,
            }
        },
        "properties": {
            "url": { "type": ["string", "null"], "maxLength": URL_BYTES_MAX, "description": "Replaces the whole address." },
            "body": {
                "anyOf": [
                    { "type": "null" },
                    { "type": "string", "maxLength": PATCH_BYTES_MAX },
                    { "type": "object", "additionalProperties": whole },
                ],
                "description": "A JSON merge patch of the body: an object without fractions, or the JSON text of an object."
            },
            "headers": {
                "type": "object", "maxProperties": HEADERS_MAX,
                "additionalProperties": { "type": ["string", "null"], "maxLength": VALUE_BYTES_MAX },
                "description": "Headers that are set, or removed where the value is null."
            }
        },
        "description": "Changes of each request just before it is sent: `url`, `body`, `headers`."
    })
}

fn money() -> Value {
    let price = |description: &str| json!({ "type": ["string", "number", "null"], "description": description });
    let limit = |description: &str| json!({ "type": ["integer", "null"], "minimum": 1, "description": description });
    json!({
        "prices": {
            "type": ["object", "null"],
            "additionalProperties": false,
            "required": ["input", "output"],
            "properties": {
                "input": { "type": ["string", "number"], "description": "Of tokens that the model reads." },
                "output": { "type": ["string", "number"], "description": "Of tokens that it writes, reasoning included." },
                "cache_read": price("Of tokens from the provider's cache. Without it, as `input`."),
                "cache_write": price("Of tokens written to the provider's cache. Without it, as `input`.")
            },
            "description": "US dollars per million tokens, such as `\"0.40\"`. Without it, the price list of Atlas decides."
        },
        "limits": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "concurrency": limit("Calls at the same time."),
                "requests_per_minute": limit("Calls a minute."),
                "tokens_per_minute": limit("Tokens a minute, read and written.")
            },
            "description": "What the whole cluster may ask of the model. Without a member, there is no such limit."
        },
        "context_window": limit("Most tokens of a request and its answer together."),
        "output_tokens_max": limit("Most tokens of an answer."),
    })
}

fn behaviour() -> Value {
    json!({
        "capabilities": {
            "type": "array", "uniqueItems": true, "items": { "enum": ["tools", "vision", "json_schema", "reasoning"] },
            "description": "What the model can do beside reading and writing text. It is declared, never guessed from the name."
        },
        "stream": { "type": "boolean", "default": true, "description": "Whether answers can arrive in pieces." },
        "timeout_seconds": {
            "type": "integer", "minimum": 1, "maximum": 86_400, "default": 300,
            "description": "How long one try of a call may take."
        },
        "retry": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "attempts": {
                    "type": "integer", "minimum": 1, "maximum": 20, "default": 3,
                    "description": "Tries of one call, the first included."
                },
                "deadline_seconds": {
                    "type": "integer", "minimum": 1, "maximum": 86_400, "default": 600,
                    "description": "How long all tries and the pauses between them may take."
                }
            },
            "description": "How often and how long a call is tried that failed for a reason which may pass."
        },
        "fallbacks": {
            "type": "array", "maxItems": FALLBACKS_MAX, "uniqueItems": true, "items": { "type": "string" },
            "description": "Models of the same namespace that are tried in this order once the retries are used up."
        },
    })
}
