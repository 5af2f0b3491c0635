//! Who callers, nodes and controllers are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_access::Access;
use atlas_api::types::Whoami;
use atlas_identity::{CreatedToken, GroupMember, NewToken};
use atlas_types::{Digest, JoinKind, MemberId, Micros, RequestId};

use crate::{Caller, Error, Service};

/// Callers.
impl Service {
    /// Who sends a request with this value of `Authorization`. While authentication is off, everybody is the principal `local` and may
    /// do everything.
    pub async fn authenticate(&self, authorization: Option<&str>) -> Result<Option<Arc<Access>>, Error> {
        self.shared.authenticator.authenticate(authorization).await
    }

    /// Whether a text is the root token of this controller.
    pub fn is_root_token(&self, text: &str) -> bool {
        self.shared.authenticator.is_root_token(text)
    }

    /// Who a caller is and what it is granted.
    pub fn whoami(&self, caller: &Caller) -> Whoami {
        atlas_identity::whoami(caller)
    }

    /// Makes a token. Its text is in the answer alone.
    pub async fn create_token(&self, caller: &Caller, new: &NewToken) -> Result<CreatedToken, Error> {
        self.shared.authenticator.create_token(caller, new).await
    }

    /// The addresses of all issuers whose tokens are accepted, with the client by which people log in there. None while authentication is
    /// off.
    pub async fn issuer_addresses(&self) -> Result<BTreeMap<String, Option<String>>, Error> {
        self.shared.authenticator.issuer_addresses().await
    }
}

/// Nodes.
impl Service {
    /// Records the hash of a new join token for a node, instead of an earlier one. Returns when the token expires, in milliseconds since 1970.
    pub async fn create_node_token(
        &self,
        caller: &Caller,
        node: &str,
        hash: &str,
        valid_for: Duration,
    ) -> Result<u64, Error> {
        atlas_identity::create_node_token(&self.shared, caller, node, hash, valid_for).await
    }

    /// Uses a join token up: from now on the node is recognised by this key. Both hashes are hexadecimal digits.
    pub async fn enroll_node(&self, caller: &Caller, node: &str, token: &str, public_key: &str) -> Result<(), Error> {
        atlas_identity::enroll_node(&self.shared, caller, node, token, public_key).await
    }

    /// Recognises a node of a group by its key from now on. A repeat with the same key changes nothing.
    pub async fn enroll_member(&self, caller: &Caller, member: GroupMember<'_>) -> Result<(), Error> {
        atlas_identity::enroll_member(&self.shared, caller, member).await
    }

    /// Whether a node may connect with this key, by the state as this controller has applied it.
    pub fn is_enrolled(&self, node: &str, public_key: &[u8; 32]) -> bool {
        atlas_identity::is_enrolled(&self.shared, node, public_key)
    }
}

/// Controllers.
impl Service {
    /// Creates a join token, of which only the hash is known here. It is valid for `ttl`, at most an hour, and for one
    /// use.
    pub async fn create_join_token(
        &self,
        caller: &Caller,
        hash: Digest,
        kind: JoinKind,
        ttl: Duration,
    ) -> Result<(), Error> {
        atlas_identity::create_join_token(&self.shared, caller, hash, kind, ttl).await
    }

    /// Like [`Self::create_join_token`], for a token derived from `salt` and the caller's idempotency key. Returns the
    /// salt of the first such request and the remaining validity of its token.
    pub async fn create_salted_join_token(
        &self,
        caller: &Caller,
        salted: (Digest, u128),
        kind: JoinKind,
        ttl: Duration,
    ) -> Result<(u128, Micros), Error> {
        atlas_identity::create_salted_join_token(&self.shared, caller, salted, kind, ttl).await
    }

    /// Revokes a join token. Revoking an unknown token is not an error.
    pub async fn revoke_join_token(&self, caller: &Caller, hash: Digest) -> Result<(), Error> {
        atlas_identity::revoke_join_token(&self.shared, caller, hash).await
    }

    /// Uses up a token and returns a number above `above` for the joining controller. A repeat of the request gets the
    /// same number.
    pub async fn join_member(
        &self,
        caller: &Caller,
        hash: Digest,
        above: MemberId,
        request_id: RequestId,
    ) -> Result<MemberId, Error> {
        atlas_identity::join_member(&self.shared, caller, hash, above, request_id).await
    }
}
