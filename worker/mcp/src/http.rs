//! Streamable HTTP. Redirects are followed only on the same origin: a server must not send a credential to another one.

use std::sync::Arc;

use reqwest::redirect::{Attempt, Policy};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::bounds::{ERROR_BYTES_MAX, MESSAGE_BYTES_MAX};
use crate::error::{McpError, McpErrorKind, chain};
use crate::target::{Target, is_local};

/// Most redirects of one request.
const REDIRECTS_MAX: usize = 3;

/// A redirect that is not followed.
#[derive(Debug, thiserror::Error)]
#[error("it redirects to {0}, which is not followed; give the server's own address")]
struct Elsewhere(String);

/// The client for a server. It has no pool beyond its own connection.
pub(crate) fn client(target: &Target) -> Result<reqwest::Client, McpError> {
    let refused = |why: String| {
        McpError::new(McpErrorKind::Configuration, format!("the MCP server {} cannot be used: {why}", target.name))
    };
    if target.spec.url.as_deref().is_some_and(|url| url.starts_with("https://")) {
        let why = "addresses with https:// are not supported yet; use http:// in a private network (plain_http), or a program as a bridge";
        return Err(refused(why.to_owned()));
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("atlas/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::custom(follow))
        .connect_timeout(std::time::Duration::from_secs(10));
    if target.spec.url.as_deref().is_some_and(is_local) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| refused(chain(&error)))
}

fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let from = attempt.previous().first().map(|url| url.origin());
    let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
    if keeps_method && attempt.previous().len() <= REDIRECTS_MAX && from == Some(attempt.url().origin()) {
        return attempt.follow();
    }
    let host = attempt.url().host_str().unwrap_or("nowhere").to_owned();
    attempt.error(Elsewhere(host))
}

/// The transport for a server.
pub(crate) fn transport(target: &Target) -> Result<StreamableHttpClientTransport<reqwest::Client>, McpError> {
    let uri: Arc<str> = target.spec.url.as_deref().unwrap_or_default().into();
    let config = StreamableHttpClientTransportConfig::with_uri(uri)
        .custom_headers(target.headers.iter().cloned().collect())
        .max_sse_event_size(MESSAGE_BYTES_MAX)
        .max_json_response_size(MESSAGE_BYTES_MAX)
        .max_error_response_size(ERROR_BYTES_MAX)
        .reinit_on_expired_session(true);
    Ok(StreamableHttpClientTransport::with_client(client(target)?, config))
}
