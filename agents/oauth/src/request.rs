//! A request to an issuer.

use std::fmt;

use atlas_types::SecretText;

use crate::percent;

/// A `POST` request. `Debug` does not print the body, which holds codes, tokens and the secret of the client.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    pub url: String,
    pub content_type: &'static str,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    pub body: SecretText,
}

impl Request {
    pub(crate) fn form(url: &str, headers: &[(String, String)], pairs: &[(&str, &str)]) -> Self {
        let body = SecretText::new(percent::form(pairs));
        Self { url: url.to_owned(), content_type: "application/x-www-form-urlencoded", headers: headers.to_vec(), body }
    }

    pub(crate) fn json(url: &str, headers: &[(String, String)], pairs: &[(&str, &str)]) -> Self {
        let members = pairs.iter().map(|(name, value)| ((*name).to_owned(), serde_json::Value::from(*value)));
        let body = serde_json::Value::Object(members.collect()).to_string();
        let (url, headers) = (url.to_owned(), headers.to_vec());
        Self { url, content_type: "application/json", headers, body: SecretText::new(body) }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("url", &self.url).finish_non_exhaustive()
    }
}
