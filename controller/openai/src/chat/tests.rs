use atlas_model::{Delta, Stop};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::job_input;
use crate::testing::{answer, answers, call, cut, lines, meta, reasoning, text};

/// What is read of a body with these members beside the model, or why it is refused.
fn check(members: &Value, expected: &Expect) {
    let mut body = json!({ "model": "fast" });
    for (name, value) in members.as_object().expect("an object") {
        body[name] = value.clone();
    }
    let shown = match read(body.to_string().as_bytes()) {
        Ok(request) => format!("{:#}", job_input(&request.model, &request.request)["request"]),
        Err(error) => format!("{} {} [{}]", error.status, error.message, error.param.unwrap_or_default()),
    };
    expected.assert_eq(&shown);
}

fn check_messages(messages: &Value, expected: &Expect) {
    check(&json!({ "messages": messages }), expected);
}

fn hello() -> Value {
    json!([{ "role": "user", "content": "hello" }])
}

#[test]
fn conversations_with_tools_and_images_are_read() {
    check(
        &json!({
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
                ]},
                {"role": "assistant", "content": null, "reasoning_content": "hm", "refusal": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}},
                    {"id": "c2", "type": "function", "function": {"name": "find", "arguments": "{"}, "extra_content": {"atlas": {"s": 1}}},
                ]},
                {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
                {"role": "tool", "tool_call_id": "c1", "content": "one"},
                {"role": "developer", "content": [{"type": "text", "text": "In English."}]},
                {"role": "user", "name": "ann", "content": "So?"},
            ],
            "tools": [
                {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": true}},
                {"type": "function", "function": {"name": "find"}},
            ],
            "tool_choice": {"type": "function", "function": {"name": "find"}},
            "parallel_tool_calls": false,
            "max_completion_tokens": 50, "temperature": 0.5, "top_p": 1, "stop": "END", "seed": 3, "user": "ann",
        }),
        &expect![[r#"
            {
              "system": "Be brief.\n\nIn English.",
              "messages": [
                {
                  "role": "user",
                  "parts": [
                    {
                      "type": "text",
                      "text": "What is this?"
                    },
                    {
                      "type": "image",
                      "mime": "image/png",
                      "data": "aGk="
                    }
                  ]
                },
                {
                  "role": "assistant",
                  "parts": [
                    {
                      "type": "reasoning",
                      "text": "hm",
                      "opaque": {
                        "field": "reasoning_content"
                      }
                    },
                    {
                      "type": "tool_call",
                      "id": "c1",
                      "name": "look",
                      "arguments": {
                        "at": 1
                      }
                    },
                    {
                      "type": "tool_call",
                      "id": "c2",
                      "name": "find",
                      "arguments": "{",
                      "opaque": {
                        "s": 1
                      }
                    }
                  ]
                },
                {
                  "role": "user",
                  "parts": [
                    {
                      "type": "tool_result",
                      "call": "c2",
                      "name": "find",
                      "content": "two",
                      "error": false
                    },
                    {
                      "type": "tool_result",
                      "call": "c1",
                      "name": "look",
                      "content": "one",
                      "error": false
                    }
                  ]
                },
                {
                  "role": "user",
                  "parts": [
                    {
                      "type": "text",
                      "text": "So?"
                    }
                  ]
                }
              ],
              "tools": [
                {
                  "name": "look",
                  "description": "Looks.",
                  "input_schema": {
                    "type": "object"
                  }
                },
                {
                  "name": "find",
                  "description": "",
                  "input_schema": {
                    "type": "object",
                    "properties": {}
                  }
                }
              ],
              "tool_choice": {
                "tool": "find"
              },
              "max_tokens": 50,
              "temperature": 0.5,
              "top_p": 1.0,
              "top_k": null,
              "stop": [
                "END"
              ],
              "output": null,
              "reasoning_effort": null,
              "extra": {
                "seed": 3,
                "parallel_tool_calls": false
              }
            }"#]],
    );
}

#[test]
fn a_system_text_alone_is_the_message() {
    let body = json!({ "model": "fast", "messages": [{"role": "system", "content": "Say hello."}] });
    let request = read(body.to_string().as_bytes()).expect("valid").request;
    assert_eq!((request.system.as_str(), request.messages[0].text().as_str()), ("", "Say hello."));
}

#[test]
fn messages_that_are_refused() {
    check_messages(&json!("hello"), &expect!["400 messages must be a list, not a string [messages]"]);
    check_messages(&json!([]), &expect!["400 messages must have at least one message [messages]"]);
    check_messages(&json!([7]), &expect!["400 messages[0] must be an object, not a number [messages[0]]"]);
    check_messages(
        &json!([{"content": "x"}]),
        &expect![[r#"400 the required parameter "messages[0].role" is missing [messages[0].role]"#]],
    );
    check_messages(
        &json!([{"role": "robot", "content": "x"}]),
        &expect![[
            r#"400 messages[0].role must be one of system, developer, user, assistant, tool, function, not "robot" [messages[0].role]"#
        ]],
    );
    check_messages(
        &json!([{"role": "function", "name": "f", "content": "x"}]),
        &expect![[
            r#"400 "messages[0].role" is not supported: functions were replaced; send the role "tool" [messages[0].role]"#
        ]],
    );
    check_messages(
        &json!([{"role": "user"}]),
        &expect![[r#"400 the required parameter "messages[0].content" is missing [messages[0].content]"#]],
    );
    check_messages(
        &json!([{"role": "user", "content": {"text": "x"}}]),
        &expect!["400 messages[0].content must be a string or a list of parts, not an object [messages[0].content]"],
    );
    check_messages(
        &json!([{"role": "user", "content": []}]),
        &expect!["400 messages[0].content must have at least one part [messages[0].content]"],
    );
    check_messages(
        &json!([{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "input_audio", "input_audio": {}}]}]),
        &expect![[
            r#"400 "messages[0].content[1].type" is not supported: parts of this message are of the type text and image_url, not "input_audio" [messages[0].content[1].type]"#
        ]],
    );
    check_messages(
        &json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.test/b.png"}}]}]),
        &expect![[
            r#"400 "messages[0].content[0].image_url.url" is not supported: images are sent by value, as "data:image/png;base64,…"; this server fetches no addresses [messages[0].content[0].image_url.url]"#
        ]],
    );
    check_messages(
        &json!([{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]}]),
        &expect![[
            r#"400 "messages[0].content[0].type" is not supported: parts of this message are of the type text, not "image_url" [messages[0].content[0].type]"#
        ]],
    );
    check_messages(
        &json!([{"role": "assistant"}]),
        &expect!["400 messages[0] must have content or tool_calls [messages[0]]"],
    );
    check_messages(
        &json!([{"role": "assistant", "content": ""}, {"role": "system", "content": ""}]),
        &expect!["400 all messages are empty [messages]"],
    );
    let many: Vec<Value> = vec![json!({"role": "user", "content": "x"}); 10_001];
    check_messages(&Value::Array(many), &expect!["400 messages has 10001 elements, and may have 10000 [messages]"]);
}

#[test]
fn calls_and_results_go_in_pairs() {
    let calling = |id: &str| json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "r"});
    check_messages(
        &json!([result("a")]),
        &expect![
            "400 messages[0].tool_call_id answers no call: a tool message follows the assistant message whose tool_calls have its id [messages[0].tool_call_id]"
        ],
    );
    check_messages(
        &json!([calling("a"), result("a"), result("a")]),
        &expect![
            "400 messages[2].tool_call_id answers no call: a tool message follows the assistant message whose tool_calls have its id [messages[2].tool_call_id]"
        ],
    );
    check_messages(
        &json!([calling("a"), {"role": "user", "content": "x"}]),
        &expect![[
            r#"400 messages[0].tool_calls must be followed by a tool message for each call; there is none for "a" [messages[0].tool_calls]"#
        ]],
    );
    check_messages(
        &json!([{"role": "user", "content": "x"}, calling("a")]),
        &expect![[
            r#"400 messages[1].tool_calls must be followed by a tool message for each call; there is none for "a" [messages[1].tool_calls]"#
        ]],
    );
    let twice =
        json!({"role": "assistant", "tool_calls": [calling("a")["tool_calls"][0], calling("a")["tool_calls"][0]]});
    check_messages(
        &json!([twice]),
        &expect![[r#"400 messages[0].tool_calls has two calls with the id "a" [messages[0].tool_calls]"#]],
    );
    check_messages(
        &json!([{"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {}}]}]),
        &expect![[
            r#"400 "messages[0].tool_calls[0].type" is not supported: calls are of the type "function" [messages[0].tool_calls[0].type]"#
        ]],
    );
    check_messages(
        &json!([{"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "f", "arguments": "{}"}}]}]),
        &expect!["400 messages[0].tool_calls[0].id must not be empty [messages[0].tool_calls[0].id]"],
    );
    check_messages(
        &json!([{"role": "assistant", "content": "x", "function_call": {"name": "f"}}]),
        &expect![[
            r#"400 "messages[0].function_call" is not supported: messages have text and tool_calls [messages[0].function_call]"#
        ]],
    );
    // Ids may come again in a later answer.
    let again = json!([calling("a"), result("a"), calling("a"), result("a"), {"role": "user", "content": "x"}]);
    let body = json!({ "model": "fast", "messages": again });
    assert_eq!(read(body.to_string().as_bytes()).map(|request| request.request.messages.len()), Ok(5));
}

#[test]
fn parameters_that_are_refused() {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let cases = [
        json!({"model": null}),
        json!({"model": ""}),
        json!({"model": 7}),
        json!({"temperature": 2.5}),
        json!({"temperature": "hot"}),
        json!({"top_p": -1}),
        json!({"max_tokens": 0}),
        json!({"max_tokens": 1.5}),
        json!({"max_tokens": 5, "max_completion_tokens": 5}),
        json!({"stop": ["a", "b", "c", "d", "e"]}),
        json!({"stop": ["a", ""]}),
        json!({"stream_options": {"include_usage": true}}),
        json!({"stream": true, "stream_options": {"include_usage": 1}}),
        json!({"stream": "yes"}),
        json!({"reasoning_effort": "some"}),
        json!({"metadata": {"a": 1}}),
        json!({"metadata": []}),
        json!({"tools": [tool("a b")]}),
        json!({"tools": [tool("a"), tool("a")]}),
        json!({"tools": [{"type": "custom", "custom": {"name": "a"}}]}),
        json!({"tools": [{"type": "function"}]}),
        json!({"tools": [{"type": "function", "function": {"name": "a", "parameters": []}}]}),
        json!({"tools": (0..129).map(|number| tool(&format!("t{number}"))).collect::<Vec<_>>()}),
        json!({"tool_choice": "required"}),
        json!({"tools": [tool("a")], "tool_choice": "any"}),
        json!({"tools": [tool("a")], "tool_choice": {"type": "function", "function": {"name": "b"}}}),
        json!({"tools": [tool("a")], "tool_choice": {"type": "allowed_tools", "allowed_tools": {}}}),
        json!({"response_format": "json"}),
        json!({"response_format": {"type": "xml"}}),
        json!({"response_format": {"type": "json_schema"}}),
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a b"}}}),
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": true}}}),
        json!({"n": 2}),
        json!({"logprobs": true}),
        json!({"audio": {}}),
        json!({"web_search_options": {}}),
        json!({"functions": [{"name": "f"}]}),
        json!({"modalities": ["text", "audio"]}),
        json!({"colour": "blue"}),
    ];
    let mut shown = String::new();
    for case in cases {
        let mut body = json!({ "model": "fast", "messages": hello() });
        for (name, value) in case.as_object().expect("an object") {
            body[name] = value.clone();
        }
        let error = read(body.to_string().as_bytes()).expect_err(&case.to_string());
        let (code, param) = (error.code.unwrap_or_default(), error.param.unwrap_or_default());
        shown.push_str(&format!("{} {code} [{param}] {}\n", error.status, error.message));
    }
    expect![[r#"
        400 missing_required_parameter [model] the required parameter "model" is missing
        400 invalid_value [model] model must not be empty
        400 invalid_type [model] model must be a string, not a number
        400 invalid_value [temperature] temperature must be a number from 0 to 2, not 2.5
        400 invalid_type [temperature] temperature must be a number, not a string
        400 invalid_value [top_p] top_p must be a number from 0 to 1, not -1
        400 invalid_value [max_tokens] max_tokens must be an integer from 1 to 4294967295, not 0
        400 invalid_value [max_tokens] max_tokens must be an integer from 1 to 4294967295, not 1.5
        400  [max_tokens] max_tokens and max_completion_tokens mean the same; send one of them
        400 invalid_value [stop] stop has 5 elements, and may have 4
        400 invalid_value [stop[1]] stop[1] must not be empty
        400 invalid_value [stream_options] stream_options is only allowed with "stream": true
        400 invalid_type [stream_options.include_usage] stream_options.include_usage must be true or false, not a number
        400 invalid_type [stream] stream must be true or false, not a string
        400 invalid_value [reasoning_effort] reasoning_effort must be one of none, minimal, low, medium, high, xhigh, max, not "some"
        400 invalid_type [metadata.a] metadata.a must be a string, not a number
        400 invalid_type [metadata] metadata must be an object, not a list
        400 invalid_value [tools[0].function.name] tools[0].function.name must match [a-zA-Z0-9_-]{1,64}, and is "a b"
        400 invalid_value [tools[1].function] tools[1].function has the name "a", as another tool
        400 unsupported_parameter [tools[0].type] "tools[0].type" is not supported: tools are of the type "function", not "custom"
        400 missing_required_parameter [tools[0].function] the required parameter "tools[0].function" is missing
        400 invalid_type [tools[0].function.parameters] tools[0].function.parameters must be an object, not a list
        400 invalid_value [tools] tools has 129 elements, and may have 128
        400 invalid_value [tool_choice] tool_choice is only allowed with tools
        400 invalid_value [tool_choice] tool_choice must be one of auto, none, required, not "any"
        400 invalid_value [tool_choice.function.name] tool_choice.function.name is "b", which no tool of the request is named
        400 unsupported_parameter [tool_choice.type] "tool_choice.type" is not supported: a tool choice is a word or of the type "function", not "allowed_tools"
        400 invalid_type [response_format] response_format must be an object, not a string
        400 invalid_value [response_format.type] response_format.type must be one of text, json_object, json_schema, not "xml"
        400 missing_required_parameter [response_format.json_schema] the required parameter "response_format.json_schema" is missing
        400 invalid_value [response_format.json_schema.name] response_format.json_schema.name must match [a-zA-Z0-9_-]{1,64}, and is "a b"
        400 invalid_type [response_format.json_schema.schema] response_format.json_schema.schema must be an object, not true or false
        400 unsupported_parameter [n] "n" is not supported: a request has one answer; send it again for another one
        400 unsupported_parameter [logprobs] "logprobs" is not supported: answers have no probabilities of tokens
        400 unsupported_parameter [audio] "audio" is not supported: answers are text
        400 unsupported_parameter [web_search_options] "web_search_options" is not supported: this server has no search of the web; give the model a tool or use an agent
        400 unsupported_parameter [functions] "functions" is not supported: it was replaced: use `tools`
        400 unsupported_parameter [modalities] "modalities" is not supported: answers are text
        400 unknown_parameter [colour] unknown parameter "colour"; docs/reference/openai.md lists those that this server takes
    "#]].assert_eq(&shown);
}

#[test]
fn forms_of_answers_are_read() {
    let output = |format: Value| {
        let body = json!({ "model": "fast", "messages": hello(), "response_format": format });
        let output = read(body.to_string().as_bytes()).expect("valid").request.output;
        output.map(|output| json!([output.name, output.schema]))
    };
    assert_eq!(output(json!({"type": "text"})), None);
    assert_eq!(output(json!({"type": "json_object"})), Some(json!(["json_object", {"type": "object"}])));
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let named = json!({"type": "json_schema", "json_schema": {"name": "out", "strict": true, "schema": schema}});
    assert_eq!(output(named), Some(json!(["out", schema])));
}

#[test]
fn what_is_for_records_is_not_sent_to_providers() {
    let body = json!({
        "model": "fast", "messages": hello(), "stream": true, "stream_options": {"include_usage": true},
        "user": "old", "safety_identifier": "new", "metadata": {"a": "b"}, "store": true, "service_tier": "auto",
        "prompt_cache_key": "k", "n": 1, "tool_choice": "none",
    });
    let request = read(body.to_string().as_bytes()).expect("valid");
    assert!(request.stream && request.include_usage && request.request.extra.is_empty());
    assert_eq!((request.user.as_deref(), &request.metadata["a"]), (Some("new"), &json!("b")));
    assert_eq!(request.request.tool_choice, atlas_model::ToolChoice::Auto);
}

#[test]
fn agents_take_messages_alone() {
    let checked = |members: Value| {
        let mut body = json!({ "model": "reviewer", "messages": hello() });
        for (name, value) in members.as_object().expect("an object") {
            body[name] = value.clone();
        }
        let request = read(body.to_string().as_bytes()).expect("valid");
        request
            .check_for_agent()
            .map(|()| request.said())
            .map_err(|error| (error.param.unwrap_or_default(), error.message))
    };
    let said = checked(json!({"temperature": 1, "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]},
        {"role": "assistant", "content": "c", "reasoning_content": "r"},
        {"role": "user", "content": "d"},
    ]}));
    expect![[r#"
        Ok(
            Dialogue {
                system: "Be kind.",
                messages: [
                    DialogueMessage {
                        role: User,
                        text: "a\nb",
                        images: [
                            Image {
                                mime: "image/png",
                                data: "aGk=",
                            },
                        ],
                    },
                    DialogueMessage {
                        role: Assistant,
                        text: "c",
                        images: [],
                    },
                    DialogueMessage {
                        role: User,
                        text: "d",
                        images: [],
                    },
                ],
            },
        )
    "#]]
    .assert_debug_eq(&said);
    let refused = |members: Value| checked(members).expect_err("refused").0;
    let tool = json!({"type": "function", "function": {"name": "f"}});
    assert_eq!(refused(json!({"tools": [tool]})), "tools");
    assert_eq!(refused(json!({"response_format": {"type": "json_object"}})), "response_format");
    assert_eq!(refused(json!({"messages": [{"role": "assistant", "content": "x"}]})), "messages");
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let results =
        json!([{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "a", "content": "r"}]);
    assert_eq!(refused(json!({"messages": results})), "messages");
}

#[test]
fn answers_as_one_value() {
    let parts = vec![reasoning("hm", Value::Null), text("Hel"), text("lo"), call("c1", "look", json!({"at": [1, 2]}))];
    expect![[r#"
        {
          "id": "chatcmpl-1",
          "object": "chat.completion",
          "created": 1700000000,
          "model": "fast",
          "choices": [
            {
              "index": 0,
              "message": {
                "role": "assistant",
                "content": "Hello",
                "refusal": null,
                "reasoning_content": "hm",
                "tool_calls": [
                  {
                    "id": "c1",
                    "type": "function",
                    "function": {
                      "name": "look",
                      "arguments": "{\"at\":[1,2]}"
                    }
                  }
                ]
              },
              "logprobs": null,
              "finish_reason": "tool_calls"
            }
          ],
          "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 4,
            "total_tokens": 13,
            "prompt_tokens_details": {
              "cached_tokens": 3,
              "cache_write_tokens": 0,
              "audio_tokens": 0
            },
            "completion_tokens_details": {
              "reasoning_tokens": 1,
              "audio_tokens": 0,
              "accepted_prediction_tokens": 0,
              "rejected_prediction_tokens": 0
            }
          }
        }"#]]
    .assert_eq(&format!("{:#}", whole(&answer(parts, Stop::Tools), &meta("chatcmpl-1"))));
    let message = |parts, stop| {
        let value = whole(&answer(parts, stop), &meta("chatcmpl-1"));
        let choice = &value["choices"][0];
        format!("{} {}", choice["message"], choice["finish_reason"])
    };
    expect![[r#"{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{oops"}}]} "tool_calls""#]].assert_eq(&message(vec![call("c", "f", json!("{oops"))], Stop::End));
    expect![[r#"{"role":"assistant","content":"","refusal":null} "stop""#]].assert_eq(&message(vec![], Stop::End));
    expect![[r#"{"role":"assistant","content":"par","refusal":null} "length""#]]
        .assert_eq(&message(vec![text("par")], Stop::Length));
    expect![[r#"{"role":"assistant","content":"no","refusal":null} "content_filter""#]]
        .assert_eq(&message(vec![text("no")], Stop::Refused));
    expect![[r#"{"role":"assistant","content":"x","refusal":null} "stop""#]]
        .assert_eq(&message(vec![text("x")], Stop::Other("odd".to_owned())));
}

#[test]
fn an_answer_in_chunks() {
    let whole =
        answer(vec![reasoning("hm", Value::Null), text("Hello"), call("c1", "look", json!({"at": 1}))], Stop::Tools);
    let mut chunks = Chunks::new(meta("chatcmpl-1"), true);
    let mut all = chunks.start();
    assert!(chunks.reset(), "nothing was said");
    for delta in [
        Delta::Reasoning("hm".to_owned()),
        Delta::Text("Hel".to_owned()),
        Delta::Text("lo".to_owned()),
        Delta::Call { index: 0, id: "c1".to_owned(), name: "look".to_owned() },
        Delta::Arguments { index: 0, text: "{ \"at\"".to_owned() },
        Delta::Arguments { index: 0, text: " ".to_owned() },
    ] {
        all.extend(chunks.delta(&delta));
    }
    assert!(!chunks.reset(), "clients cannot take back");
    all.extend(chunks.end(&whole).expect("the same answer"));
    expect![[r#"
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"logprobs":null,"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast","choices":[{"index":0,"delta":{"content":"Hel"},"logprobs":null,"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast","choices":[{"index":0,"delta":{"content":"lo"},"logprobs":null,"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\""}}]},"logprobs":null,"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}
        {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fast","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}
    "#]].assert_eq(&lines(&all));
}

#[test]
fn what_no_piece_carried_is_sent_at_the_end() {
    let whole = answer(vec![text("Hello"), call("c1", "look", json!({}))], Stop::Tools);
    let shown = |deltas: &[Delta], skip: bool| {
        let mut chunks = Chunks::new(meta("chatcmpl-1"), false);
        let mut all: Vec<Value> = deltas.iter().flat_map(|delta| chunks.delta(delta)).collect();
        if skip {
            chunks.skip();
            all.extend(chunks.delta(&Delta::Text("zzz".to_owned())));
        }
        all.extend(chunks.end(&whole).expect("the same answer"));
        all.iter().map(|chunk| format!("{}\n", chunk["choices"][0]["delta"])).collect::<String>()
    };
    expect![[r#"
        {"role":"assistant","content":""}
        {"content":"Hello"}
        {"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}]}
        {"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}
        {}
    "#]]
    .assert_eq(&shown(&[], false));
    expect![[r#"
        {"role":"assistant","content":""}
        {"content":"Hel"}
        {"content":"lo"}
        {"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}]}
        {"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}
        {}
    "#]]
    .assert_eq(&shown(&[Delta::Text("Hel".to_owned())], true));
    // The beginning of a call was missed, so that its arguments wait.
    let late = Delta::Arguments { index: 0, text: "{}".to_owned() };
    expect![[r#"
        {"role":"assistant","content":""}
        {"content":"Hello"}
        {"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":""}}]}
        {"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}
        {}
    "#]]
    .assert_eq(&shown(&[Delta::Text("Hello".to_owned()), late], false));
}

#[test]
fn another_answer_than_was_begun_is_an_error() {
    let whole = answer(vec![text("Hello"), call("c1", "look", json!({"a": "A"}))], Stop::Tools);
    let ended = |deltas: &[Delta]| {
        let mut chunks = Chunks::new(meta("chatcmpl-1"), false);
        deltas.iter().for_each(|delta| drop(chunks.delta(delta)));
        chunks.end(&whole).map(|chunks| chunks.len()).map_err(|error| (error.status, error.code.unwrap_or_default()))
    };
    let restarted = Err((502, "answer_restarted".to_owned()));
    let begins = |id: &str| Delta::Call { index: 0, id: id.to_owned(), name: "look".to_owned() };
    let arguments = |text: &str| Delta::Arguments { index: 0, text: text.to_owned() };
    assert_eq!(ended(&[Delta::Text("Hi".to_owned())]), restarted);
    assert_eq!(ended(&[begins("c2")]), restarted);
    assert_eq!(ended(&[begins("c1"), arguments("{\"b\"")]), restarted);
    // Another notation of the same arguments, and other reasoning than the answer has.
    assert_eq!(ended(&[begins("c1"), arguments("{\"a\":\"\\u0041\"}")]), Ok(2));
    assert_eq!(ended(&[Delta::Reasoning("other".to_owned()), Delta::Text("Hello".to_owned()), begins("c1")]), Ok(2));
}

/// The message that a client makes of chunks.
fn gathered(chunks: &[Value]) -> Value {
    let mut message = json!({ "content": "", "reasoning": "", "calls": [], "finish_reason": null });
    for choice in chunks.iter().filter_map(|chunk| chunk["choices"].get(0)) {
        let delta = &choice["delta"];
        for (name, member) in [("content", "content"), ("reasoning", REASONING)] {
            let text =
                format!("{}{}", message[name].as_str().expect("text"), delta[member].as_str().unwrap_or_default());
            message[name] = text.into();
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = call["index"].as_u64().expect("an index") as usize;
            let calls = message["calls"].as_array_mut().expect("calls");
            if calls.len() == index {
                calls.push(json!({"id": call["id"], "name": call["function"]["name"], "arguments": ""}));
            }
            let more = call["function"]["arguments"].as_str().expect("arguments");
            calls[index]["arguments"] = format!("{}{more}", calls[index]["arguments"].as_str().expect("text")).into();
        }
        if !choice["finish_reason"].is_null() {
            message["finish_reason"] = choice["finish_reason"].clone();
        }
    }
    message
}

proptest! {
    #[test]
    fn chunks_together_are_the_answer(answer in answers(), seed in any::<u64>(), seen in 0..40_usize, skips in any::<bool>()) {
        let mut chunks = Chunks::new(meta("chatcmpl-1"), true);
        let deltas = cut(&answer, seed);
        let seen = if skips { seen.min(deltas.len()) } else { deltas.len() };
        let mut all: Vec<Value> = deltas[..seen].iter().flat_map(|delta| chunks.delta(delta)).collect();
        if skips {
            chunks.skip();
            all.extend(deltas[seen..].iter().skip(1).flat_map(|delta| chunks.delta(delta)));
        }
        all.extend(chunks.end(&answer).expect("the same answer"));
        let value = whole(&answer, &meta("chatcmpl-1"));
        let message = &value["choices"][0]["message"];
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let calls: Vec<Value> = calls.iter().map(|call| {
            json!({"id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]})
        }).collect();
        prop_assert_eq!(gathered(&all), json!({
            "content": message["content"].as_str().unwrap_or_default(),
            "reasoning": message[REASONING].as_str().unwrap_or_default(),
            "calls": calls,
            "finish_reason": value["choices"][0]["finish_reason"],
        }));
        prop_assert_eq!(&all[0]["choices"][0]["delta"]["role"], "assistant");
        prop_assert_eq!(&all.last().expect("chunks")["usage"], &value["usage"]);
    }

    #[test]
    fn no_body_makes_the_reader_panic(body in prop::collection::vec(any::<u8>(), 0..64)) {
        drop(read(&body));
        drop(crate::completions::read(&body));
        drop(crate::embeddings::read(&body));
        drop(crate::responses::read(&body));
    }
}
