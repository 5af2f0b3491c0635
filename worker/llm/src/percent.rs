//! Percent-encoding of texts that become parts of a URL or of a form.

use std::fmt::Write;

use crate::EncodeError;

/// `text` with every byte encoded but the unreserved characters of RFC 3986 and those of `keep`.
pub(crate) fn encode(text: &str, keep: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || keep.as_bytes().contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Pairs as the body of a form, and as the query of an address.
pub(crate) fn form<V: AsRef<str>>(pairs: &[(&str, V)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{}={}", encode(name, ""), encode(value.as_ref(), "")));
    pairs.collect::<Vec<_>>().join("&")
}

/// Refuses a text that cannot be a part of a host name. `what` is named in the error.
pub(crate) fn check_host_label(what: &'static str, text: &str) -> Result<(), EncodeError> {
    let is_legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || text.len() > 63 || !text.bytes().all(is_legal) {
        let problem = "it has other characters than a-z, 0-9 and -, or not 1 to 63 of them".to_owned();
        return Err(EncodeError::Invalid { what, problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_encoded() {
        assert_eq!(encode("a b/c:é", "/"), "a%20b/c%3A%C3%A9");
        assert_eq!(form(&[("a", "1&2"), ("b", "")]), "a=1%262&b=");
    }
}
