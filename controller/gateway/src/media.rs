//! What a client reads: a stream of events, or one document. `rmcp` asks every client to accept both, but many programs say nothing or
//! name one of the two.

use bytes::BytesMut;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::GatewayResponse;

pub(crate) const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Events: notifications, requests to the client, and the answer at the end.
    Events,
    /// The answer alone.
    Document,
}

/// A mark of requests whose client gets the answer alone, so that nothing can be asked of it during a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerAlone;

/// The form in which a client wants the answer to a message; none if it reads neither. Whoever does not name events gets a document.
pub(crate) fn form(headers: &HeaderMap) -> Option<Form> {
    let ranges = ranges(headers);
    let names_events = ranges.iter().any(|(range, wanted)| *wanted && range == EVENTS);
    match (accepts(&ranges, JSON), accepts(&ranges, EVENTS)) {
        (_, true) if names_events => Some(Form::Events),
        (true, _) => Some(Form::Document),
        (false, true) => Some(Form::Events),
        (false, false) => None,
    }
}

/// Whether a client reads events.
pub(crate) fn reads_events(headers: &HeaderMap) -> bool {
    accepts(&ranges(headers), EVENTS)
}

/// Says to `rmcp` that a client reads both forms.
pub(crate) fn accept_both(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
}

/// The media ranges of the header in small letters, and whether each is wanted: a weight of zero excludes it.
fn ranges(headers: &HeaderMap) -> Vec<(String, bool)> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(',')).map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        (name, weight.and_then(|weight| weight.parse::<f32>().ok()).is_none_or(|weight| weight != 0.0))
    });
    ranges.filter(|(name, _)| !name.is_empty()).collect()
}

/// Whether a media type is wanted: what names it best decides. A client that names nothing takes anything.
fn accepts(ranges: &[(String, bool)], wanted: &str) -> bool {
    let group = wanted.split_once('/').map_or_else(String::new, |(group, _)| format!("{group}/*"));
    let best = [wanted, &group, "*/*"].into_iter().find_map(|name| ranges.iter().find(|(range, _)| range == name));
    ranges.is_empty() || best.is_some_and(|(_, wanted)| *wanted)
}

/// Whether a body is said to be JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let name = value.and_then(|value| value.split(';').next()).map(str::trim);
    name.is_some_and(|name| name.eq_ignore_ascii_case(JSON))
}

/// The message in a stream of events that answers the request, as a document. Other messages are left out; other answers stay as they are.
pub(crate) async fn alone(response: GatewayResponse) -> GatewayResponse {
    let is_stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == EVENTS);
    if !is_stream {
        return response;
    }
    let (mut head, mut body) = response.into_parts();
    let mut read = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        read.extend_from_slice(&data);
        while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            let line = read.split_to(end + 1).freeze();
            let Some(message) = line.strip_prefix(b"data:").filter(|message| is_answer(message)) else { continue };
            let message = line.slice_ref(message.trim_ascii());
            head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
            return http::Response::from_parts(head, Full::new(message).boxed_unsync());
        }
    }
    let text = "the session ended before the answer: open another one and repeat the request";
    super::door::words(StatusCode::SERVICE_UNAVAILABLE, text)
}

/// Whether a message is an answer: requests and notifications have a method.
fn is_answer(message: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message {
        method: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Message>(message).is_ok_and(|message| message.method.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: Option<&'static str>) -> Option<Form> {
        form(&accept.map(|accept| (header::ACCEPT, HeaderValue::from_static(accept))).into_iter().collect())
    }

    #[test]
    fn the_form_fits_what_is_accepted() {
        for document in [
            None,
            Some(""),
            Some("*/*"),
            Some("application/json"),
            Some("Application/*"),
            Some("application/json, text/plain, */*"),
        ] {
            assert_eq!(wanted(document), Some(Form::Document), "{document:?}");
        }
        for events in [
            "text/event-stream",
            "application/json, text/event-stream",
            "text/event-stream;q=0.1, */*",
            "text/*",
            "*/*, application/json;q=0",
        ] {
            assert_eq!(wanted(Some(events)), Some(Form::Events), "{events}");
        }
        assert_eq!(wanted(Some("*/*, text/event-stream; q=0.0")), Some(Form::Document));
        for neither in ["text/html", "application/json;q=0", "*/*;q=0"] {
            assert_eq!(wanted(Some(neither)), None, "{neither}");
        }
    }

    #[tokio::test]
    async fn one_answer_is_taken_out_of_a_stream() {
        let stream = "id: 0\nretry: 3000\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n\
                      data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"a\\nb\"}}\n\n";
        let mut response = http::Response::new(Full::from(stream).boxed_unsync());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS));
        response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("s"));
        let response = alone(response).await;
        assert_eq!(
            (&response.headers()["content-type"], &response.headers()["mcp-session-id"]),
            (&JSON.parse().expect("a value"), &"s".parse().expect("a value"))
        );
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(body, r#"{"jsonrpc":"2.0","id":1,"result":{"text":"a\nb"}}"#);
    }
}
