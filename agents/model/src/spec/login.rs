//! How people log in to a model whose provider gives access tokens instead of keys.

use std::collections::BTreeMap;

use atlas_secrets::{Reference, has_reference};
use serde::{Deserialize, Serialize};

use super::check::{CREDENTIAL_HEADERS, HEADERS_MAX, NAME_BYTES_MAX, SpecError, VALUE_BYTES_MAX, check_headers};
use super::{ModelSpec, Provider};
use crate::check_url;

/// Most scopes of one login.
pub const SCOPES_MAX: usize = 32;

/// Parameters of the login page that belong to the flow.
const OWN_PARAMETERS: [&str; 9] = [
    "response_type",
    "client_id",
    "client_secret",
    "redirect_uri",
    "scope",
    "state",
    "code",
    "code_challenge",
    "code_challenge_method",
];

/// The issuer of a model's access tokens, and the client that the operator registered there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginSpec {
    /// An issuer whose addresses and scopes are known; the members below replace them.
    #[serde(default)]
    pub issuer: Option<KnownIssuer>,
    /// The id of the registered client.
    pub client_id: String,
    /// `secret://NAME` in the store, if the client has a secret. Controllers use it; workers never get it.
    #[serde(default)]
    pub client_secret: Option<String>,
    /// The login page.
    #[serde(default)]
    pub authorize_url: Option<String>,
    /// Where codes are exchanged for tokens, and tokens renewed.
    #[serde(default)]
    pub token_url: Option<String>,
    /// Where codes for other devices come from.
    #[serde(default)]
    pub device_url: Option<String>,
    /// None: those of the known issuer.
    #[serde(default)]
    pub scopes: Option<Vec<String>>,
    /// The page that shows `CODE#STATE` to be pasted. None: the browser is sent to a listener on the machine of the person.
    #[serde(default)]
    pub code_page: Option<String>,
    /// The form of requests for tokens.
    #[serde(default)]
    pub body: Option<TokenBody>,
    /// Headers of requests for tokens.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Further parameters of the login page.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

/// Issuers whose addresses and scopes are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownIssuer {
    Claude,
    Gemini,
}

/// The form of requests for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenBody {
    #[default]
    Form,
    Json,
}

/// The name of the secret that holds the tokens of a model.
pub fn login_secret(model: &str) -> String {
    format!("{model}.login")
}

impl ModelSpec {
    pub(super) fn check_login(&self) -> Result<(), SpecError> {
        let Some(login) = &self.login else { return Ok(()) };
        if self.key.is_some() {
            return Err(SpecError::new("spec.login", "is not used together with spec.key"));
        }
        if matches!(self.provider, Provider::Azure | Provider::Bedrock | Provider::Local | Provider::Scripted) {
            let provider = self.provider.as_str();
            return Err(SpecError::new("spec.login", format!("is not used with the provider {provider}")));
        }
        login.check()
    }
}

impl LoginSpec {
    fn check(&self) -> Result<(), SpecError> {
        let refused = |field, text: &str| Err(SpecError::new(field, text));
        let is_plain =
            |text: &str, max| !text.is_empty() && text.len() <= max && text.bytes().all(|b| b.is_ascii_graphic());
        if !is_plain(&self.client_id, NAME_BYTES_MAX) {
            return refused("spec.login.client_id", "has 1 to 256 printable characters and no blanks");
        }
        let is_secret = |text: &str| matches!(Reference::read(text), Some(Reference::Secret(_)));
        if self.client_secret.as_deref().is_some_and(|text| !is_secret(text)) {
            return refused(
                "spec.login.client_secret",
                "is not a reference: write secret://NAME, never the value itself",
            );
        }
        for (field, url) in [
            ("spec.login.authorize_url", &self.authorize_url),
            ("spec.login.token_url", &self.token_url),
            ("spec.login.device_url", &self.device_url),
            ("spec.login.code_page", &self.code_page),
        ] {
            let Some(url) = url else { continue };
            check_url(url).map_err(|text| SpecError::new(field, text))?;
            if !url.starts_with("https://") && !is_loopback(url) {
                return refused(field, "is plain http, which is only for servers on the same machine");
            }
        }
        if self.issuer.is_none() && self.token_url.is_none() {
            return refused("spec.login.token_url", "is needed if no known issuer is named");
        }
        if self.issuer.is_none() && self.authorize_url.is_none() && self.device_url.is_none() {
            return refused(
                "spec.login.authorize_url",
                "or spec.login.device_url is needed if no known issuer is named",
            );
        }
        let scopes = self.scopes.as_deref().unwrap_or_default();
        if scopes.len() > SCOPES_MAX || !scopes.iter().all(|scope| is_plain(scope, NAME_BYTES_MAX)) {
            return refused("spec.login.scopes", "has at most 32 words of at most 256 printable characters");
        }
        check_headers(
            "spec.login.headers",
            self.headers.iter().map(|(name, value)| (name.as_str(), Some(value.as_str()))),
        )?;
        let is_credential = |name: &str| CREDENTIAL_HEADERS.contains(&name.to_ascii_lowercase().as_str());
        if self.headers.iter().any(|(name, value)| is_credential(name) || has_reference(value)) {
            return refused("spec.login.headers", "has no credentials and no references");
        }
        let is_value = |text: &str| text.len() <= VALUE_BYTES_MAX && !text.chars().any(char::is_control);
        let is_ours = |name: &str| OWN_PARAMETERS.contains(&name);
        if self.parameters.len() > HEADERS_MAX
            || self.parameters.iter().any(|(name, value)| !is_plain(name, 64) || is_ours(name) || !is_value(value))
        {
            return refused(
                "spec.login.parameters",
                "has at most 32 texts under names that are not those of the login itself",
            );
        }
        Ok(())
    }
}

/// Whether an address is on the machine of whoever uses it.
fn is_loopback(url: &str) -> bool {
    let rest = url.strip_prefix("http://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    fn check(provider: &str, change: &Value, expected: &Expect) {
        let mut login = json!({
            "client_id": "c", "authorize_url": "https://i.test/a", "token_url": "https://i.test/t",
            "client_secret": "secret://s",
        });
        let mut spec = json!({ "provider": provider, "name": "m" });
        for (name, value) in change.as_object().expect("an object") {
            match name.strip_prefix("spec.") {
                Some(name) => spec[name] = value.clone(),
                None => login[name] = value.clone(),
            }
        }
        spec["login"] = login;
        let read = ModelSpec::read(spec.to_string().as_bytes());
        expected.assert_eq(&read.map_or_else(|error| error.to_string(), |_| "ok".to_owned()));
    }

    #[test]
    fn what_no_login_could_use_is_refused() {
        check("openai", &json!({}), &expect!["ok"]);
        check("gemini", &json!({"issuer": "gemini", "authorize_url": null, "token_url": null}), &expect!["ok"]);
        check("openai", &json!({"token_url": "http://localhost:8/t"}), &expect!["ok"]);
        check(
            "azure",
            &json!({"spec.base_url": "https://a.test"}),
            &expect!["`spec.login` is not used with the provider azure"],
        );
        check(
            "openai",
            &json!({"spec.key": "secret://k"}),
            &expect!["`spec.login` is not used together with spec.key"],
        );
        check(
            "openai",
            &json!({"client_id": ""}),
            &expect!["`spec.login.client_id` has 1 to 256 printable characters and no blanks"],
        );
        check(
            "openai",
            &json!({"client_secret": "s3cr3t"}),
            &expect!["`spec.login.client_secret` is not a reference: write secret://NAME, never the value itself"],
        );
        check(
            "openai",
            &json!({"client_secret": "${S}"}),
            &expect!["`spec.login.client_secret` is not a reference: write secret://NAME, never the value itself"],
        );
        check(
            "openai",
            &json!({"token_url": "http://i.test/t"}),
            &expect!["`spec.login.token_url` is plain http, which is only for servers on the same machine"],
        );
        check(
            "openai",
            &json!({"token_url": "http://localhost.i.test/t"}),
            &expect!["`spec.login.token_url` is plain http, which is only for servers on the same machine"],
        );
        check(
            "openai",
            &json!({"token_url": "ftp://i.test/t"}),
            &expect!["`spec.login.token_url` does not start with http:// or https://"],
        );
        check(
            "openai",
            &json!({"token_url": null}),
            &expect!["`spec.login.token_url` is needed if no known issuer is named"],
        );
        check(
            "openai",
            &json!({"authorize_url": null}),
            &expect!["`spec.login.authorize_url` or spec.login.device_url is needed if no known issuer is named"],
        );
        check(
            "openai",
            &json!({"scopes": ["a b"]}),
            &expect!["`spec.login.scopes` has at most 32 words of at most 256 printable characters"],
        );
        check(
            "openai",
            &json!({"headers": {"authorization": "Basic {{s}}"}}),
            &expect!["`spec.login.headers` has no credentials and no references"],
        );
        check(
            "openai",
            &json!({"parameters": {"state": "1"}}),
            &expect!["`spec.login.parameters` has at most 32 texts under names that are not those of the login itself"],
        );
    }
}
