//! Decoders around the own part of a protocol: answers that arrive whole, and streams of events or lines.

use atlas_model::{Answer, CallError};
use http::HeaderMap;
use serde_json::Value;

use crate::bedrock::frames;
use crate::bounds::{ANSWER_BYTES_MAX, ERROR_BODY_BYTES_MAX};
use crate::{Decoder, Event, array, failure, json, lines, sse};

/// Reads a whole answer from its document.
pub type Read = Box<dyn FnOnce(Value) -> Result<Answer, CallError> + Send>;

/// A decoder for an answer that is one JSON document.
pub fn whole(read: impl FnOnce(Value) -> Result<Answer, CallError> + Send + 'static) -> Box<dyn Decoder> {
    Box::new(Whole { body: Vec::new(), read: Some(Box::new(read)) })
}

/// The own part of a protocol that streams: what one frame means.
pub trait Machine: Send {
    /// One event or line. `name` is the field `event` of an event and empty otherwise. Events go to `out`.
    fn frame(&mut self, name: &str, data: &str, out: &mut Vec<Event>) -> Result<(), CallError>;

    /// The stream ended without an answer yet.
    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError>;
}

/// A decoder for server-sent events. An answer of another content type is an error with the beginning of its body.
pub fn events(headers: &HeaderMap, machine: impl Machine + 'static) -> Box<dyn Decoder> {
    match other_type(headers, &["text/event-stream"]) {
        Some(content_type) => Box::new(Foreign { content_type, body: Vec::new() }),
        None => Box::new(Framed { framing: Framing::Events(sse::Parser::default()), machine, done: false }),
    }
}

/// A decoder for JSON lines.
pub fn json_lines(headers: &HeaderMap, machine: impl Machine + 'static) -> Box<dyn Decoder> {
    let types = ["application/x-ndjson", "application/jsonl", "application/json", "application/x-json-stream"];
    match other_type(headers, &types) {
        Some(content_type) => Box::new(Foreign { content_type, body: Vec::new() }),
        None => Box::new(Framed { framing: Framing::Lines(lines::Parser::default()), machine, done: false }),
    }
}

/// A decoder for server-sent events or, if that is the content type, an array of objects.
pub fn events_or_array(headers: &HeaderMap, machine: impl Machine + 'static) -> Box<dyn Decoder> {
    if other_type(headers, &["application/json"]).is_some() || !headers.contains_key(http::header::CONTENT_TYPE) {
        return events(headers, machine);
    }
    Box::new(Framed { framing: Framing::Array(array::Parser::default()), machine, done: false })
}

/// A decoder for event streams of Amazon. The name of a frame is that of its event.
pub fn amazon_events(headers: &HeaderMap, machine: impl Machine + 'static) -> Box<dyn Decoder> {
    match other_type(headers, &["application/vnd.amazon.eventstream"]) {
        Some(content_type) => Box::new(Foreign { content_type, body: Vec::new() }),
        None => Box::new(Framed { framing: Framing::Amazon(frames::Frames::default()), machine, done: false }),
    }
}

/// The content type, if there is one and it is none of `expected`.
fn other_type(headers: &HeaderMap, expected: &[&str]) -> Option<String> {
    let value = headers.get(http::header::CONTENT_TYPE)?.to_str().unwrap_or("unreadable");
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (!expected.contains(&essence.as_str())).then_some(essence)
}

struct Whole {
    body: Vec<u8>,
    read: Option<Read>,
}

impl Decoder for Whole {
    fn push(&mut self, bytes: &[u8], _out: &mut Vec<Event>) -> Result<(), CallError> {
        if self.body.len().saturating_add(bytes.len()) > ANSWER_BYTES_MAX {
            return Err(failure::answer(format!("the answer is larger than {ANSWER_BYTES_MAX} bytes")));
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError> {
        let body = std::mem::take(&mut self.body);
        let Some(read) = self.read.take() else { return Ok(()) };
        let value = json::parse(&body).map_err(|error| unreadable(&error, &body))?;
        if failure::is_report(&value) {
            return Err(failure::of_value(&value));
        }
        out.push(Event::Answer(Box::new(read(value)?)));
        Ok(())
    }
}

fn unreadable(error: &json::JsonError, body: &[u8]) -> CallError {
    failure::answer(format!("the answer is {error}: {}", head(body)))
}

/// The beginning of a body, for messages.
fn head(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(512)]).into_owned()
}

enum Framing {
    Events(sse::Parser),
    Lines(lines::Parser),
    Array(array::Parser),
    Amazon(frames::Frames),
}

impl Framing {
    fn push(&mut self, bytes: &[u8], frames: &mut Vec<sse::Event>) -> Result<(), CallError> {
        match self {
            Self::Events(parser) => parser.push(bytes, frames).map_err(CallError::from),
            Self::Lines(parser) => {
                let mut lines = Vec::new();
                let result = parser.push(bytes, &mut lines);
                frames.extend(lines.iter().map(|line| line_frame(line)));
                result.map_err(CallError::from)
            }
            Self::Array(parser) => {
                let mut objects = Vec::new();
                let result = parser.push(bytes, &mut objects);
                frames.extend(objects.iter().map(|object| line_frame(object)));
                result
            }
            Self::Amazon(parser) => {
                let mut read = Vec::new();
                let result = parser.push(bytes, &mut read);
                for frame in &read {
                    let (name, payload) = frame.event()?;
                    let data = String::from_utf8_lossy(payload).into_owned();
                    frames.push(sse::Event { name: name.to_owned(), data });
                }
                result.map_err(CallError::from)
            }
        }
    }

    fn end(&mut self) -> Option<sse::Event> {
        match self {
            Self::Events(parser) => parser.end(),
            Self::Lines(parser) => parser.end().map(|line| line_frame(&line)),
            Self::Array(_) | Self::Amazon(_) => None,
        }
    }
}

fn line_frame(line: &[u8]) -> sse::Event {
    sse::Event { name: String::new(), data: String::from_utf8_lossy(line).into_owned() }
}

struct Framed<M> {
    framing: Framing,
    machine: M,
    /// The answer is out. What follows is not read.
    done: bool,
}

impl<M: Machine> Framed<M> {
    fn frames(&mut self, frames: Vec<sse::Event>, out: &mut Vec<Event>) -> Result<(), CallError> {
        for frame in frames {
            if self.done {
                break;
            }
            self.machine.frame(&frame.name, &frame.data, out)?;
            self.done = matches!(out.last(), Some(Event::Answer(_)));
        }
        Ok(())
    }
}

impl<M: Machine> Decoder for Framed<M> {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), CallError> {
        if self.done {
            return Ok(());
        }
        let mut frames = Vec::new();
        let result = self.framing.push(bytes, &mut frames);
        self.frames(frames, out)?;
        if self.done { Ok(()) } else { result }
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError> {
        if self.done {
            return Ok(());
        }
        let last = self.framing.end();
        self.frames(last.into_iter().collect(), out)?;
        if !self.done {
            self.machine.end(out)?;
            self.done = matches!(out.last(), Some(Event::Answer(_)));
        }
        if self.done { Ok(()) } else { Err(failure::cut_off()) }
    }
}

/// An answer of an unexpected content type.
struct Foreign {
    content_type: String,
    body: Vec<u8>,
}

impl Decoder for Foreign {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), CallError> {
        let room = ERROR_BODY_BYTES_MAX.saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.body.len() >= ERROR_BODY_BYTES_MAX { self.end(out) } else { Ok(()) }
    }

    fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), CallError> {
        match json::parse(&self.body) {
            Ok(value) if failure::is_report(&value) => Err(failure::of_value(&value)),
            _ => Err(failure::answer(format!(
                "the answer is {} and not a stream: {}",
                self.content_type,
                head(&self.body)
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use atlas_model::{Stop, Usage};
    use expect_test::{Expect, expect};

    use super::*;

    fn answer() -> Answer {
        let raw = serde_json::Map::new();
        Answer { parts: Vec::new(), stop: Stop::End, usage: Usage::default(), model: "m".to_owned(), id: None, raw }
    }

    struct Echo;

    impl Machine for Echo {
        fn frame(&mut self, name: &str, data: &str, out: &mut Vec<Event>) -> Result<(), CallError> {
            out.push(match data {
                "done" => Event::Answer(Box::new(answer())),
                _ => Event::Delta(atlas_model::Delta::Text(format!("{name}:{data}"))),
            });
            Ok(())
        }

        fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), CallError> {
            Ok(())
        }
    }

    fn typed(content_type: &str) -> HeaderMap {
        [(http::header::CONTENT_TYPE, content_type.parse().expect("a header"))].into_iter().collect()
    }

    fn check(mut decoder: Box<dyn Decoder>, body: &str, expected: &Expect) {
        let mut out = Vec::new();
        let results = [decoder.push(body.as_bytes(), &mut out), decoder.end(&mut out)];
        let mut log: Vec<String> = out
            .into_iter()
            .map(|event| match event {
                Event::Delta(delta) => format!("{delta:?}"),
                Event::Answer(_) => "Answer".to_owned(),
            })
            .collect();
        log.extend(
            results
                .into_iter()
                .filter_map(Result::err)
                .map(|error| format!("{}: {}", error.kind.name(), error.message)),
        );
        expected.assert_eq(&log.join("\n"));
    }

    #[test]
    fn whole_answers() {
        let decoder = || whole(|_| Ok(answer()));
        check(decoder(), "{}", &expect!["Answer"]);
        check(
            decoder(),
            "<html>",
            &expect!["answer: the answer is not JSON: expected value at line 1 column 1: <html>"],
        );
        check(decoder(), r#"{"error": {"code": 429, "message": "busy"}}"#, &expect!["rate_limited: busy"]);
        let huge = " ".repeat(ANSWER_BYTES_MAX + 1);
        check(
            decoder(),
            &huge,
            &expect![[r#"
                answer: the answer is larger than 8388608 bytes
                answer: the answer is not JSON: EOF while parsing a value at line 1 column 0:"#]],
        );
    }

    #[test]
    fn streams_end_with_the_answer() {
        let decoder = || events(&typed("text/event-stream; charset=utf-8"), Echo);
        check(
            decoder(),
            "event: x\ndata: 1\n\ndata: done\n\ndata: 2\n\n",
            &expect![[r#"
                Text("x:1")
                Answer"#]],
        );
        check(
            decoder(),
            "data: 1\n\ndata: done",
            &expect![[r#"
                Text(":1")
                Answer"#]],
        );
        check(
            decoder(),
            "data: 1\n\n",
            &expect![[r#"
                Text(":1")
                connection: the connection ended before the answer was complete"#]],
        );
        check(json_lines(&HeaderMap::new(), Echo), "done\n", &expect!["Answer"]);
    }

    #[test]
    fn other_content_types_are_errors() {
        let decoder = |content_type| events(&typed(content_type), Echo);
        check(decoder("text/html"), "<b>", &expect!["answer: the answer is text/html and not a stream: <b>"]);
        check(
            decoder("application/json"),
            r#"{"error": {"code": "billing", "message": "pay"}}"#,
            &expect!["quota: pay"],
        );
    }
}
