//! Join tokens of groups: `atg_SECRET`. Machines that come and go make their own node tokens from it
//! ([ADR 61](../../../docs/adr/0061-join-tokens-of-groups.md)).

use std::fmt;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::authority::{hexadecimal, unhexadecimal};
use crate::{NodeToken, TlsError, private_text};

const PREFIX: &str = "atg_";
/// Distinguishes the hashes of this kind from others of the same secret.
const PURPOSE: &[u8] = b"atlas join token of a group\0";

/// A join token of a group of nodes. The controllers have it, and so do the machines of the group when they join.
#[derive(Clone)]
pub struct GroupToken([u8; 32]);

impl GroupToken {
    /// A token from 256 random bits.
    pub fn new(random: [u64; 4]) -> Self {
        let mut secret = [0; 32];
        for (bytes, word) in secret.chunks_exact_mut(8).zip(random) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Self(secret)
    }

    /// Reads a token.
    pub fn read(text: &str) -> Result<Self, TlsError> {
        let digits = text.trim().strip_prefix(PREFIX).ok_or(TlsError::GroupToken)?;
        unhexadecimal(digits).map(Self).ok_or(TlsError::GroupToken)
    }

    /// Reads the token in a file that not everybody may read.
    pub fn in_file(path: &Path) -> Result<Self, TlsError> {
        let text = private_text(path).map_err(|source| TlsError::File { path: path.to_owned(), source })?;
        Self::read(&text)
    }

    /// The text of the token.
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", hexadecimal(&self.0))
    }

    /// The token of one node of the group. Who learns it can join as this node only. It names no authority, and so stays the same
    /// when that is replaced: the node knows it by a file.
    pub fn of_node(&self, node: &str) -> NodeToken {
        NodeToken { authority: [0; 32], secret: self.secret_of(node), node: node.to_owned() }
    }

    /// Whether a node token was made from this one.
    pub fn made(&self, token: &NodeToken) -> bool {
        bool::from(self.secret_of(&token.node).ct_eq(&token.secret))
    }

    fn secret_of(&self, node: &str) -> [u8; 32] {
        Sha256::new().chain_update(PURPOSE).chain_update(self.0).chain_update(node.as_bytes()).finalize().into()
    }
}

impl fmt::Debug for GroupToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_of_a_group_has_a_token_of_its_own() {
        let group = GroupToken::new([1, 2, 3, u64::MAX]);
        let read = GroupToken::read(&format!("{}\n", group.text())).expect("a token");
        let token = read.of_node("cpu-a");
        assert_eq!(NodeToken::read(&token.text()).expect("a node token"), token);
        assert!(group.made(&token));
        assert!(!group.made(&NodeToken { node: "cpu-b".to_owned(), ..token }), "the token of another node");
        assert!(!group.made(&NodeToken::new([7; 32], [1, 2, 3, u64::MAX], "cpu-a")), "the secret of the group itself");
        assert!(!GroupToken::new([0; 4]).made(&token), "another group");
        assert_eq!(format!("{group:?}"), "atg_…");
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let text = GroupToken::new([1; 4]).text();
        for wrong in ["", "atg_", "atg_00", &text.replace("atg", "atn"), &format!("{text}0"), &text.to_uppercase()] {
            assert!(GroupToken::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_everybody_may_read_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("group.token");
        std::fs::write(&path, GroupToken::new([1; 4]).text()).expect("written");
        let mode = |mode| {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
        };
        mode(0o440);
        assert!(GroupToken::in_file(&path).is_ok());
        mode(0o444);
        assert!(GroupToken::in_file(&path).is_err());
        assert!(GroupToken::in_file(&dir.path().join("none")).is_err());
    }
}
