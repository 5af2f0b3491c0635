//! Requests as they are sent.

use atlas_model::{Image, Message, OutputSchema, Part, Role, ToolChoice};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::testing::{after_tools, ask, check_request, clock};

fn check_encoded(request: &Request, expected: &Expect) {
    check_request(&protocol(), "http://localhost:9", request, expected);
}

#[test]
fn a_request_without_options_has_the_least_members() {
    check_encoded(
        &ask("{\"text\": \"hi\"}"),
        &expect![[r#"
        POST http://localhost:9/v1/messages
        anthropic-version: "2023-06-01"
        content-type: "application/json"
        x-api-key: Sensitive
        {
          "model": "m-1",
          "max_tokens": 4096,
          "messages": [
            {
              "role": "user",
              "content": "{\"text\": \"hi\"}"
            }
          ]
        }
    "#]],
    );
    let request = Request { system: "Be brief.".into(), ..ask("hi") };
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v1/messages
        anthropic-version: "2023-06-01"
        content-type: "application/json"
        x-api-key: Sensitive
        {
          "model": "m-1",
          "max_tokens": 4096,
          "messages": [
            {
              "role": "user",
              "content": "hi"
            }
          ],
          "system": "Be brief."
        }
    "#]],
    );
}

#[test]
fn options_have_their_members() {
    let request = Request {
        max_tokens: Some(100),
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(40),
        stop: vec!["END".into()],
        output: Some(OutputSchema { name: "o".into(), schema: json!({"type": "object"}) }),
        reasoning_effort: Some("low".into()),
        stream: true,
        extra: json!({"metadata": {"user_id": "u"}, "output_config": {"x": 1}}).as_object().cloned().unwrap(),
        tools: vec![clock()],
        tool_choice: ToolChoice::Tool("clock".into()),
        ..ask("hi")
    };
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v1/messages
        anthropic-version: "2023-06-01"
        content-type: "application/json"
        x-api-key: Sensitive
        {
          "model": "m-1",
          "max_tokens": 100,
          "messages": [
            {
              "role": "user",
              "content": "hi"
            }
          ],
          "tools": [
            {
              "name": "clock",
              "input_schema": {
                "type": "object",
                "properties": {}
              }
            }
          ],
          "tool_choice": {
            "type": "tool",
            "name": "clock"
          },
          "temperature": 0.5,
          "top_p": 0.9,
          "top_k": 40,
          "stop_sequences": [
            "END"
          ],
          "thinking": {
            "type": "adaptive"
          },
          "output_config": {
            "format": {
              "type": "json_schema",
              "schema": {
                "type": "object"
              }
            },
            "effort": "low",
            "x": 1
          },
          "metadata": {
            "user_id": "u"
          },
          "stream": true
        }
    "#]],
    );
}

#[test]
fn calls_and_results_go_back_as_they_came() {
    let opaque = json!({"type": "thinking", "signature": "c2ln"});
    let reasoning = Part::Reasoning { text: "They ask.".into(), opaque };
    check_encoded(
        &after_tools(reasoning, json!(null), json!({"thoughtSignature": "x"})),
        &expect![[r#"
        POST http://localhost:9/v1/messages
        anthropic-version: "2023-06-01"
        content-type: "application/json"
        x-api-key: Sensitive
        {
          "model": "m-1",
          "max_tokens": 4096,
          "messages": [
            {
              "role": "user",
              "content": "What is it like in Bern?"
            },
            {
              "role": "assistant",
              "content": [
                {
                  "type": "thinking",
                  "signature": "c2ln",
                  "thinking": "They ask."
                },
                {
                  "type": "text",
                  "text": "Let me look."
                },
                {
                  "type": "tool_use",
                  "id": "a",
                  "name": "weather",
                  "input": {
                    "city": "Bern"
                  }
                },
                {
                  "type": "tool_use",
                  "id": "b",
                  "name": "clock",
                  "input": {}
                }
              ]
            },
            {
              "role": "user",
              "content": [
                {
                  "type": "tool_result",
                  "tool_use_id": "a",
                  "content": "{\"sky\": \"blue\"}"
                },
                {
                  "type": "tool_result",
                  "tool_use_id": "b",
                  "content": "no clock",
                  "is_error": true
                },
                {
                  "type": "text",
                  "text": "Go on."
                }
              ]
            }
          ],
          "tools": [
            {
              "name": "weather",
              "description": "The weather of a city.",
              "input_schema": {
                "type": "object",
                "properties": {
                  "city": {
                    "type": "string"
                  }
                },
                "required": [
                  "city"
                ]
              }
            },
            {
              "name": "clock",
              "input_schema": {
                "type": "object",
                "properties": {}
              }
            }
          ]
        }
    "#]],
    );
}

#[test]
fn errors_of_tools_are_marked_where_the_content_does_not_say_it() {
    let block = |content: &str| {
        let mut request =
            after_tools(Part::Reasoning { text: String::new(), opaque: json!(null) }, json!(null), json!(null));
        let Part::ToolResult(result) = &mut request.messages[2].parts[2] else { panic!("a result") };
        result.content = content.to_owned();
        let parts = protocol().encode(&Endpoint::default(), &request).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&parts.body).unwrap();
        body["messages"][2]["content"][1].clone()
    };
    let expected = json!({"type": "tool_result", "tool_use_id": "b", "content": "{\"error\": \"KeyError: x\"}"});
    assert_eq!(block("{\"error\": \"KeyError: x\"}"), expected);
    assert_eq!(block("[\"error\"]")["is_error"], true);
}

#[test]
fn reasoning_of_other_providers_is_left_out() {
    for opaque in [json!(null), json!("x"), json!({"thoughtSignature": "x"}), json!({"type": "reasoning", "id": "r"})] {
        let mut request = ask("hi");
        request
            .messages
            .push(Message { role: Role::Assistant, parts: vec![Part::Reasoning { text: "hm".into(), opaque }] });
        let parts = protocol().encode(&Endpoint::default(), &request).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&parts.body).unwrap();
        assert_eq!(body["messages"], json!([{"role": "user", "content": "hi"}]));
    }
}

#[test]
fn images_go_by_value() {
    let image = |mime: &str| {
        let mut request = ask("What is this?");
        let image = Image { mime: mime.into(), data: "aGk=".into() };
        request.messages[0].parts.push(Part::Image(image));
        request
    };
    check_encoded(
        &image("image/png"),
        &expect![[r#"
        POST http://localhost:9/v1/messages
        anthropic-version: "2023-06-01"
        content-type: "application/json"
        x-api-key: Sensitive
        {
          "model": "m-1",
          "max_tokens": 4096,
          "messages": [
            {
              "role": "user",
              "content": [
                {
                  "type": "text",
                  "text": "What is this?"
                },
                {
                  "type": "image",
                  "source": {
                    "type": "base64",
                    "media_type": "image/png",
                    "data": "aGk="
                  }
                }
              ]
            }
          ]
        }
    "#]],
    );
    check_encoded(
        &image("image/tiff"),
        &expect![[r#"
        Anthropic does not support images of type "image/tiff"
    "#]],
    );
    let mut request = image("image/png");
    request.messages[0].role = Role::Assistant;
    check_encoded(
        &request,
        &expect![[r#"
            a message of the model is not valid: it has a part that only the other side writes
        "#]],
    );
}

#[test]
fn addresses_have_the_version_or_not() {
    for base in ["", "https://api.anthropic.com", "https://api.anthropic.com/", "https://api.anthropic.com/v1"] {
        let endpoint = Endpoint { base_url: base.into(), headers: Vec::new() };
        let parts = protocol().encode(&endpoint, &ask("hi")).unwrap();
        assert_eq!(parts.url, "https://api.anthropic.com/v1/messages");
    }
}

#[test]
fn the_environment_names_key_and_address() {
    let from = |variables: &'static [(&str, &str)]| {
        Anthropic::from_environment(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    };
    assert!(from(&[("ANTHROPIC_BASE_URL", "http://localhost:1"), ("ATLAS_API_KEY", "")]).is_none());
    let check = |variables, key: &str, url: &str| {
        let (protocol, endpoint) = from(variables).expect("a key");
        assert_eq!(endpoint.base_url, url);
        assert!(matches!(protocol.auth, Auth::Key(found) if found.expose() == key));
    };
    check(&[("ANTHROPIC_API_KEY", "b")], "b", BASE_URL);
    check(&[("ANTHROPIC_API_KEY", "b"), ("ATLAS_API_KEY", "a")], "a", BASE_URL);
    check(&[("ANTHROPIC_API_KEY", "b"), ("ANTHROPIC_BASE_URL", "http://localhost:1")], "b", "http://localhost:1");
}
