//! Canonical JSON: equal documents have equal bytes.
//!
//! Members are sorted by name, nothing stands between the tokens, and numbers are integers. A fraction becomes its decimal text, because
//! its value as a floating-point number could differ between programs.

use serde_json::Value;

/// How deep a document may nest.
const DEPTH_MAX: usize = 32;

/// Why a value has no canonical form, or bytes are not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// It nests too deep.
    #[error("the document nests deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// The bytes are not JSON.
    #[error("the document is not JSON")]
    Malformed,
    /// The bytes are JSON, and other bytes than the canonical ones.
    #[error("the document is not canonical JSON")]
    NotCanonical,
}

/// Whether a number has a point or an exponent; integers of any length have none.
fn is_fraction(number: &serde_json::Number) -> bool {
    number.is_f64() && number.to_string().contains(['.', 'e', 'E'])
}

/// The canonical bytes of a value.
pub fn canonical(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let mut out = Vec::new();
    write(&mut out, value, 0)?;
    Ok(out)
}

/// Reads canonical bytes; others are refused.
pub fn parse(bytes: &[u8]) -> Result<Value, CanonicalError> {
    let value = serde_json::from_slice(bytes).map_err(|_| CanonicalError::Malformed)?;
    if canonical(&value)? == bytes { Ok(value) } else { Err(CanonicalError::NotCanonical) }
}

fn write(out: &mut Vec<u8>, value: &Value, depth: usize) -> Result<(), CanonicalError> {
    if depth > DEPTH_MAX {
        return Err(CanonicalError::TooDeep);
    }
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Number(number) if is_fraction(number) => string(out, &number.to_string()),
        Value::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::String(text) => string(out, text),
        Value::Array(values) => {
            out.push(b'[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(out, value, depth + 1)?;
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            out.push(b'{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                string(out, name);
                out.push(b':');
                write(out, value, depth + 1)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(Value::from(text).to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_documents_have_equal_bytes() {
        let a = canonical(&json!({ "b": [1, -2, null], "a": { "z": true, "y": "\u{e9}\n" } })).expect("a form");
        let b = canonical(&json!({ "a": { "y": "\u{e9}\n", "z": true }, "b": [1, -2, null] })).expect("a form");
        assert_eq!(a, b);
        assert_eq!(String::from_utf8(a.clone()).expect("text"), r#"{"a":{"y":"é\n","z":true},"b":[1,-2,null]}"#);
        assert_eq!(canonical(&parse(&a).expect("own bytes")).expect("a form"), a);
    }

    #[test]
    fn fractions_become_text() {
        assert_eq!(canonical(&json!({ "price": 0.25, "count": 3 })).expect("a form"), br#"{"count":3,"price":"0.25"}"#);
    }

    #[test]
    fn other_bytes_are_refused() {
        let cases: [(&[u8], CanonicalError); 6] = [
            (br#"{"b":1,"a":2}"#, CanonicalError::NotCanonical),
            (br#"{"a":1,"a":2}"#, CanonicalError::NotCanonical),
            (b"{ }", CanonicalError::NotCanonical),
            (b"1.5", CanonicalError::NotCanonical),
            (b"{", CanonicalError::Malformed),
            (b"\"\xff\"", CanonicalError::Malformed),
        ];
        for (bytes, error) in cases {
            assert_eq!(parse(bytes), Err(error), "{}", String::from_utf8_lossy(bytes));
        }
        let deep = [vec![b'['; DEPTH_MAX + 2], vec![b']'; DEPTH_MAX + 2]].concat();
        assert_eq!(parse(&deep), Err(CanonicalError::TooDeep));
        let bottomless = vec![b'['; 60_000];
        assert_eq!(parse(&bottomless), Err(CanonicalError::Malformed));
    }
}
