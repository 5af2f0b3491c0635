//! The body of a request as JSON, and its members with their paths, so that every refusal says where.

use serde_json::{Map, Value};

use crate::WireError;
use crate::error::bounded;

/// Most values of a body: what its text needs in memory many times over.
const VALUES_MAX: usize = 1_000_000;

/// The members of a body.
pub(crate) fn parse(body: &[u8]) -> Result<Value, WireError> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    if body.len() > VALUES_MAX && separators(body) >= VALUES_MAX {
        return Err(WireError::invalid(format!("the body has more than {VALUES_MAX} values")));
    }
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(other) => Err(WireError::invalid(format!("the body must be a JSON object, not {}", kind(&other)))),
        Err(error) => Err(WireError::invalid(format!("the body is not JSON that can be read: {error}"))),
    }
}

/// The characters outside strings that a value can follow.
fn separators(text: &[u8]) -> usize {
    let (mut count, mut inside, mut escaped) = (0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b',' | b'[' | b'{' | b':' if !inside => count += 1,
            _ => {}
        }
    }
    count
}

/// A value of a body and its path.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    /// Such as `messages[3].content`; empty for the body.
    pub(crate) path: String,
}

impl<'a> Node<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// The path of a member.
    pub(crate) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A member. One that is null is absent.
    pub(crate) fn member(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Node { value, path: self.path_of(name) })
    }

    /// A member that has to be there.
    pub(crate) fn required(&self, name: &str) -> Result<Self, WireError> {
        let missing = || {
            let path = self.path_of(name);
            let text = format!("the required parameter {path:?} is missing");
            WireError::invalid(text).at(path).with_code("missing_required_parameter")
        };
        self.member(name).ok_or_else(missing)
    }

    /// A refusal of the value. `problem` goes on after the path.
    pub(crate) fn wrong(&self, problem: &str) -> WireError {
        WireError::invalid(format!("{} {problem}", bounded(&self.path)))
            .at(self.path.as_str())
            .with_code("invalid_value")
    }

    /// A refusal of the type of the value.
    pub(crate) fn wrong_type(&self, expected: &str) -> WireError {
        let text = format!("{} must be {expected}, not {}", bounded(&self.path), kind(self.value));
        WireError::invalid(text).at(self.path.as_str()).with_code("invalid_type")
    }

    pub(crate) fn text(&self) -> Result<&'a str, WireError> {
        self.value.as_str().ok_or_else(|| self.wrong_type("a string"))
    }

    /// A text with 1 to `bytes_max` bytes.
    pub(crate) fn short_text(&self, bytes_max: usize) -> Result<&'a str, WireError> {
        let text = self.text()?;
        match text.len() {
            0 => Err(self.wrong("must not be empty")),
            length if length > bytes_max => Err(self.wrong(&format!("has {length} bytes, and may have {bytes_max}"))),
            _ => Ok(text),
        }
    }

    /// One of `words`.
    pub(crate) fn word(&self, words: &[&str]) -> Result<&'a str, WireError> {
        let text = self.text()?;
        if words.contains(&text) {
            return Ok(text);
        }
        Err(self.wrong(&format!("must be one of {}, not {:?}", words.join(", "), bounded(text))))
    }

    pub(crate) fn boolean(&self) -> Result<bool, WireError> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    /// A number from `least` to `most`.
    pub(crate) fn number(&self, least: f64, most: f64) -> Result<f64, WireError> {
        let number = self.value.as_f64().ok_or_else(|| self.wrong_type("a number"))?;
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        Err(self.wrong(&format!("must be a number from {least} to {most}, not {}", bounded(&self.value.to_string()))))
    }

    /// An integer from `least` to `most`.
    pub(crate) fn count(&self, least: u32, most: u32) -> Result<u32, WireError> {
        if !self.value.is_number() {
            return Err(self.wrong_type("an integer"));
        }
        let number = self.value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            let shown = bounded(&self.value.to_string());
            self.wrong(&format!("must be an integer from {least} to {most}, not {shown}"))
        })
    }

    /// The elements of a list of at most `most`.
    pub(crate) fn list(&self, most: usize) -> Result<Vec<Self>, WireError> {
        let list = self.value.as_array().ok_or_else(|| self.wrong_type("a list"))?;
        if list.len() > most {
            return Err(self.wrong(&format!("has {} elements, and may have {most}", list.len())));
        }
        let node = |(place, value)| Node { value, path: format!("{}[{place}]", self.path) };
        Ok(list.iter().enumerate().map(node).collect())
    }

    pub(crate) fn object(&self) -> Result<&'a Map<String, Value>, WireError> {
        self.value.as_object().ok_or_else(|| self.wrong_type("an object"))
    }
}

/// What a value is, in words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_cannot_be_read() {
        let refused = |body: &[u8]| parse(body).expect_err("refused").message;
        assert_eq!(refused(b"[]"), "the body must be a JSON object, not a list");
        assert!(refused(b"{").starts_with("the body is not JSON that can be read: "));
        assert!(refused(b"\xff{}").starts_with("the body is not JSON that can be read: "));
        let deep = format!("{{\"a\":{}", "[".repeat(100_000));
        assert!(refused(deep.as_bytes()).contains("recursion limit"));
        let many = format!("{{\"a\":[{}0]}}", "0,".repeat(VALUES_MAX));
        assert_eq!(refused(many.as_bytes()), "the body has more than 1000000 values");
        assert!(parse("\u{feff}{}".as_bytes()).is_ok());
    }
}
