//! JSON in the format of the API (compatibility §0.4): ASCII only, times as Unix seconds, durations as milliseconds.
//!
//! Written by hand, because answers consist mostly of existing JSON, which is copied without parsing.

use std::fmt;

use atlas_contract::{range, surrogates};
use atlas_types::{Micros, Timestamp};
use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Appends a quoted string. Non-ASCII characters become `\uXXXX`.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| !matches!(c, ' '..='~') || c == '"' || c == '\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let mut chars = rest[at..].chars();
        if let Some(c) = chars.next() {
            escaped(out, c);
        }
        rest = chars.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

fn escaped(out: &mut Vec<u8>, c: char) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        c => unicode(out, c),
    }
}

fn unicode(out: &mut Vec<u8>, c: char) {
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        out.extend_from_slice(b"\\u");
        for shift in [12, 8, 4, 0] {
            out.push(b"0123456789abcdef"[usize::from(*unit >> shift & 0xf)]);
        }
    }
}

/// Appends a JSON text and escapes non-ASCII characters. In JSON they occur only inside strings.
pub fn raw(out: &mut Vec<u8>, text: &[u8]) {
    if text.is_ascii() {
        out.extend_from_slice(text);
        return;
    }
    for c in String::from_utf8_lossy(text).chars() {
        if c.is_ascii() {
            out.push(c as u8);
        } else {
            unicode(out, c);
        }
    }
}

/// Appends an integer.
pub fn integer(out: &mut Vec<u8>, number: i128) {
    out.extend_from_slice(number.to_string().as_bytes());
}

/// Appends a time as Unix seconds with a fraction; "not yet" is `0.0`.
pub fn time(out: &mut Vec<u8>, time: Timestamp) {
    fraction(out, time.0, 6);
}

/// Appends a duration in milliseconds with a fraction.
pub fn millis(out: &mut Vec<u8>, duration: Micros) {
    fraction(out, i64::try_from(duration.0).unwrap_or(i64::MAX), 3);
}

/// Appends `number` × 10^-`digits`, exactly, with at least one digit after the decimal point.
fn fraction(out: &mut Vec<u8>, number: i64, digits: u32) {
    let scale = 10_u64.pow(digits);
    let (whole, mut part) = (number.unsigned_abs() / scale, number.unsigned_abs() % scale);
    let mut buffer = [b'0'; 32];
    let mut at = buffer.len();
    let mut push = |digit: u64| {
        at -= 1;
        buffer[at] = b"0123456789"[(digit % 10) as usize];
    };
    let mut left = digits;
    while left > 1 && part.is_multiple_of(10) {
        part /= 10;
        left -= 1;
    }
    for _ in 0..left {
        push(part);
        part /= 10;
    }
    at -= 1;
    buffer[at] = b'.';
    let mut whole = whole;
    loop {
        at -= 1;
        buffer[at] = b"0123456789"[(whole % 10) as usize];
        whole /= 10;
        if whole == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    out.extend_from_slice(&buffer[at..]);
}

/// The deepest nesting of JSON. Parsers of all languages accept it, including the surrounding objects of an answer.
pub const DEPTH_MAX: usize = 100;

/// Why a text is not JSON that every client can parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotJson {
    /// It is not JSON, or contains half a surrogate pair, which strict parsers refuse.
    #[error("Invalid JSON")]
    Malformed,
    /// It contains a number outside the range of floats, which strict parsers refuse.
    #[error("Invalid JSON: the number at {place:?} is beyond the range of numbers")]
    OutOfRange {
        /// Its JSON pointer.
        place: String,
    },
    /// It nests deeper than [`DEPTH_MAX`].
    #[error("the JSON is nested more than {DEPTH_MAX} levels")]
    TooDeep,
}

/// Checks a text that will be sent unchanged. A text that some clients cannot parse would break every list that
/// contains it.
pub fn check(text: &[u8]) -> Result<(), NotJson> {
    if too_deep(text) {
        return Err(NotJson::TooDeep);
    }
    if surrogates::mended(text).is_some() {
        return Err(NotJson::Malformed);
    }
    serde_json::from_slice::<Readable>(text).map(|Readable| ()).map_err(|_| {
        let place = std::str::from_utf8(text).ok().and_then(range::out_of_range);
        place.map_or(NotJson::Malformed, |place| NotJson::OutOfRange { place })
    })
}

/// A text that somebody sent, with U+FFFD instead of each half of a surrogate pair. `what` it is goes into the log.
pub fn mended(what: &str, text: Bytes) -> Bytes {
    match surrogates::mended(&text) {
        None => text,
        Some(mended) => {
            tracing::warn!(what, halves = mended.halves, "replaced halves of surrogate pairs by U+FFFD");
            mended.text.into()
        }
    }
}

/// Parses any JSON value completely and discards it.
struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reads)
    }
}

struct Reads;

impl<'de> Visitor<'de> for Reads {
    type Value = Readable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_str<E>(self, _: &str) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Readable, A::Error> {
        while let Some(Readable) = items.next_element()? {}
        Ok(Readable)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Readable, A::Error> {
        while let Some((Readable, Readable)) = members.next_entry()? {}
        Ok(Readable)
    }
}

/// True if a JSON text is nested deeper than [`DEPTH_MAX`]. The text must be well-formed.
pub fn too_deep(text: &[u8]) -> bool {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text {
        match (quoted, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => quoted = !quoted,
            (false, b'[' | b'{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest > DEPTH_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn strings_are_ascii() {
        assert_eq!(written(|out| string(out, "a\"\\\n\u{1}\u{7f}é😀z")), r#""a\"\\\n\u0001\u007f\u00e9\ud83d\ude00z""#);
        assert_eq!(written(|out| string(out, "")), r#""""#);
        assert_eq!(written(|out| raw(out, "{\"ä\": [1]}".as_bytes())), r#"{"\u00e4": [1]}"#);
    }

    #[test]
    fn times_are_exact() {
        for (micros, text) in [
            (0, "0.0"),
            (1_700_000_000_123_456, "1700000000.123456"),
            (1_700_000_000_500_000, "1700000000.5"),
            (10, "0.00001"),
            (-1_500_000, "-1.5"),
            (i64::MIN, "-9223372036854.775808"),
        ] {
            assert_eq!(written(|out| time(out, Timestamp(micros))), text);
        }
        assert_eq!(written(|out| millis(out, Micros(1_250))), "1.25");
        assert_eq!(written(|out| millis(out, Micros(3_000_000))), "3000.0");
    }

    #[test]
    fn depth_is_counted_outside_of_strings() {
        assert!(!too_deep(b"[[[]]]"));
        assert!(!too_deep(format!("\"{}\"", "[".repeat(500)).as_bytes()));
        assert!(!too_deep(br#"["\"[[[[", "\\"]"#));
        assert!(too_deep("[".repeat(101).as_bytes()));
    }

    #[test]
    fn what_a_strict_reader_refuses_is_refused() {
        for text in ["null", "1e308", "-0.5", r#""\ud83d\ude00""#, r#"{"a": [true, {"b": ""}]}"#, " 1 "] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
        let wrong = ["", r#""\ud800""#, r#"{"\udc00": 1}"#, "[1,]", "NaN", "1 2", "{\"a\"}", "\"\u{1}\""];
        for text in wrong {
            assert_eq!(check(text.as_bytes()), Err(NotJson::Malformed), "{text}");
        }
        for (text, place) in [("1e999", ""), (r#"{"a": [0, -1e999]}"#, "/a/1")] {
            assert_eq!(check(text.as_bytes()), Err(NotJson::OutOfRange { place: place.to_owned() }));
        }
        assert_eq!(check(b"\"\xff\""), Err(NotJson::Malformed));
        assert_eq!(check("[".repeat(101).as_bytes()), Err(NotJson::TooDeep));
    }
}
