//! The bearer token (compatibility §19.3).

use std::fmt;

use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

/// A bearer token, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token without the spaces around it; none if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Compares in a time that depends only on the lengths.
    fn is(&self, offered: &str) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), offered.as_bytes());
        let difference = ours.iter().zip(theirs).fold(0, |all, (ours, theirs)| all | (ours ^ theirs));
        ours.len() == theirs.len() && difference == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token")
    }
}

/// Refuses a request without the token: the status and the text.
pub(super) fn check(token: Option<&Token>, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    let Some(token) = token else { return Ok(()) };
    let offered = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let offered = offered.and_then(|value| value.strip_prefix("Bearer "));
    match offered {
        None => Err((StatusCode::UNAUTHORIZED, "Missing or invalid Authorization header")),
        Some(offered) if token.is(offered.trim()) => Ok(()),
        Some(_) => Err((StatusCode::FORBIDDEN, "Invalid token")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(header: Option<&'static str>) -> Option<u16> {
        let headers = header.map(|value| (AUTHORIZATION, http::HeaderValue::from_static(value))).into_iter().collect();
        let token = Token::new(" sekret ").expect("a token");
        check(Some(&token), &headers).err().map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_the_token_is_let_in() {
        assert_eq!(refusal(Some("Bearer sekret")), None);
        assert_eq!(refusal(Some("Bearer   sekret  ")), None);
        for missing in [None, Some("bearer sekret"), Some("Basic sekret"), Some("sekret"), Some("Bearer")] {
            assert_eq!(refusal(missing), Some(401), "{missing:?}");
        }
        for wrong in ["Bearer other", "Bearer sekre", "Bearer sekrets", "Bearer "] {
            assert_eq!(refusal(Some(wrong)), Some(403), "{wrong}");
        }
        assert_eq!(check(None, &HeaderMap::new()), Ok(()));
        assert_eq!(Token::new("  "), None);
    }
}
