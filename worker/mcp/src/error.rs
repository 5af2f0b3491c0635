//! Why a server could not be used. Texts never contain the value of a secret: they come from addresses, names and the server.

use std::error::Error;
use std::time::Duration;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::bounds::ERROR_BYTES_MAX;
use crate::network::SendError;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpErrorKind {
    /// The definition cannot be used here, for example because a secret is missing.
    Configuration,
    /// There is no connection.
    Unreachable,
    /// The server refuses the credential, or wants one.
    Unauthorized,
    /// The server took too long.
    Timeout,
    /// The connection ended during a call: whether the call had an effect is not known.
    Lost,
    /// The server broke the protocol or a bound.
    Protocol,
    /// The server refused the call.
    Refused,
    /// The server has forgotten the session, so the call had no effect.
    Session,
}

impl McpErrorKind {
    /// Its word, for metrics and for models.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Unreachable => "unreachable",
            Self::Unauthorized => "unauthorized",
            Self::Timeout => "timeout",
            Self::Lost => "lost",
            Self::Protocol => "protocol",
            Self::Refused => "refused",
            Self::Session => "session",
        }
    }

    /// Whether the server did not work, rather than the call.
    pub fn is_down(self) -> bool {
        !matches!(self, Self::Refused)
    }
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct McpError {
    pub kind: McpErrorKind,
    /// A sentence that names the server.
    pub text: String,
}

impl McpError {
    pub(crate) fn new(kind: McpErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: bounded(text.into()) }
    }

    pub(crate) fn timeout(server: &str, what: &str, limit: Duration) -> Self {
        let seconds = limit.as_secs_f64();
        Self::new(McpErrorKind::Timeout, format!("the MCP server {server} did not {what} within {seconds:.0} s"))
    }

    /// The handshake failed.
    pub(crate) fn handshake(server: &str, error: &ClientInitializeError) -> Self {
        if error.auth_challenge().is_some() || error.is_authorization_required() {
            return Self::unauthorized(server);
        }
        let kind = match error {
            ClientInitializeError::TransportError { .. } | ClientInitializeError::ConnectionClosed(_) => {
                McpErrorKind::Unreachable
            }
            _ => McpErrorKind::Protocol,
        };
        let why = match error {
            ClientInitializeError::TransportError { error, .. } => chain(&*error.error),
            ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
            ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
            other => chain(other),
        };
        Self::new(kind, format!("the MCP server {server} cannot be reached: {why}"))
    }

    /// A request failed.
    pub(crate) fn request(server: &str, error: &ServiceError) -> Self {
        if error.auth_challenge().is_some() {
            return Self::unauthorized(server);
        }
        match error {
            ServiceError::McpError(error) => Self::new(
                McpErrorKind::Refused,
                format!("the MCP server {server} refused the request: {}", error.message),
            ),
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                Self::new(McpErrorKind::Lost, format!("the connection to the MCP server {server} was lost"))
            }
            ServiceError::TransportSend(error) => {
                let kind = match error.error.downcast_ref::<StreamableHttpError<SendError>>() {
                    Some(StreamableHttpError::Client(SendError::Session { .. })) => McpErrorKind::Session,
                    Some(StreamableHttpError::Client(SendError::Status { status: 400..=499, .. })) => {
                        McpErrorKind::Refused
                    }
                    _ => McpErrorKind::Lost,
                };
                Self::new(kind, format!("the request to the MCP server {server} failed: {}", chain(&*error.error)))
            }
            other => Self::new(McpErrorKind::Protocol, format!("the MCP server {server} broke the protocol: {other}")),
        }
    }

    pub(crate) fn unauthorized(server: &str) -> Self {
        let text = format!(
            "the MCP server {server} refuses the credential; log in (atlasctl mcp login {server}), or look at its headers (atlasctl mcp show {server})"
        );
        Self::new(McpErrorKind::Unauthorized, text)
    }
}

/// An error with its causes, each said once.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    // This error does not tell its cause.
    if let Some(StreamableHttpError::Client(cause)) = error.downcast_ref::<StreamableHttpError<SendError>>() {
        return chain(cause);
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

fn bounded(mut text: String) -> String {
    if text.len() > ERROR_BYTES_MAX {
        text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
        text.push('…');
    }
    text
}
