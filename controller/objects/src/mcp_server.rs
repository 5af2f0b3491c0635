//! MCP servers: how each is reached, what it gets, and which of its tools agents may call. The format of the spec is in
//! `atlas-mcp-spec`, because workers and the command line read it too.

use atlas_mcp_spec::{ARGUMENTS_MAX, HEADERS_MAX, ServerSpec, TEXT_BYTES_MAX, TOOLS_MAX, Transport, VARIABLES_MAX};
use atlas_model::{URL_BYTES_MAX, VALUE_BYTES_MAX};
use atlas_types::{Level, ObjectKey, level};
use serde_json::{Map, Value, json};

use crate::kind::{Kind, Refusal};

pub(crate) struct McpServerKind;

impl Kind for McpServerKind {
    fn name(&self) -> &'static str {
        "mcp-server"
    }

    fn about(&self) -> &'static str {
        "An MCP server whose tools agents use: where it is, what it gets, which tools are allowed."
    }

    fn level(&self) -> Level {
        level::MCP_SERVERS
    }

    fn schema(&self) -> Value {
        let mut properties = Map::new();
        for part in [remote(), program(), tools(), times()] {
            if let Value::Object(part) = part {
                properties.extend(part);
            }
        }
        json!({
            "type": "object", "additionalProperties": false, "required": ["transport"], "properties": properties,
        })
    }

    fn admit(&self, _key: &ObjectKey, spec: &[u8]) -> Result<(), Refusal> {
        ServerSpec::read(spec).map(|_| ()).map_err(|error| Refusal::new(error.field, error.text))
    }
}

fn texts(most: usize, bytes_max: usize, description: &str) -> Value {
    json!({
        "type": "object", "maxProperties": most, "description": description,
        "additionalProperties": { "type": "string", "maxLength": bytes_max },
    })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "default": false, "description": description })
}

fn remote() -> Value {
    let transports = Transport::ALL.map(Transport::as_str);
    json!({
        "transport": {
            "enum": transports,
            "description": "`http` is streamable HTTP, `sse` the older transport with an event stream, `stdio` a program on the worker."
        },
        "description": { "type": ["string", "null"], "maxLength": 1024, "description": "One sentence for people." },
        "url": {
            "type": ["string", "null"], "maxLength": URL_BYTES_MAX,
            "description": "`http` and `sse`: the address. A redirect to another host is not followed."
        },
        "headers": texts(
            HEADERS_MAX, VALUE_BYTES_MAX,
            "`http` and `sse`: headers of every request. Values may contain references, such as `Bearer {{NAME}}`; those of headers with \
             credentials must.",
        ),
        "forward_inbound_auth": flag(
            "`http` and `sse`: pass on the `Authorization` header of the request that the job came from. One in `headers` wins.",
        ),
        "plain_http": flag("`http` and `sse`: requests may go to other machines without encryption."),
    })
}

fn program() -> Value {
    json!({
        "command": {
            "type": ["string", "null"], "maxLength": TEXT_BYTES_MAX,
            "description": "`stdio`: the program. It runs on the worker, and ends with it."
        },
        "args": {
            "type": "array", "maxItems": ARGUMENTS_MAX, "items": { "type": "string", "maxLength": TEXT_BYTES_MAX },
            "description": "`stdio`: its arguments. They may contain references."
        },
        "env": texts(
            VARIABLES_MAX, TEXT_BYTES_MAX,
            "`stdio`: its environment, beside the path and the home of the worker. Values may be references.",
        ),
        "cwd": {
            "type": ["string", "null"], "maxLength": TEXT_BYTES_MAX,
            "description": "`stdio`: its directory; without one, the worker's directory for temporary files."
        },
    })
}

fn tools() -> Value {
    json!({
        "tools": {
            "type": ["array", "null"], "maxItems": TOOLS_MAX, "items": { "type": "string" },
            "description": "The tools that agents may call, `*` at the end of a name for any rest. Without it, all."
        },
        "effects": {
            "type": "object", "maxProperties": TOOLS_MAX,
            "additionalProperties": { "enum": ["pure", "idempotent"] },
            "description": "Tools whose calls can be repeated after the loss of a worker. For others the model then reads that the outcome \
                is unknown."
        },
        "pinned": flag("Offer a tool only as it was accepted: new and changed definitions wait for `atlasctl mcp accept-changes`."),
        "pins": {
            "type": "object", "maxProperties": TOOLS_MAX, "additionalProperties": { "type": "string" },
            "description": "The hashes of the accepted definitions, by the names of the tools."
        },
    })
}

fn times() -> Value {
    let seconds = |default: u32, description: &str| {
        json!({
            "type": "integer", "minimum": 1, "maximum": 86_400, "default": default, "description": description,
        })
    };
    let ServerSpec { timeout_seconds, start_timeout_seconds, idle_timeout_seconds, .. } =
        ServerSpec::of(Transport::Http);
    json!({
        "timeout_seconds": seconds(timeout_seconds, "Longest time of one call."),
        "start_timeout_seconds": seconds(start_timeout_seconds, "Longest time until the server has listed its tools."),
        "idle_timeout_seconds": seconds(idle_timeout_seconds, "After how long without a call the connection is closed."),
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::check;

    #[test]
    fn documents() {
        check(
            "mcp-server",
            &[
                r#"{"transport":"http","url":"https://a.b/mcp"}"#,
                r#"{"later":1,"transport":"http","url":"https://a.b/mcp"}"#,
                r#"{"args":["x"],"command":"uvx","transport":"stdio"}"#,
                r#"{"transport":"stdio"}"#,
                r#"{"transport":"pipe"}"#,
                r#"{"headers":{"Authorization":"Bearer sk-1"},"transport":"http","url":"https://a.b"}"#,
            ],
            &expect![[r#"
                ok {"transport":"http","url":"https://a.b/mcp"}
                ok {"later":1,"transport":"http","url":"https://a.b/mcp"}
                ok {"args":["x"],"command":"uvx","transport":"stdio"}
                ! `spec.command` is needed for the transport stdio
                ! `spec` cannot be read: unknown variant `pipe`, expected one of `http`, `sse`, `stdio` at line 1 column 19
                ! `spec.headers` has a value of Authorization that contains no reference: write secret://NAME or {{NAME}}
            "#]],
        );
    }

    #[test]
    fn the_golden_documents_read_as_ever() {
        let spec = ServerSpec::read(include_bytes!("../golden/mcp-server.json")).expect("a spec");
        assert_eq!((spec.transport, spec.forwards(), spec.allows("read_x")), (Transport::Http, true, true));
        let schema = McpServerKind.schema();
        let document: Value = serde_json::from_slice(include_bytes!("../golden/mcp-server.json")).expect("JSON");
        let known = schema["properties"].as_object().expect("members");
        assert!(document.as_object().expect("an object").keys().all(|name| known.contains_key(name)));
    }
}
