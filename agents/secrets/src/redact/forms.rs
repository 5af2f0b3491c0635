//! The forms of a value that are searched: as it is, each line of several, and as base64, URL encodings and JSON write it.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::VALUE_CHARS_MIN;

/// The shortest line of a value with several lines that is searched by itself, in bytes. Shorter ones are often not secret, such as
/// `{` in a key file.
const LINE_BYTES_MIN: usize = 8;

/// All forms of a value, some of them equal.
pub(super) fn of(value: &str) -> Vec<Zeroizing<String>> {
    let mut forms = vec![text(value)];
    // Logs consist of lines, so a value with several lines never occurs there as a whole.
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= LINE_BYTES_MIN);
    forms.extend(lines.map(text));
    forms.push(text(value.trim()));
    for offset in 0..3 {
        forms.push(base64(value, offset, false));
        forms.push(base64(value, offset, true));
    }
    forms.push(percent(value, false, "%20"));
    forms.push(percent(value, true, "%20"));
    forms.push(percent(value, false, "+"));
    forms.push(json(value, false));
    forms.push(json(value, true));
    forms.retain(|form| form.chars().count() >= VALUE_CHARS_MIN);
    forms
}

fn text(value: &str) -> Zeroizing<String> {
    Zeroizing::new(value.to_owned())
}

/// The characters of base64 that depend on the value alone, where `offset` bytes precede it in its group of three: what surrounds the
/// value changes the characters at its edges, such as `user:` before a password.
fn base64(value: &str, offset: usize, url_safe: bool) -> Zeroizing<String> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(offset + value.len()));
    bytes.resize(offset, 0);
    bytes.extend_from_slice(value.as_bytes());
    let engine = if url_safe { &URL_SAFE_NO_PAD } else { &STANDARD_NO_PAD };
    let encoded = Zeroizing::new(engine.encode(bytes.as_slice()));
    let start = (offset * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    text(encoded.get(start..end).unwrap_or_default())
}

/// Percent-encoded as `encodeURIComponent` and Python's `quote` do it, apart from the few characters on which they differ.
fn percent(value: &str, lower: bool, space: &str) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(3 * value.len()));
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b' ' => out.push_str(space),
            // Writing to a string does not fail.
            _ if lower => {
                let _ = write!(out, "%{byte:02x}");
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// As JSON writes it, with or without characters beyond ASCII.
fn json(value: &str, ascii: bool) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(6 * value.len()));
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            other if other < ' ' || (ascii && !other.is_ascii()) => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            other => out.push(other),
        }
    }
    out
}
