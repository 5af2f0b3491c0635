//! Join tokens: 128 random bits that nobody has to type.

use std::fmt;
use std::str::FromStr;

use atlas_env::Entropy;
use atlas_types::Digest;

const PREFIX: &str = "join-";
const DIGITS: usize = 32;

/// A join token. It is shown once, to whoever made it; logs and the state know its hash only.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(u128);

/// Why a text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a join token is \"{PREFIX}\" and {DIGITS} hex digits")]
pub(crate) struct NotAToken;

impl Token {
    /// A new token.
    pub(crate) fn draw(entropy: &dyn Entropy) -> Self {
        Self(entropy.u128())
    }

    /// SHA-256 of the token as it is written.
    pub(crate) fn hash(&self) -> Digest {
        atlas_service::digest_of(self.show().as_bytes())
    }

    /// The token itself.
    pub(crate) fn show(&self) -> String {
        format!("{PREFIX}{:032x}", self.0)
    }
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
