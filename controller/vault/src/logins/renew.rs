//! Access tokens for attempts: the one that is kept, or a new one. Issuers may give each refresh token once, so a renewal is made by one
//! controller at a time: it writes into the secret that it renews, asks the issuer, and writes what it got. Both are entries of the log,
//! and a renewal goes on when the attempt that needed it has ended.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::{Caller, Consistency, Error, on_behalf};
use atlas_model::{CallError, CallErrorKind};
use atlas_oauth::Tokens;
use atlas_objects::SecretSpec;
use atlas_types::{Job, Object, ObjectKey, ObjectKind, ObjectName, ToolEnd};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Login, named};
use crate::Vault;
use crate::named::{models_of_job, servers_of_job};

/// How long a renewal may take. After it another controller may begin one.
const RENEWAL_SECONDS: u64 = 60;
/// The pause between two looks at a secret that another controller renews.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The pauses between tries to write new tokens: they must not be lost, because the old ones may not count any more.
const WRITE_EVERY: Duration = Duration::from_millis(500);
/// How often new tokens are written before they are given up: about 5 minutes.
const WRITES_MAX: usize = 600;

/// The arguments of a call.
#[derive(Deserialize)]
struct Asked {
    #[serde(flatten)]
    owner: Owner,
    /// The version of a token that was refused.
    #[serde(default)]
    refused: Option<u64>,
}

/// Whose token is asked for.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Owner {
    Model(String),
    Server(String),
}

/// A token for an attempt.
struct Given {
    tokens: Tokens,
    version: u64,
}

impl Vault {
    /// The access token of a model or an MCP server for a job that may call it. An error means that the call may succeed later.
    pub async fn model_token(self: &Arc<Self>, job: &Job, arguments: Map<String, Value>) -> Result<ToolEnd, Error> {
        let Ok(Asked { owner, refused }) = serde_json::from_value(Value::Object(arguments)) else {
            return Ok(ToolEnd::Refused("the arguments name no model and no MCP server".to_owned()));
        };
        let (kind, name) = match &owner {
            Owner::Model(name) => ("model", name),
            Owner::Server(name) => ("mcp-server", name),
        };
        let state = self.desk.current().await?;
        let key = ObjectKey {
            namespace: job.namespace.clone(),
            kind: ObjectKind::new(kind)?,
            name: match ObjectName::new(name) {
                Ok(name) => name,
                Err(error) => return Ok(ToolEnd::Refused(error.to_string())),
            },
        };
        let is_of_job = match owner {
            Owner::Model(_) => models_of_job(&state, job).contains(&key),
            Owner::Server(_) => servers_of_job(job).any(|server| server == key),
        };
        if !is_of_job {
            return Ok(ToolEnd::Refused(format!("{} is none of the job", named(&key))));
        }
        // The renewal goes on if the attempt ends meanwhile.
        let vault = Arc::clone(self);
        let renewal = self.desk.env.spawn("renew-token", async move { vault.token(&key, refused).await });
        let end = match renewal.join().await {
            Ok(end) => end,
            Err(_) => Err(CallError::new(CallErrorKind::Connection, "the renewal of the token was interrupted")),
        };
        let now = self.unix_seconds();
        let answer = match end {
            Ok(Given { tokens, version }) => json!({
                "access_token": tokens.access.expose(), "version": version, "seconds": tokens.seconds_left(now),
            }),
            Err(error) => json!({ "error": error.message, "kind": error.kind.name() }),
        };
        Ok(ToolEnd::Result(answer.to_string().into_bytes().into()))
    }

    /// The token of a model or of an MCP server: valid, and newer than `refused`.
    async fn token(&self, owner: &ObjectKey, refused: Option<u64>) -> Result<Given, CallError> {
        let internal = |error: &Error| CallError::new(CallErrorKind::Connection, error.to_string());
        let _turn = self.renewals.take(owner).await;
        let caller = on_behalf::cluster_in(owner.namespace.clone());
        let mut renewed = false;
        loop {
            let state = self.desk.state(Consistency::Linearizable).await.map_err(|error| internal(&error))?;
            let login = self.login_of(&state, owner).map_err(|error| ended(owner, &error.to_string()))?;
            let stored = self.stored(&state, &login.secret).map_err(|error| ended(owner, &error.to_string()))?;
            let (version, text) = stored.ok_or_else(|| ended(owner, "nobody has logged in"))?;
            let tokens =
                Tokens::from_stored(&text).ok_or_else(|| ended(owner, "the secret of the login has another value"))?;
            // A new token is used even if it will expire in a moment.
            if (renewed || tokens.is_valid(self.unix_seconds())) && refused.is_none_or(|refused| version > refused) {
                return Ok(Given { tokens, version });
            }
            let Some(object) = state.object(&login.secret) else { continue };
            let mut spec = SecretSpec::read(&object.spec).map_err(|error| ended(owner, &error.to_string()))?;
            if spec.renewal.is_some_and(|until| self.unix_seconds() < until) {
                self.desk.env.clock.sleep(LOOK_EVERY).await;
                continue;
            }
            let Some(refresh) = tokens.refresh.clone() else {
                return Err(ended(owner, "the access token has expired"));
            };
            spec.renewal = Some(self.unix_seconds().saturating_add(RENEWAL_SECONDS));
            match self.write_secret(&caller, &login.secret, Some(object), &mut spec).await {
                Ok(_) => {}
                Err(Error::ObjectChanged { .. }) => continue,
                Err(error) => return Err(internal(&error)),
            }
            let issuer = self.issuer(&state, &login).map_err(|error| ended(owner, &error.to_string()))?;
            let answer = self.ask_issuer(&issuer.refresh(&refresh)).await;
            let secrets = issuer.secrets([("refresh_token", &refresh)]);
            let got = answer.and_then(|(status, body)| {
                Tokens::read((status, &body), self.unix_seconds(), login.expiry(), &secrets)
            });
            match got {
                // An issuer that gives no new refresh token keeps the one in use.
                Ok(new) => {
                    let new = Tokens { refresh: new.refresh.clone().or(Some(refresh)), ..new };
                    self.keep_renewed(&caller, &login, version, &new).await?;
                    renewed = true;
                }
                Err(error) => {
                    self.give_up(&caller, &login).await;
                    return Err(match error.kind {
                        CallErrorKind::Credentials => ended(owner, &error.message),
                        _ => error,
                    });
                }
            }
        }
    }

    /// Writes new tokens until they are in the log, or until somebody has logged in meanwhile.
    async fn keep_renewed(
        &self,
        caller: &Caller,
        login: &Login,
        version: u64,
        tokens: &Tokens,
    ) -> Result<(), CallError> {
        let mut why = String::new();
        for _ in 0..WRITES_MAX {
            match self.keep_over(caller, login, version, tokens).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, secret = %login.secret.name, "could not keep renewed tokens");
                    why = error.to_string();
                }
            }
            self.desk.env.clock.sleep(WRITE_EVERY).await;
        }
        Err(CallError::new(CallErrorKind::Connection, format!("the renewed tokens could not be kept: {why}")))
    }

    /// Writes tokens over this version. A newer version is of a login, and stays.
    async fn keep_over(&self, caller: &Caller, login: &Login, version: u64, tokens: &Tokens) -> Result<(), Error> {
        let state = self.desk.state(Consistency::Linearizable).await?;
        let Some((current, _)) = self.stored(&state, &login.secret)? else { return Ok(()) };
        if current != version {
            return Ok(());
        }
        self.keep(caller, state.object(&login.secret).map(|object| &**object), login, tokens).await
    }

    /// Notes that nobody renews the tokens any more. If that fails, the others wait until the renewal counts as lost.
    async fn give_up(&self, caller: &Caller, login: &Login) {
        let change = async |object: &Object| {
            let mut spec = SecretSpec::read(&object.spec).map_err(|error| Error::internal("read a secret", &error))?;
            spec.renewal = None;
            self.write_secret(caller, &login.secret, Some(object), &mut spec).await
        };
        if let Ok(state) = self.desk.state(Consistency::Linearizable).await
            && let Some(object) = state.object(&login.secret)
            && let Err(error) = change(object).await
        {
            tracing::debug!(error = &error as &dyn std::error::Error, "could not note the end of a renewal");
        }
    }
}

/// A login is over: a person must log in.
fn ended(owner: &ObjectKey, why: &str) -> CallError {
    let noun = if owner.kind.as_str() == "mcp-server" { "mcp" } else { "model" };
    let (name, whose) = (&owner.name, named(owner));
    let text = format!("no access token for {whose}: {why}; log in again: atlasctl {noun} login {name}");
    CallError::new(CallErrorKind::Login, text)
}
