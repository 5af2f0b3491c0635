//! The login of a person at an issuer of OpenID Connect, as a context keeps it: how its token is renewed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use atlas_env::Env;
use atlas_oauth::{Expiry, Issuer, Tokens, UnixSeconds};
use atlas_types::SecretText;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::IssuerClient;
use crate::config::Config;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::words::could_not;

/// Seconds before its end at which a token is renewed.
const EARLY: UnixSeconds = 60;

/// Which of the issuer's tokens the cluster takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shown {
    /// The one for programs.
    AccessToken,
    /// The one that says who the person is.
    IdToken,
}

/// A login, in the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedLogin {
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    pub(crate) token_url: String,
    pub(crate) shown: Shown,
    /// When the token ends, in Unix seconds; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<UnixSeconds>,
    /// None if the issuer gives none: the person logs in again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
}

/// What the issuer gave.
pub(crate) struct Given {
    pub(crate) tokens: Tokens,
    pub(crate) id_token: Option<SecretText>,
}

impl Given {
    /// Reads the answer of a token endpoint. `secrets` are not repeated in an error.
    pub(crate) fn read(
        (status, body): (u16, &[u8]),
        now: UnixSeconds,
        secrets: &[(&str, &SecretText)],
    ) -> Result<Self, Failure> {
        let tokens = Tokens::read((status, body), now, Expiry::Optional, secrets);
        let tokens = tokens.map_err(|error| failed(&error.message))?;
        Ok(Self { tokens, id_token: id_token(body) })
    }

    /// One of the tokens.
    pub(crate) fn token(&self, shown: Shown) -> Option<&SecretText> {
        match shown {
            Shown::AccessToken => Some(&self.tokens.access),
            Shown::IdToken => self.id_token.as_ref(),
        }
    }

    /// When that token ends: as it says itself, otherwise as the issuer says of the access token.
    pub(crate) fn end(&self, shown: Shown) -> Option<UnixSeconds> {
        self.token(shown).and_then(|token| end_of(token.expose())).or(self.tokens.expires_at)
    }
}

/// The token of the answer that says who the person is.
pub(crate) fn id_token(body: &[u8]) -> Option<SecretText> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    answer["id_token"].as_str().filter(|token| !token.is_empty()).map(SecretText::new)
}

/// The end of a token as its own claim `exp` says. The cluster checks the token; this is only about when to renew it.
fn end_of(token: &str) -> Option<UnixSeconds> {
    let claims = token.split('.').nth(1)?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?).ok()?;
    claims["exp"].as_u64()
}

impl SavedLogin {
    /// Whether the token has to be renewed before it is used.
    fn is_over(&self, now: UnixSeconds) -> bool {
        self.expires_at.is_some_and(|end| now.saturating_add(EARLY) >= end)
    }

    /// The issuer, for requests to its token endpoint.
    pub(crate) fn issuer(&self) -> Issuer {
        Issuer::public(&self.client_id, &self.token_url)
    }
}

/// The login failed, in these words.
pub(crate) fn failed(why: &dyn std::fmt::Display) -> Failure {
    Failure::new("E3207", Exit::Denied, format!("the login failed: {why}")).with_next("log in again: atlasctl login")
}

/// Now, in Unix seconds.
pub(crate) fn now(env: &Env) -> UnixSeconds {
    u64::try_from(env.clock.wall().0 / 1_000_000).unwrap_or_default()
}

/// The token of a context, which is renewed when it ends. Several programs may do so at a time.
#[derive(Clone)]
pub(crate) struct Renewal {
    context: String,
    path: PathBuf,
    /// When the token of the context ends.
    end: UnixSeconds,
    env: Env,
}

impl Renewal {
    /// For a context of the configuration file; none if its token cannot be renewed, or nobody logged in.
    pub(crate) fn of(config: &Config, context: &str) -> Option<Self> {
        let login = config.contexts.get(context)?.login.as_ref()?;
        login.refresh_token.as_ref()?;
        let (context, path, env) = (context.to_owned(), Config::path()?, Env::system());
        Some(Self { context, path, end: login.expires_at?, env })
    }

    /// Whether the token of the context has to be renewed before it is used.
    pub(crate) fn is_due(&self) -> bool {
        now(&self.env).saturating_add(EARLY) >= self.end
    }

    /// Whether a token that was renewed has ended. The issuer may give tokens for less than the time by which others are renewed early.
    pub(crate) fn is_over(&self, end: Option<UnixSeconds>) -> bool {
        end.is_some_and(|end| now(&self.env) >= end)
    }

    /// The renewed token and its end. One program asks the issuer, the others find what it wrote: a refresh token may count once.
    pub(crate) async fn token(&self) -> Result<(String, Option<UnixSeconds>), Failure> {
        let (path, env) = (lock_path(&self.path), self.env.clone());
        let locked = env.spawn_blocking("wait for the configuration", move || lock(&path)).join().await;
        let _lock = locked.map_err(|_| failed(&"the wait for another atlasctl was cut off"))??;
        let mut config = Config::read()?;
        let entry = config.contexts.get_mut(&self.context);
        let entry = entry.ok_or_else(|| failed(&format!("the context {} is gone", self.context)))?;
        let (Some(token), Some(login)) = (&entry.token, &mut entry.login) else {
            return Err(failed(&"somebody has logged out"));
        };
        let now = now(&self.env);
        if !login.is_over(now) {
            return Ok((token.clone(), login.expires_at));
        }
        let Some(refresh) = login.refresh_token.as_deref().map(SecretText::new) else {
            return Err(failed(&"the token has expired"));
        };
        let (status, body) = IssuerClient::new()?.post(&login.issuer().refresh(&refresh)).await?;
        let given = Given::read((status, &body), now, &[("refresh_token", &refresh)])?;
        let Some(token) = given.token(login.shown) else {
            return Err(failed(&"the issuer gave no ID token with the renewed login"));
        };
        let token = token.expose().to_owned();
        let end = given.end(login.shown);
        login.expires_at = end;
        // An issuer that gives no new refresh token keeps the one in use.
        if let Some(refresh) = &given.tokens.refresh {
            login.refresh_token = Some(refresh.expose().to_owned());
        }
        entry.token = Some(token.clone());
        config.write()?;
        Ok((token, end))
    }
}

fn lock_path(config: &Path) -> PathBuf {
    let mut path = config.as_os_str().to_owned();
    path.push(".lock");
    path.into()
}

/// Waits until no other program renews a token.
fn lock(path: &Path) -> Result<File, Failure> {
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|error| could_not("open", path, &error))?;
    file.lock().map_err(|error| could_not("lock", path, &error))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn tokens_say_when_they_end() {
        assert_eq!(end_of(&token(r#"{"exp":1000}"#)), Some(1000));
        for other in [&token(r#"{"exp":"1000"}"#), "opaque", "a.b.c", "", "..", &"x.".repeat(100)] {
            assert_eq!(end_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_token_that_is_shown_counts() {
        let body = format!(
            r#"{{"access_token":"opaque","expires_in":10,"id_token":"{}","refresh_token":"r"}}"#,
            token(r#"{"exp":5000}"#)
        );
        let given = Given::read((200, body.as_bytes()), 1000, &[]).expect("tokens");
        assert_eq!((given.end(Shown::AccessToken), given.end(Shown::IdToken)), (Some(1010), Some(5000)));
        let without = Given::read((200, br#"{"access_token":"a"}"#), 1000, &[]).expect("a token");
        assert!(without.token(Shown::IdToken).is_none() && without.end(Shown::AccessToken).is_none());
        let secret = SecretText::new("hush");
        let refused = Given::read((400, br#"{"error":"invalid_grant: hush"}"#), 0, &[("refresh_token", &secret)]);
        let refused = refused.err().expect("refused");
        assert_eq!(refused.message, "the login failed: invalid_grant: [redacted:refresh_token]");
    }

    #[test]
    fn a_token_is_renewed_before_it_ends() {
        let login = |expires_at| SavedLogin {
            issuer: "https://id.example".to_owned(),
            client_id: "atlas".to_owned(),
            token_url: "https://id.example/token".to_owned(),
            shown: Shown::IdToken,
            expires_at,
            refresh_token: None,
        };
        assert!(login(Some(1000)).is_over(940) && !login(Some(1000)).is_over(939));
        assert!(!login(None).is_over(u64::MAX));
    }
}
