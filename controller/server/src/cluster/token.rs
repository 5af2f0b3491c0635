//! Join tokens: 128 random bits, not meant to be typed.

use std::fmt;
use std::str::FromStr;

use atlas_env::Entropy;
use atlas_service::{Error, digest_of};
use atlas_types::{Digest, RequestId};

const PREFIX: &str = "join-";
const DIGITS: usize = 32;

/// A join token. Only its creator sees it, once. Logs and the state contain only its hash.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(u128);

/// Why a text is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a join token is \"{PREFIX}\" and {DIGITS} hex digits")]
pub(crate) struct NotAToken;

impl Token {
    /// A new token.
    pub(crate) fn draw(entropy: &dyn Entropy) -> Self {
        Self(entropy.u128())
    }

    /// The token for a request with the idempotency key `key`, which is the same for the same salt. Logs and the state
    /// contain the salt but not the key.
    pub(crate) fn of(salt: u128, key: &RequestId) -> Self {
        let made = digest_of(&[b"atlas join token\0", &salt.to_be_bytes()[..], key.as_str().as_bytes()].concat());
        Self(u128::from_be_bytes(std::array::from_fn(|at| made.0[at])))
    }

    /// The SHA-256 of the token's text.
    pub(crate) fn hash(&self) -> Digest {
        digest_of(self.show().as_bytes())
    }

    /// The token's text.
    pub(crate) fn show(&self) -> String {
        format!("{PREFIX}{:032x}", self.0)
    }
}

/// The name of a token request in the log and the state. The client's own key is hashed, because it would reveal the
/// token.
pub(crate) fn name_of(key: &RequestId) -> Result<RequestId, Error> {
    let hash = digest_of(&[b"atlas join token request\0", key.as_str().as_bytes()].concat());
    Ok(RequestId::new(&format!("{PREFIX}{hash}"))?)
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}…")
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == DIGITS).ok_or(NotAToken)?;
        if !digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(NotAToken);
        }
        u128::from_str_radix(digits, 16).map(Self).map_err(|_| NotAToken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_request_has_its_token_and_hides_its_name() {
        let (key, other) = (RequestId::new("one").expect("a name"), RequestId::new("two").expect("a name"));
        assert_eq!(Token::of(1, &key), Token::of(1, &key));
        assert_ne!(Token::of(1, &key), Token::of(2, &key));
        assert_ne!(Token::of(1, &key), Token::of(1, &other));
        let name = name_of(&key).expect("a name");
        assert!(name != name_of(&other).expect("a name") && !name.as_str().contains("one") && !name.is_generated());
    }

    #[test]
    fn a_token_is_read_as_it_is_shown_and_never_printed() {
        let token = Token(0xabc);
        assert_eq!(token.show(), "join-00000000000000000000000000000abc");
        assert_eq!(token.show().parse(), Ok(token.clone()));
        assert_eq!(format!("{token:?}"), "join-…");
        for text in
            ["", "join-", "join-abc", "join-+0000000000000000000000000000abc", "JOIN-00000000000000000000000000000abc"]
        {
            assert_eq!(text.parse::<Token>(), Err(NotAToken), "{text}");
        }
    }
}
