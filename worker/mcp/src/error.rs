//! Why a server could not be used. Texts never contain the value of a secret: they come from addresses, names and the server.

use std::error::Error;
use std::time::Duration;

use atlas_oauth::challenged_scopes;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::bounds::{ERROR_BYTES_MAX, SCOPE_MAX};
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
    /// The server accepts the credential, but not for this: it wants one that may do more.
    Forbidden,
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
            Self::Forbidden => "forbidden",
            Self::Timeout => "timeout",
            Self::Lost => "lost",
            Self::Protocol => "protocol",
            Self::Refused => "refused",
            Self::Session => "session",
        }
    }

    /// Whether the server did not work, rather than the call.
    pub fn is_down(self) -> bool {
        !matches!(self, Self::Refused | Self::Forbidden)
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
            return Self::unauthorized(server, error.auth_challenge().unwrap_or_default());
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
        if let Some(challenge) = error.auth_challenge() {
            return Self::unauthorized(server, challenge);
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

    /// `challenge` is the `WWW-Authenticate` header of the answer, which may name the scopes that a login needs.
    pub(crate) fn unauthorized(server: &str, challenge: &str) -> Self {
        let scopes = challenged_scopes(challenge).unwrap_or_default();
        let options: String =
            scopes.iter().filter_map(|scope| word(scope)).map(|word| [" ", "--scope", " ", &word].concat()).collect();
        // Another token of the same login would be refused as well.
        let (kind, refusal) = match challenge.contains("insufficient_scope") {
            true => (McpErrorKind::Forbidden, "does not allow this with the scopes of the login"),
            false => (McpErrorKind::Unauthorized, "refuses the credential"),
        };
        let text = format!(
            "the MCP server {server} {refusal}; log in (atlasctl mcp login {server}{options}), or look at its headers (atlasctl mcp show {server})"
        );
        Self::new(kind, text)
    }
}

/// A scope as a word of a command that people may copy; none for one that could be more than a word, because the server chose it.
fn word(scope: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/".contains(&byte);
    let is_graphic = |byte: u8| byte.is_ascii_graphic() && byte != b'\'' && byte != b')';
    match scope.bytes().next() {
        None | Some(b'-') => None,
        _ if scope.len() > SCOPE_MAX => None,
        _ if scope.bytes().all(is_plain) => Some(scope.to_owned()),
        _ if scope.bytes().all(is_graphic) => Some(format!("'{scope}'")),
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scopes_of_a_challenge_are_options_of_a_command_that_can_be_copied() {
        let check = |challenge: &str, expected: &str| {
            let text = McpError::unauthorized("s", challenge).text;
            assert!(text.contains(&format!("log in (atlasctl mcp login s{expected}), ")), "{challenge}: {text}");
        };
        check("", "");
        check("Bearer", "");
        check(r#"Bearer scope="mcp:basic https://a.example/b.c""#, " --scope mcp:basic --scope https://a.example/b.c");
        check(r#"Bearer scope="$(reboot) a;b `id` x'y -v""#, " --scope 'a;b' --scope '`id`'");
        check(&format!(r#"Bearer scope="{}""#, "a".repeat(1_000)), "");
        let kind = |challenge| McpError::unauthorized("s", challenge).kind;
        assert_eq!(kind(r#"Bearer error="insufficient_scope", scope="write""#), McpErrorKind::Forbidden);
        assert_eq!(kind(r#"Bearer error="invalid_token""#), McpErrorKind::Unauthorized);
    }
}
