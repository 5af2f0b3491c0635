//! Percent-encoding of texts that become parts of a URL or of a form.

use std::fmt::Write;

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
