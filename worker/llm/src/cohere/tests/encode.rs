//! Requests as they are sent.

use atlas_model::{Image, Message, OutputSchema, Part, Role, ToolChoice};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::testing::{after_tools, ask, check_request, clock, weather};

fn check_encoded(request: &Request, expected: &Expect) {
    check_request(&protocol(), "http://localhost:9/v2/", request, expected);
}

#[test]
fn a_request_without_options() {
    let request = Request { system: "Be brief.".into(), ..ask("hi") };
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v2/chat
        authorization: Sensitive
        content-type: "application/json"
        {
          "model": "m-1",
          "messages": [
            {
              "role": "system",
              "content": "Be brief."
            },
            {
              "role": "user",
              "content": "hi"
            }
          ]
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
        extra: json!({"thinking": {"token_budget": 9}, "safety_mode": "OFF"}).as_object().cloned().unwrap(),
        tools: vec![clock(), weather()],
        tool_choice: ToolChoice::Tool("clock".into()),
        ..ask("hi")
    };
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v2/chat
        authorization: Sensitive
        content-type: "application/json"
        {
          "model": "m-1",
          "messages": [
            {
              "role": "user",
              "content": "hi"
            }
          ],
          "tools": [
            {
              "type": "function",
              "function": {
                "name": "clock",
                "description": "",
                "parameters": {
                  "type": "object",
                  "properties": {}
                }
              }
            }
          ],
          "tool_choice": "REQUIRED",
          "max_tokens": 100,
          "temperature": 0.5,
          "p": 0.9,
          "k": 40,
          "stop_sequences": [
            "END"
          ],
          "response_format": {
            "type": "json_object",
            "schema": {
              "type": "object"
            }
          },
          "thinking": {
            "type": "enabled",
            "token_budget": 9
          },
          "stream": true,
          "safety_mode": "OFF"
        }
    "#]],
    );
}

#[test]
fn calls_results_and_reasoning_go_back_as_they_came() {
    let reasoning = |text: &str, opaque| Part::Reasoning { text: text.into(), opaque };
    let plan = reasoning("I look both up.", json!({"cohere": "tool_plan"}));
    let mut request = after_tools(plan, json!(null), json!(null));
    request.messages[1].parts.insert(1, reasoning("Hm.", json!({"cohere": "thinking"})));
    request.messages[1].parts.insert(1, reasoning("foreign", json!({"type": "thinking", "signature": "x"})));
    let empty = vec![reasoning("nothing is left", json!(null))];
    request.messages.push(Message { role: Role::Assistant, parts: empty });
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v2/chat
        authorization: Sensitive
        content-type: "application/json"
        {
          "model": "m-1",
          "messages": [
            {
              "role": "user",
              "content": "What is it like in Bern?"
            },
            {
              "tool_plan": "I look both up.",
              "tool_calls": [
                {
                  "id": "a",
                  "type": "function",
                  "function": {
                    "name": "weather",
                    "arguments": "{\"city\":\"Bern\"}"
                  }
                },
                {
                  "id": "b",
                  "type": "function",
                  "function": {
                    "name": "clock",
                    "arguments": "{}"
                  }
                }
              ],
              "content": [
                {
                  "type": "thinking",
                  "thinking": "Hm."
                },
                {
                  "type": "text",
                  "text": "Let me look."
                }
              ],
              "role": "assistant"
            },
            {
              "role": "tool",
              "tool_call_id": "a",
              "content": "{\"sky\": \"blue\"}"
            },
            {
              "role": "tool",
              "tool_call_id": "b",
              "content": "no clock"
            },
            {
              "role": "user",
              "content": [
                {
                  "type": "text",
                  "text": "Go on."
                }
              ]
            }
          ],
          "tools": [
            {
              "type": "function",
              "function": {
                "name": "weather",
                "description": "The weather of a city.",
                "parameters": {
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
              }
            },
            {
              "type": "function",
              "function": {
                "name": "clock",
                "description": "",
                "parameters": {
                  "type": "object",
                  "properties": {}
                }
              }
            }
          ]
        }
    "#]],
    );
}

#[test]
fn images_go_by_value() {
    let mut request = ask("What is this?");
    request.messages[0].parts.push(Part::Image(Image { mime: "image/png".into(), data: "aGk=".into() }));
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v2/chat
        authorization: Sensitive
        content-type: "application/json"
        {
          "model": "m-1",
          "messages": [
            {
              "role": "user",
              "content": [
                {
                  "type": "text",
                  "text": "What is this?"
                },
                {
                  "type": "image_url",
                  "image_url": {
                    "url": "data:image/png;base64,aGk="
                  }
                }
              ]
            }
          ]
        }
    "#]],
    );
    request.messages[0].role = Role::Assistant;
    check_encoded(
        &request,
        &expect![[r#"
        a message of the model is not valid: it has a part that only the other side writes
    "#]],
    );
}
