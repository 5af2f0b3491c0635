//! Issuers of tokens.

use atlas_model::{KnownIssuer, LoginSpec, TokenBody};
use atlas_types::SecretText;
use base64::Engine as _;

use crate::{Request, percent};

/// An issuer of tokens, and the client that the operator registered there. It has no `Debug`, because it contains the client's secret.
#[derive(Clone)]
pub struct Issuer {
    /// None if people log in on other devices only.
    pub authorize_url: Option<String>,
    pub token_url: String,
    /// Where codes for other devices come from, if the issuer has them.
    pub device_url: Option<String>,
    pub client_id: String,
    pub client_secret: Option<SecretText>,
    pub scopes: Vec<String>,
    pub redirect: Redirect,
    pub body: Body,
    /// Headers of requests to the token endpoint.
    pub headers: Vec<(String, String)>,
    /// Further parameters of the login page.
    pub parameters: Vec<(String, String)>,
    /// What tokens are for, if the issuer gives them for several servers (RFC 8707).
    pub resource: Option<String>,
    /// The client proves itself in the header of a request, and not in its body.
    pub basic: bool,
}

/// How the code comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirect {
    /// The browser is sent to a listener on this machine.
    Loopback,
    /// The page at this address shows `CODE#STATE`, which the person pastes.
    Paste(String),
}

/// The form of requests to the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    Form,
    /// With the state among the members when a code is exchanged.
    Json,
}

/// A login that names no token endpoint. Specs are checked before, so this is a spec of a newer program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the login of the model names no token endpoint")]
pub struct IssuerError;

impl Issuer {
    /// The issuer that the spec of a model names.
    pub fn of(spec: &LoginSpec, client_secret: Option<SecretText>) -> Result<Self, IssuerError> {
        let client_id = spec.client_id.clone();
        let mut issuer = match spec.issuer {
            Some(KnownIssuer::Gemini) => Self::gemini(client_id, client_secret),
            Some(KnownIssuer::Claude) => Self::claude(client_id, client_secret),
            None => Self { client_secret, ..Self::public(client_id, spec.token_url.clone().ok_or(IssuerError)?) },
        };
        issuer.authorize_url = spec.authorize_url.clone().or(issuer.authorize_url);
        issuer.token_url = spec.token_url.clone().unwrap_or(issuer.token_url);
        issuer.device_url = spec.device_url.clone().or(issuer.device_url);
        issuer.scopes = spec.scopes.clone().unwrap_or(issuer.scopes);
        issuer.redirect = spec.code_page.clone().map_or(issuer.redirect, Redirect::Paste);
        issuer.body = match spec.body {
            None => issuer.body,
            Some(TokenBody::Form) => Body::Form,
            Some(TokenBody::Json) => Body::Json,
        };
        issuer.headers.extend(spec.headers.clone());
        issuer.parameters.retain(|(name, _)| !spec.parameters.contains_key(name));
        issuer.parameters.extend(spec.parameters.clone());
        Ok(issuer)
    }

    /// An issuer where the client has no secret, and is asked for nothing beyond its tokens.
    pub fn public(client_id: impl Into<String>, token_url: impl Into<String>) -> Self {
        Self {
            authorize_url: None,
            token_url: token_url.into(),
            device_url: None,
            client_id: client_id.into(),
            client_secret: None,
            scopes: Vec::new(),
            redirect: Redirect::Loopback,
            body: Body::Form,
            headers: Vec::new(),
            parameters: Vec::new(),
            resource: None,
            basic: false,
        }
    }

    /// The issuer for Gemini. The second scope is sensitive: people see a warning until Google has verified the client.
    fn gemini(client_id: String, client_secret: Option<SecretText>) -> Self {
        let scope = |name: &str| format!("https://www.googleapis.com/auth/{name}");
        let scopes = ["generative-language.peruserquota", "generative-language.retriever", "userinfo.email"];
        Self {
            authorize_url: Some("https://accounts.google.com/o/oauth2/v2/auth".into()),
            token_url: "https://oauth2.googleapis.com/token".into(),
            device_url: None,
            client_id,
            client_secret,
            scopes: scopes.map(scope).to_vec(),
            redirect: Redirect::Loopback,
            body: Body::Form,
            headers: Vec::new(),
            // Without both the issuer gives a refresh token at the first login alone.
            parameters: vec![("access_type".into(), "offline".into()), ("prompt".into(), "consent".into())],
            resource: None,
            basic: false,
        }
    }

    /// The issuer for Claude.
    fn claude(client_id: String, client_secret: Option<SecretText>) -> Self {
        Self {
            authorize_url: Some("https://claude.ai/oauth/authorize".into()),
            token_url: "https://console.anthropic.com/v1/oauth/token".into(),
            device_url: None,
            client_id,
            client_secret,
            scopes: ["user:profile", "user:inference"].map(str::to_owned).to_vec(),
            redirect: Redirect::Paste("https://console.anthropic.com/oauth/code/callback".into()),
            body: Body::Json,
            headers: Vec::new(),
            parameters: vec![("code".into(), "true".into())],
            resource: None,
            basic: false,
        }
    }

    /// The request that renews an access token.
    pub fn refresh(&self, refresh_token: &SecretText) -> Request {
        self.token_request(&[("grant_type", "refresh_token"), ("refresh_token", refresh_token.expose())])
    }

    /// A request to the token endpoint, with what the client always says.
    pub(crate) fn token_request(&self, pairs: &[(&str, &str)]) -> Request {
        let mut pairs = pairs.to_vec();
        let mut headers = self.headers.clone();
        pairs.extend(self.resource.as_deref().map(|resource| ("resource", resource)));
        match self.client_secret.as_ref().filter(|_| self.basic) {
            Some(secret) => headers.push(("authorization".to_owned(), basic(&self.client_id, secret.expose()))),
            None => {
                pairs.push(("client_id", &self.client_id));
                pairs.extend(self.client_secret.as_ref().map(|secret| ("client_secret", secret.expose())));
            }
        }
        match self.body {
            Body::Form => Request::form(&self.token_url, &headers, &pairs),
            Body::Json => Request::json(&self.token_url, &headers, &pairs),
        }
    }

    /// What an error must not repeat: the secret of the client, and others by their names.
    pub fn secrets<'a>(
        &'a self,
        others: impl IntoIterator<Item = (&'static str, &'a SecretText)>,
    ) -> Vec<(&'static str, &'a SecretText)> {
        self.client_secret.iter().map(|secret| ("client_secret", secret)).chain(others).collect()
    }
}

/// The header of a client. The standard encodes both parts before, because they may contain a colon.
fn basic(id: &str, secret: &str) -> String {
    let text = format!("{}:{}", percent::encode(id), percent::encode(secret));
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
}
