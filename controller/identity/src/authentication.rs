//! How callers prove who they are: tokens of this cluster, and the root token.

use atlas_access::{Access, Place, ROOT, Rights, SECRET_DIGITS, parts};
use atlas_desk::Error;
use atlas_objects::TokenSpec;
use atlas_state::State;
use atlas_types::Principal;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::grants::{access, key};

/// How callers of this controller prove who they are.
pub struct Authentication {
    pub(crate) root: Option<[u8; 32]>,
}

/// Why a token of the file of the root token is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the root token is atl_{ROOT}_ and {SECRET_DIGITS} hexadecimal digits")]
pub struct NotARootToken;

impl Authentication {
    /// Tokens are checked. Who shows the root token is the principal `root`, and may do everything; none if there is no such token.
    pub fn new(root: Option<&str>) -> Result<Self, NotARootToken> {
        let hash = |token: &str| {
            let (name, secret) = parts(token.trim()).ok_or(NotARootToken)?;
            if name == ROOT { Ok(hash(secret)) } else { Err(NotARootToken) }
        };
        Ok(Self { root: root.map(hash).transpose()? })
    }

    /// Who shows a token, and what it is granted in a state; none if the token is not one of this cluster's.
    pub fn identify(&self, state: &State, token: &str, now_ms: u64) -> Result<Option<Access>, Error> {
        let Some((name, secret)) = parts(token) else { return Ok(None) };
        let unknown = || Error::Unauthenticated("the token is not valid here");
        let shown = hash(secret);
        if name == ROOT {
            let is_root = self.root.is_some_and(|root| bool::from(root.ct_eq(&shown)));
            let all = || Access::new(root(), vec![(Place::Cluster, Rights::ALL)]);
            return if is_root { Ok(Some(all())) } else { Err(unknown()) };
        }
        let spec =
            key("token", name).and_then(|key| TokenSpec::read(&state.object(&key)?.spec).ok()).ok_or_else(unknown)?;
        let is_same = bytes(&spec.sha256).is_some_and(|stored| bool::from(stored.ct_eq(&shown)));
        if !is_same {
            return Err(unknown());
        }
        if spec.expires_ms.is_some_and(|expires| now_ms >= expires) {
            return Err(Error::Unauthenticated("the token has expired"));
        }
        let principal = Principal::new(&spec.principal).map_err(|_| unknown())?;
        Ok(Some(access(state, principal)))
    }
}

/// The principal of the root token.
pub(crate) fn root() -> Principal {
    // A constant that is a name.
    Principal::new(ROOT).unwrap_or_else(|_| Principal::cluster())
}

/// What is kept of the secret of a token.
pub(crate) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// The bytes of 64 hexadecimal digits.
fn bytes(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != SECRET_DIGITS {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use atlas_access::token;

    use super::*;

    #[test]
    fn a_root_token_is_checked_when_it_is_read() {
        assert!(Authentication::new(None).is_ok());
        assert!(Authentication::new(Some(&format!("{}\n", token(ROOT, [1, 2, 3, 4])))).is_ok());
        for wrong in ["", "secret", &token("ci", [0; 4])] {
            assert_eq!(Authentication::new(Some(wrong)).err(), Some(NotARootToken), "{wrong:?}");
        }
    }

    #[test]
    fn hashes_are_read_as_they_are_written() {
        let hash = hash("x");
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(bytes(&digits), Some(hash));
        assert_eq!(bytes("é".repeat(32).as_str()), None);
    }
}
