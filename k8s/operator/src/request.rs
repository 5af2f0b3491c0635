//! Requests to a controller, before they are sent.

use std::fmt;

use serde_json::Value;

/// What a request expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Anything.
    Any,
    /// Nothing.
    Absent,
    /// This revision.
    Revision(u64),
}

/// What a request carries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// Nothing.
    Empty,
    /// A document.
    Json(Value),
    /// A package, and whether it takes the place of another one of the same version.
    Package { bytes: Vec<u8>, replaces: bool },
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    /// Its method.
    pub(crate) method: &'static str,
    /// The segments of its path.
    pub(crate) path: Vec<String>,
    /// The namespace that it is about.
    pub(crate) namespace: String,
    /// What it expects.
    pub(crate) expect: Expect,
    /// What it carries.
    pub(crate) body: Body,
}

impl Request {
    /// A request without a body.
    pub(crate) fn new(method: &'static str, path: &[&str], namespace: &str) -> Self {
        let path = path.iter().map(|&segment| segment.to_owned()).collect();
        Self { method, path, namespace: namespace.to_owned(), expect: Expect::Any, body: Body::Empty }
    }

    /// The same request with a document.
    #[must_use]
    pub(crate) fn json(self, body: Value) -> Self {
        Self { body: Body::Json(body), ..self }
    }

    /// The same request with what it expects.
    #[must_use]
    pub(crate) fn expecting(self, expect: Expect) -> Self {
        Self { expect, ..self }
    }

    /// Its path and query, encoded.
    pub(crate) fn target(&self) -> String {
        let path: Vec<String> = self.path.iter().map(|segment| encoded(segment)).collect();
        let replaces = matches!(self.body, Body::Package { replaces: true, .. });
        let replace = if replaces { "&replace=true" } else { "" };
        format!("/{}?namespace={}{replace}", path.join("/"), encoded(&self.namespace))
    }
}

/// Escapes what is no unreserved character (RFC 3986).
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.target())?;
        match self.expect {
            Expect::Any => {}
            Expect::Absent => write!(f, " If-None-Match: *")?,
            Expect::Revision(revision) => write!(f, " If-Match: \"{revision}\"")?,
        }
        match &self.body {
            Body::Empty => Ok(()),
            Body::Json(body) => write!(f, " {body}"),
            Body::Package { bytes, .. } => write!(f, " ({} bytes)", bytes.len()),
        }
    }
}

#[test]
fn names_stay_one_segment() {
    let request = Request::new("GET", &["api", "objects", "chain", "../a b?"], "x&y");
    assert_eq!(request.to_string(), "GET /api/objects/chain/..%2Fa%20b%3F?namespace=x%26y");
}
