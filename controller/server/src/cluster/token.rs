//! Join tokens: 128 random bits that nobody has to type.

use std::fmt;
use std::str::FromStr;

use atlas_env::Entropy;
use atlas_service::{Error, digest_of};
use atlas_types::{Digest, RequestId};

const PREFIX: &str = "join-";
const DIGITS: usize = 32;

/// A join token. It is shown once, to its creator; logs and the state know its hash only.
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

    /// The token that the request called `key` gets: the same for the same salt. Logs and the state have the salt and not the key.
    pub(crate) fn of(salt: u128, key: &RequestId) -> Self {
        let made = digest_of(&[b"atlas join token\0", &salt.to_be_bytes()[..], key.as_str().as_bytes()].concat());
        Self(u128::from_be_bytes(std::array::from_fn(|at| made.0[at])))
    }

    /// SHA-256 of the token as it is written.
    pub(crate) fn hash(&self) -> Digest {
        digest_of(self.show().as_bytes())
    }

    /// The token itself.
    pub(crate) fn show(&self) -> String {
        format!("{PREFIX}{:032x}", self.0)
    }
}

/// What a request for a token is called in the log and the state: its own name would give the token away.
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
