//! Logins at MCP servers. The server names its issuer, where Atlas registers itself as a client of its own, unless the operator names one.
//! What is needed to renew the tokens is in the same sealed secret as they are.

use atlas_desk::{Caller, Consistency, Error, Issuers};
use atlas_mcp_spec::ServerSpec;
use atlas_model::{CallError, CallErrorKind, Reference};
use atlas_oauth::{
    Client, ClientRegistration, Endpoints, Expiry, OFFLINE_SCOPE, Proof, Request, Resource, ServerClient, ServerLogin,
    Tokens, challenged_scopes, issuer_urls, registration, resource_urls,
};
use atlas_objects::{SecretProvider, SecretSpec};
use atlas_state::State;
use atlas_types::{Object, ObjectKey, ObjectKind, ObjectName, SecretText};
use serde_json::json;

use super::renew::LOOK_EVERY;
use super::{LoggedIn, Login, TRIES_MAX, Whose, failed};
use crate::Vault;

/// What a person says when a login begins.
#[derive(Debug, Clone)]
pub struct NewLogin {
    /// Where the browser comes back.
    pub redirect_uri: String,
    /// The client that the operator registered; none to register one.
    pub client_id: Option<String>,
    /// A reference to its secret.
    pub client_secret: Option<String>,
    /// Instead of the scopes that the server names; those of the login before are kept in any case.
    pub scopes: Option<Vec<String>>,
}

/// What the login page needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunLogin {
    pub issuer: String,
    pub authorize_url: String,
    pub client_id: String,
    pub scopes: Vec<String>,
    pub resource: String,
    /// Whether the answers of the login page name the issuer.
    pub names_issuer: bool,
}

impl Vault {
    /// Finds the issuer of an MCP server, and registers a client there. Tokens of an earlier login stay in use until the new one is complete.
    pub async fn begin_server_login(&self, caller: &Caller, name: &str, new: &NewLogin) -> Result<BegunLogin, Error> {
        let owner = server_key(caller, name)?;
        let state = self.private_state().await?;
        let spec = server_of(&state, &owner)?;
        let url = spec.url.clone().unwrap_or_default();
        let (resource, challenged) = resource(&*self.issuers, &url).await.map_err(|error| failed(&owner, &error))?;
        let endpoints = self.endpoints(&resource.issuer, &url).await.map_err(|error| failed(&owner, &error))?;
        let current = self.stored(&state, &secret_of(&owner)?)?.map(|(_, text)| ServerLogin::from_stored(&text));
        let current = current.and_then(|login| login.current).map(|(_, client)| client);
        let mut scopes = new.scopes.clone().or(challenged).unwrap_or(resource.scopes);
        // A server that asks for one more scope does not want the others to be given up.
        let kept = current.filter(|client| client.server == url && client.issuer == endpoints.issuer);
        let offline = (endpoints.offline_scope && new.scopes.is_none()).then(|| OFFLINE_SCOPE.to_owned());
        for scope in kept.into_iter().flat_map(|client| client.scopes).chain(offline) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        let ClientRegistration { client, basic } = match &new.client_id {
            Some(id) => {
                let client = Client { id: id.clone(), secret: self.client_secret(&state, caller, new)? };
                ClientRegistration { client, basic: None }
            }
            None => {
                let client = self.register_client(&endpoints, &new.redirect_uri, &scopes).await;
                client.map_err(|error| failed(&owner, &error))?
            }
        };
        let names_issuer = endpoints.names_issuer;
        let begun = ServerClient {
            server: url,
            resource: resource.resource,
            issuer: endpoints.issuer,
            authorize_url: endpoints.authorize_url,
            token_url: endpoints.token_url,
            scopes,
            client,
            basic: basic.unwrap_or(endpoints.basic),
        };
        let shown = BegunLogin {
            issuer: begun.issuer.clone(),
            authorize_url: begun.authorize_url.clone(),
            client_id: begun.client.id.clone(),
            scopes: begun.scopes.clone(),
            resource: begun.resource.clone(),
            names_issuer,
        };
        self.change_login(caller, &owner, |login| login.begun = Some(begun.clone())).await?;
        Ok(shown)
    }

    /// Exchanges the code of a login that has begun for tokens, and keeps them.
    pub async fn end_server_login(&self, caller: &Caller, name: &str, proof: &Proof) -> Result<LoggedIn, Error> {
        let owner = server_key(caller, name)?;
        let state = self.private_state().await?;
        let spec = server_of(&state, &owner)?;
        let stored = self.stored(&state, &secret_of(&owner)?)?.map(|(_, text)| ServerLogin::from_stored(&text));
        let begun = stored.and_then(|login| login.begun).filter(|begun| Some(&begun.server) == spec.url.as_ref());
        let none = || Error::Malformed(format!("no login at MCP server \"{name}\" has begun"));
        let begun = begun.ok_or_else(none)?;
        let issuer = begun.issuer();
        let (status, body) = self.ask_issuer(&proof.exchange(&issuer)).await.map_err(|error| failed(&owner, &error))?;
        let secrets = issuer.secrets([("code", &proof.code), ("verifier", &proof.verifier)]);
        let tokens = Tokens::read((status, &body), self.unix_seconds(), Expiry::Optional, &secrets);
        let tokens = tokens.map_err(|error| failed(&owner, &error))?;
        let current = (tokens.clone(), begun);
        self.change_login(caller, &owner, |login| {
            *login = ServerLogin { current: Some(current.clone()), begun: None };
        })
        .await?;
        Ok(LoggedIn { expires_at: tokens.expires_at, renewable: tokens.refresh.is_some() })
    }

    /// The login whose tokens an MCP server gets.
    pub(super) fn server_login(&self, state: &State, owner: &ObjectKey) -> Result<Login, Error> {
        let spec = server_of(state, owner)?;
        let secret = secret_of(owner)?;
        let stored = self.stored(state, &secret)?.and_then(|(_, text)| ServerLogin::from_stored(&text).current);
        let none = || Error::Malformed("nobody has logged in".to_owned());
        let (_, client) = stored.ok_or_else(none)?;
        // Whoever changes the address must not get the tokens.
        if spec.url.as_ref() != Some(&client.server) {
            return Err(Error::Malformed("the address of the server has changed since the login".to_owned()));
        }
        Ok(Login { owner: owner.clone(), whose: Whose::Server(Box::new(client)), secret })
    }

    /// The state, if values can be sealed.
    async fn private_state(&self) -> Result<State, Error> {
        self.keys()?;
        self.desk.state(Consistency::Linearizable).await
    }

    async fn endpoints(&self, issuer: &str, server: &str) -> Result<Endpoints, CallError> {
        let unreachable = |why: String| CallError::new(CallErrorKind::Connection, format!("the issuer: {why}"));
        for place in issuer_urls(issuer)? {
            let found = self.issuers.fetch(&place).await.map_err(unreachable)?;
            if found.status == 200 {
                return Endpoints::read(&found.body, issuer, server);
            }
        }
        Err(CallError::new(CallErrorKind::Answer, format!("the issuer {issuer:?} does not describe itself")))
    }

    async fn register_client(
        &self,
        endpoints: &Endpoints,
        redirect: &str,
        scopes: &[String],
    ) -> Result<ClientRegistration, CallError> {
        let none = || {
            let text = "clients cannot register themselves at the issuer: register one there, then atlasctl mcp login NAME --client-id ID";
            CallError::new(CallErrorKind::Answer, text)
        };
        let request = registration(endpoints, redirect, scopes).ok_or_else(none)?;
        let (status, body) = self.ask_issuer(&request).await?;
        ClientRegistration::read(status, &body)
    }

    /// The secret of the operator's client.
    fn client_secret(&self, state: &State, caller: &Caller, new: &NewLogin) -> Result<Option<SecretText>, Error> {
        let Some(reference) = &new.client_secret else { return Ok(None) };
        let Some(Reference::Secret(name)) = Reference::read(reference) else {
            let text = "the secret of the client is named as secret://NAME";
            return Err(Error::Malformed(text.to_owned()));
        };
        let (namespace, kind) = (caller.namespace.clone(), ObjectKind::new("secret")?);
        let key = ObjectKey { namespace, kind, name: ObjectName::new(name)? };
        let none = || Error::UnknownObject(format!("there is no value of secret \"{name}\" in the store"));
        Ok(Some(self.stored(state, &key)?.ok_or_else(none)?.1))
    }

    /// Changes the login that is kept.
    async fn change_login(
        &self,
        caller: &Caller,
        owner: &ObjectKey,
        change: impl Fn(&mut ServerLogin),
    ) -> Result<(), Error> {
        let caller = caller.clone().with_request_id(None);
        let key = secret_of(owner)?;
        let mut tries = 0;
        loop {
            let state = self.desk.state(Consistency::Linearizable).await?;
            let old: Option<&Object> = state.object(&key).map(|object| &**object);
            let mut spec = match old {
                Some(object) => {
                    SecretSpec::read(&object.spec).map_err(|error| Error::internal("read a secret", &error))?
                }
                None => SecretSpec { readers: Some(Vec::new()), ..SecretSpec::default() },
            };
            // New tokens of a renewal under way would be lost with this version.
            if spec.renewal.is_some_and(|until| self.unix_seconds() < until) {
                self.desk.env.clock.sleep(LOOK_EVERY).await;
                continue;
            }
            let mut login =
                self.stored(&state, &key)?.map(|(_, text)| ServerLogin::from_stored(&text)).unwrap_or_default();
            change(&mut login);
            spec.provider = SecretProvider::Store;
            spec.renewal = None;
            self.add_version(&key, &mut spec, &login.stored())?;
            tries += 1;
            match self.write_secret(&caller, &key, old, &mut spec).await {
                Err(Error::ObjectChanged { .. }) if tries < TRIES_MAX => {}
                other => return other,
            }
        }
    }
}

/// What the server says about its tokens, and the scopes that its refusal asks for.
async fn resource(issuers: &dyn Issuers, url: &str) -> Result<(Resource, Option<Vec<String>>), CallError> {
    let unreachable = |why: String| CallError::new(CallErrorKind::Connection, format!("the MCP server: {why}"));
    let mut refused = issuers.fetch(url).await.map_err(unreachable)?;
    if refused.status != 401 || refused.challenge.is_none() {
        // Some servers know no GET, or answer it to everybody. Others never answer this; they may describe themselves all the same.
        if let Ok(asked) = issuers.ask(&handshake(url)).await {
            refused = asked;
        }
    }
    let challenge = refused.challenge.as_deref().filter(|_| refused.status == 401);
    for place in resource_urls(url, challenge)? {
        let found = issuers.fetch(&place).await.map_err(unreachable)?;
        if found.status == 200 {
            return Ok((Resource::read(&found.body, url)?, challenge.and_then(challenged_scopes)));
        }
    }
    let text = "it does not say who gives tokens for it; servers with other credentials take them in their headers";
    Err(CallError::new(CallErrorKind::Answer, text))
}

/// The first request of every client of an MCP server.
fn handshake(url: &str) -> Request {
    let message = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "atlas", "version": env!("CARGO_PKG_VERSION") },
        },
    });
    Request {
        url: url.to_owned(),
        content_type: "application/json",
        headers: vec![("accept".to_owned(), "text/event-stream".to_owned())],
        body: SecretText::new(message.to_string()),
    }
}

/// The name of the secret that holds the login at an MCP server. A model of the same name has another one.
pub fn secret_name(server: &str) -> String {
    format!("{server}.mcp-login")
}

pub(crate) fn secret_of(owner: &ObjectKey) -> Result<ObjectKey, Error> {
    let (namespace, kind) = (owner.namespace.clone(), ObjectKind::new("secret")?);
    Ok(ObjectKey { namespace, kind, name: ObjectName::new(&secret_name(owner.name.as_str()))? })
}

fn server_key(caller: &Caller, name: &str) -> Result<ObjectKey, Error> {
    let (namespace, kind) = (caller.namespace.clone(), ObjectKind::new("mcp-server")?);
    Ok(ObjectKey { namespace, kind, name: ObjectName::new(name)? })
}

/// The definition of a server that can have a login.
fn server_of(state: &State, key: &ObjectKey) -> Result<ServerSpec, Error> {
    let name = &key.name;
    let object = state.object(key).ok_or_else(|| Error::UnknownObject(format!("no such MCP server: \"{name}\"")))?;
    let spec = ServerSpec::read(&object.spec).map_err(|error| Error::internal("read an MCP server", &error))?;
    match spec.login_refused() {
        Some(why) => Err(Error::Malformed(format!("MCP server \"{name}\" {why}, so it has no login"))),
        None => Ok(spec),
    }
}

#[cfg(test)]
mod tests {
    use atlas_desk::Fetched;
    use bytes::Bytes;
    use futures::future::{BoxFuture, FutureExt as _, ready};

    use super::*;

    /// A server that knows no GET and never answers a POST, with a description at the usual place.
    struct Silent;

    impl Issuers for Silent {
        fn send<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<(u16, Bytes), String>> {
            ready(Err("no answer within 30 s".to_owned())).boxed()
        }

        fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Fetched, String>> {
            let described = r#"{"resource": "https://a.example/mcp", "authorization_servers": ["https://b.example"]}"#;
            let (status, body) = match url {
                "https://a.example/.well-known/oauth-protected-resource/mcp" => (200, described),
                _ => (405, ""),
            };
            ready(Ok(Fetched { status, challenge: None, body: body.into() })).boxed()
        }

        fn ask<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Fetched, String>> {
            ready(Err("no answer within 30 s".to_owned())).boxed()
        }
    }

    #[tokio::test]
    async fn a_server_that_never_answers_a_post_may_describe_itself() {
        let (found, scopes) = resource(&Silent, "https://a.example/mcp").await.expect("a description");
        assert_eq!((found.issuer.as_str(), scopes), ("https://b.example", None));
    }
}
