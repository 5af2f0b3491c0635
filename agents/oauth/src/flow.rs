//! The login with a browser: authorization code with PKCE.

use std::fmt;

use atlas_types::SecretText;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::{Body, Issuer, Request, answer, percent};

/// The path at which the browser comes back to this machine.
pub const CALLBACK_PATH: &str = "/callback";

/// Longest text that is taken from a person or a browser.
pub const INPUT_BYTES_MAX: usize = 8 << 10;

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
    #[error("another issuer answered the login")]
    Issuer,
    #[error("the issuer says that its answers name it, and this one does not: it may come from somebody else")]
    IssuerMissing,
    #[error("the text is longer than {INPUT_BYTES_MAX} bytes")]
    TooLong,
}

/// A login under way. It is used for one code. It has no `Debug`, because it contains what proves that the code is ours.
pub struct Login {
    verifier: SecretText,
    state: String,
    redirect_uri: String,
    /// Who must have sent the browser back, where issuers say so.
    issuer: Option<String>,
    /// Whether answers name the issuer.
    names_issuer: bool,
}

/// The code that an issuer gave, with the right state.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(SecretText);

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

impl Login {
    /// Begins a login. `redirect_uri` is an address of this machine, or one whose page shows the code; `random` is fresh.
    pub fn begin(redirect_uri: impl Into<String>, random: &[u8; 64]) -> Self {
        let (verifier, state) = random.split_at(32);
        Self {
            verifier: SecretText::new(URL_SAFE_NO_PAD.encode(verifier)),
            state: URL_SAFE_NO_PAD.encode(state),
            redirect_uri: redirect_uri.into(),
            issuer: None,
            names_issuer: false,
        }
    }

    /// The same login, for codes of this issuer alone (RFC 9207). `names_issuer` is whether the issuer says that its answers name it.
    #[must_use]
    pub fn of_issuer(self, issuer: impl Into<String>, names_issuer: bool) -> Self {
        Self { issuer: Some(issuer.into()), names_issuer, ..self }
    }

    /// The page that the person opens. None if the issuer has none.
    pub fn url(&self, issuer: &Issuer) -> Option<String> {
        let page = issuer.authorize_url.as_deref()?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose().as_bytes()));
        let scope = issuer.scopes.join(" ");
        let own = [
            ("response_type", "code"),
            ("client_id", &issuer.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("state", &self.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let further = issuer.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let scope = (!scope.is_empty()).then_some(("scope", scope.as_str()));
        let resource = issuer.resource.as_deref().map(|resource| ("resource", resource));
        let pairs: Vec<(&str, &str)> = own.into_iter().chain(scope).chain(resource).chain(further).collect();
        let separator = if page.contains('?') { '&' } else { '?' };
        Some(format!("{page}{separator}{}", percent::form(&pairs)))
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
        match (self.issuer.as_deref(), value("iss")) {
            (Some(known), Some(named)) if known != named => return Err(OauthError::Issuer),
            (Some(_), None) if self.names_issuer => return Err(OauthError::IssuerMissing),
            _ => {}
        }
        if let Some(error) = value("error") {
            let detail = value("error_description").map(|text| format!(": {text}")).unwrap_or_default();
            // The text is the issuer's, or that of whoever sent the browser here.
            return Err(OauthError::Refused(answer::bounded(&format!("{error}{detail}"))));
        }
        self.check(value("code"), value("state"))
    }

    fn check(&self, code: Option<&str>, state: Option<&str>) -> Result<Code, OauthError> {
        let present = |text: &&str| !text.is_empty();
        let state = state.filter(present).ok_or(OauthError::StateMissing)?;
        if state != self.state {
            return Err(OauthError::State);
        }
        Ok(Code(SecretText::new(code.filter(present).ok_or(OauthError::CodeMissing)?)))
    }

    /// What the one who exchanges the code must know.
    pub fn proof(self, code: Code) -> Proof {
        let Self { verifier, state, redirect_uri, issuer: _, names_issuer: _ } = self;
        Proof { code: code.0, verifier, state, redirect_uri }
    }
}

/// What is exchanged for tokens: a code, and that it is ours. It has no `Debug`.
pub struct Proof {
    pub code: SecretText,
    pub verifier: SecretText,
    pub state: String,
    pub redirect_uri: String,
}

impl Proof {
    /// The request that exchanges the code. Its answer is read with [`Tokens::read`](crate::Tokens::read).
    pub fn exchange(&self, issuer: &Issuer) -> Request {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", self.code.expose()),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", self.verifier.expose()),
        ];
        if issuer.body == Body::Json {
            pairs.push(("state", &self.state));
        }
        issuer.token_request(&pairs)
    }
}

/// A pair of a query. None if it is not encoded as it must be.
fn pair(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    Some((percent::decode(name)?, percent::decode(value)?))
}
