//! Secrets and logins.

use atlas_model::login_secret;
use atlas_oauth::{Device, Proof};
use atlas_types::{Expect, SecretText};
use atlas_vault::{BegunLogin, DeviceLogin, LoggedIn, NewLogin, NewSecret, server_login_secret};

use crate::{Caller, Error, ObjectChange, Service, ShownObject};

impl Service {
    /// Sets the value of a secret as a new version, and makes the secret if there is none.
    pub async fn set_secret(&self, caller: &Caller, new: &NewSecret) -> Result<ShownObject, Error> {
        self.shared.vault.set_secret(caller, new).await
    }
}

/// Logins of models.
impl Service {
    /// Exchanges the code of a login for tokens and keeps them.
    pub async fn log_in(&self, caller: &Caller, model: &str, proof: &Proof) -> Result<LoggedIn, Error> {
        self.shared.vault.log_in(caller, model, proof).await
    }

    /// Begins a login on another device.
    pub async fn begin_device_login(&self, caller: &Caller, model: &str) -> Result<Device, Error> {
        self.shared.vault.begin_device_login(caller, model).await
    }

    /// Asks whether the person is done on the other device.
    pub async fn end_device_login(
        &self,
        caller: &Caller,
        model: &str,
        code: &SecretText,
    ) -> Result<DeviceLogin, Error> {
        self.shared.vault.end_device_login(caller, model, code).await
    }

    /// Forgets the tokens of a model. The issuer is not told.
    pub async fn log_out(&self, caller: &Caller, model: &str) -> Result<(), Error> {
        let (kind, name) = ("secret".to_owned(), login_secret(model));
        let change = ObjectChange { kind, name, expect: Expect::Any, dry_run: false };
        self.delete_object(caller, &change).await.map_err(|error| match error {
            Error::UnknownObject(_) => Error::UnknownObject(format!("there is no login of model \"{model}\"")),
            other => other,
        })
    }
}

/// Logins at MCP servers.
impl Service {
    /// Finds the issuer of an MCP server, and registers a client there. Tokens of an earlier login stay in use until the new one is complete.
    pub async fn begin_server_login(&self, caller: &Caller, name: &str, new: &NewLogin) -> Result<BegunLogin, Error> {
        self.shared.vault.begin_server_login(caller, name, new).await
    }

    /// Exchanges the code of a login that has begun for tokens, and keeps them.
    pub async fn end_server_login(&self, caller: &Caller, name: &str, proof: &Proof) -> Result<LoggedIn, Error> {
        self.shared.vault.end_server_login(caller, name, proof).await
    }

    /// Forgets the tokens of an MCP server. The issuer is not told.
    pub async fn log_out_of_server(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let change = ObjectChange {
            kind: "secret".to_owned(),
            name: server_login_secret(name),
            expect: Expect::Any,
            dry_run: false,
        };
        self.delete_object(caller, &change).await.map_err(|error| match error {
            Error::UnknownObject(_) => Error::UnknownObject(format!("there is no login at MCP server \"{name}\"")),
            other => other,
        })
    }
}
