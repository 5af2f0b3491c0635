//! Tokens as issuers send them, and as they are kept.

use atlas_model::CallError;
use atlas_types::SecretText;
use serde_json::{Value, json};

use crate::UnixSeconds;
use crate::answer::{self, malformed};

/// Seconds before its end at which a token counts as expired, so that it does not end on its way.
const EARLY: u64 = 60;

/// A token lives at most this long, whatever the issuer says. Issuers give hours.
const LIFETIME_MAX: u64 = 366 * 24 * 3600;

/// What an issuer gave. It has no `Debug`, because it contains the tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Tokens {
    pub access: SecretText,
    /// Absent if the issuer gives none, or keeps the one in use.
    pub refresh: Option<SecretText>,
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
        (status, body): (u16, &[u8]),
        now: UnixSeconds,
        expiry: Expiry,
        secrets: &[(&str, &SecretText)],
    ) -> Result<Self, CallError> {
        let answer = answer::parse(body);
        if !(200..300).contains(&status) || answer::text(&answer, "error").is_some() {
            return Err(answer::refusal(status, body, secrets));
        }
        let malformed = |problem: &str| malformed(format!("the answer of the token endpoint {problem}"));
        let access = answer::text(&answer, "access_token").ok_or_else(|| malformed("has no access_token"))?;
        let is_bearer = answer::text(&answer, "token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
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
            access: SecretText::new(access),
            refresh: answer::text(&answer, "refresh_token").map(SecretText::new),
            expires_at: seconds.map(|seconds| now.saturating_add(seconds.min(LIFETIME_MAX))),
        })
    }

    /// The form in which they are kept: JSON with `access_token`, `refresh_token` and `expires_at`.
    pub fn stored(&self) -> SecretText {
        let refresh = self.refresh.as_ref().map(SecretText::expose);
        let (access, end) = (self.access.expose(), self.expires_at);
        SecretText::new(json!({"access_token": access, "refresh_token": refresh, "expires_at": end}).to_string())
    }

    /// Reads the form in which they are kept. None if there is no access token in it.
    pub fn from_stored(text: &SecretText) -> Option<Self> {
        let value: Value = serde_json::from_str(text.expose()).ok()?;
        let secret = |member: &str| answer::text(&value, member).map(SecretText::new);
        let expires_at = value.get("expires_at").and_then(Value::as_u64);
        Some(Self { access: secret("access_token")?, refresh: secret("refresh_token"), expires_at })
    }

    /// How long the access token can be used. None if it does not expire.
    pub fn seconds_left(&self, now: UnixSeconds) -> Option<u64> {
        self.expires_at.map(|end| end.saturating_sub(now).saturating_sub(EARLY))
    }

    /// Whether the access token can be used at `now`.
    pub fn is_valid(&self, now: UnixSeconds) -> bool {
        self.expires_at.is_none_or(|end| now.saturating_add(EARLY) < end)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(status: u16, body: &str, expiry: Expiry, expected: &Expect) {
        let secret = SecretText::new("rt-secret");
        let tokens = Tokens::read((status, body.as_bytes()), 1000, expiry, &[("token", &secret)]);
        expected.assert_eq(&match tokens {
            Ok(tokens) => {
                let refresh = tokens.refresh.as_ref().map(SecretText::expose);
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
        check(400, refused, Expiry::Required, &expect!["credentials invalid_grant: [redacted:token] was revoked"]);
        check(200, refused, Expiry::Required, &expect!["credentials invalid_grant: [redacted:token] was revoked"]);
        check(401, r#"{"error": {"message": "no"}}"#, Expiry::Required, &expect!["credentials no"]);
        check(
            429,
            "slow down",
            Expiry::Required,
            &expect!["rate_limited the issuer answered with the HTTP status 429"],
        );
        check(503, "", Expiry::Required, &expect!["provider the issuer answered with the HTTP status 503"]);
    }

    #[test]
    fn tokens_end_early() {
        let tokens = |expires_at| Tokens { access: SecretText::new("a"), refresh: None, expires_at };
        assert!(tokens(Some(1000)).is_valid(939) && !tokens(Some(1000)).is_valid(940));
        assert!(tokens(None).is_valid(u64::MAX));
    }

    #[test]
    fn tokens_are_read_as_they_were_kept() {
        let refresh = Some(SecretText::new("r"));
        let tokens = Tokens { access: SecretText::new("a"), refresh, expires_at: Some(1000) };
        let stored: Value = serde_json::from_str(tokens.stored().expose()).expect("JSON");
        assert_eq!(stored, json!({"access_token": "a", "refresh_token": "r", "expires_at": 1000}));
        assert!(Tokens::from_stored(&tokens.stored()) == Some(tokens));
        for other in ["", "{}", "sk-1234", r#"{"access_token": 1}"#] {
            assert!(Tokens::from_stored(&SecretText::new(other)).is_none(), "{other}");
        }
    }
}
