//! Answers for tests, and the pieces in which they arrive.

use atlas_model::{Answer, Delta, Part, Stop, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::AnswerMeta;

/// What all answers of the tests say about themselves.
pub(crate) fn meta(id: &str) -> AnswerMeta {
    AnswerMeta { id: id.to_owned(), created: 1_700_000_000, completed: None, model: "fast".to_owned() }
}

pub(crate) fn text(text: &str) -> Part {
    Part::Text { text: text.to_owned() }
}

pub(crate) fn reasoning(text: &str, opaque: Value) -> Part {
    Part::Reasoning { text: text.to_owned(), opaque }
}

pub(crate) fn call(id: &str, name: &str, arguments: Value) -> Part {
    Part::ToolCall(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments, opaque: Value::Null })
}

/// An answer with some usage.
pub(crate) fn answer(parts: Vec<Part>, stop: Stop) -> Answer {
    let usage = Usage { input: 9, output: 4, cache_read: 3, cache_write: 0, reasoning: 1 };
    Answer { parts, stop, usage, model: "m-1".to_owned(), id: None, raw: Map::new() }
}

/// Any answer: its calls have ids of their own.
pub(crate) fn answers() -> impl Strategy<Value = Answer> {
    let words = "[a-cé \"\\\\\n]{0,8}";
    let arguments = prop_oneof![
        Just(json!({})),
        (words, any::<i32>())
            .prop_map(|(text, number)| json!({ "a b": text, "list": [number, 1.5, null, { "c": text }] })),
        Just(json!("{\"broken\": [1, 2")),
    ];
    let part = prop_oneof![
        words.prop_map(|words| text(&words)),
        words.prop_map(|words| reasoning(&words, Value::Null)),
        words.prop_map(|words| reasoning(&words, json!({ "signature": words }))),
        arguments.prop_map(|arguments| call("", "look", arguments)),
    ];
    let stop =
        prop_oneof![Just(Stop::End), Just(Stop::Length), Just(Stop::Refused), Just(Stop::Other("odd".to_owned()))];
    (prop::collection::vec(part, 0..7), stop).prop_map(|(mut parts, stop)| {
        for (number, part) in parts.iter_mut().enumerate() {
            if let Part::ToolCall(call) = part {
                call.id = format!("call_{number}");
            }
        }
        answer(parts, stop)
    })
}

/// The pieces of an answer, cut at places that the seed decides.
pub(crate) fn cut(answer: &Answer, seed: u64) -> Vec<Delta> {
    let mut state = seed;
    let mut pieces = |text: &str| {
        let letters: Vec<char> = text.chars().collect();
        let mut pieces = Vec::new();
        let mut rest = letters.as_slice();
        while !rest.is_empty() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let length = ((state >> 60) as usize % 6).min(rest.len());
            pieces.push(rest[..length].iter().collect::<String>());
            rest = &rest[length..];
        }
        pieces
    };
    let mut deltas = Vec::new();
    let mut index = 0;
    for part in &answer.parts {
        match part {
            Part::Text { text } => deltas.extend(pieces(text).into_iter().map(Delta::Text)),
            Part::Reasoning { text, .. } => deltas.extend(pieces(text).into_iter().map(Delta::Reasoning)),
            Part::ToolCall(call) => {
                deltas.push(Delta::Call { index, id: call.id.clone(), name: call.name.clone() });
                // Models write white space that the parsed arguments lack.
                let written = match &call.arguments {
                    Value::String(text) => text.clone(),
                    value if seed.is_multiple_of(2) => serde_json::to_string_pretty(value).expect("JSON"),
                    value => value.to_string(),
                };
                deltas.extend(pieces(&written).into_iter().map(|text| Delta::Arguments { index, text }));
                index += 1;
            }
            Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
    deltas
}

/// Values, one a line.
pub(crate) fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}
