//! Requests as they are sent.

use atlas_model::{Image, OutputSchema, Part, Role, ToolChoice};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::testing::{NOW, after_tools, ask, check_request, clock};

fn check_encoded(request: &Request, expected: &Expect) {
    check_request(&protocol(), "http://localhost:9", request, expected);
}

#[test]
fn a_request_without_options() {
    let request = Request { system: "Be brief.".into(), ..ask("hi") };
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/model/m-1/converse
        authorization: Sensitive
        content-type: "application/json"
        x-amz-date: "20261123T180000Z"
        {
          "messages": [
            {
              "role": "user",
              "content": [
                {
                  "text": "hi"
                }
              ]
            }
          ],
          "system": [
            {
              "text": "Be brief."
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
        stream: true,
        extra: json!({"additionalModelRequestFields": {"x": 1}, "performanceConfig": {}}).as_object().cloned().unwrap(),
        reasoning_effort: Some("low".into()),
        tools: vec![clock()],
        tool_choice: ToolChoice::Tool("clock".into()),
        ..ask("hi")
    };
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/model/m-1/converse-stream
        authorization: Sensitive
        content-type: "application/json"
        x-amz-date: "20261123T180000Z"
        {
          "messages": [
            {
              "role": "user",
              "content": [
                {
                  "text": "hi"
                }
              ]
            }
          ],
          "inferenceConfig": {
            "maxTokens": 100,
            "temperature": 0.5,
            "topP": 0.9,
            "stopSequences": [
              "END"
            ]
          },
          "toolConfig": {
            "tools": [
              {
                "toolSpec": {
                  "name": "clock",
                  "inputSchema": {
                    "json": {
                      "type": "object",
                      "properties": {}
                    }
                  }
                }
              }
            ],
            "toolChoice": {
              "tool": {
                "name": "clock"
              }
            }
          },
          "outputConfig": {
            "textFormat": {
              "type": "json_schema",
              "structure": {
                "jsonSchema": {
                  "name": "o",
                  "schema": "{\"type\":\"object\"}"
                }
              }
            }
          },
          "additionalModelRequestFields": {
            "top_k": 40,
            "x": 1
          },
          "performanceConfig": {}
        }
    "#]],
    );
}

#[test]
fn calls_and_results_go_back_as_they_came() {
    let reasoning = Part::Reasoning { text: "They ask.".into(), opaque: json!({"bedrockSignature": "c2ln"}) };
    let mut request = after_tools(reasoning, json!(null), json!(null));
    let redacted = Part::Reasoning { text: String::new(), opaque: json!({"redactedContent": "cmVk"}) };
    let foreign = Part::Reasoning { text: "x".into(), opaque: json!({"type": "thinking", "signature": "x"}) };
    request.messages[1].parts.extend([redacted, foreign]);
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/model/m-1/converse
        authorization: Sensitive
        content-type: "application/json"
        x-amz-date: "20261123T180000Z"
        {
          "messages": [
            {
              "role": "user",
              "content": [
                {
                  "text": "What is it like in Bern?"
                }
              ]
            },
            {
              "role": "assistant",
              "content": [
                {
                  "reasoningContent": {
                    "reasoningText": {
                      "text": "They ask.",
                      "signature": "c2ln"
                    }
                  }
                },
                {
                  "text": "Let me look."
                },
                {
                  "toolUse": {
                    "toolUseId": "a",
                    "name": "weather",
                    "input": {
                      "city": "Bern"
                    }
                  }
                },
                {
                  "toolUse": {
                    "toolUseId": "b",
                    "name": "clock",
                    "input": {}
                  }
                },
                {
                  "reasoningContent": {
                    "redactedContent": "cmVk"
                  }
                }
              ]
            },
            {
              "role": "user",
              "content": [
                {
                  "text": "Go on."
                },
                {
                  "toolResult": {
                    "toolUseId": "a",
                    "content": [
                      {
                        "json": {
                          "sky": "blue"
                        }
                      }
                    ]
                  }
                },
                {
                  "toolResult": {
                    "toolUseId": "b",
                    "content": [
                      {
                        "text": "no clock"
                      }
                    ],
                    "status": "error"
                  }
                }
              ]
            }
          ],
          "toolConfig": {
            "tools": [
              {
                "toolSpec": {
                  "name": "weather",
                  "description": "The weather of a city.",
                  "inputSchema": {
                    "json": {
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
                }
              },
              {
                "toolSpec": {
                  "name": "clock",
                  "inputSchema": {
                    "json": {
                      "type": "object",
                      "properties": {}
                    }
                  }
                }
              }
            ]
          }
        }
    "#]],
    );
}

#[test]
fn settings_without_a_member_are_left_out() {
    let dropped = |request: &Request| protocol().encode(&Endpoint::default(), request).unwrap().dropped;
    let none = Request { tools: vec![clock()], tool_choice: ToolChoice::None, ..ask("hi") };
    assert_eq!(dropped(&none), Vec::<&str>::new());
    let parts = protocol().encode(&Endpoint::default(), &none).unwrap();
    assert!(!String::from_utf8(parts.body).unwrap().contains("toolConfig"));
    let reasoning = Part::Reasoning { text: String::new(), opaque: json!(null) };
    let mut after = after_tools(reasoning, json!(null), json!(null));
    after.tool_choice = ToolChoice::None;
    after.reasoning_effort = Some("high".into());
    assert_eq!(dropped(&after), ["reasoning_effort", "tool_choice"]);
}

#[test]
fn images_go_by_value() {
    let mut request = ask("What is this?");
    request.messages[0].parts = vec![Part::Image(Image { mime: "image/png".into(), data: "aGk=".into() })];
    check_encoded(
        &request,
        &expect![[r#"
        POST http://localhost:9/model/m-1/converse
        authorization: Sensitive
        content-type: "application/json"
        x-amz-date: "20261123T180000Z"
        {
          "messages": [
            {
              "role": "user",
              "content": [
                {
                  "image": {
                    "format": "png",
                    "source": {
                      "bytes": "aGk="
                    }
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
    request.messages[0].role = Role::User;
    request.messages[0].parts = vec![Part::Image(Image { mime: "image/tiff".into(), data: "aGk=".into() })];
    check_encoded(
        &request,
        &expect![[r#"
        Amazon Bedrock does not support images of type "image/tiff"
    "#]],
    );
}

#[test]
fn addresses_have_the_region() {
    let url = |region: &str, model: &str, stream| {
        let bedrock = Bedrock { region: region.into(), ..protocol() };
        let request = Request { model: model.into(), stream, ..ask("hi") };
        bedrock.encode(&Endpoint::default(), &request).map(|parts| parts.url).unwrap_or_else(|error| error.to_string())
    };
    expect!["https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-sonnet-4-20250514-v1%3A0/converse-stream"].assert_eq(&url("eu-central-1", "eu.anthropic.claude-sonnet-4-20250514-v1:0", true));
    expect!["https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/converse"].assert_eq(&url("us-east-1", "arn:aws:bedrock:us-east-1:1:inference-profile/x", false));
    expect!["https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/m/converse"].assert_eq(&url(
        "cn-north-1",
        "m",
        false,
    ));
    expect!["the region is not valid: it has other characters than a-z, 0-9 and -, or not 1 to 63 of them"]
        .assert_eq(&url("x.example.com#", "m", false));
}

/// Signs a request, and returns its headers with the values of secrets.
fn signed(bedrock: &Bedrock, url: &str) -> String {
    let mut parts = Parts::post(url.into(), &json!({}));
    parts.header("x-plain", "not signed").unwrap();
    bedrock.sign(&mut parts, NOW).unwrap();
    assert!(!format!("{parts:?}").contains("Signature"));
    let text = |(name, value): (&http::HeaderName, &http::HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
    let mut headers: Vec<String> = parts.headers.iter().map(text).collect();
    headers.sort();
    headers.join("\n")
}

#[test]
fn signatures_cover_what_amazon_checks() {
    let url = "https://bedrock-runtime.eu-central-1.amazonaws.com/model/a%3A0/converse";
    expect![[r#"
        authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261123/eu-central-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=a6c704da18239f58ea95074cbc019cca610de55553c6fef3710aee7933139239
        content-type: application/json
        x-amz-date: 20261123T180000Z
        x-plain: not signed"#]].assert_eq(&signed(&protocol(), url));
    let with_token = with_token(Some("a token".into()));
    expect![[r#"
        authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261123/eu-central-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=7a47d71b683b5c9212000ca77cd84a509a4e9603c10789b07635513c2fdc027b
        content-type: application/json
        x-amz-date: 20261123T180000Z
        x-amz-security-token: a token
        x-plain: not signed"#]].assert_eq(&signed(&with_token, "http://localhost:9/model/a%3A0/converse"));
}

#[test]
fn a_key_of_bedrock_is_sent_and_nothing_signed() {
    let bedrock = Bedrock { access: Access::Bearer("bedrock-api-key".into()), region: "eu-central-1".into() };
    let mut parts = bedrock.encode(&Endpoint::default(), &ask("hi")).expect("encoded");
    bedrock.sign(&mut parts, NOW).expect("nothing to sign");
    assert_eq!(parts.headers["authorization"], "Bearer bedrock-api-key");
    assert!(!parts.headers.contains_key("x-amz-date"));
    assert!(!format!("{parts:?}").contains("bedrock-api-key"));
}

#[test]
fn unreadable_addresses_are_refused() {
    let mut parts = Parts::post("http://[".into(), &json!({}));
    assert_eq!(protocol().sign(&mut parts, NOW).unwrap_err().kind, CallErrorKind::Request);
}

#[test]
fn hosts_have_unusual_ports() {
    let host = |url: &str| host(&url.parse().unwrap());
    assert_eq!(host("https://a.example.com:443/x"), "a.example.com");
    assert_eq!(host("http://localhost:80/x"), "localhost");
    assert_eq!(host("https://localhost:8443/x"), "localhost:8443");
}
