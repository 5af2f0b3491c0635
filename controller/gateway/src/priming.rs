//! Events without a message. From version 2025-11-25 on a stream begins with one, so that a client can resume a stream that breaks before its
//! first message. Clients of older versions take it for a message and fail, or complain about it.

use std::future::ready;

use futures::TryStreamExt as _;
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use rmcp::model::ProtocolVersion;
use serde::Deserialize;

use crate::GatewayResponse;
use crate::together::is_without_message;

/// What an opening message says of its version.
#[derive(Deserialize)]
struct Hello {
    params: Params,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    protocol_version: String,
}

/// Whether the client of a request knows events without a message.
pub(crate) fn is_known(headers: &HeaderMap, body: &[u8]) -> bool {
    let known = |version: &str| version >= ProtocolVersion::V_2025_11_25.as_str();
    match headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok()) {
        Some(version) => known(version),
        // Only the first message of a client names its version elsewhere. A client that names none is older than the header.
        None => serde_json::from_slice::<Hello>(body).is_ok_and(|hello| known(&hello.params.protocol_version)),
    }
}

/// An answer without such events.
pub(crate) fn without(response: GatewayResponse) -> GatewayResponse {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    response.map(|body| {
        let frames = BodyStream::new(body).try_filter(|frame| ready(!is_without_message(frame)));
        StreamBody::new(frames).boxed_unsync()
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_version_is_in_the_header_or_in_the_first_message() {
        let check = |header: Option<&'static str>, body: &str, expected: bool| {
            let named = header.map(|version| ("mcp-protocol-version", version));
            let headers = named.into_iter().map(|(name, version)| (name.parse(), HeaderValue::from_static(version)));
            let headers = headers.map(|(name, version)| (name.unwrap_or_else(|_| panic!("a name")), version)).collect();
            assert_eq!(is_known(&headers, body.as_bytes()), expected, "{header:?} {body}");
        };
        check(Some("2025-11-25"), "", true);
        check(Some("2026-07-28"), "", true);
        check(Some("2025-06-18"), "", false);
        check(None, "", false);
        check(None, r#"{"params": {"protocolVersion": "2025-11-25"}}"#, true);
        check(None, r#"{"params": {"protocolVersion": "2024-11-05"}}"#, false);
        check(None, r#"{"params": {"protocolVersion": 7}}"#, false);
    }
}
