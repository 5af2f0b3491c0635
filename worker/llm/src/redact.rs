//! Removes keys from texts of providers, which repeat them in errors.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::HeaderMap;

use crate::percent;

/// What stands in place of a key.
pub const MARK: &str = "[redacted]";

/// Shorter values are not searched: they would be found in ordinary words.
const VALUE_BYTES_MIN: usize = 4;

/// A word with one of these beginnings is taken for a key of a provider.
const PREFIXES: [&str; 12] =
    ["sk-", "sk_", "pk-", "gsk_", "xai-", "AIza", "AKIA", "ASIA", "ya29.", "eyJ", "hf_", "github_pat_"];

/// A word with such a beginning is a key from this length on.
const KEY_BYTES_MIN: usize = 12;

/// Removes certain values, and words that look like keys.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first, so that a value does not hide one that contains it.
    values: Vec<String>,
}

impl Redactor {
    /// Removes `values`, also in Base64 and escaped for an address.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let long = values.into_iter().filter(|value| value.len() >= VALUE_BYTES_MIN);
        let mut values: Vec<String> = long.flat_map(forms).collect();
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// Removes the values of headers that are marked as sensitive, and the key of `Bearer KEY`.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        let sensitive = headers.values().filter(|value| value.is_sensitive());
        let values = sensitive.flat_map(|value| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            let key = value.split_once(' ').map(|(_, key)| key.trim().to_owned());
            [Some(value), key].into_iter().flatten()
        });
        Self::new(values)
    }

    /// `text` without the values.
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), MARK);
            }
            // A text that was cut may end inside a value.
            let ends = |length: &usize| value.is_char_boundary(*length) && text.ends_with(&value[..*length]);
            if let Some(length) = (VALUE_BYTES_MIN..value.len()).rev().find(ends) {
                text.truncate(text.len() - length);
                text.push_str(MARK);
            }
        }
        words(&text)
    }
}

fn forms(value: String) -> Vec<String> {
    let escaped = percent::encode(&value, "");
    let standard = STANDARD.encode(&value).trim_end_matches('=').to_owned();
    let url_safe = URL_SAFE_NO_PAD.encode(&value);
    vec![value, escaped, standard, url_safe]
}

/// `text` without words that look like keys.
fn words(text: &str) -> String {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(in_word) {
        let end = rest[start..].find(|c| !in_word(c)).map_or(rest.len(), |length| start + length);
        let word = &rest[start..end];
        out.push_str(&rest[..start]);
        let is_key = word.len() >= KEY_BYTES_MIN && PREFIXES.iter().any(|prefix| word.starts_with(prefix));
        out.push_str(if is_key { MARK } else { word });
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&str], text: &str, expected: &str) {
        let redactor = Redactor::new(values.iter().map(|value| (*value).to_owned()));
        assert_eq!(redactor.redact(text), expected);
    }

    #[test]
    fn values_are_removed_in_all_forms() {
        check(&["top/secret"], "a top/secret b", "a [redacted] b");
        check(&["top/secret"], "?key=top%2Fsecret&x", "?key=[redacted]&x");
        check(&["top/secret"], "Basic dG9wL3NlY3JldA==", "Basic [redacted]==");
        check(&["abcd", "abcdefgh"], "abcdefgh abcd", "[redacted] [redacted]");
        check(&["ab"], "ab", "ab");
        check(&["top/secret"], "cut here: top/sec", "cut here: [redacted]");
    }

    #[test]
    fn words_that_look_like_keys_are_removed() {
        check(&[], "key sk-proj-1234567890 is wrong.", "key [redacted] is wrong.");
        check(&[], "(AIzaSyA-123456789)", "([redacted])");
        check(&[], "sk-short eyJ é", "sk-short eyJ é");
    }

    #[test]
    fn sensitive_headers_are_removed() {
        let mut headers = HeaderMap::new();
        let mut value = http::HeaderValue::from_static("Bearer open-sesame");
        value.set_sensitive(true);
        headers.insert("authorization", value);
        headers.insert("x-plain", http::HeaderValue::from_static("visible"));
        let redactor = Redactor::of_headers(&headers);
        assert_eq!(redactor.redact("open-sesame visible"), "[redacted] visible");
    }
}
