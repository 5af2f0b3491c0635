//! The login with a browser: authorization code with PKCE.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::{EncodeError, Parts, Secret, percent};

/// The path at which the browser comes back to this machine.
pub const CALLBACK_PATH: &str = "/callback";

/// Longest text that is taken from a person or a browser.
const INPUT_BYTES_MAX: usize = 8 << 10;

/// An issuer of tokens, and the client that the operator registered there.
#[derive(Debug, Clone)]
pub struct Issuer {
    pub authorize_url: String,
    pub token_url: String,
    /// Where codes for other devices come from, if the issuer has them.
    pub device_url: Option<String>,
    pub client_id: String,
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    pub redirect: Redirect,
    pub body: Body,
    /// Headers of requests to the token endpoint.
    pub headers: Vec<(String, String)>,
    /// Further parameters of the login page.
    pub parameters: Vec<(String, String)>,
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

impl Issuer {
    /// The issuer for Gemini. The second scope is sensitive: people see a warning until Google has verified the client.
    pub fn gemini(client_id: String, client_secret: Secret) -> Self {
        let scope = |name: &str| format!("https://www.googleapis.com/auth/{name}");
        let scopes = ["generative-language.peruserquota", "generative-language.retriever", "userinfo.email"];
        Self {
            authorize_url: "https://accounts.google.com/o/oauth2/v2/auth".into(),
            token_url: "https://oauth2.googleapis.com/token".into(),
            device_url: None,
            client_id,
            client_secret: Some(client_secret),
            scopes: scopes.map(scope).to_vec(),
            redirect: Redirect::Loopback,
            body: Body::Form,
            headers: Vec::new(),
            // Without both the issuer gives a refresh token at the first login alone.
            parameters: vec![("access_type".into(), "offline".into()), ("prompt".into(), "consent".into())],
        }
    }

    /// The issuer for Claude.
    pub fn claude(client_id: String) -> Self {
        Self {
            authorize_url: "https://claude.ai/oauth/authorize".into(),
            token_url: "https://console.anthropic.com/v1/oauth/token".into(),
            device_url: None,
            client_id,
            client_secret: None,
            scopes: ["user:profile", "user:inference"].map(str::to_owned).to_vec(),
            redirect: Redirect::Paste("https://console.anthropic.com/oauth/code/callback".into()),
            body: Body::Json,
            headers: Vec::new(),
            parameters: vec![("code".into(), "true".into())],
        }
    }

    /// The request that renews an access token.
    pub fn refresh(&self, refresh_token: &Secret) -> Result<Parts, EncodeError> {
        self.token_parts(&[("grant_type", "refresh_token"), ("refresh_token", refresh_token.expose())])
    }

    /// A request to the token endpoint, with what the client always says.
    pub(super) fn token_parts(&self, pairs: &[(&str, &str)]) -> Result<Parts, EncodeError> {
        let mut pairs = pairs.to_vec();
        pairs.push(("client_id", &self.client_id));
        pairs.extend(self.client_secret.as_ref().map(|secret| ("client_secret", secret.expose())));
        let mut parts = match self.body {
            Body::Form => Parts::form(self.token_url.clone(), percent::form(&pairs)),
            Body::Json => {
                let members = pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
                Parts::post(self.token_url.clone(), &members.collect::<Map<_, _>>().into())
            }
        };
        self.headers.iter().try_for_each(|(name, value)| parts.header(name, value))?;
        Ok(parts)
    }

    /// What an error must not repeat.
    pub(super) fn secrets<'a>(&'a self, other: impl IntoIterator<Item = &'a Secret>) -> Vec<&'a Secret> {
        self.client_secret.iter().chain(other).collect()
    }
}

/// Why a login did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OauthError {
    #[error("the browser came back to another path than {CALLBACK_PATH}")]
    Path,
    #[error("the issuer refused the login: {0}")]
    Refused(String),
    #[error("the code is missing")]
    CodeMissing,
    #[error("the state is missing; a pasted text has the form CODE#STATE")]
    StateMissing,
    #[error("the state is not that of this login")]
    State,
    #[error("the text is longer than {INPUT_BYTES_MAX} bytes")]
    TooLong,
    #[error("the request of the browser cannot be read")]
    Request,
    #[error("could not listen for the browser: {0}")]
    Listen(String),
}

/// A login under way. It is used for one code.
#[derive(Debug)]
pub struct Login {
    verifier: Secret,
    state: String,
    redirect_uri: String,
}

/// The code that an issuer gave, with the right state.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(Secret);

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

impl Login {
    /// Begins a login. `redirect_uri` is that of [`loopback`](super::loopback) or of [`Redirect::Paste`]; `random` is fresh.
    pub fn begin(redirect_uri: impl Into<String>, random: &[u8; 64]) -> Self {
        let (verifier, state) = random.split_at(32);
        Self {
            verifier: URL_SAFE_NO_PAD.encode(verifier).into(),
            state: URL_SAFE_NO_PAD.encode(state),
            redirect_uri: redirect_uri.into(),
        }
    }

    /// The page that the person opens.
    pub fn url(&self, issuer: &Issuer) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose().as_bytes()));
        let scope = issuer.scopes.join(" ");
        let own = [
            ("response_type", "code"),
            ("client_id", &issuer.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("scope", &scope),
            ("state", &self.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let further = issuer.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs: Vec<(&str, &str)> = own.into_iter().chain(further).collect();
        let separator = if issuer.authorize_url.contains('?') { '&' } else { '?' };
        format!("{}{separator}{}", issuer.authorize_url, percent::form(&pairs))
    }

    /// Reads what the person pasted: `CODE#STATE`.
    pub fn pasted(&self, text: &str) -> Result<Code, OauthError> {
        if text.len() > INPUT_BYTES_MAX {
            return Err(OauthError::TooLong);
        }
        let (code, state) = text.trim().split_once('#').ok_or(OauthError::StateMissing)?;
        self.check(Some(code), Some(state))
    }

    /// Reads the target of the browser's request: path and query.
    pub fn callback(&self, target: &str) -> Result<Code, OauthError> {
        if target.len() > INPUT_BYTES_MAX {
            return Err(OauthError::TooLong);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path != CALLBACK_PATH {
            return Err(OauthError::Path);
        }
        let pairs: Vec<(String, String)> = query.split('&').filter_map(pair).collect();
        let value = |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        if let Some(error) = value("error") {
            let detail = value("error_description").map(|text| format!(": {text}")).unwrap_or_default();
            // The text is the issuer's, or that of whoever sent the browser here.
            return Err(OauthError::Refused(crate::failure::answer(format!("{error}{detail}")).message));
        }
        self.check(value("code"), value("state"))
    }

    fn check(&self, code: Option<&str>, state: Option<&str>) -> Result<Code, OauthError> {
        let present = |text: &&str| !text.is_empty();
        let state = state.filter(present).ok_or(OauthError::StateMissing)?;
        if state != self.state {
            return Err(OauthError::State);
        }
        Ok(Code(code.filter(present).ok_or(OauthError::CodeMissing)?.into()))
    }

    /// The request that exchanges the code for tokens. Its answer is read with [`Tokens::read`](super::Tokens::read).
    pub fn exchange(&self, issuer: &Issuer, code: &Code) -> Result<Parts, EncodeError> {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code.0.expose()),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", self.verifier.expose()),
        ];
        if issuer.body == Body::Json {
            pairs.push(("state", &self.state));
        }
        issuer.token_parts(&pairs)
    }
}

/// A pair of a query. None if it is not encoded as it must be.
fn pair(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    Some((percent::decode(name)?, percent::decode(value)?))
}
