use atlas_model::{Message, ModelTask, Request};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

fn connect(spec: &Value) -> Result<Target, ConnectError> {
    let spec = ModelSpec::read(spec.to_string().as_bytes()).expect("a spec");
    let secret = |name: &str| (name == "key").then(|| Secret::from("canary"));
    let variable = |name: &str| (name == "KEY").then(|| "canary".to_owned());
    target(
        "m",
        &spec,
        &Surroundings { secret: &secret, variable: &variable, login: None, bearer: None, script: None, local: None },
    )
}

/// Compares the head of the request that a model gets, with the keys in it, or the error.
fn check(spec: &Value, expected: &Expect) {
    let model = spec["name"].as_str().unwrap_or_default().to_owned();
    let task = match spec["type"].as_str() {
        Some("embedding") => ModelTask::EmbedQuery,
        Some("reranker") => ModelTask::Rank,
        _ => ModelTask::Chat,
    };
    let request = Request { model, task, messages: vec![Message::user("Hi")].into(), ..Request::default() };
    let shown = match connect(spec) {
        Err(error) => atlas_env::chain(&error),
        Ok(target) => {
            assert!(!format!("{target:?}").contains("canary"));
            let Backend::Http(http) = target.backend else { panic!("HTTP") };
            let mut parts = http.protocol.encode(&http.endpoint, &request).expect("encodes");
            for patch in &http.patches {
                crate::patch::apply(&mut parts, patch, &*http.protocol).expect("applies");
            }
            let headers = parts.headers.iter().filter(|(name, _)| *name != "content-type");
            let headers: Vec<String> =
                headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or("?"))).collect();
            format!("{} {:?} {}", parts.url, http.proxy, headers.join(", "))
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn servers_of_openais_protocol() {
    check(
        &json!({"provider": "openai", "name": "m", "key": "secret://key"}),
        &expect!["https://api.openai.com/v1/chat/completions direct authorization: Bearer canary"],
    );
    check(
        &json!({"provider": "openai", "name": "m", "parameters": {"server": "groq"}, "key": "${KEY}"}),
        &expect!["https://api.groq.com/openai/v1/chat/completions direct authorization: Bearer canary"],
    );
    check(
        &json!({"provider": "openai", "name": "m", "parameters": {"server": "cloudflare", "account": "a/b"}}),
        &expect!["https://api.cloudflare.com/client/v4/accounts/a%2Fb/ai/v1/chat/completions direct "],
    );
    check(
        &json!({"provider": "openai", "name": "m", "base_url": "http://localhost:8000/v1"}),
        &expect!["http://localhost:8000/v1/chat/completions direct "],
    );
    check(
        &json!({"provider": "openai-responses", "name": "m", "key": "{{key}}", "parameters": {"organization": "o"}}),
        &expect!["https://api.openai.com/v1/responses direct authorization: Bearer canary, openai-organization: o"],
    );
    check(
        &json!({"provider": "azure", "name": "d", "base_url": "https://a.openai.azure.com", "key": "secret://key", "parameters": {"api_version": "v1"}}),
        &expect![
            "https://a.openai.azure.com/openai/deployments/d/chat/completions?api-version=v1 direct api-key: canary"
        ],
    );
}

#[test]
fn other_providers() {
    check(
        &json!({"provider": "anthropic", "name": "m", "key": "secret://key"}),
        &expect!["https://api.anthropic.com/v1/messages direct anthropic-version: 2023-06-01, x-api-key: canary"],
    );
    check(
        &json!({"provider": "gemini", "name": "m", "key": "secret://key"}),
        &expect![
            "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent direct x-goog-api-key: canary"
        ],
    );
    check(
        &json!({"provider": "vertex", "name": "gemini-x", "parameters": {"project": "p"}, "key": "secret://key"}),
        &expect![
            "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/gemini-x:generateContent direct x-goog-api-key: canary"
        ],
    );
    check(
        &json!({"provider": "bedrock", "name": "m", "parameters": {"region": "eu-central-1", "access_key_id": "id"}, "key": "secret://key"}),
        &expect!["https://bedrock-runtime.eu-central-1.amazonaws.com/model/m/converse direct "],
    );
    check(
        &json!({"provider": "bedrock", "name": "m", "parameters": {"region": "eu-central-1"}, "key": "${KEY}"}),
        &expect![
            "https://bedrock-runtime.eu-central-1.amazonaws.com/model/m/converse direct authorization: Bearer canary"
        ],
    );
    check(
        &json!({"provider": "cohere", "name": "m", "key": "secret://key"}),
        &expect!["https://api.cohere.com/v2/chat direct authorization: Bearer canary"],
    );
    check(&json!({"provider": "ollama", "name": "m"}), &expect!["http://localhost:11434/api/chat direct "]);
}

#[test]
fn models_that_embed_and_rank() {
    check(
        &json!({"provider": "openai", "name": "m", "type": "embedding", "key": "secret://key"}),
        &expect!["https://api.openai.com/v1/embeddings direct authorization: Bearer canary"],
    );
    check(
        &json!({"provider": "azure", "name": "d", "type": "embedding", "base_url": "https://a.openai.azure.com", "key": "secret://key", "parameters": {"api_version": "v1"}}),
        &expect!["https://a.openai.azure.com/openai/deployments/d/embeddings?api-version=v1 direct api-key: canary"],
    );
    check(
        &json!({"provider": "gemini", "name": "m", "type": "embedding", "key": "secret://key"}),
        &expect![
            "https://generativelanguage.googleapis.com/v1beta/models/m:batchEmbedContents direct x-goog-api-key: canary"
        ],
    );
    check(
        &json!({"provider": "ollama", "name": "m", "type": "embedding"}),
        &expect!["http://localhost:11434/api/embed direct "],
    );
    check(
        &json!({"provider": "cohere", "name": "m", "type": "embedding", "key": "secret://key"}),
        &expect!["https://api.cohere.com/v2/embed direct authorization: Bearer canary"],
    );
    check(
        &json!({"provider": "cohere", "name": "m", "type": "reranker", "key": "secret://key"}),
        &expect!["https://api.cohere.com/v2/rerank direct authorization: Bearer canary"],
    );
    check(
        &json!({"provider": "openai", "name": "m", "type": "reranker", "parameters": {"server": "voyageai"}, "key": "secret://key"}),
        &expect!["https://api.voyageai.com/v1/rerank direct authorization: Bearer canary"],
    );
}

#[test]
fn headers_patches_and_proxies() {
    check(
        &json!({
            "provider": "ollama", "name": "m", "base_url": "https://o.test",
            "headers": {"x-a": "Bearer {{key}} and ${KEY}!", "x-b": "{{ ${ {x} $KEY"},
            "patch": {"url": "https://other.test", "headers": {"x-c": "{{key}}", "x-b": null}},
            "parameters": {"proxy": "http://u:${KEY}@proxy.test:1"},
        }),
        &expect!["https://other.test http://proxy.test x-a: Bearer canary and canary!, x-c: canary"],
    );
}

#[test]
fn what_is_missing_is_named() {
    check(
        &json!({"provider": "openai", "name": "m", "key": "secret://other"}),
        &expect![[r#"the secret "other" is not set; the model refers to it in its key"#]],
    );
    check(
        &json!({"provider": "openai", "name": "m", "headers": {"x": "a ${OTHER}"}}),
        &expect![[r#"the variable "OTHER" is not set; the model refers to it in its headers"#]],
    );
    check(
        &json!({"provider": "openai", "name": "m", "parameters": {"server": "other"}}),
        &expect!["the model cannot be called: no server of that name is known"],
    );
    check(
        &json!({"provider": "openai", "name": "m", "parameters": {"server": "cloudflare"}}),
        &expect!["the provider openai needs the parameter account"],
    );
    check(
        &json!({"provider": "openai", "name": "m", "parameters": {"proxy": "ftp://x"}}),
        &expect![[
            r#"the model's proxy is not valid: the proxy is neither "-" nor an address that starts with http:// or socks5://"#
        ]],
    );
    check(
        &json!({"provider": "anthropic", "name": "m", "type": "embedding"}),
        &expect![
            "the model cannot be called: the provider anthropic has no embeddings here; those that have are azure, cohere, gemini, local, ollama and openai"
        ],
    );
    check(
        &json!({"provider": "ollama", "name": "m", "type": "reranker"}),
        &expect![
            "the model cannot be called: the provider ollama has no rerankers here; those that have are cohere and openai"
        ],
    );
    check(
        &json!({"provider": "openai", "name": "m", "type": "reranker"}),
        &expect!["the provider openai needs a base_url, or the parameter server: OpenAI has no rerankers"],
    );
    check(
        &json!({"provider": "ollama", "name": "m", "type": "embedding", "parameters": {"dimensions": "0"}}),
        &expect!["the model cannot be called: the parameter dimensions is no whole number from 1 to 16384"],
    );
    check(
        &json!({"provider": "azure", "name": "m", "base_url": "https://a.test"}),
        &expect!["the provider azure needs a key"],
    );
    check(&json!({"provider": "vertex", "name": "m"}), &expect!["the provider vertex needs the parameter project"]);
    check(
        &json!({"provider": "vertex", "name": "m", "parameters": {"project": "p"}}),
        &expect!["the provider vertex needs the parameter credentials"],
    );
    check(
        &json!({"provider": "vertex", "name": "m", "parameters": {"project": "p", "credentials": "secret://key"}}),
        &expect!["the model's credentials are not valid: the file is no JSON"],
    );
    check(
        &json!({"provider": "bedrock", "name": "m", "parameters": {"region": "r"}}),
        &expect!["the provider bedrock needs a key, or the parameters access_key_id and secret_access_key"],
    );
    check(
        &json!({"provider": "scripted", "name": "m"}),
        &expect!["the provider scripted needs a script: the agent ships none"],
    );
}

#[test]
fn limits_come_from_the_spec() {
    let spec = json!({"provider": "ollama", "name": "m", "stream": false, "timeout_seconds": 7, "retry": {"attempts": 2, "deadline_seconds": 9}});
    let target = connect(&spec).expect("a target");
    assert_eq!((target.stream, target.timeout.as_secs(), target.attempts, target.deadline.as_secs()), (false, 7, 2, 9));
}
