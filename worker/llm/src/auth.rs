//! How a request proves who sends it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use atlas_model::CallError;
use atlas_oauth::Tokens;
use futures::future::BoxFuture;
use http::StatusCode;

use crate::{EncodeError, Parts, Secret, UnixSeconds};

/// The credentials of a protocol.
#[derive(Clone)]
pub enum Auth {
    /// None, for servers that ask for none.
    None,
    /// The provider's own kind of key, in the header that it has for it.
    Key(Secret),
    /// A token that does not change.
    Bearer(Secret),
    /// A token that expires and is renewed.
    Token(Arc<dyn TokenSource>),
}

/// Where a token comes from. Implementations keep it until it expires.
pub trait TokenSource: Send + Sync {
    /// The request for a token, if there is none that is valid at `now`.
    fn request(&self, now: UnixSeconds) -> Result<Option<Parts>, CallError>;

    /// The answer to the request.
    fn answer(&self, status: StatusCode, body: &[u8], now: UnixSeconds) -> Result<(), CallError>;

    /// The token, if there is one that is valid at `now`.
    fn token(&self, now: UnixSeconds) -> Option<Secret>;

    /// The provider refused the token: it is not used again.
    fn forget(&self);
}

/// The access tokens of a model with a login. The cluster keeps and renews them.
pub trait LoginTokens: Send + Sync {
    /// A token that is valid now.
    fn token(&self) -> BoxFuture<'_, Result<Secret, CallError>>;

    /// The provider refused the token. Whether another one may help.
    fn refused(&self, token: &Secret) -> bool;
}

/// The tokens in use, shared by the calls of a process.
#[derive(Default)]
pub(crate) struct TokenCache(Mutex<Option<Tokens>>);

impl TokenCache {
    /// The access token, if there is one that is valid at `now`.
    pub(crate) fn access(&self, now: UnixSeconds) -> Option<Secret> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.as_ref().filter(|tokens| tokens.is_valid(now)).map(|tokens| tokens.access.expose().into())
    }

    /// The access token is not used again.
    pub(crate) fn expire(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Replaces the tokens.
    pub(crate) fn set(&self, tokens: Tokens) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
    }
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenCache")
    }
}

impl Auth {
    /// Sets the credentials that do not depend on the time. A key goes into the header `key_header`.
    pub(crate) fn set(&self, parts: &mut Parts, key_header: &str) -> Result<(), EncodeError> {
        match self {
            Self::None | Self::Token(_) => Ok(()),
            Self::Key(key) => parts.secret_header(key_header, key.expose()),
            Self::Bearer(token) => parts.bearer(token),
        }
    }

    /// [`Protocol::token_request`](crate::Protocol::token_request).
    pub(crate) fn request(&self, now: UnixSeconds) -> Result<Option<Parts>, CallError> {
        match self {
            Self::Token(source) => source.request(now),
            Self::None | Self::Key(_) | Self::Bearer(_) => Ok(None),
        }
    }

    /// [`Protocol::token_answer`](crate::Protocol::token_answer).
    pub(crate) fn answer(&self, status: StatusCode, body: &[u8], now: UnixSeconds) -> Result<(), CallError> {
        match self {
            Self::Token(source) => source.answer(status, body, now),
            Self::None | Self::Key(_) | Self::Bearer(_) => Err(crate::failure::of_response(status, body)),
        }
    }

    /// [`Protocol::sign`](crate::Protocol::sign): sets a token that expires.
    pub(crate) fn sign(&self, parts: &mut Parts, now: UnixSeconds) -> Result<(), CallError> {
        let Self::Token(source) = self else { return Ok(()) };
        let refused = |problem: &str| CallError::new(atlas_model::CallErrorKind::Credentials, problem);
        let token = source.token(now).ok_or_else(|| refused("there is no valid access token"))?;
        parts.bearer(&token).map_err(|error| refused(&error.to_string()))
    }

    /// What an answer that is no success means. A token that was refused is not used again.
    pub(crate) fn failure(&self, status: StatusCode, body: &[u8]) -> CallError {
        if let (Self::Token(source), StatusCode::UNAUTHORIZED) = (self, status) {
            source.forget();
        }
        crate::failure::of_response(status, body)
    }
}
