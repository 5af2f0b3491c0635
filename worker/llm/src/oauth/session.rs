//! The tokens of a client that is logged in: kept in a store, renewed when they expire.

use std::fmt;
use std::sync::Arc;

use atlas_model::{CallError, CallErrorKind};
use http::StatusCode;
use serde_json::json;

use super::Issuer;
use super::token::{Expiry, TokenCache, Tokens};
use crate::auth::TokenSource;
use crate::json::{self, JsonError};
use crate::{Parts, Secret, UnixSeconds};

/// Where tokens outlive the process. Implementations keep them like other secrets.
pub trait Store: Send + Sync {
    /// The tokens of a client. None if nobody has logged in.
    fn load(&self, client: &str) -> Result<Option<Tokens>, StoreError>;

    /// Replaces the tokens of a client.
    fn save(&self, client: &str, tokens: &Tokens) -> Result<(), StoreError>;
}

/// Why tokens were not read or written. The text names no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

impl Tokens {
    /// The form in which a store keeps them: JSON with `access_token`, `refresh_token` and `expires_at`.
    pub fn stored(&self) -> Secret {
        let refresh = self.refresh.as_ref().map(Secret::expose);
        let (access, end) = (self.access.expose(), self.expires_at);
        json!({"access_token": access, "refresh_token": refresh, "expires_at": end}).to_string().into()
    }

    /// Reads the form of a store. None if there is no access token in it.
    pub fn from_stored(text: &str) -> Result<Option<Self>, JsonError> {
        let value = json::parse(text.as_bytes())?;
        let secret = |pointer: &str| json::text(&value, pointer).map(Secret::from);
        let expires_at = value.get("expires_at").and_then(serde_json::Value::as_u64);
        let tokens = |access| Self { access, refresh: secret("/refresh_token"), expires_at };
        Ok(secret("/access_token").map(tokens))
    }
}

/// The tokens of one client.
pub struct Session {
    client: String,
    issuer: Issuer,
    store: Arc<dyn Store>,
    tokens: TokenCache,
    /// The command that logs in, for errors.
    command: String,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Session {
    /// The session of a client. `command` is what a person runs to log in.
    pub fn new(client: String, issuer: Issuer, store: Arc<dyn Store>, command: String) -> Self {
        Self { client, issuer, store, tokens: TokenCache::default(), command }
    }

    /// Keeps the tokens of a login.
    pub fn logged_in(&self, tokens: Tokens) -> Result<(), StoreError> {
        self.store.save(&self.client, &tokens)?;
        self.tokens.set(tokens);
        Ok(())
    }

    fn refused(&self, problem: &str) -> CallError {
        let Self { client, command, .. } = self;
        CallError::new(CallErrorKind::Credentials, format!("{client:?}: {problem}; run {command:?}"))
    }

    fn unstored(&self, error: &StoreError) -> CallError {
        let text = format!("{:?}: the tokens were not read or written: {error}", self.client);
        CallError::new(CallErrorKind::Credentials, text)
    }
}

impl TokenSource for Session {
    fn request(&self, now: UnixSeconds) -> Result<Option<Parts>, CallError> {
        let tokens = match self.tokens.get() {
            Some(tokens) => tokens,
            None => {
                let stored = self.store.load(&self.client).map_err(|error| self.unstored(&error))?;
                let tokens = stored.ok_or_else(|| self.refused("there is no login"))?;
                self.tokens.set(tokens.clone());
                tokens
            }
        };
        if tokens.is_valid(now) {
            return Ok(None);
        }
        let refresh = tokens.refresh.ok_or_else(|| self.refused("the login has ended"))?;
        let parts = self.issuer.refresh(&refresh);
        parts.map(Some).map_err(|error| CallError::new(CallErrorKind::Request, error.to_string()))
    }

    fn answer(&self, status: StatusCode, body: &[u8], now: UnixSeconds) -> Result<(), CallError> {
        let old = self.tokens.get().and_then(|tokens| tokens.refresh);
        let secrets = self.issuer.secrets(&old);
        let mut tokens = Tokens::read(status, body, now, Expiry::Required, &secrets).map_err(|mut error| {
            if error.kind == CallErrorKind::Credentials {
                let ended = self.refused("the issuer ended the login").message;
                error.message = format!("{ended} ({})", error.message);
            }
            error
        })?;
        // An issuer that gives no new refresh token keeps the one in use.
        tokens.refresh = tokens.refresh.or(old);
        self.tokens.set(tokens.clone());
        self.store.save(&self.client, &tokens).map_err(|error| self.unstored(&error))
    }

    fn token(&self, now: UnixSeconds) -> Option<Secret> {
        self.tokens.access(now)
    }

    fn forget(&self) {
        self.tokens.expire();
    }
}
