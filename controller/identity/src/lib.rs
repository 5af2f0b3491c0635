//! Who callers are, and what they are granted: tokens of the cluster, tokens of issuers, and running jobs (`access`); which nodes may connect
//! (`enrollment`), and which controllers and nodes may join (`join_tokens`).

mod access;
mod authentication;
mod enrollment;
mod grants;
mod issuer_keys;
mod join_tokens;
mod sign_in;

use std::sync::Arc;

use atlas_desk::{Desk, Issuers};

pub use access::{CreatedToken, NewToken, acts_as_cluster, is_named_so, whoami};
pub use authentication::{Authentication, NotARootToken};
pub use enrollment::{GroupMember, create_node_token, enroll_member, enroll_node, is_enrolled};
pub use grants::is_granted;
pub use join_tokens::{create_join_token, create_salted_join_token, join_member, revoke_join_token};

use issuer_keys::IssuerKeys;

/// Finds out who sends a request.
pub struct Authenticator {
    desk: Arc<Desk>,
    authentication: Option<Authentication>,
    issuers: Arc<dyn Issuers>,
    issuer_keys: IssuerKeys,
}

impl Authenticator {
    /// One that checks tokens, or lets everybody do everything if there is no authentication.
    pub fn new(desk: Arc<Desk>, authentication: Option<Authentication>, issuers: Arc<dyn Issuers>) -> Self {
        Self { desk, authentication, issuers, issuer_keys: IssuerKeys::default() }
    }
}
