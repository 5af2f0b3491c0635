//! Access tokens of models and MCP servers with a login. The leader keeps them and renews them; an attempt asks it for a token when it needs one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Clock;
use atlas_http::Secret;
use atlas_llm::auth::LoginTokens;
use atlas_model::{CallError, CallErrorKind};
use atlas_types::{MODEL_TOKEN, SecretText};
use futures::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::json;

use crate::journal::hashed;
use crate::mailbox::Answer;
use crate::provider::Shared;
use crate::provider::platform::{Platform, Stopped};

/// The logins of one attempt.
pub(super) struct Logins {
    platform: Platform,
    clock: Arc<dyn Clock>,
    /// Tokens that are not removed from the attempt's texts yet, with their names.
    unhidden: Unhidden,
}

type Unhidden = Arc<Mutex<Vec<(String, SecretText)>>>;

impl Logins {
    pub(super) fn new(platform: Platform, shared: &Shared) -> Self {
        Self { platform, clock: Arc::clone(&shared.env.clock), unhidden: Arc::default() }
    }

    /// The tokens of a model.
    pub(super) fn model(&self, name: &str) -> Arc<dyn LoginTokens> {
        self.of("model", name)
    }

    /// The tokens of an MCP server.
    pub(super) fn server(&self, name: &str) -> Arc<dyn LoginTokens> {
        self.of("server", name)
    }

    fn of(&self, member: &'static str, name: &str) -> Arc<dyn LoginTokens> {
        Arc::new(Login {
            member,
            name: name.to_owned(),
            platform: self.platform.clone(),
            clock: Arc::clone(&self.clock),
            unhidden: Arc::clone(&self.unhidden),
            held: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
        })
    }

    /// Tokens that were got since the last time.
    pub(super) fn unhidden(&self) -> Vec<(String, SecretText)> {
        std::mem::take(&mut *self.unhidden.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Login {
    /// What it is, as the leader is asked.
    member: &'static str,
    name: String,
    platform: Platform,
    clock: Arc<dyn Clock>,
    unhidden: Unhidden,
    held: tokio::sync::Mutex<Option<Held>>,
    refused: Mutex<Refused>,
}

/// A token in use.
struct Held {
    token: Secret,
    version: u64,
    /// By the monotonic clock; none if it does not expire.
    until: Option<Duration>,
    /// It replaced one that the provider had refused.
    forced: bool,
}

/// What the provider has refused.
#[derive(Default)]
struct Refused {
    token: Option<Secret>,
    /// The token that replaced it, if it is that of `held`.
    replaced: bool,
}

/// What the leader answers. It has no `Debug`, because it contains a token.
#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Token { access_token: Box<str>, version: u64, seconds: Option<u64> },
    Error { error: String, kind: String },
}

impl LoginTokens for Login {
    fn token(&self) -> BoxFuture<'_, Result<Secret, CallError>> {
        self.current().boxed()
    }

    fn refused(&self, token: &Secret) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let again = std::mem::replace(&mut refused.replaced, false);
        refused.token = Some(token.clone());
        // A provider that refuses a new token as well refuses all of them.
        !again
    }
}

impl Login {
    /// The token in use, or another one if it has expired or was refused. One call at a time asks.
    async fn current(&self) -> Result<Secret, CallError> {
        let mut held = self.held.lock().await;
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).token.take();
        let is_refused = |held: &Held| refused.as_ref().is_some_and(|refused| *refused == held.token);
        let now = self.clock.monotonic();
        if let Some(held) = held.as_ref().filter(|held| held.until.is_none_or(|until| now < until) && !is_refused(held))
        {
            return Ok(held.token.clone());
        }
        let version = held.as_ref().filter(|held| is_refused(held)).map(|held| held.version);
        let given = self.ask(version).await?;
        let token = given.token.clone();
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).replaced = given.forced;
        *held = Some(given);
        Ok(token)
    }

    /// Asks the leader. `refused` is the version of a token that the provider refused.
    async fn ask(&self, refused: Option<u64>) -> Result<Held, CallError> {
        let arguments = json!({ self.member: self.name, "refused": refused });
        let failed = |kind, text: String| Err(CallError::new(kind, text));
        let answer = self.platform.ask(MODEL_TOKEN, &arguments, hashed(&(MODEL_TOKEN, self.member, &self.name))).await;
        let given = match answer {
            Ok(Answer::Completed(given)) => given,
            Ok(Answer::Failed(why) | Answer::Refused(why)) => return failed(CallErrorKind::Credentials, why),
            Err(Stopped) => return failed(CallErrorKind::Connection, "the attempt was stopped".to_owned()),
        };
        match serde_json::from_slice(&given) {
            Ok(Given::Token { access_token, version, seconds }) => {
                let token = SecretText::new(access_token);
                let name = format!("login of {}", self.name);
                let held = token.expose().into();
                self.unhidden.lock().unwrap_or_else(PoisonError::into_inner).push((name, token));
                let until = seconds.map(|seconds| self.clock.monotonic().saturating_add(Duration::from_secs(seconds)));
                Ok(Held { token: held, version, until, forced: refused.is_some() })
            }
            Ok(Given::Error { error, kind }) => {
                let kind = CallErrorKind::ALL.into_iter().find(|known| known.name() == kind);
                failed(kind.unwrap_or(CallErrorKind::Credentials), error)
            }
            Err(_) => failed(CallErrorKind::Credentials, "the controller sent no access token".to_owned()),
        }
    }
}
