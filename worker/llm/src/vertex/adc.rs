//! Google's application-default credentials: a file with a refresh token or with the key of a service account.

use atlas_model::{CallError, CallErrorKind};
use atlas_oauth::{Expiry, Tokens};
use atlas_types::SecretText;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::auth::{TokenCache, TokenSource};
use crate::{Parts, Secret, UnixSeconds, json, percent};

const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Largest file of credentials that is read.
pub const FILE_BYTES_MAX: usize = 64 << 10;

/// Lifetime of the statement that a service account signs, the longest that the issuer takes.
const ASSERTION_SECONDS: u64 = 3600;

/// Why a file of credentials cannot be used. No value of the file is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdcError {
    #[error("the file is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the file is no JSON")]
    Json,
    #[error("the member \"{0}\" is missing")]
    Missing(&'static str),
    #[error("credentials of the type {0:?} are not supported, but \"authorized_user\" and \"service_account\" are")]
    Unsupported(String),
    #[error("the member \"private_key\" is no RSA key in PEM")]
    Key,
    #[error("the member \"token_uri\" does not begin with https://")]
    TokenUri,
}

/// Application-default credentials with the token that they gave.
#[derive(Debug)]
pub struct Adc {
    grant: Grant,
    token_url: String,
    tokens: TokenCache,
    /// The project that pays, if the file names one.
    pub quota_project: Option<String>,
}

#[derive(Debug)]
enum Grant {
    Refresh { client_id: String, client_secret: Secret, refresh_token: Secret },
    Account { email: String, key_id: Option<String>, private_key: Secret },
}

impl Adc {
    /// Reads the text of a file of credentials.
    pub fn parse(text: &str) -> Result<Self, AdcError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(AdcError::TooLarge);
        }
        let file = json::parse(text.as_bytes()).map_err(|_| AdcError::Json)?;
        let member = |name: &'static str| file.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let required = |name: &'static str| member(name).ok_or(AdcError::Missing(name));
        let grant = match required("type")? {
            "authorized_user" => Grant::Refresh {
                client_id: required("client_id")?.to_owned(),
                client_secret: required("client_secret")?.into(),
                refresh_token: required("refresh_token")?.into(),
            },
            "service_account" => {
                let private_key: Secret = required("private_key")?.into();
                sign(&private_key, b"").ok_or(AdcError::Key)?;
                let (email, key_id) = (required("client_email")?, member("private_key_id"));
                Grant::Account { email: email.to_owned(), key_id: key_id.map(str::to_owned), private_key }
            }
            other => return Err(AdcError::Unsupported(other.chars().take(64).collect())),
        };
        let token_url = member("token_uri").unwrap_or(TOKEN_URL).to_owned();
        if !token_url.starts_with("https://") {
            return Err(AdcError::TokenUri);
        }
        let quota_project = member("quota_project_id").map(str::to_owned);
        Ok(Self { grant, token_url, tokens: TokenCache::default(), quota_project })
    }

    fn form(&self, now: UnixSeconds) -> Result<String, CallError> {
        let pairs = match &self.grant {
            Grant::Refresh { client_id, client_secret, refresh_token } => vec![
                ("grant_type", "refresh_token".to_owned()),
                ("client_id", client_id.clone()),
                ("client_secret", client_secret.expose().to_owned()),
                ("refresh_token", refresh_token.expose().to_owned()),
            ],
            Grant::Account { email, key_id, private_key } => {
                let assertion = assertion(email, key_id.as_deref(), private_key, &self.token_url, now);
                let refused =
                    || CallError::new(CallErrorKind::Credentials, "the key of the service account cannot sign");
                vec![
                    ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()),
                    ("assertion", assertion.ok_or_else(refused)?),
                ]
            }
        };
        Ok(percent::form(&pairs))
    }
}

impl TokenSource for Adc {
    fn request(&self, now: UnixSeconds) -> Result<Option<Parts>, CallError> {
        if self.tokens.access(now).is_some() {
            return Ok(None);
        }
        Ok(Some(Parts::form(self.token_url.clone(), self.form(now)?)))
    }

    fn answer(&self, status: StatusCode, body: &[u8], now: UnixSeconds) -> Result<(), CallError> {
        let hidden = |name: &'static str, secret: &Secret| (name, SecretText::new(secret.expose()));
        let secrets = match &self.grant {
            Grant::Refresh { client_secret, refresh_token, .. } => {
                vec![hidden("client_secret", client_secret), hidden("refresh_token", refresh_token)]
            }
            Grant::Account { private_key, .. } => vec![hidden("private_key", private_key)],
        };
        let secrets: Vec<_> = secrets.iter().map(|(name, secret)| (*name, secret)).collect();
        self.tokens.set(Tokens::read((status.as_u16(), body), now, Expiry::Required, &secrets)?);
        Ok(())
    }

    fn token(&self, now: UnixSeconds) -> Option<Secret> {
        self.tokens.access(now)
    }

    fn forget(&self) {
        self.tokens.expire();
    }
}

/// A signed statement of the account about itself, as a JSON web token.
fn assertion(email: &str, key_id: Option<&str>, key: &Secret, audience: &str, now: UnixSeconds) -> Option<String> {
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(key_id) = key_id {
        header["kid"] = key_id.into();
    }
    let end = now.saturating_add(ASSERTION_SECONDS);
    let claims = json!({"iss": email, "scope": SCOPE, "aud": audience, "iat": now, "exp": end});
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    let signature = sign(key, signed.as_bytes())?;
    Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// RSASSA-PKCS1-v1_5 with SHA-256. None if the key is no RSA key in PEM.
fn sign(key: &Secret, message: &[u8]) -> Option<Vec<u8>> {
    let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes()).ok()?;
    let key = rustls::crypto::ring::sign::any_supported_type(&key).ok()?;
    key.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])?.sign(message).ok()
}
