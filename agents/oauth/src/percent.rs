//! Percent-encoding of forms and of queries.

use std::fmt::Write;

/// A text as a part of a form.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Pairs as the body of a form, and as the query of an address.
pub(crate) fn form<'a>(pairs: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> String {
    let pairs = pairs.into_iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The text of a part of a query. None if it is not encoded properly, or no UTF-8.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_encoded() {
        assert_eq!(form(&[("a", "1&2"), ("b", "é/")]), "a=1%262&b=%C3%A9%2F");
        assert_eq!(decode("a+b%2Bc").as_deref(), Some("a b+c"));
        for broken in ["%", "%2", "%zz", "%ff", "%+1"] {
            assert_eq!(decode(broken), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn decoding_reverts_encoding(text: String) {
            prop_assert_eq!(decode(&encode(&text)), Some(text));
        }
    }
}
