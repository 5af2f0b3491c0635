//! Values of secrets, which are sealed in the state (`seal`, `secrets`); logins of models and MCP servers, whose tokens are such values
//! (`logins`); and what a job gets of them (`named`).

mod logins;
mod named;
pub mod seal;
mod secrets;

use std::sync::Arc;

use atlas_desk::{Desk, Error, Issuers, Turns};

pub use logins::{BegunLogin, DeviceLogin, LoggedIn, NewLogin, server_login_secret};
pub use named::{Asks, NamedObjects, Withheld, not_allowed};
pub use seal::{KeyError, Keys, UnsealError};
pub use secrets::NewSecret;

/// The secrets and the logins that a controller can open.
pub struct Vault {
    desk: Arc<Desk>,
    keys: Option<Keys>,
    issuers: Arc<dyn Issuers>,
    /// The logins whose tokens are being renewed here.
    renewals: Turns,
}

impl Vault {
    /// A controller without keys can neither seal nor unseal values.
    pub fn new(desk: Arc<Desk>, keys: Option<Keys>, issuers: Arc<dyn Issuers>) -> Self {
        Self { desk, keys, issuers, renewals: Turns::default() }
    }

    /// The keys that seal and unseal.
    pub fn keys(&self) -> Result<&Keys, Error> {
        self.keys.as_ref().ok_or(Error::NoSecretsKey)
    }
}
