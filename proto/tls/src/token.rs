//! Join tokens of nodes: `atn_AUTHORITY_SECRET_NODE`. A worker verifies the cluster by the first part before it sends
//! the secret.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::TlsError;
use crate::authority::{hexadecimal, unhexadecimal};

const PREFIX: &str = "atn_";

/// A join token of a node. Only its hash is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeToken {
    /// The SHA-256 of the cluster's certificate.
    pub authority: [u8; 32],
    pub(crate) secret: [u8; 32],
    /// The node that may join with it.
    pub node: String,
}

impl NodeToken {
    /// A token from 256 random bits.
    pub fn new(authority: [u8; 32], random: [u64; 4], node: &str) -> Self {
        let mut secret = [0; 32];
        for (bytes, word) in secret.chunks_exact_mut(8).zip(random) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Self { authority, secret, node: node.to_owned() }
    }

    /// Reads a token.
    pub fn read(text: &str) -> Result<Self, TlsError> {
        let rest = text.trim().strip_prefix(PREFIX).ok_or(TlsError::Token)?;
        let mut parts = rest.splitn(3, '_');
        let mut next = || parts.next().ok_or(TlsError::Token);
        let (authority, secret, node) = (next()?, next()?, next()?);
        let bytes = |digits| unhexadecimal(digits).ok_or(TlsError::Token);
        if node.is_empty() {
            return Err(TlsError::Token);
        }
        Ok(Self { authority: bytes(authority)?, secret: bytes(secret)?, node: node.to_owned() })
    }

    /// The text of the token, which only its node may know.
    pub fn text(&self) -> String {
        format!("{PREFIX}{}_{}_{}", hexadecimal(&self.authority), hexadecimal(&self.secret), self.node)
    }

    /// The hash by which the cluster knows the token, in hexadecimal digits.
    pub fn hash(&self) -> String {
        hexadecimal(&Sha256::digest(self.text().as_bytes()).into())
    }
}

impl fmt::Debug for NodeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}… of {}", self.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_written_and_never_printed() {
        let token = NodeToken::new([7; 32], [1, 2, 3, u64::MAX], "gpu_1.a:b");
        let text = token.text();
        assert_eq!(NodeToken::read(&format!("{text}\n")).expect("a token"), token);
        assert_eq!(format!("{token:?}"), "atn_… of gpu_1.a:b");
        assert_eq!(token.hash().len(), 64);
        let cut = text.replace("gpu_1.a:b", "");
        for wrong in ["", "atn_", "join-00", "atn_00_00_a", &cut, &text.replace("07", "+7"), &text.replace("07", "é")]
        {
            assert!(NodeToken::read(wrong).is_err(), "{wrong}");
        }
    }
}
