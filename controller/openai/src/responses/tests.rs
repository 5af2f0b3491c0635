use atlas_model::{Delta, Stop};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::{answer, answers, call, cut, lines, meta, reasoning, text};
use crate::{AnswerMeta, job_input};

fn read_with(members: &Value) -> Result<ResponsesRequest, WireError> {
    let mut body = json!({ "model": "fast" });
    for (name, value) in members.as_object().expect("an object") {
        body[name] = value.clone();
    }
    read(body.to_string().as_bytes())
}

/// What is read of an input, or why it is refused.
fn check(input: &Value, expected: &Expect) {
    let shown = match read_with(&json!({ "input": input })) {
        Ok(request) => {
            let value = job_input(&request.model, &request.request);
            let messages = value["request"]["messages"].as_array().expect("messages").clone();
            format!("{}\n{}", value["request"]["system"], lines(&messages))
        }
        Err(error) => format!("{} {} [{}]", error.status, error.message, error.param.unwrap_or_default()),
    };
    expected.assert_eq(&shown);
}

fn calling(id: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "look", "arguments": "{\"at\": 1}", "status": "completed"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": format!("of {id}")})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn inputs_are_read() {
    check(
        &json!("hello"),
        &expect![[r#"
        ""
        {"role":"user","parts":[{"type":"text","text":"hello"}]}
    "#]],
    );
    check(
        &json!([
            {"role": "developer", "content": "Be brief."},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
            calling("c1"), calling("c2"), output("c2"), user("Hurry."), output("c1"),
        ]),
        &expect![[r#"
            "Be brief."
            {"role":"user","parts":[{"type":"text","text":"What is this?"},{"type":"image","mime":"image/png","data":"aGk="}]}
            {"role":"assistant","parts":[{"type":"reasoning","text":"hm"},{"type":"text","text":"Let me look."},{"type":"tool_call","id":"c1","name":"look","arguments":{"at":1}},{"type":"tool_call","id":"c2","name":"look","arguments":{"at":1}}]}
            {"role":"user","parts":[{"type":"tool_result","call":"c1","name":"look","content":"of c1","error":false},{"type":"tool_result","call":"c2","name":"look","content":"of c2","error":false}]}
            {"role":"user","parts":[{"type":"text","text":"Hurry."}]}
        "#]],
    );
}

#[test]
fn inputs_that_are_refused() {
    let mut shown = String::new();
    for input in [
        json!(7),
        json!(""),
        json!([]),
        json!([7]),
        json!([{"content": "x"}]),
        json!([{"role": "robot", "content": "x"}]),
        json!([{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]),
        json!([{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]),
        json!([{"role": "user", "content": [{"type": "input_image", "image_url": "https://a.test/b.png"}]}]),
        json!([{"role": "assistant", "content": [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]}]),
        json!([{"type": "item_reference", "id": "msg_1"}]),
        json!([{"type": "web_search_call", "id": "ws_1"}]),
        json!([output("a")]),
        json!([calling("a")]),
        json!([calling("a"), calling("a"), output("a")]),
        json!([calling("a"), output("a"), output("a")]),
        json!([{"type": "function_call", "call_id": "a", "name": "a b", "arguments": "{}"}]),
        json!([{"type": "function_call", "call_id": "a", "name": "f", "arguments": {}}]),
        json!([calling("a"), {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_image"}]}]),
        json!([{"type": "reasoning", "summary": "hm"}]),
        Value::Array(vec![user("x"); 10_001]),
    ] {
        let error = read_with(&json!({ "input": input })).expect_err(&input.to_string());
        shown.push_str(&format!("[{}] {}\n", error.param.unwrap_or_default(), error.message));
    }
    expect![[r#"
        [input] input must be a string or a list of items, not a number
        [input] all items are empty
        [input] all items are empty
        [input[0]] input[0] must be an object, not a number
        [input[0].role] the required parameter "input[0].role" is missing
        [input[0].role] input[0].role must be one of user, assistant, system, developer, not "robot"
        [input[0].content[0].type] "input[0].content[0].type" is not supported: parts of this item are of the type input_text and input_image, not "input_file"
        [input[0].content[0].file_id] "input[0].content[0].file_id" is not supported: this server keeps no files; send image_url with the data
        [input[0].content[0].image_url] "input[0].content[0].image_url" is not supported: images are sent by value, as "data:image/png;base64,…"; this server fetches no addresses
        [input[0].content[0].type] "input[0].content[0].type" is not supported: parts of this item are of the type text, not "input_image"
        [input[0].type] "input[0].type" is not supported: send the item itself, or previous_response_id
        [input[0].type] "input[0].type" is not supported: items are messages, function_call, function_call_output and reasoning, not "web_search_call"
        [input] there is no function call with the call_id "a" before its output
        [input] there is no output for the function call "a"
        [input] two function calls have the call_id "a"
        [input] the function call "a" has two outputs
        [input[0].name] input[0].name must match [a-zA-Z0-9_-]{1,64}, and is "a b"
        [input[0].arguments] input[0].arguments must be a string, not an object
        [input[1].output[0].type] "input[1].output[0].type" is not supported: parts of this item are of the type text, not "input_image"
        [input[0].summary] input[0].summary must be a list, not a string
        [input] input has 10001 elements, and may have 10000
    "#]].assert_eq(&shown);
}

#[test]
fn parameters_that_are_refused() {
    let mut shown = String::new();
    for case in [
        json!({"input": null}),
        json!({"instructions": 7}),
        json!({"previous_response_id": "resp_1", "conversation": "conv_1"}),
        json!({"conversation": {}}),
        json!({"background": true, "store": false}),
        json!({"tools": [{"type": "web_search"}]}),
        json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
        json!({"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "web_search"}}),
        json!({"text": "json"}),
        json!({"text": {"verbosity": "loud"}}),
        json!({"text": {"format": {"type": "json_schema", "schema": {}}}}),
        json!({"reasoning": "high"}),
        json!({"reasoning": {"effort": "most"}}),
        json!({"include": ["message.output_text.logprobs"]}),
        json!({"prompt": {"id": "p"}}),
        json!({"top_logprobs": 3}),
        json!({"max_output_tokens": -1}),
        json!({"n": 1}),
    ] {
        let mut members = json!({ "input": "hello" });
        for (name, value) in case.as_object().expect("an object") {
            members[name] = value.clone();
        }
        let error = read_with(&members).expect_err(&case.to_string());
        shown.push_str(&format!("[{}] {}\n", error.param.unwrap_or_default(), error.message));
    }
    expect![[r#"
        [input] the required parameter "input" is missing
        [instructions] instructions must be a string, not a number
        [previous_response_id] a request continues a response or a conversation, and not both
        [conversation.id] the required parameter "conversation.id" is missing
        [store] a response in the background is stored; leave store out
        [tools[0].type] "tools[0].type" is not supported: tools are of the type "function", not "web_search"
        [tools[0].name] the required parameter "tools[0].name" is missing
        [tool_choice.type] "tool_choice.type" is not supported: a tool choice is a word or of the type "function", not "web_search"
        [text] text must be an object, not a string
        [text.verbosity] text.verbosity must be one of low, medium, high, not "loud"
        [text.format.name] the required parameter "text.format.name" is missing
        [reasoning] reasoning must be an object, not a string
        [reasoning.effort] reasoning.effort must be one of none, minimal, low, medium, high, xhigh, max, not "most"
        [include[0]] "include[0]" is not supported: answers have no probabilities of tokens
        [prompt] "prompt" is not supported: this server keeps no prompts; send `instructions` or use an agent
        [top_logprobs] "top_logprobs" is not supported: answers have no probabilities of tokens
        [max_output_tokens] max_output_tokens must be an integer from 1 to 4294967295, not -1
        [n] unknown parameter "n"; docs/reference/openai.md lists those that this server takes
    "#]].assert_eq(&shown);
}

#[test]
fn responses_that_go_on() {
    let members =
        json!({ "input": [output("c1"), user("So?")], "previous_response_id": "resp_1", "instructions": "Be kind." });
    let mut request = read_with(&members).expect("valid");
    assert_eq!(request.previous_response_id.as_deref(), Some("resp_1"));
    let earlier = [Message::user("Look."), answer(vec![call("c1", "look", json!({}))], Stop::Tools).message()];
    let mut other = request.clone();
    request.continue_from(&earlier).expect("pairs");
    let roles: Vec<String> = request.request.messages.iter().map(|message| format!("{:?}", message.role)).collect();
    assert_eq!(roles, ["User", "Assistant", "User", "User"]);
    let error = other.continue_from(&earlier[..1]).expect_err("nobody called");
    assert_eq!(error.message, "there is no function call with the call_id \"c1\" before its output");
    let mut unanswered = read_with(&json!({ "input": "Go on.", "conversation": {"id": "conv_1"} })).expect("valid");
    assert_eq!(unanswered.conversation.as_deref(), Some("conv_1"));
    let error = unanswered.continue_from(&earlier).expect_err("no output");
    assert_eq!(error.message, "there is no output for the function call \"c1\"");
}

/// What the whole request was, for tests of answers.
fn echo() -> Map<String, Value> {
    read_with(&json!({ "input": "hello" })).expect("valid").echo
}

#[test]
fn requests_are_repeated_with_their_defaults() {
    expect![[r#"
        {
          "background": false,
          "conversation": null,
          "frequency_penalty": 0.0,
          "instructions": null,
          "max_output_tokens": null,
          "max_tool_calls": null,
          "metadata": {},
          "parallel_tool_calls": true,
          "presence_penalty": 0.0,
          "previous_response_id": null,
          "prompt_cache_key": null,
          "reasoning": {
            "effort": null,
            "summary": null
          },
          "safety_identifier": null,
          "service_tier": "default",
          "store": true,
          "temperature": 1.0,
          "text": {
            "format": {
              "type": "text"
            },
            "verbosity": "medium"
          },
          "tool_choice": "auto",
          "tools": [],
          "top_logprobs": 0,
          "top_p": 1.0,
          "truncation": "disabled",
          "user": null
        }"#]]
    .assert_eq(&format!("{:#}", Value::Object(echo())));
    let members = json!({
        "input": "hello", "instructions": "Be kind.", "temperature": 0.5, "max_output_tokens": 9, "store": false,
        "tools": [{"type": "function", "name": "look", "strict": true}], "tool_choice": "required", "parallel_tool_calls": false,
        "text": {"format": {"type": "json_schema", "name": "out", "schema": {"type": "object"}, "strict": true}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"}, "metadata": {"a": "b"}, "truncation": "auto",
        "include": ["reasoning.encrypted_content", "web_search_call.action.sources"],
    });
    let request = read_with(&members).expect("valid");
    let changed: Map<String, Value> = request
        .echo
        .iter()
        .filter(|(name, value)| echo().get(*name) != Some(*value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    expect![[r#"
        {"instructions":"Be kind.","max_output_tokens":9,"metadata":{"a":"b"},"parallel_tool_calls":false,"reasoning":{"effort":"low","summary":null},"store":false,"temperature":0.5,"text":{"format":{"type":"json_schema","name":"out","description":null,"schema":{"type":"object"},"strict":true},"verbosity":"low"},"tool_choice":"required","tools":[{"type":"function","name":"look","description":"","parameters":{"type":"object","properties":{}},"strict":false}],"sealed_reasoning":true}
        {"parallel_tool_calls":false,"verbosity":"low"}"#]].assert_eq(&format!("{}\n{}", Value::Object(changed), Value::Object(request.request.extra)));
}

#[test]
fn responses_of_all_phases() {
    let echo = Map::new();
    let meta = AnswerMeta { completed: Some(1_700_000_009), ..meta("resp_1") };
    let done = answer(vec![text("Hello")], Stop::End);
    let cut = answer(vec![reasoning("hm", Value::Null), text("Hel")], Stop::Length);
    let error = WireError::rate_limited("slow down");
    let all: Vec<Value> = [
        Phase::Queued,
        Phase::InProgress,
        Phase::Answered(&done),
        Phase::Answered(&cut),
        Phase::Failed(&error),
        Phase::Cancelled,
    ]
    .into_iter()
    .map(|phase| whole(phase, &meta, &echo))
    .collect();
    expect![[r#"
        {"id":"resp_1","object":"response","created_at":1700000000,"completed_at":null,"status":"queued","error":null,"incomplete_details":null,"model":"fast","output":[],"usage":null}
        {"id":"resp_1","object":"response","created_at":1700000000,"completed_at":null,"status":"in_progress","error":null,"incomplete_details":null,"model":"fast","output":[],"usage":null}
        {"id":"resp_1","object":"response","created_at":1700000000,"completed_at":1700000009,"status":"completed","error":null,"incomplete_details":null,"model":"fast","output":[{"id":"msg_1_0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":13}}
        {"id":"resp_1","object":"response","created_at":1700000000,"completed_at":null,"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},"model":"fast","output":[{"id":"rs_1_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"id":"msg_1_1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Hel","annotations":[],"logprobs":[]}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":13}}
        {"id":"resp_1","object":"response","created_at":1700000000,"completed_at":null,"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"},"incomplete_details":null,"model":"fast","output":[],"usage":null}
        {"id":"resp_1","object":"response","created_at":1700000000,"completed_at":null,"status":"cancelled","error":null,"incomplete_details":null,"model":"fast","output":[],"usage":null}
    "#]].assert_eq(&lines(&all));
}

#[test]
fn an_answer_in_events() {
    let whole =
        answer(vec![reasoning("hm", Value::Null), text("Hello"), call("c1", "look", json!({"at": 1}))], Stop::Tools);
    let mut events = Events::new(meta("resp_1"), Map::new(), None);
    let mut all = events.start();
    for delta in [
        Delta::Reasoning("hm".to_owned()),
        Delta::Text("Hel".to_owned()),
        Delta::Text("lo".to_owned()),
        Delta::Call { index: 0, id: "c1".to_owned(), name: "look".to_owned() },
        Delta::Arguments { index: 0, text: "{ \"at\"".to_owned() },
    ] {
        all.extend(events.delta(&delta));
    }
    assert!(!events.reset());
    all.extend(events.end(&whole).expect("the same answer"));
    expect![[r#"
        {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1700000000,"completed_at":null,"status":"in_progress","error":null,"incomplete_details":null,"model":"fast","output":[],"usage":null}}
        {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","created_at":1700000000,"completed_at":null,"status":"in_progress","error":null,"incomplete_details":null,"model":"fast","output":[],"usage":null}}
        {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[]}}
        {"type":"response.reasoning_summary_part.added","sequence_number":3,"item_id":"rs_1_0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
        {"type":"response.reasoning_summary_text.delta","sequence_number":5,"item_id":"rs_1_0","output_index":0,"summary_index":0,"delta":"hm"}
        {"type":"response.reasoning_summary_text.done","sequence_number":6,"item_id":"rs_1_0","output_index":0,"summary_index":0,"text":"hm"}
        {"type":"response.reasoning_summary_part.done","sequence_number":7,"item_id":"rs_1_0","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"hm"}}
        {"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":{"id":"rs_1_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}
        {"type":"response.output_item.added","sequence_number":9,"output_index":1,"item":{"id":"msg_1_1","type":"message","status":"in_progress","role":"assistant","content":[]}}
        {"type":"response.content_part.added","sequence_number":10,"item_id":"msg_1_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}
        {"type":"response.output_text.delta","sequence_number":13,"item_id":"msg_1_1","output_index":1,"content_index":0,"logprobs":[],"delta":"Hel"}
        {"type":"response.output_text.delta","sequence_number":15,"item_id":"msg_1_1","output_index":1,"content_index":0,"logprobs":[],"delta":"lo"}
        {"type":"response.output_text.done","sequence_number":16,"item_id":"msg_1_1","output_index":1,"content_index":0,"text":"Hello","logprobs":[]}
        {"type":"response.content_part.done","sequence_number":17,"item_id":"msg_1_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}}
        {"type":"response.output_item.done","sequence_number":18,"output_index":1,"item":{"id":"msg_1_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]}}
        {"type":"response.output_item.added","sequence_number":19,"output_index":2,"item":{"id":"fc_1_2","type":"function_call","status":"in_progress","call_id":"c1","name":"look","arguments":""}}
        {"type":"response.function_call_arguments.delta","sequence_number":24,"item_id":"fc_1_2","output_index":2,"delta":"{\"at\""}
        {"type":"response.function_call_arguments.delta","sequence_number":27,"item_id":"fc_1_2","output_index":2,"delta":":1}"}
        {"type":"response.function_call_arguments.done","sequence_number":28,"item_id":"fc_1_2","output_index":2,"name":"look","arguments":"{\"at\":1}"}
        {"type":"response.output_item.done","sequence_number":29,"output_index":2,"item":{"id":"fc_1_2","type":"function_call","status":"completed","call_id":"c1","name":"look","arguments":"{\"at\":1}"}}
        {"type":"response.completed","sequence_number":30,"response":{"id":"resp_1","object":"response","created_at":1700000000,"completed_at":null,"status":"completed","error":null,"incomplete_details":null,"model":"fast","output":[{"id":"rs_1_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"id":"msg_1_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]},{"id":"fc_1_2","type":"function_call","status":"completed","call_id":"c1","name":"look","arguments":"{\"at\":1}"}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":13}}}
    "#]].assert_eq(&lines(&all));
}

#[test]
fn responses_that_end_otherwise() {
    let echo = Map::from_iter([("background".to_owned(), json!(true))]);
    let shown = |events: Vec<Value>| {
        let line = |event: &Value| {
            let response = &event["response"];
            format!(
                "{} {} {} {} {}\n",
                event["sequence_number"], event["type"], response["status"], response["error"], response["output"]
            )
        };
        events.iter().map(line).collect::<String>()
    };
    let failed = WireError::provider("the provider failed");
    let mut events = Events::new(meta("resp_1"), echo.clone(), None);
    expect![[r#"
        0 "response.created" "queued" null []
        1 "response.queued" "queued" null []
        2 "response.failed" "failed" {"code":"server_error","message":"the provider failed"} []
    "#]]
    .assert_eq(&shown(events.fail(&failed)));
    let mut events = Events::new(meta("resp_1"), echo.clone(), Some(40));
    events.delta(&Delta::Text("Hel".to_owned()));
    expect![[r#"
        41 "response.failed" "failed" {"code":"server_error","message":"the provider failed"} [{"id":"msg_1_0","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Hel","annotations":[],"logprobs":[]}]}]
    "#]].assert_eq(&shown(events.fail(&failed)));
    let mut events = Events::new(meta("resp_1"), echo, None);
    let mut all = events.start();
    all.extend(events.progress());
    all.extend(events.cancel());
    expect![[r#"
        0 "response.created" "queued" null []
        1 "response.queued" "queued" null []
        2 "response.in_progress" "in_progress" null []
        3 "response.failed" "cancelled" {"code":"server_error","message":"the response was cancelled"} []
    "#]]
    .assert_eq(&shown(all));
}

#[test]
fn sealed_reasoning_comes_back() {
    let echo = read_with(&json!({ "input": "hello", "include": ["reasoning.encrypted_content"] })).expect("valid").echo;
    let parts = vec![
        reasoning("", json!({"signature": "s0"})),
        text("Hello"),
        reasoning("hm", json!({"signature": "s1"})),
        call("c1", "look", json!({})),
    ];
    let response = whole(Phase::Answered(&answer(parts, Stop::Tools)), &meta("resp_1"), &echo);
    assert_eq!(response.get("sealed_reasoning"), None);
    let mut input = response["output"].as_array().expect("items").clone();
    input.push(output("c1"));
    check(
        &json!(input),
        &expect![[r#"
        ""
        {"role":"assistant","parts":[{"type":"reasoning","text":"","opaque":{"signature":"s0"}},{"type":"text","text":"Hello"},{"type":"reasoning","text":"hm","opaque":{"signature":"s1"}},{"type":"tool_call","id":"c1","name":"look","arguments":{}}]}
        {"role":"user","parts":[{"type":"tool_result","call":"c1","name":"look","content":"of c1","error":false}]}
    "#]],
    );
    // Of another server, the texts are left.
    let foreign = json!([
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAAA"},
        user("So?"),
    ]);
    check(
        &foreign,
        &expect![[r#"
        ""
        {"role":"assistant","parts":[{"type":"reasoning","text":"hm"}]}
        {"role":"user","parts":[{"type":"text","text":"So?"}]}
    "#]],
    );
}

#[test]
fn items_of_requests() {
    let members = json!({ "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "What?"}, {"type": "input_image", "image_url": "data:image/png;base64,aGk="}]},
        calling("c1"), output("c1"), user("So?"),
    ]});
    let request = read_with(&members).expect("valid");
    let items = input_items(&request.request.messages, "resp_1");
    expect![[r#"
        {"type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"What?"},{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"auto"}],"id":"msg_1_in0"}
        {"type":"function_call","status":"completed","call_id":"c1","name":"look","arguments":"{\"at\":1}","id":"fc_1_in1"}
        {"type":"function_call_output","status":"completed","call_id":"c1","output":"of c1","id":"fco_1_in2"}
        {"type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"So?"}],"id":"msg_1_in3"}
    "#]].assert_eq(&lines(&items));
    let page = page(items, false);
    assert_eq!((&page["first_id"], &page["last_id"]), (&json!("msg_1_in0"), &json!("msg_1_in3")));
}

#[test]
fn a_client_gets_the_bytes_that_it_lacks() {
    let whole = answer(vec![text("Grüße an alle")], Stop::End);
    let rest = |after: u64| {
        let mut events = Events::new(meta("resp_1"), Map::new(), Some(after));
        let mut all = events.start();
        all.extend(events.end(&whole).expect("the same answer"));
        let shown = |event: &Value| format!("{} {} {}", event["sequence_number"], event["type"], event["delta"]);
        all.iter().map(shown).collect::<Vec<_>>().join("\n")
    };
    // Events 0 to 3 begin the item; the text has the numbers 4 to 18, with two bytes for each of two letters.
    expect![[r#"
        18 "response.output_text.delta" "ße an alle"
        19 "response.output_text.done" null
        20 "response.content_part.done" null
        21 "response.output_item.done" null
        22 "response.completed" null"#]]
    .assert_eq(&rest(7));
    // A number inside of a letter, which no event has.
    assert!(rest(8).starts_with("18 \"response.output_text.delta\" \"e an alle\""), "{}", rest(8));
    assert!(rest(17).starts_with("18 \"response.output_text.delta\" \"e\""));
    assert!(rest(18).starts_with("19 "));
    // The end is always there, so that no client waits for it.
    assert_eq!(rest(22), "23 \"response.completed\" null");
    assert_eq!(rest(u64::MAX), format!("{} \"response.completed\" null", u64::MAX));
}

#[test]
fn ids_of_calls_may_come_again() {
    let pair = [calling("call_0"), output("call_0")];
    let members = json!({ "input": [pair[0], pair[1], user("Again."), pair[0], pair[1]] });
    let request = read_with(&members).expect("valid").request;
    let kinds: Vec<String> = request.messages.iter().map(|message| format!("{:?}", message.role)).collect();
    assert_eq!(kinds, ["Assistant", "User", "User", "Assistant", "User"]);
}

/// What a client has after some events: the texts of the items, and the response once it has ended.
#[derive(Debug, Clone, PartialEq, Default)]
struct Client {
    texts: Vec<String>,
    last: Option<u64>,
    response: Value,
}

impl Client {
    fn take(&mut self, event: &Value) {
        let number = event["sequence_number"].as_u64().expect("a number");
        assert!(self.last.is_none_or(|last| number > last), "numbers grow");
        self.last = Some(number);
        let place = event["output_index"].as_u64().unwrap_or_default() as usize;
        match event["type"].as_str().expect("a name") {
            "response.output_item.added" => {
                assert_eq!(place, self.texts.len(), "items follow each other");
                self.texts.push(String::new());
            }
            name if name.ends_with(".delta") => self.texts[place].push_str(event["delta"].as_str().expect("text")),
            "response.output_text.done" | "response.reasoning_summary_text.done" => {
                assert_eq!(event["text"], self.texts[place].as_str());
            }
            "response.function_call_arguments.done" => assert_eq!(event["arguments"], self.texts[place].as_str()),
            "response.completed" | "response.incomplete" => self.response = event["response"].clone(),
            _ => {}
        }
    }
}

fn echo_of(sealed: bool) -> Map<String, Value> {
    let include = if sealed { json!(["reasoning.encrypted_content"]) } else { json!([]) };
    read_with(&json!({ "input": "hello", "include": include })).expect("valid").echo
}

proptest! {
    #[test]
    fn events_together_are_the_answer(answer in answers(), seed in any::<u64>(), seen in 0..40_usize, sealed in any::<bool>()) {
        let mut events = Events::new(meta("resp_1"), echo_of(sealed), None);
        let deltas = cut(&answer, seed);
        let mut client = Client::default();
        let some = deltas.iter().take(seen).flat_map(|delta| events.delta(delta)).collect::<Vec<_>>();
        some.iter().for_each(|event| client.take(event));
        events.skip();
        events.end(&answer).expect("the same answer").iter().for_each(|event| client.take(event));
        let whole = whole(Phase::Answered(&answer), &meta("resp_1"), &echo_of(sealed));
        prop_assert_eq!(&client.response, &whole);
        let text = |item: &Value| match item["type"].as_str() {
            Some("message") => item["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
            Some("reasoning") => item["summary"].get(0).and_then(|part| part["text"].as_str()).unwrap_or_default().to_owned(),
            _ => item["arguments"].as_str().unwrap_or_default().to_owned(),
        };
        let output = whole["output"].as_array().expect("items");
        prop_assert_eq!(output.iter().map(text).collect::<Vec<_>>(), client.texts);
    }

    #[test]
    fn a_client_goes_on_after_any_event(
        answer in answers(), seeds in any::<[u64; 2]>(), seen in 0..60_usize, again in 0..60_usize, sealed in any::<bool>(),
    ) {
        let all = |seed: u64, after: Option<u64>, pieces: usize| {
            let mut events = Events::new(meta("resp_1"), echo_of(sealed), after);
            let deltas = cut(&answer, seed);
            let mut all: Vec<Value> = events.start();
            all.extend(deltas.iter().take(pieces).flat_map(|delta| events.delta(delta)));
            events.skip();
            all.extend(events.end(&answer).expect("the same answer"));
            all
        };
        let mut straight = Client::default();
        all(seeds[0], None, 99).iter().for_each(|event| straight.take(event));
        let mut client = Client::default();
        all(seeds[0], None, 99).iter().take(seen).for_each(|event| client.take(event));
        if client.response.is_null() {
            all(seeds[1], client.last, again).iter().for_each(|event| client.take(event));
        }
        prop_assert_eq!(straight, client);
    }
}
