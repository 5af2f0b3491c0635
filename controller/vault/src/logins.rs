//! Logins of models and MCP servers that give access tokens: a person logs in once, the tokens are a sealed secret from then on, and the
//! leader renews them (`logins/renew.rs`). Refresh tokens never leave the controllers; workers get access tokens, one at a time.

mod renew;
mod server;

use atlas_desk::{Caller, Consistency, Error, requests};
use atlas_model::{CallError, CallErrorKind, LoginSpec, ModelSpec, Reference, login_secret};
use atlas_oauth::{Device, Expiry, Issuer, Poll, Proof, Request, ServerClient, ServerLogin, Tokens, UnixSeconds};
use atlas_objects::{SecretProvider, SecretSpec};
use atlas_state::State;
use atlas_types::{Command, Expect, Object, ObjectKey, ObjectKind, ObjectName, PutObject, SecretText};
use bytes::Bytes;

use crate::Vault;
use crate::seal::unseal;

pub(crate) use server::secret_of as secret_of_server;
pub use server::{BegunLogin, NewLogin, secret_name as server_login_secret};

/// How often a change of the secret is tried again after another client changed it at the same time.
const TRIES_MAX: usize = 5;

/// A login that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedIn {
    /// When the access token expires; none if it does not.
    pub expires_at: Option<UnixSeconds>,
    /// Whether it can be renewed without a person.
    pub renewable: bool,
}

/// What a question about a login on another device found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceLogin {
    /// Ask again, after this many seconds more than the time before.
    Wait {
        longer: u64,
    },
    Done(LoggedIn),
}

/// A login.
struct Login {
    /// The model or the MCP server.
    owner: ObjectKey,
    whose: Whose,
    /// The secret of its tokens.
    secret: ObjectKey,
}

/// Where the tokens of a login come from.
enum Whose {
    Model(Box<LoginSpec>),
    Server(Box<ServerClient>),
}

impl Login {
    /// The form in which tokens are kept.
    fn stored(&self, tokens: &Tokens) -> SecretText {
        match &self.whose {
            Whose::Model(_) => tokens.stored(),
            Whose::Server(client) => {
                ServerLogin { current: Some((tokens.clone(), (**client).clone())), begun: None }.stored()
            }
        }
    }

    /// Whether new tokens must say when they expire.
    fn expiry(&self) -> Expiry {
        match &self.whose {
            Whose::Model(_) => Expiry::Required,
            Whose::Server(_) => Expiry::Optional,
        }
    }
}

impl Vault {
    /// Exchanges the code of a login for tokens and keeps them.
    pub async fn log_in(&self, caller: &Caller, model: &str, proof: &Proof) -> Result<LoggedIn, Error> {
        let (login, issuer) = self.login(caller, model).await?;
        let answer = self.ask_issuer(&proof.exchange(&issuer)).await.map_err(|error| failed(&login.owner, &error))?;
        let secrets = issuer.secrets([("code", &proof.code), ("verifier", &proof.verifier)]);
        let tokens = Tokens::read((answer.0, &answer.1), self.unix_seconds(), Expiry::Optional, &secrets);
        self.logged_in(caller, &login, &tokens.map_err(|error| failed(&login.owner, &error))?).await
    }

    /// Begins a login on another device.
    pub async fn begin_device_login(&self, caller: &Caller, model: &str) -> Result<Device, Error> {
        let (login, issuer) = self.login(caller, model).await?;
        let none = || Error::Malformed(format!("the issuer of model \"{model}\" has no logins of devices"));
        let request = Device::request(&issuer).ok_or_else(none)?;
        let (status, body) = self.ask_issuer(&request).await.map_err(|error| failed(&login.owner, &error))?;
        Device::read(status, &body, self.unix_seconds()).map_err(|error| failed(&login.owner, &error))
    }

    /// Asks whether the person is done on the other device.
    pub async fn end_device_login(
        &self,
        caller: &Caller,
        model: &str,
        code: &SecretText,
    ) -> Result<DeviceLogin, Error> {
        let (login, issuer) = self.login(caller, model).await?;
        let (status, body) =
            self.ask_issuer(&Device::poll(&issuer, code)).await.map_err(|error| failed(&login.owner, &error))?;
        match Poll::read(&issuer, code, (status, &body), self.unix_seconds())
            .map_err(|error| failed(&login.owner, &error))?
        {
            Poll::Wait { longer } => Ok(DeviceLogin::Wait { longer }),
            Poll::Done(tokens) => Ok(DeviceLogin::Done(self.logged_in(caller, &login, &tokens).await?)),
        }
    }

    /// A model of the caller's namespace that has a login, and its issuer.
    async fn login(&self, caller: &Caller, model: &str) -> Result<(Login, Issuer), Error> {
        self.keys()?;
        let state = self.desk.state(Consistency::Linearizable).await?;
        let key = ObjectKey {
            namespace: caller.namespace.clone(),
            kind: ObjectKind::new("model")?,
            name: ObjectName::new(model)?,
        };
        let login = self.login_of(&state, &key)?;
        let issuer = self.issuer(&state, &login)?;
        Ok((login, issuer))
    }

    /// The login of a model or of an MCP server.
    fn login_of(&self, state: &State, owner: &ObjectKey) -> Result<Login, Error> {
        match owner.kind.as_str() {
            "mcp-server" => self.server_login(state, owner),
            _ => model_login(state, owner),
        }
    }

    /// The issuer, with the secret of the client.
    fn issuer(&self, state: &State, login: &Login) -> Result<Issuer, Error> {
        let spec = match &login.whose {
            Whose::Model(spec) => spec,
            Whose::Server(client) => return Ok(client.issuer()),
        };
        let secret = match spec.client_secret.as_deref().and_then(Reference::read) {
            Some(Reference::Secret(name)) => {
                let key = ObjectKey { name: ObjectName::new(name)?, ..login.secret.clone() };
                let none = || Error::UnknownObject(format!("there is no value of secret \"{name}\" in the store"));
                Some(self.stored(state, &key)?.ok_or_else(none)?.1)
            }
            Some(Reference::Variable(_)) | None => None,
        };
        Issuer::of(spec, secret).map_err(|error| Error::Malformed(error.to_string()))
    }

    /// The newest value of a secret in the store, with its version.
    fn stored(&self, state: &State, key: &ObjectKey) -> Result<Option<(u64, SecretText)>, Error> {
        let Some(object) = state.object(key) else { return Ok(None) };
        let spec = SecretSpec::read(&object.spec).map_err(|error| Error::internal("read a secret", &error))?;
        let Some(sealed) = spec.versions.last() else { return Ok(None) };
        let keys = self.keys()?;
        let value = unseal(keys, key, sealed).map_err(|error| Error::internal("unseal a secret", &error))?;
        Ok(Some((sealed.version, value)))
    }

    /// Keeps the tokens of a login that a person has just made.
    async fn logged_in(&self, caller: &Caller, login: &Login, tokens: &Tokens) -> Result<LoggedIn, Error> {
        let caller = caller.clone().with_request_id(None);
        for tried in 1.. {
            let state = self.desk.state(Consistency::Linearizable).await?;
            match self.keep(&caller, state.object(&login.secret).map(|object| &**object), login, tokens).await {
                Err(Error::ObjectChanged { .. }) if tried < TRIES_MAX => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        Ok(LoggedIn { expires_at: tokens.expires_at, renewable: tokens.refresh.is_some() })
    }

    /// Writes tokens as the newest version of a secret that no agent can read, if the secret is still `old`.
    async fn keep(&self, caller: &Caller, old: Option<&Object>, login: &Login, tokens: &Tokens) -> Result<(), Error> {
        let mut spec = match old {
            Some(object) => SecretSpec::read(&object.spec).map_err(|error| Error::internal("read a secret", &error))?,
            None => SecretSpec { readers: Some(Vec::new()), ..SecretSpec::default() },
        };
        spec.provider = SecretProvider::Store;
        spec.renewal = None;
        self.add_version(&login.secret, &mut spec, &login.stored(tokens))?;
        self.write_secret(caller, &login.secret, old, &mut spec).await
    }

    /// Writes the spec of a secret, if the object is still `old`.
    pub(crate) async fn write_secret(
        &self,
        caller: &Caller,
        key: &ObjectKey,
        old: Option<&Object>,
        spec: &mut SecretSpec,
    ) -> Result<(), Error> {
        let bytes = crate::secrets::fitting(spec)?;
        let command = Command::PutObject(PutObject {
            kind: key.kind.clone(),
            name: key.name.clone(),
            labels: old.map(|object| (*object.labels).clone()).unwrap_or_default(),
            spec: bytes.into(),
            spec_version: 1,
            expect: old.map_or(Expect::Absent, |object| Expect::Revision(object.revision)),
        });
        self.desk.propose(requests::of(caller, command)).await.map(|_| ())
    }

    /// Sends a request to an issuer.
    async fn ask_issuer(&self, request: &Request) -> Result<(u16, Bytes), CallError> {
        let unreachable = |why: String| CallError::new(CallErrorKind::Connection, format!("the issuer: {why}"));
        self.issuers.send(request).await.map_err(unreachable)
    }

    fn unix_seconds(&self) -> UnixSeconds {
        u64::try_from(self.desk.env.clock.wall().0 / 1_000_000).unwrap_or(0)
    }
}

/// The login of a model, by its key.
fn model_login(state: &State, model: &ObjectKey) -> Result<Login, Error> {
    let unknown = || Error::UnknownObject(format!("no such model: \"{}\"", model.name));
    let object = state.object(model).ok_or_else(unknown)?;
    let spec = ModelSpec::read(&object.spec).map_err(|error| Error::internal("read a model", &error))?;
    let none = || Error::Malformed(format!("model \"{}\" has no login; it takes a key or nothing", model.name));
    let name = ObjectName::new(&login_secret(model.name.as_str()))?;
    let secret = ObjectKey { namespace: model.namespace.clone(), kind: ObjectKind::new("secret")?, name };
    Ok(Login { owner: model.clone(), whose: Whose::Model(Box::new(spec.login.ok_or_else(none)?)), secret })
}

/// A model or an MCP server, for people.
fn named(owner: &ObjectKey) -> String {
    let what = if owner.kind.as_str() == "mcp-server" { "MCP server" } else { "model" };
    format!("{what} \"{}\"", owner.name)
}

/// A login that failed, in the words of the issuer.
fn failed(owner: &ObjectKey, error: &CallError) -> Error {
    Error::LoginFailed { owner: named(owner), why: error.message.clone(), passes: error.kind.is_transient() }
}
