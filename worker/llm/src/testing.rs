//! What the tests of all protocols share: readable forms of requests and answers, and rules that hold for every decoder.

pub(crate) mod compact;
mod foreign;
mod history;
mod polluted;

use atlas_model::{Answer, CallError, Delta, Message, Part, Request, Role, Tool, ToolCall, ToolResult};
use expect_test::Expect;
use http::HeaderMap;
use serde_json::{Value, json};

use crate::bounds::{ANSWER_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::{Decoder, Endpoint, Event, Protocol, UnixSeconds};

/// The time at which tests sign: 2026-11-23 18:00:00 UTC.
pub(crate) const NOW: UnixSeconds = 1_795_456_800;

/// A request of one message.
pub(crate) fn ask(text: &str) -> Request {
    Request { model: "m-1".into(), messages: vec![Message::user(text)].into(), ..Request::default() }
}

/// A tool with one parameter.
pub(crate) fn weather() -> Tool {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Tool { name: "weather".into(), description: "The weather of a city.".into(), input_schema: schema }
}

/// A tool without parameters.
pub(crate) fn clock() -> Tool {
    Tool { name: "clock".into(), description: String::new(), input_schema: json!({}) }
}

/// A conversation in which the model called two tools, the second of which failed.
pub(crate) fn after_tools(reasoning: Part, first: Value, second: Value) -> Request {
    let call = |id: &str, name: &str, arguments: Value, opaque: Value| {
        Part::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments, opaque })
    };
    let result = |call: &str, name: &str, content: &str, error| {
        Part::ToolResult(ToolResult { call: call.into(), name: name.into(), content: content.into(), error })
    };
    let parts = vec![
        reasoning,
        Part::Text { text: "Let me look.".into() },
        call("a", "weather", json!({"city": "Bern"}), first),
        call("b", "clock", json!({}), second),
    ];
    let results = vec![
        Part::Text { text: "Go on.".into() },
        result("a", "weather", "{\"sky\": \"blue\"}", false),
        result("b", "clock", "no clock", true),
    ];
    let mut request = ask("What is it like in Bern?");
    request.messages.push(Message { role: Role::Assistant, parts });
    request.messages.push(Message { role: Role::User, parts: results });
    request.tools = vec![weather(), clock()];
    request
}

/// Compares a request as it is sent: method, address, headers without the values of secrets, body.
pub(crate) fn check_request(protocol: &dyn Protocol, base_url: &str, request: &Request, expected: &Expect) {
    let endpoint = Endpoint { base_url: base_url.into(), headers: Vec::new() };
    let encoded = protocol.encode(&endpoint, request).map(|mut parts| {
        protocol.sign(&mut parts, NOW).expect("signed");
        parts
    });
    expected.assert_eq(&match encoded {
        Err(error) => format!("{error}\n"),
        Ok(parts) => {
            let mut headers: Vec<String> =
                parts.headers.iter().map(|(name, value)| format!("{name}: {value:?}\n")).collect();
            headers.sort();
            let body: Value = serde_json::from_slice(&parts.body).expect("JSON");
            format!("{} {}\n{}{body:#}\n", parts.method, parts.url, headers.concat())
        }
    });
}

/// Headers with a content type.
pub(crate) fn typed(content_type: &str) -> HeaderMap {
    [(http::header::CONTENT_TYPE, content_type.parse().expect("a header"))].into_iter().collect()
}

/// Compares the events of an answer.
pub(crate) fn check_answer(decoder: Box<dyn Decoder>, bytes: &[u8], expected: &Expect) {
    let (events, error) = decode(decoder, bytes, &[]);
    let mut text: String = events.iter().map(render).collect();
    if let Some(error) = error {
        text += &format!("{}: {}\n", error.kind.name(), error.message);
    }
    expected.assert_eq(&text);
}

fn render(event: &Event) -> String {
    match event {
        Event::Delta(Delta::Text(text)) => format!("text {text:?}\n"),
        Event::Delta(Delta::Reasoning(text)) => format!("reasoning {text:?}\n"),
        Event::Delta(Delta::Call { index, id, name }) => format!("call {index} {id} {name}\n"),
        Event::Delta(Delta::Arguments { index, text }) => format!("arguments {index} {text}\n"),
        Event::Answer(answer) => answer_text(answer),
    }
}

fn answer_text(answer: &Answer) -> String {
    let mut text = format!("answer {:?} of {}: {:?}\n", answer.id, answer.model, answer.stop);
    for part in &answer.parts {
        text += &format!("  {}\n", serde_json::to_value(part).expect("JSON"));
    }
    text += &format!("  {}\n", serde_json::to_value(answer.usage).expect("JSON"));
    if !answer.raw.is_empty() {
        text += &format!("  raw {}\n", Value::Object(answer.raw.clone()));
    }
    text
}

/// The events of an answer whose bytes arrive in the pieces that `cuts` makes, and the error that ended it.
pub(crate) fn decode(
    mut decoder: Box<dyn Decoder>,
    bytes: &[u8],
    cuts: &[proptest::sample::Index],
) -> (Vec<Event>, Option<CallError>) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let mut events = Vec::new();
    for piece in cuts.windows(2) {
        if let Err(error) = decoder.push(&bytes[piece[0]..piece[1]], &mut events) {
            return (events, Some(error));
        }
    }
    let error = decoder.end(&mut events).err();
    (events, error)
}

/// Checks what holds for every answer: it ends with one answer or an error, and stays within the bounds.
pub(crate) fn check_any(decoder: Box<dyn Decoder>, bytes: &[u8]) {
    let (events, error) = decode(decoder, bytes, &[]);
    let answers = events.iter().filter(|event| matches!(event, Event::Answer(_))).count();
    assert_eq!(answers, usize::from(error.is_none()), "an answer or an error");
    assert!(answers == 0 || matches!(events.last(), Some(Event::Answer(_))), "nothing follows the answer");
    assert!(error.is_none_or(|error| error.message.len() <= MESSAGE_BYTES_MAX));
}

/// Feeds a piece again and again, and checks that it is refused before it fills the memory.
pub(crate) fn check_endless(mut decoder: Box<dyn Decoder>, begin: &[u8], piece: &[u8], expected: &Expect) {
    let mut push = |bytes: &[u8]| decoder.push(bytes, &mut Vec::new());
    push(begin).expect("a beginning");
    let times = 4 * ANSWER_BYTES_MAX / piece.len().min(64);
    let error = (0..times).find_map(|_| push(piece).err()).expect("refused");
    expected.assert_eq(&format!("{}: {}", error.kind.name(), error.message));
}
