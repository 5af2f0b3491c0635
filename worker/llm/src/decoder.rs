//! Decoders around the own part of a protocol: answers that arrive whole, and streams of events or lines.

use atlas_http::sse::{self, ServerEvent};
use atlas_model::{Answer, CallError};
use http::HeaderMap;
use serde_json::Value;

use crate::bedrock::frames;
use crate::bounds::{ANSWER_BYTES_MAX, ERROR_BODY_BYTES_MAX, EVENT_BYTES_MAX};
use crate::{Decoder, Event, array, failure, json};

/// A decoder for an answer that is one JSON document.
pub fn whole(machine: impl Machine + 'static) -> Box<dyn Decoder> {
    Box::new(Framed { framing: Framing::Document(Document::default()), machine, done: false })
}

/// The own part of a protocol that streams: what one frame means.
pub trait Machine: Send {
    /// One event or line. `name` is the field `event` of an event and empty otherwise. Events go to `out`.
    fn frame(&mut self, name: &str, data: &Value, out: &mut Vec<Event>) -> Result<(), CallError>;

    /// The stream ended without an answer yet.
    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), CallError>;

    /// The whole answer in one document: asked for, or sent by a server that does not stream.
    fn document(&mut self, document: &Value) -> Result<Answer, CallError>;
}

/// A decoder for server-sent events.
pub fn events(headers: &HeaderMap, machine: impl Machine + 'static) -> Box<dyn Decoder> {
    streamed(headers, false, machine)
}

/// A decoder for objects one behind the other: JSON lines or an array. Server-sent events are read too.
pub fn objects(headers: &HeaderMap, machine: impl Machine + 'static) -> Box<dyn Decoder> {
    streamed(headers, true, machine)
}

/// A decoder for event streams of Amazon. The name of a frame is that of its event.
pub fn amazon_events(headers: &HeaderMap, machine: impl Machine + 'static) -> Box<dyn Decoder> {
    match content_type(headers) {
        Some(other) if other != "application/vnd.amazon.eventstream" => streamed(headers, false, machine),
        _ => Box::new(Framed { framing: Framing::Amazon(frames::Frames::default()), machine, done: false }),
    }
}

/// A decoder that goes by what the answer begins with: not every server names the type of its answers as it should.
fn streamed(headers: &HeaderMap, has_objects: bool, machine: impl Machine + 'static) -> Box<dyn Decoder> {
    let framing = Framing::Unknown(Beginning::new(content_type(headers), has_objects));
    Box::new(Framed { framing, machine, done: false })
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(http::header::CONTENT_TYPE)?.to_str().unwrap_or("unreadable");
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// One JSON document as it arrives.
#[derive(Default)]
struct Document(Vec<u8>);

impl Document {
    fn push(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        if self.0.len().saturating_add(bytes.len()) > ANSWER_BYTES_MAX {
            return Err(failure::answer(format!("the answer is larger than {ANSWER_BYTES_MAX} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    /// The document, unless it reports an error.
    fn end(&mut self) -> Result<Value, CallError> {
        let body = std::mem::take(&mut self.0);
        let value =
            json::parse(&body).map_err(|error| failure::answer(format!("the answer is {error}: {}", head(&body))))?;
        if failure::is_report(&value) { Err(failure::of_value(&value)) } else { Ok(value) }
    }
}

/// The beginning of a body, for messages.
fn head(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(512)]).into_owned()
}

enum Framing {
    /// Nothing has arrived that would tell.
    Unknown(Beginning),
    Events(sse::Parser),
    Objects(array::Parser),
    Amazon(frames::Frames),
    /// One document, asked for or in place of a stream.
    Document(Document),
    /// Neither a stream nor a document: its beginning is shown.
    Text {
        content_type: Option<String>,
        body: Vec<u8>,
    },
}

impl Framing {
    fn push(&mut self, bytes: &[u8], frames: &mut Vec<ServerEvent>) -> Result<(), CallError> {
        match self {
            Self::Unknown(beginning) => {
                let Some(known) = beginning.push(bytes) else { return Ok(()) };
                let begun = std::mem::take(&mut beginning.bytes);
                *self = known;
                self.push(begun.strip_prefix(json::MARK).unwrap_or(&begun), frames)
            }
            Self::Events(parser) => parser.push(bytes, frames).map_err(failure::too_large),
            Self::Objects(parser) => {
                let mut objects = Vec::new();
                let result = parser.push(bytes, &mut objects);
                frames.extend(objects.iter().map(|object| line_frame(object)));
                result.map_err(failure::too_large)
            }
            Self::Amazon(parser) => {
                let mut read = Vec::new();
                let result = parser.push(bytes, &mut read);
                for frame in &read {
                    let (name, payload) = frame.event()?;
                    let data = String::from_utf8_lossy(payload).into_owned();
                    frames.push(ServerEvent { name: name.to_owned(), data, ..ServerEvent::default() });
                }
                result.map_err(CallError::from)
            }
            Self::Document(document) => document.push(bytes),
            Self::Text { body, .. } => {
                let room = ERROR_BODY_BYTES_MAX.saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if body.len() >= ERROR_BODY_BYTES_MAX { Err(self.foreign()) } else { Ok(()) }
            }
        }
    }

    /// The last event, which the end of the stream cut off.
    fn end(&mut self) -> Option<ServerEvent> {
        match self {
            Self::Events(parser) => parser.end(),
            Self::Objects(parser) => parser.end().map(|line| line_frame(&line)),
            Self::Unknown(_) | Self::Amazon(_) | Self::Document(_) | Self::Text { .. } => None,
        }
    }

    /// Why there was no answer until the end.
    fn foreign(&self) -> CallError {
        match self {
            Self::Text { content_type, body } => not_a_stream(content_type.as_deref(), body),
            // What the beginning holds is too short to be anything.
            Self::Unknown(beginning) if !beginning.bytes.trim_ascii().is_empty() => {
                not_a_stream(beginning.content_type.as_deref(), &beginning.bytes)
            }
            Self::Events(parser) if !parser.stray().is_empty() => failure::of_stray(parser.stray()),
            _ => failure::cut_off(),
        }
    }
}

fn not_a_stream(content_type: Option<&str>, body: &[u8]) -> CallError {
    let content_type = content_type.unwrap_or("a text");
    failure::answer(format!("the answer is {content_type} and not a stream: {}", head(body)))
}

fn line_frame(line: &[u8]) -> ServerEvent {
    ServerEvent { data: String::from_utf8_lossy(line).into_owned(), ..ServerEvent::default() }
}

/// The first bytes of an answer, until they tell what it is.
struct Beginning {
    content_type: Option<String>,
    /// The protocol sends objects one behind the other.
    has_objects: bool,
    bytes: Vec<u8>,
}

/// The beginnings of lines of server-sent events.
const FIELDS: [&[u8]; 5] = [b"data", b"event", b"id", b"retry", b":"];

impl Beginning {
    fn new(content_type: Option<String>, has_objects: bool) -> Self {
        Self { content_type, has_objects, bytes: Vec::new() }
    }

    /// What the answer is, as soon as that is known. White space and a byte order mark say nothing.
    fn push(&mut self, bytes: &[u8]) -> Option<Framing> {
        self.bytes.extend_from_slice(bytes);
        let is_long = self.bytes.len() >= ERROR_BODY_BYTES_MAX;
        let text = self.bytes.strip_prefix(json::MARK).unwrap_or(&self.bytes).trim_ascii_start();
        let text_framing = || Framing::Text { content_type: self.content_type.clone(), body: Vec::new() };
        match text.first() {
            None if is_long => Some(text_framing()),
            None => None,
            Some(_) if json::MARK.starts_with(text) => None,
            Some(b'{' | b'[') if self.has_objects => Some(Framing::Objects(array::Parser::default())),
            Some(b'{' | b'[') => Some(Framing::Document(Document::default())),
            Some(_) if self.content_type.as_deref() == Some("text/event-stream") => {
                Some(Framing::Events(sse::Parser::new(EVENT_BYTES_MAX)))
            }
            Some(_) if FIELDS.iter().any(|field| text.starts_with(field)) => {
                Some(Framing::Events(sse::Parser::new(EVENT_BYTES_MAX)))
            }
            Some(_) if FIELDS.iter().any(|field| field.starts_with(text)) => None,
            Some(_) => Some(text_framing()),
        }
    }
}

/// Names of events that only keep the connection open.
const PINGS: [&str; 5] = ["ping", "keepalive", "keep-alive", "keep_alive", "heartbeat"];

struct Framed<M> {
    framing: Framing,
    machine: M,
    /// The answer is out. What follows is not read.
    done: bool,
}

impl<M: Machine> Framed<M> {
    fn frames(&mut self, frames: Vec<ServerEvent>, out: &mut Vec<Event>) -> Result<(), CallError> {
        for frame in frames {
            if self.done {
                break;
            }
            self.frame(&frame, out)?;
            self.done = matches!(out.last(), Some(Event::Answer(_)));
        }
        Ok(())
    }

    fn frame(&mut self, frame: &ServerEvent, out: &mut Vec<Event>) -> Result<(), CallError> {
        let data = frame.data.trim();
        // Events without data and pings keep the connection open, whatever they hold.
        if data.is_empty() || PINGS.contains(&frame.name.as_str()) {
            return Ok(());
        }
        if data == "[DONE]" {
            // Without an answer it may be incomplete: a server that broke off between two events.
            self.machine.end(out)?;
            return if matches!(out.last(), Some(Event::Answer(_))) { Ok(()) } else { Err(failure::cut_off()) };
        }
        let value = match json::parse(data.as_bytes()) {
            Ok(Value::Null) => return Ok(()),
            Ok(Value::String(text)) => return Err(failure::of_text(&text)),
            Ok(value) => value,
            // A document that is cut or broken, or words in place of one.
            Err(error) if data.starts_with(['{', '[']) => {
                return Err(failure::answer(format!("a piece of the stream is {error}: {}", head(data.as_bytes()))));
            }
            Err(_) => return Err(failure::of_text(data)),
        };
        if frame.name == "error" || failure::is_report(&value) {
            return Err(failure::of_value(&value));
        }
        self.machine.frame(&frame.name, &value, out)
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
        if let Framing::Document(document) = &mut self.framing {
            let document = document.end()?;
            out.push(Event::Answer(Box::new(self.machine.document(&document)?)));
            self.done = true;
            return Ok(());
        }
        let last = self.framing.end();
        self.frames(last.into_iter().collect(), out)?;
        if !self.done {
            self.machine.end(out)?;
            self.done = matches!(out.last(), Some(Event::Answer(_)));
        }
        if self.done { Ok(()) } else { Err(self.framing.foreign()) }
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
        fn frame(&mut self, name: &str, data: &Value, out: &mut Vec<Event>) -> Result<(), CallError> {
            out.push(match data.get("done") {
                Some(_) => Event::Answer(Box::new(answer())),
                _ => Event::Delta(atlas_model::Delta::Text(format!("{name}:{data}"))),
            });
            Ok(())
        }

        fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), CallError> {
            Ok(())
        }

        fn document(&mut self, _document: &Value) -> Result<Answer, CallError> {
            Ok(answer())
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
        let decoder = || whole(Echo);
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
            "event: x\ndata: 1\n\ndata: {\"done\": 1}\n\ndata: 2\n\n",
            &expect![[r#"
                Text("x:1")
                Answer"#]],
        );
        check(
            decoder(),
            "data: 1\n\ndata: {\"done\": 1}",
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
        check(objects(&HeaderMap::new(), Echo), "{\"done\": 1}\n", &expect!["Answer"]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_an_answer() {
        let decoders: [fn() -> Box<dyn Decoder>; 4] = [
            || whole(Echo),
            || events(&HeaderMap::new(), Echo),
            || objects(&HeaderMap::new(), Echo),
            || objects(&typed("application/json"), Echo),
        ];
        for decoder in decoders {
            let text = "\u{feff} {\"done\": 1}";
            check(decoder(), text, &expect!["Answer"]);
            let (mut split, mut out) = (decoder(), Vec::new());
            for byte in text.as_bytes().chunks(1) {
                split.push(byte, &mut out).expect("read");
            }
            split.end(&mut out).expect("read");
            assert!(matches!(out[..], [Event::Answer(_)]), "{out:?}");
        }
        check(events(&typed("text/event-stream"), Echo), "\u{feff}data: {\"done\": 1}\n\n", &expect!["Answer"]);
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
