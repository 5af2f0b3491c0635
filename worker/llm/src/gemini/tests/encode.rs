//! Requests as they are sent.

use atlas_model::{Image, Message, OutputSchema, Part, Role, ToolChoice};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::testing::{after_tools, ask, check_request, clock};

fn check_encoded(request: &Request, expected: &Expect) {
    check_request(&protocol(), "http://localhost:9/v1beta/", request, expected);
}

#[test]
fn a_request_without_options() {
    let request = Request { system: "Be brief.".into(), ..ask("hi") };
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v1beta/models/m-1:generateContent
        content-type: "application/json"
        x-goog-api-key: Sensitive
        {
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "hi"
                }
              ]
            }
          ],
          "systemInstruction": {
            "parts": [
              {
                "text": "Be brief."
              }
            ]
          }
        }
    "#]],
    );
}

#[test]
fn options_have_their_members() {
    let request = Request {
        model: "tunedModels/my model".into(),
        max_tokens: Some(100),
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(40),
        stop: vec!["END".into()],
        output: Some(OutputSchema { name: "o".into(), schema: json!({"type": "object"}) }),
        reasoning_effort: Some("low".into()),
        stream: true,
        extra: json!({"safetySettings": [], "generationConfig": {"seed": 7}}).as_object().cloned().unwrap(),
        tools: vec![clock()],
        tool_choice: ToolChoice::Tool("clock".into()),
        ..ask("hi")
    };
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v1beta/tunedModels/my%20model:streamGenerateContent?alt=sse
        content-type: "application/json"
        x-goog-api-key: Sensitive
        {
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "hi"
                }
              ]
            }
          ],
          "tools": [
            {
              "functionDeclarations": [
                {
                  "name": "clock"
                }
              ]
            }
          ],
          "toolConfig": {
            "functionCallingConfig": {
              "mode": "ANY",
              "allowedFunctionNames": [
                "clock"
              ]
            }
          },
          "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "maxOutputTokens": 100,
            "stopSequences": [
              "END"
            ],
            "responseMimeType": "application/json",
            "responseJsonSchema": {
              "type": "object"
            },
            "thinkingConfig": {
              "thinkingLevel": "low",
              "includeThoughts": true
            },
            "seed": 7
          },
          "safetySettings": []
        }
    "#]],
    );
}

#[test]
fn a_budget_of_thoughts_replaces_the_level() {
    let extra = json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 512}}});
    let request =
        Request { reasoning_effort: Some("low".into()), extra: extra.as_object().cloned().unwrap(), ..ask("hi") };
    let parts = protocol().encode(&Endpoint::default(), &request).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&parts.body).unwrap();
    assert_eq!(body["generationConfig"], extra["generationConfig"]);
}

#[test]
fn calls_results_and_signatures_go_back_as_they_came() {
    let reasoning = Part::Reasoning { text: "They ask.".into(), opaque: json!({"thoughtSignature": "dGhvdWdodA=="}) };
    let request = after_tools(reasoning, json!({"id": "a", "thoughtSignature": "Y2FsbA=="}), json!(null));
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v1beta/models/m-1:generateContent
        content-type: "application/json"
        x-goog-api-key: Sensitive
        {
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "What is it like in Bern?"
                }
              ]
            },
            {
              "role": "model",
              "parts": [
                {
                  "text": "They ask.",
                  "thought": true,
                  "thoughtSignature": "dGhvdWdodA=="
                },
                {
                  "text": "Let me look."
                },
                {
                  "functionCall": {
                    "name": "weather",
                    "args": {
                      "city": "Bern"
                    },
                    "id": "a"
                  },
                  "thoughtSignature": "Y2FsbA=="
                },
                {
                  "functionCall": {
                    "name": "clock",
                    "args": {}
                  }
                }
              ]
            },
            {
              "role": "user",
              "parts": [
                {
                  "text": "Go on."
                },
                {
                  "functionResponse": {
                    "name": "weather",
                    "response": {
                      "sky": "blue"
                    },
                    "id": "a"
                  }
                },
                {
                  "functionResponse": {
                    "name": "clock",
                    "response": {
                      "error": "no clock"
                    }
                  }
                }
              ]
            }
          ],
          "tools": [
            {
              "functionDeclarations": [
                {
                  "name": "weather",
                  "description": "The weather of a city.",
                  "parametersJsonSchema": {
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
                  "name": "clock"
                }
              ]
            }
          ]
        }
    "#]],
    );
}

#[test]
fn results_are_objects() {
    let content = |text: &str, error| {
        let result = atlas_model::ToolResult { call: "a".into(), name: "f".into(), content: text.into(), error };
        let mut request = ask("hi");
        request.messages = vec![Message { role: Role::User, parts: vec![Part::ToolResult(result)] }].into();
        let parts = protocol().encode(&Endpoint::default(), &request).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&parts.body).unwrap();
        body.pointer("/contents/0/parts/0/functionResponse/response").cloned().unwrap()
    };
    assert_eq!(content("{\"x\": 1}", false), json!({"x": 1}));
    assert_eq!(content("[1]", false), json!({"result": [1]}));
    assert_eq!(content("plain", false), json!({"result": "plain"}));
    assert_eq!(content("plain", true), json!({"error": "plain"}));
    assert_eq!(content("{\"error\": \"x\"}", true), json!({"error": "x"}));
}

#[test]
fn signatures_of_texts_go_back_to_their_texts() {
    let reasoning = |text: &str, opaque| Part::Reasoning { text: text.into(), opaque };
    let mut request = ask("hi");
    let parts = vec![
        reasoning("unsigned", json!(null)),
        reasoning("foreign", json!({"type": "thinking", "signature": "x"})),
        Part::Text { text: "one".into() },
        reasoning("", json!({"thoughtSignature": "MQ=="})),
        reasoning("", json!({"thoughtSignature": "Mg=="})),
    ];
    request.messages.push(Message { role: Role::Assistant, parts });
    let parts = vec![reasoning("nothing is left", json!(null))];
    request.messages.push(Message { role: Role::Assistant, parts });
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/v1beta/models/m-1:generateContent
        content-type: "application/json"
        x-goog-api-key: Sensitive
        {
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "hi"
                }
              ]
            },
            {
              "role": "model",
              "parts": [
                {
                  "text": "one",
                  "thoughtSignature": "MQ=="
                },
                {
                  "text": "",
                  "thoughtSignature": "Mg=="
                }
              ]
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
        POST http://localhost:9/v1beta/models/m-1:generateContent
        content-type: "application/json"
        x-goog-api-key: Sensitive
        {
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "What is this?"
                },
                {
                  "inlineData": {
                    "mimeType": "image/png",
                    "data": "aGk="
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
