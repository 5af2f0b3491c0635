//! Percent-encoding of names that become parts of a URL.

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
