//! What makes a token valid.

use std::collections::BTreeMap;

use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::{Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Value;

use crate::documents::Keys;
use crate::signatures::{ALGORITHMS, install};

/// The longest token.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;
/// How many seconds the clocks of issuers and controllers may differ.
const LEEWAY_SECONDS: i64 = 60;

/// What a token says about itself, before anything of it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncheckedToken {
    pub issuer: String,
    /// The id of the key that signed it.
    pub key: Option<String>,
}

impl UncheckedToken {
    /// Reads a token that nobody has checked; none if it is no token of an issuer.
    pub fn read(token: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Claims {
            iss: String,
        }
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let key = decode_header(token).ok()?.kid;
        let claims: Claims = insecure_decode_claims(token).ok()?;
        Some(Self { issuer: claims.iss, key })
    }
}

/// What is asked of a token.
#[derive(Debug, Clone, Copy)]
pub struct Expectation<'a> {
    pub issuer: &'a str,
    /// It is for one of them.
    pub audiences: &'a [String],
    /// The claim that names who shows it.
    pub principal_claim: &'a str,
    /// Claims that have one of these values.
    pub claims: &'a BTreeMap<String, Vec<String>>,
}

/// Who shows a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    /// The value of [`Expectation::principal_claim`].
    pub principal: String,
}

/// Why a token is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Its key is not among those of the issuer.
    #[error("no key of the issuer has signed it")]
    UnknownKey,
    /// It is no token, its signature is wrong, or it is from another issuer.
    #[error("{0}")]
    Refused(String),
    /// It is for others.
    #[error("it is for another audience")]
    Audience,
    /// It was valid until now.
    #[error("it has expired")]
    Expired,
    /// It is not valid yet.
    #[error("it is not valid yet")]
    Early,
    /// A claim that is asked for is missing, or has another value.
    #[error("its claim \"{0}\" does not have a value that is asked for")]
    Claim(String),
}

/// Checks a token. `now` is the time in seconds since 1970.
///
/// Audience and times are checked here and not by `jsonwebtoken`, which takes the time from the machine.
pub fn verify(token: &str, keys: &Keys, expected: &Expectation<'_>, now: i64) -> Result<TokenHolder, TokenError> {
    install();
    let refused = |error: jsonwebtoken::errors::Error| TokenError::Refused(error.to_string());
    if token.len() > TOKEN_BYTES_MAX {
        return Err(TokenError::Refused(format!("it has more than {TOKEN_BYTES_MAX} bytes")));
    }
    let header = decode_header(token).map_err(refused)?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(TokenError::Refused(format!("it is signed with {:?}", header.alg)));
    }
    let key = keys.of(header.kid.as_deref()).ok_or(TokenError::UnknownKey)?;
    let mut validation = Validation::new(header.alg);
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation.set_required_spec_claims(&["iss"]);
    validation.set_issuer(&[expected.issuer]);
    let claims: BTreeMap<String, Value> = decode(token, key, &validation).map_err(refused)?.claims;
    let time = |claim: &str| match claims.get(claim) {
        None => Ok(None),
        // Seconds, which may have a fraction.
        Some(value) => match value.as_f64() {
            Some(seconds) if seconds.is_finite() => Ok(Some(seconds as i64)),
            _ => Err(TokenError::Claim(claim.to_owned())),
        },
    };
    let expires = time("exp")?.ok_or_else(|| TokenError::Claim("exp".to_owned()))?;
    if now >= expires.saturating_add(LEEWAY_SECONDS) {
        return Err(TokenError::Expired);
    }
    if time("nbf")?.is_some_and(|begins| now < begins.saturating_sub(LEEWAY_SECONDS)) {
        return Err(TokenError::Early);
    }
    let audiences = claims.get("aud").map(texts).unwrap_or_default();
    if !audiences.iter().any(|audience| expected.audiences.iter().any(|wanted| wanted == audience)) {
        return Err(TokenError::Audience);
    }
    for (claim, values) in expected.claims {
        let found = claims.get(claim).map(texts).unwrap_or_default();
        if !found.iter().any(|found| values.iter().any(|value| value == found)) {
            return Err(TokenError::Claim(claim.clone()));
        }
    }
    let missing = || TokenError::Claim(expected.principal_claim.to_owned());
    let principal = claims.get(expected.principal_claim).and_then(Value::as_str).filter(|text| !text.is_empty());
    let principal = principal.ok_or_else(missing)?.to_owned();
    // An address that the issuer has not seen proved may be that of somebody else.
    if expected.principal_claim == "email"
        && claims.get("email_verified").is_none_or(|proved| texts(proved) != ["true"])
    {
        return Err(TokenError::Claim("email_verified".to_owned()));
    }
    Ok(TokenHolder { principal })
}

/// The texts of a claim, which is one or a list of them. `true` and `false` count as texts.
fn texts(value: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    match value {
        Value::Array(values) => values.iter().filter_map(text).collect(),
        value => text(value).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests;
