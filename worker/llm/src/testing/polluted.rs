//! Streams between which servers and proxies put what does not belong there: the answer stays the same, or the error says what
//! they put.

use http::HeaderMap;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

use super::{ask, decode, typed};
use crate::anthropic::Anthropic;
use crate::auth::Auth;
use crate::cohere::Cohere;
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::openai::{Chat, Responses};
use crate::{Decoder, Protocol};
use atlas_model::{CallErrorKind, Request};

/// A recorded stream: its protocol, content type, frames, and the answer as one document.
struct Recording {
    protocol: Box<dyn Protocol>,
    content_type: &'static str,
    frames: Vec<String>,
    document: String,
}

fn split(stream: &str) -> Vec<String> {
    stream.split("\n\n").filter(|frame| !frame.trim().is_empty()).map(|frame| format!("{frame}\n\n")).collect()
}

fn recordings() -> Vec<Recording> {
    let key = || Auth::Key("key".into());
    let events = |protocol, stream: &str, document: &str| Recording {
        protocol,
        content_type: "text/event-stream",
        frames: split(stream),
        document: document.to_owned(),
    };
    let chat = [
        json!({"choices": [{"delta": {"role": "assistant", "content": "Zürich"}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": ""}}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "weather", "arguments": "{\"city\""}}]}}]}),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "a", "function": {"arguments": ":1}"}}]}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let chat: String = chat.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let call = json!({"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": "{}"});
    let response = json!({"id": "r", "status": "completed", "output": [call]});
    let responses = [
        json!({"type": "response.output_item.added", "output_index": 0, "item": call}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}),
        json!({"type": "response.completed", "response": response}),
    ];
    let responses: String = responses.iter().map(|event| format!("data: {event}\n\n")).collect();
    let line = |content: &str, done: bool| json!({"model": "m", "done": done, "done_reason": "stop", "message": {"role": "assistant", "content": content}});
    let whole_chat = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]});
    vec![
        events(Box::<Chat>::default(), &(chat + "data: [DONE]\n\n"), &format!("{whole_chat:#}")),
        events(Box::<Responses>::default(), &responses, &format!("{response:#}")),
        events(
            Box::new(Anthropic { auth: key() }),
            include_str!("../anthropic/tests/stream.txt"),
            include_str!("../anthropic/tests/whole.json"),
        ),
        events(
            Box::new(Gemini { auth: key() }),
            include_str!("../gemini/tests/stream.txt"),
            include_str!("../gemini/tests/whole.json"),
        ),
        events(
            Box::new(Cohere { auth: key() }),
            include_str!("../cohere/tests/stream.txt"),
            include_str!("../cohere/tests/whole.json"),
        ),
        Recording {
            protocol: Box::<Ollama>::default(),
            content_type: "application/x-ndjson",
            frames: [line("Hel", false), line("lo", true)].map(|line| format!("{line}\n")).to_vec(),
            document: format!("{:#}", line("Hello", true)),
        },
    ]
}

impl Recording {
    fn decoder(&self, headers: &HeaderMap) -> Box<dyn Decoder> {
        self.protocol.decoder(&Request { stream: true, ..ask("hi") }, headers)
    }

    /// The stream with something before the frame `at`.
    fn with(&self, at: &Index, extra: &str) -> String {
        let at = at.index(self.frames.len());
        [self.frames[..at].concat(), extra.to_owned(), self.frames[at..].concat()].concat()
    }
}

/// What servers send to keep a connection open.
const PINGS: [&str; 7] = [
    ": ping\n\n",
    "data:\n\n",
    "data: \n\n",
    "event: ping\ndata: pong\n\n",
    "event: keepalive\ndata: {}\n\n",
    "data: null\n\n",
    "id: 7\nretry: 10\n\n",
];

/// What servers send in place of the rest of an answer. All of it says `gone`.
const FAULTS: [&str; 6] = [
    "data: upstream gone\n\n",
    "event: error\ndata: upstream gone\n\n",
    "event: error\ndata: {\"message\": \"gone\"}\n\n",
    "data: {\"error\": {\"gone\": true}}\n\n",
    "data: {\"error\": \"gone\"}\n\n",
    "data: \"gone\"\n\n",
];

proptest! {
    #[test]
    fn pings_and_cuts_change_nothing(
        places in prop::collection::vec((any::<Index>(), 0..PINGS.len()), 0..6),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
        has_type in any::<bool>(),
    ) {
        for recording in recordings() {
            let headers = if has_type { typed(recording.content_type) } else { HeaderMap::new() };
            let plain = decode(recording.decoder(&headers), recording.frames.concat().as_bytes(), &[]);
            prop_assert_eq!(&plain.1, &None);
            let mut frames: Vec<&str> = recording.frames.iter().map(String::as_str).collect();
            for (at, ping) in &places {
                let ping = if recording.content_type == "text/event-stream" { PINGS[*ping] } else { "\n \r\n" };
                frames.insert(at.index(frames.len() + 1), ping);
            }
            let got = decode(recording.decoder(&headers), frames.concat().as_bytes(), &cuts);
            prop_assert_eq!(got, plain);
        }
    }

    #[test]
    fn faults_are_shown_in_the_words_of_the_server(at in any::<Index>(), cuts in prop::collection::vec(any::<Index>(), 0..8)) {
        for recording in recordings() {
            for fault in FAULTS {
                let is_events = recording.content_type == "text/event-stream";
                let fault = if is_events { fault } else { "upstream gone\n" };
                let stream = recording.with(&at, fault);
                // What the content type promises does not matter.
                for headers in [HeaderMap::new(), typed(recording.content_type), typed("application/json")] {
                    let (_, error) = decode(recording.decoder(&headers), stream.as_bytes(), &cuts);
                    let error = error.expect("an error");
                    prop_assert!(error.message.contains("gone"), "{}", error.message);
                }
            }
        }
    }

    #[test]
    fn a_document_is_read_where_a_stream_was_asked_for(cuts in prop::collection::vec(any::<Index>(), 0..8)) {
        for recording in recordings() {
            let plain = recording.protocol.decoder(&ask("hi"), &HeaderMap::new());
            let (whole, error) = decode(plain, recording.document.as_bytes(), &[]);
            prop_assert_eq!(error, None);
            for headers in [typed("application/json"), typed(recording.content_type), typed("text/plain"), HeaderMap::new()] {
                let (events, error) = decode(recording.decoder(&headers), recording.document.as_bytes(), &cuts);
                prop_assert_eq!(error, None);
                prop_assert_eq!(events.last(), whole.last());
            }
        }
    }
}

#[test]
fn words_outside_of_events_are_shown() {
    for recording in recordings().into_iter().filter(|recording| recording.content_type == "text/event-stream") {
        let first = &recording.frames[0];
        for fault in
            ["upstream gone", "\nupstream gone\n", "{\"error\": {\"message\": \"gone\"}}\n", "{\"detail\": \"gone\"}"]
        {
            let stream = format!("{first}{fault}");
            let (_, error) = decode(recording.decoder(&typed("text/event-stream")), stream.as_bytes(), &[]);
            let error = error.expect("an error");
            assert!(error.message.contains("gone"), "{}", error.message);
            assert_eq!(error.kind, CallErrorKind::Provider, "{}", error.message);
        }
    }
}

#[test]
fn errors_that_say_nothing_are_still_errors() {
    for recording in recordings() {
        for (fault, expected) in [
            ("{\"error\": {}}", "the provider reported an error and did not say which: {}"),
            (
                "{\"error\": {\"message\": \"\"}}",
                "the provider reported an error and did not say which: {\"message\":\"\"}",
            ),
            ("{\"error\": true}", "the provider reported an error and did not say which: {\"error\":true}"),
        ] {
            let is_events = recording.content_type == "text/event-stream";
            let fault = if is_events { format!("data: {fault}\n\n") } else { format!("{fault}\n") };
            let (_, error) = decode(recording.decoder(&HeaderMap::new()), fault.as_bytes(), &[]);
            assert_eq!(error.expect("an error").message, expected);
        }
    }
}
