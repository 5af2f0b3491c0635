//! Calls of servers that send them in unusual pieces, and what they carry.

use atlas_model::{Message, Part, Role, ToolResult};

use super::*;
use crate::Event;

/// The calls of a stream whose chunks hold these pieces of calls.
fn calls_of(pieces: &[Value]) -> String {
    let mut chunks: Vec<Value> = pieces.iter().map(|piece| delta(&json!({"tool_calls": [piece]}))).collect();
    chunks.push(finish("tool_calls"));
    let (events, error) =
        decode(Chat::default().decoder(&asking(true), &HeaderMap::new()), stream(&chunks).as_bytes(), 100);
    let Some(Event::Answer(answer)) = events.last() else { return error.expect("an error").message };
    let calls = answer.tool_calls().map(|call| format!("{} {}{}", call.id, call.name, call.arguments));
    calls.collect::<Vec<_>>().join(", ")
}

#[test]
fn pieces_of_calls_find_their_call() {
    let piece = |index: Value, id: &str, name: &str, arguments: &str| {
        let mut piece = json!({"function": {"arguments": arguments}});
        if !index.is_null() {
            piece["index"] = index;
        }
        if !id.is_empty() {
            piece["id"] = id.into();
        }
        if !name.is_empty() {
            piece["function"]["name"] = name.into();
        }
        piece
    };
    let (zero, one, none) = (json!(0), json!(1), Value::Null);
    let full = "{\"x\":1}";
    let cases: &[(&[Value], &str)] = &[
        // A name behind its id, with and without numbers.
        (
            &[piece(zero.clone(), "a", "", ""), piece(zero.clone(), "", "f", ""), piece(zero.clone(), "", "", full)],
            "a f{\"x\":1}",
        ),
        (
            &[piece(none.clone(), "a", "", ""), piece(none.clone(), "", "f", ""), piece(none.clone(), "", "", full)],
            "a f{\"x\":1}",
        ),
        (
            &[
                piece(none.clone(), "a", "", ""),
                piece(none.clone(), "", "f", full),
                piece(none.clone(), "b", "", ""),
                piece(none.clone(), "", "g", "{}"),
            ],
            "a f{\"x\":1}, b g{}",
        ),
        // One call under two numbers.
        (&[piece(zero.clone(), "a", "f", ""), piece(one.clone(), "a", "", full)], "a f{\"x\":1}"),
        (&[piece(zero.clone(), "a", "f", ""), piece(one.clone(), "a", "f", full)], "a f{\"x\":1}"),
        (&[piece(zero.clone(), "a", "f", "{}"), piece(one.clone(), "a", "f", full)], "a f{\"x\":1}"),
        (&[piece(zero.clone(), "a", "f", full), piece(one.clone(), "a", "f", full)], "a f{\"x\":1}"),
        (&[piece(zero.clone(), "a", "f", full), piece(one.clone(), "a", "f", "")], "a f{\"x\":1}"),
        (
            &[
                piece(zero.clone(), "a", "f", ""),
                piece(one.clone(), "", "", "{\"x\""),
                piece(one.clone(), "", "", ":1}"),
            ],
            "a f{\"x\":1}",
        ),
        (&[piece(none.clone(), "a", "f", ""), piece(none, "a", "f", full)], "a f{\"x\":1}"),
        // An id that changes with each piece begins nothing.
        (
            &[
                piece(zero.clone(), "a", "f", ""),
                piece(zero.clone(), "b", "", "{\"x\""),
                piece(zero.clone(), "c", "", ":1}"),
            ],
            "a f{\"x\":1}",
        ),
        // Two calls stay two.
        (&[piece(zero.clone(), "a", "f", full), piece(one.clone(), "b", "f", full)], "a f{\"x\":1}, b f{\"x\":1}"),
        (
            &[piece(zero.clone(), "a", "f", full), piece(one.clone(), "a", "f", "{\"x\":2}")],
            "a f{\"x\":1}, call_1_1 f{\"x\":2}",
        ),
        // Two tools under one id are two calls, and what follows finds its own.
        (
            &[piece(zero.clone(), "x", "list", ""), piece(one.clone(), "x", "get", full)],
            "x list{}, call_1_1 get{\"x\":1}",
        ),
        (
            &[
                piece(zero.clone(), "x", "list", ""),
                piece(one.clone(), "x", "get", "{\"x\""),
                piece(json!(2), "x", "get", ":1}"),
            ],
            "x list{}, call_1_1 get{\"x\":1}",
        ),
        (&[piece(zero.clone(), "", "f", ""), piece(one, "", "f", "")], "call_1_0 f{}, call_1_1 f{}"),
        (&[piece(zero.clone(), "a", "", ""), piece(zero, "", "", full)], "the answer calls a tool without a name"),
    ];
    for (pieces, expected) in cases {
        assert_eq!(calls_of(pieces), *expected, "{pieces:?}");
    }
}

#[test]
fn numbers_of_calls_are_bounded() {
    let piece = |index: u64| json!({"index": index, "id": "a", "function": {"name": "f", "arguments": ""}});
    assert_eq!(calls_of(&(0..256).map(piece).collect::<Vec<_>>()), "a f{}");
    let many: Vec<_> = (0..257).map(piece).collect();
    assert_eq!(calls_of(&many), "the answer numbers more than 256 tool calls");
}

/// The answer to a stream of these chunks.
fn answer(request: &Request, chunks: &[Value]) -> atlas_model::Answer {
    let decoder = Chat::default().decoder(request, &HeaderMap::new());
    match decode(decoder, stream(chunks).as_bytes(), 100).0.pop() {
        Some(Event::Answer(answer)) => *answer,
        other => panic!("{other:?} is no answer"),
    }
}

#[test]
fn signatures_of_calls_go_back_to_their_model() {
    let asked = Request { model: "gemini-3-pro-preview".to_owned(), ..asking(true) };
    let signed = |id: &str, index: u64| {
        let extra = json!({"google": {"thought_signature": "SIGNED"}});
        json!({"index": index, "id": id, "extra_content": extra, "function": {"name": "f", "arguments": "{}"}})
    };
    let plain = json!({"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}});
    let chunks = [delta(&json!({"tool_calls": [signed("a", 0), plain]})), finish("tool_calls")];
    let answer = answer(&asked, &chunks);
    let result = |call: &atlas_model::ToolCall| {
        let (call, name) = (call.id.clone(), call.name.clone());
        Part::ToolResult(ToolResult { call, name, content: "1".to_owned(), error: false })
    };
    let mut next = asked;
    next.messages.push(answer.message());
    next.messages.push(Message { role: Role::User, parts: answer.tool_calls().map(result).collect() });
    let calls =
        |model: &str| body(&Request { model: model.to_owned(), ..next.clone() })["messages"][1]["tool_calls"].clone();
    let function = |name: &str| json!({"name": name, "arguments": "{}"});
    let second = json!({"id": "b", "type": "function", "function": function("g")});
    let first = json!({
        "id": "a",
        "type": "function",
        "function": function("f"),
        "extra_content": {"google": {"thought_signature": "SIGNED"}},
    });
    assert_eq!(calls("gemini-3-pro-preview"), json!([first, second]));
    assert_eq!(calls("google/gemini-3-flash"), json!([first, second]));
    let unsigned = json!({"id": "a", "type": "function", "function": function("f")});
    assert_eq!(calls("gpt-4o"), json!([unsigned, second]));
}

#[test]
fn what_a_user_says_behind_results_is_part_of_the_last_one_for_mistral() {
    let call = |id: &str| atlas_model::ToolCall {
        id: id.to_owned(),
        name: "f".to_owned(),
        arguments: json!({}),
        opaque: json!(null),
    };
    let result =
        |id: &str| ToolResult { call: id.to_owned(), name: "f".to_owned(), content: "1".to_owned(), error: false };
    let user = |parts| Message { role: Role::User, parts };
    let text = |text: &str| Part::Text { text: text.to_owned() };
    let calls = Message { role: Role::Assistant, parts: vec![Part::ToolCall(call("a")), Part::ToolCall(call("b"))] };
    let results = || vec![Part::ToolResult(result("a")), Part::ToolResult(result("b"))];
    let alone = vec![calls.clone(), user(results()), user(vec![text("Go on.")])];
    let together = vec![calls, user(results().into_iter().chain([text("Go on.")]).collect())];
    for messages in [alone, together] {
        let roles = |model: &str| {
            let mut request = Request { model: model.to_owned(), ..asking(false) };
            request.messages.extend(messages.clone());
            let messages = body(&request)["messages"].as_array().expect("messages").clone();
            messages.iter().skip(2).map(|one| (one["role"].clone(), one["content"].clone())).collect::<Vec<_>>()
        };
        let of = |role: &str, content: &str| (json!(role), json!(content));
        assert_eq!(roles("mistral-large-latest"), [of("tool", "1"), of("tool", "1\n\nGo on.")]);
        let others = roles("gpt-4o");
        assert_eq!((others.len(), &others[2].0), (3, &json!("user")), "{others:?}");
    }
}
