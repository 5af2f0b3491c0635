//! Logins at providers of models and at MCP servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words;

/// One step of a login.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// `code` exchanges what the browser brought, `device` begins a login on another device, `poll` asks whether the person is done there
    #[schemars(extend("enum" = ["code", "device", "poll"]))]
    pub step: String,
    /// with `code`: the code of the issuer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub code: Option<String>,
    /// with `code`: the verifier of PKCE
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub verifier: Option<String>,
    /// with `code`: the state of the login
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub state: Option<String>,
    /// with `code`: where the browser was sent to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub redirect_uri: Option<String>,
    /// with `poll`: the code of the answer to `device`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub device_code: Option<String>,
}

/// How far a login is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoginProgress {
    /// what has happened
    #[schemars(extend("enum" = words::LOGINS))]
    pub status: String,
    /// for the next `poll`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_code: Option<String>,
    /// what the person types on the other device
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_code: Option<String>,
    /// where the person types it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification_uri: Option<String>,
    /// seconds before the first `poll`, and between two of them
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<u64>,
    /// seconds by which the interval has become longer
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longer: Option<u64>,
    /// when the code or the access token expires, seconds since the Unix epoch; null if the token does not
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", extend("x-null" = true))]
    pub expires_at: Option<Option<u64>>,
    /// whether the access token is renewed without a person
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewable: Option<bool>,
}

/// One step of a login at an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerLoginRequest {
    /// `begin` finds the issuer and registers a client there, `code` exchanges what the browser brought
    #[schemars(extend("enum" = ["begin", "code"]))]
    pub step: String,
    /// where the browser is sent to
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub redirect_uri: Option<String>,
    /// with `begin`: a client that is registered at the issuer; without one, Atlas registers itself
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// with `begin`: the secret of that client, as `secret://NAME`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// with `begin`: instead of the scopes that the server names
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// with `code`: the code of the issuer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub code: Option<String>,
    /// with `code`: the verifier of PKCE
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub verifier: Option<String>,
    /// with `code`: the state of the login
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub state: Option<String>,
}

/// How far a login at an MCP server is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerLoginProgress {
    /// what has happened
    #[schemars(extend("enum" = words::LOGINS))]
    pub status: String,
    /// who gives the tokens
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// the login page, without its parameters
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorize_url: Option<String>,
    /// the client that asks for tokens
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// what the client asks for
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// what the tokens are for
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// whether the answer of the login page names the issuer, so that one without it must be refused
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names_issuer: Option<bool>,
    /// when the access token expires, seconds since the Unix epoch; null if it does not
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", extend("x-null" = true))]
    pub expires_at: Option<Option<u64>>,
    /// whether the access token is renewed without a person
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewable: Option<bool>,
}
