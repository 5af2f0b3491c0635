//! Which specs are refused. A refusal is part of the answer of every replica, so a changed rule belongs to a feature level.

use atlas_secrets::{Reference, has_reference};

use super::{ModelSpec, Patch, Provider};
use crate::check_url;

/// Most bytes of the id of a model.
pub const NAME_BYTES_MAX: usize = 256;
/// Most headers, and most parameters.
pub const HEADERS_MAX: usize = 32;
/// Most bytes of a header's or a parameter's value.
pub const VALUE_BYTES_MAX: usize = 1_024;
/// Most bytes of a patch of the body that is written as text.
pub const PATCH_BYTES_MAX: usize = 16 * 1_024;
/// Most fallbacks of one model.
pub const FALLBACKS_MAX: usize = 8;

/// Headers that prove who sends a request: their values are references, because everybody may read a spec.
pub(super) const CREDENTIAL_HEADERS: [&str; 8] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-amz-security-token",
    "x-auth-token",
];
/// Headers that belong to the connection and not to the request.
const CONNECTION_HEADERS: [&str; 8] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive"];
/// Parameters whose values are references, for the same reason.
const CREDENTIAL_PARAMETERS: [&str; 3] = ["secret_access_key", "session_token", "credentials"];

/// Why a spec is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {text}")]
pub struct SpecError {
    /// The member, such as `spec.base_url`.
    pub field: &'static str,
    /// What is wrong with it: a sentence without its subject. It never repeats a value that may be a key.
    pub text: String,
}

impl SpecError {
    /// A refusal of a member.
    pub fn new(field: &'static str, text: impl Into<String>) -> Self {
        Self { field, text: text.into() }
    }

    pub(super) fn unreadable(error: &serde_json::Error) -> Self {
        Self::new("spec", format!("cannot be read: {error}"))
    }
}

impl ModelSpec {
    /// Refuses what no call could use, and every place where a key would be readable.
    pub fn check(&self) -> Result<(), SpecError> {
        check_name(&self.name)?;
        if let Some(url) = &self.base_url {
            check_url(url).map_err(|text| SpecError::new("spec.base_url", text))?;
        }
        if self.provider == Provider::Azure && self.base_url.is_none() {
            return Err(SpecError::new("spec.base_url", "is needed for the provider azure"));
        }
        if self.key.as_deref().is_some_and(|key| Reference::read(key).is_none()) {
            return Err(SpecError::new("spec.key", NOT_A_REFERENCE));
        }
        self.check_login()?;
        self.check_headers()?;
        self.check_parameters()?;
        self.check_local()?;
        if let Some(patch) = &self.patch {
            check_patch(patch)?;
        }
        self.check_numbers()?;
        check_fallbacks(&self.fallbacks)
    }

    fn check_headers(&self) -> Result<(), SpecError> {
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
        check_headers("spec.headers", headers)
    }

    fn check_parameters(&self) -> Result<(), SpecError> {
        let refused = |text: String| Err(SpecError::new("spec.parameters", text));
        if self.parameters.len() > HEADERS_MAX {
            return refused(format!("has more than {HEADERS_MAX} members"));
        }
        for (name, value) in &self.parameters {
            let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            if name.is_empty() || name.len() > 64 || !name.bytes().all(is_word) {
                return refused(format!("has a member {name:?}, which is not a word of a to z, 0 to 9 and _"));
            }
            if value.len() > VALUE_BYTES_MAX || value.chars().any(char::is_control) {
                return refused(format!("has a value of {name} that is too long or contains control characters"));
            }
            if CREDENTIAL_PARAMETERS.contains(&name.as_str()) && Reference::read(value).is_none() {
                return refused(format!("has a value of {name} that {NOT_A_REFERENCE}"));
            }
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), SpecError> {
        let within = |field: &'static str, value: u64, most: u64| {
            let text = || format!("is between 1 and {most}");
            if (1..=most).contains(&value) { Ok(()) } else { Err(SpecError::new(field, text())) }
        };
        let optional = |field, value: Option<u64>, most| value.map_or(Ok(()), |value| within(field, value, most));
        optional("spec.context_window", self.context_window, 1_000_000_000)?;
        optional("spec.output_tokens_max", self.output_tokens_max.map(u64::from), 1_000_000_000)?;
        optional("spec.limits.concurrency", self.limits.concurrency.map(u64::from), 1_000_000)?;
        optional("spec.limits.requests_per_minute", self.limits.requests_per_minute.map(u64::from), 1_000_000_000)?;
        optional("spec.limits.tokens_per_minute", self.limits.tokens_per_minute, 1_000_000_000_000)?;
        within("spec.timeout_seconds", u64::from(self.timeout_seconds), 86_400)?;
        within("spec.retry.attempts", u64::from(self.retry.attempts), 20)?;
        within("spec.retry.deadline_seconds", u64::from(self.retry.deadline_seconds), 86_400)
    }
}

const NOT_A_REFERENCE: &str = "is not a reference: write secret://NAME or ${VARIABLE}, never the value itself";

fn check_name(name: &str) -> Result<(), SpecError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(SpecError::new("spec.name", format!("has 1 to {NAME_BYTES_MAX} bytes")));
    }
    if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(SpecError::new("spec.name", "contains a space or a control character"));
    }
    Ok(())
}

/// Refuses headers that belong to the connection, are malformed, or carry a credential in clear text.
pub fn check_headers<'a>(
    field: &'static str,
    headers: impl ExactSizeIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<(), SpecError> {
    let refused = |text: String| Err(SpecError::new(field, text));
    if headers.len() > HEADERS_MAX {
        return refused(format!("has more than {HEADERS_MAX} members"));
    }
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || name.len() > 128 || !name.bytes().all(is_token) {
            return refused(format!("has a member {name:?}, which is not the name of a header"));
        }
        if CONNECTION_HEADERS.contains(&lower.as_str()) {
            return refused(format!("has a member {name:?}, which belongs to the connection"));
        }
        let Some(value) = value else { continue };
        if value.len() > VALUE_BYTES_MAX || !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return refused(format!("has a value of {name} that is too long or contains other than printable ASCII"));
        }
        if CREDENTIAL_HEADERS.contains(&lower.as_str()) && !has_reference(value) {
            return refused(format!(
                "has a value of {name} that contains no reference: write secret://NAME or {{{{NAME}}}}"
            ));
        }
    }
    Ok(())
}

fn check_patch(patch: &Patch) -> Result<(), SpecError> {
    if let Some(url) = &patch.url {
        check_url(url).map_err(|text| SpecError::new("spec.patch.url", text))?;
    }
    if let Some(body) = &patch.body {
        if matches!(body, super::PatchBody::Text(text) if text.len() > PATCH_BYTES_MAX) {
            return Err(SpecError::new("spec.patch.body", format!("is longer than {PATCH_BYTES_MAX} bytes")));
        }
        if body.members().is_none() {
            return Err(SpecError::new("spec.patch.body", "is not the JSON text of an object"));
        }
    }
    let headers = patch.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
    check_headers("spec.patch.headers", headers)
}

fn check_fallbacks(fallbacks: &[String]) -> Result<(), SpecError> {
    let refused = |text: String| Err(SpecError::new("spec.fallbacks", text));
    if fallbacks.len() > FALLBACKS_MAX {
        return refused(format!("has more than {FALLBACKS_MAX} items"));
    }
    let twice = fallbacks.iter().enumerate().find(|(at, name)| fallbacks[..*at].contains(name));
    twice.map_or(Ok(()), |(_, name)| refused(format!("names {name:?} twice")))
}

#[cfg(test)]
mod tests;
