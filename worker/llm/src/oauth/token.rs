//! Tokens as issuers send them, and a place that keeps the one in use.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use atlas_model::{CallError, CallErrorKind};
use http::StatusCode;
use serde_json::Value;

use crate::redact::Redactor;
use crate::{Secret, UnixSeconds, failure, json};

/// Seconds before its end at which a token counts as expired, so that it does not end on its way.
const EARLY: u64 = 60;

/// A token lives at most this long, whatever the issuer says. Issuers give hours.
const LIFETIME_MAX: u64 = 366 * 24 * 3600;

/// What an issuer gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    pub access: Secret,
    /// Absent if the issuer gives none, or keeps the one in use.
    pub refresh: Option<Secret>,
    /// None if the token does not expire.
    pub expires_at: Option<UnixSeconds>,
}

/// Whether an answer must say when its token expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    Required,
    /// Without it the token does not expire. Devices get such tokens.
    Optional,
}

impl Tokens {
    /// Reads the answer of a token endpoint. `secrets` are removed from the message of an error.
    pub fn read(
        status: StatusCode,
        body: &[u8],
        now: UnixSeconds,
        expiry: Expiry,
        secrets: &[&Secret],
    ) -> Result<Self, CallError> {
        let answer = json::parse(body).unwrap_or_default();
        if !status.is_success() || json::text(&answer, "/error").is_some() {
            return Err(refusal(status, &answer, body, secrets));
        }
        let malformed = |problem: &str| failure::answer(format!("the answer of the token endpoint {problem}"));
        let access = json::text(&answer, "/access_token").ok_or_else(|| malformed("has no access_token"))?;
        let is_bearer = json::text(&answer, "/token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
        if !is_bearer {
            return Err(malformed("has a token that is no bearer token"));
        }
        // Some issuers send the number as text.
        let seconds =
            answer.get("expires_in").and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()));
        if seconds.is_none() && (expiry == Expiry::Required || answer.get("expires_in").is_some_and(|v| !v.is_null())) {
            return Err(malformed("does not say when the token expires"));
        }
        Ok(Self {
            access: Secret::from(access),
            refresh: json::text(&answer, "/refresh_token").map(Secret::from),
            expires_at: seconds.map(|seconds| now.saturating_add(seconds.min(LIFETIME_MAX))),
        })
    }

    /// Whether the access token can be used at `now`.
    pub fn is_valid(&self, now: UnixSeconds) -> bool {
        self.expires_at.is_none_or(|end| now.saturating_add(EARLY) < end)
    }
}

fn refusal(status: StatusCode, answer: &Value, body: &[u8], secrets: &[&Secret]) -> CallError {
    let mut error = failure::of_response(status, body);
    if let Some(code) = json::text(answer, "/error") {
        let detail = json::text(answer, "/error_description").map(|text| format!(": {text}")).unwrap_or_default();
        error.message = failure::answer(format!("{code}{detail}")).message;
    }
    error.message = redact(&error.message, secrets);
    if status.is_success() || (status.is_client_error() && !error.kind.is_transient()) {
        error.kind = CallErrorKind::Credentials;
    }
    error
}

fn redact(message: &str, secrets: &[&Secret]) -> String {
    Redactor::new(secrets.iter().map(|secret| secret.expose().to_owned())).redact(message)
}

/// The tokens in use, shared by the calls of a process.
#[derive(Default)]
pub struct TokenCache(Mutex<Option<Tokens>>);

impl TokenCache {
    /// The access token, if there is one that is valid at `now`.
    pub fn access(&self, now: UnixSeconds) -> Option<Secret> {
        self.get().filter(|tokens| tokens.is_valid(now)).map(|tokens| tokens.access)
    }

    /// The tokens as they are, valid or not.
    pub fn get(&self) -> Option<Tokens> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The access token is not used again; the refresh token stays.
    pub fn expire(&self) {
        if let Some(tokens) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            tokens.expires_at = Some(0);
        }
    }

    /// Replaces the tokens.
    pub fn set(&self, tokens: Tokens) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
    }
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenCache")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(status: u16, body: &str, expiry: Expiry, expected: &Expect) {
        let status = StatusCode::from_u16(status).expect("a status");
        let tokens = Tokens::read(status, body.as_bytes(), 1000, expiry, &[&"rt-secret".into()]);
        expected.assert_eq(&match tokens {
            Ok(tokens) => {
                let refresh = tokens.refresh.as_ref().map(Secret::expose);
                format!("{} {refresh:?} {:?}", tokens.access.expose(), tokens.expires_at)
            }
            Err(error) => format!("{} {}", error.kind.name(), error.message),
        });
    }

    #[test]
    fn tokens_are_read() {
        use Expiry::{Optional, Required};
        let full = r#"{"access_token": "a", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r"}"#;
        check(200, full, Required, &expect![[r#"a Some("r") Some(1060)"#]]);
        check(200, r#"{"access_token": "a", "expires_in": "60"}"#, Required, &expect!["a None Some(1060)"]);
        check(
            200,
            r#"{"access_token": "a"}"#,
            Required,
            &expect!["answer the answer of the token endpoint does not say when the token expires"],
        );
        check(200, r#"{"access_token": "a"}"#, Optional, &expect!["a None None"]);
        check(
            200,
            r#"{"access_token": "a", "expires_in": -1}"#,
            Optional,
            &expect!["answer the answer of the token endpoint does not say when the token expires"],
        );
        check(
            200,
            r#"{"access_token": "a", "expires_in": 18446744073709551615}"#,
            Required,
            &expect!["a None Some(31623400)"],
        );
        check(
            200,
            r#"{"access_token": "a", "token_type": "mac", "expires_in": 1}"#,
            Required,
            &expect!["answer the answer of the token endpoint has a token that is no bearer token"],
        );
        check(200, "<html>", Required, &expect!["answer the answer of the token endpoint has no access_token"]);
    }

    #[test]
    fn refusals_have_a_kind_and_no_secret() {
        let refused = r#"{"error": "invalid_grant", "error_description": "rt-secret was revoked"}"#;
        check(400, refused, Expiry::Required, &expect!["credentials invalid_grant: [redacted] was revoked"]);
        check(200, refused, Expiry::Required, &expect!["credentials invalid_grant: [redacted] was revoked"]);
        check(401, r#"{"error": {"message": "no"}}"#, Expiry::Required, &expect!["credentials no"]);
        check(429, "slow down", Expiry::Required, &expect!["rate_limited slow down"]);
        check(
            503,
            "",
            Expiry::Required,
            &expect!["provider the provider answered 503 Service Unavailable without a text"],
        );
    }

    #[test]
    fn tokens_end_early() {
        let cache = TokenCache::default();
        assert_eq!(cache.access(0), None);
        cache.set(Tokens { access: "a".into(), refresh: None, expires_at: Some(1000) });
        assert_eq!(cache.access(939), Some("a".into()));
        assert_eq!(cache.access(940), None);
        cache.set(Tokens { access: "b".into(), refresh: None, expires_at: None });
        assert_eq!(cache.access(u64::MAX), Some("b".into()));
        assert_eq!(format!("{cache:?}"), "TokenCache");
    }
}
