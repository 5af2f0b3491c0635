//! Parses an agent's output as one JSON document, with the error texts of Python, and mends it.

use atlas_contract::python::json_fault;
use atlas_contract::surrogates;
use serde_json::value::RawValue;

/// Parses exactly one JSON document, optionally surrounded by white space.
pub(super) fn parse(bytes: &[u8]) -> Result<Box<RawValue>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        format!("'utf-8' codec can't decode byte 0x{:02x} in position {at}: invalid start byte", bytes[at])
    })?;
    // Values that only Python accepts, such as NaN, are refused.
    let fault = |error: serde_json::Error| json_fault(text).unwrap_or_else(|| error.to_string());
    serde_json::from_str::<Box<RawValue>>(text.trim()).map_err(fault)
}

/// An output as every client can read it, with U+FFFD instead of each half of a surrogate pair, and how many there were; none if
/// there was none. A job that has done its work is not lost because its program cut a text within a character.
pub(crate) fn mended(output: &RawValue) -> Option<(Box<RawValue>, usize)> {
    let mended = surrogates::mended(output.get().as_bytes())?;
    let text = String::from_utf8(mended.text).ok()?;
    Some((RawValue::from_string(text).ok()?, mended.halves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_surrogate_pairs_are_replaced() {
        let of = |text: &str| {
            mended(&parse(text.as_bytes()).expect("JSON")).map(|(text, halves)| (text.get().to_owned(), halves))
        };
        assert_eq!(of(r#"{"a":"\ud83d"}"#), Some((r#"{"a":"\ufffd"}"#.to_owned(), 1)));
        assert_eq!(of(r#"{"a":"\ud83d\ude00"}"#), None);
    }

    #[test]
    fn faults_are_told_in_pythons_words() {
        let fault = |text: &str| parse(text.as_bytes()).map(drop).unwrap_err();
        assert_eq!(fault(""), "Expecting value: line 1 column 1 (char 0)");
        assert_eq!(fault("hello"), "Expecting value: line 1 column 1 (char 0)");
        assert_eq!(fault("{} {}"), "Extra data: line 1 column 4 (char 3)");
        assert_eq!(fault("{bad"), "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)");
        assert_eq!(fault("{\"a\": NaN}"), "expected value at line 1 column 7");
        assert_eq!(fault("{}\n x"), "Extra data: line 2 column 2 (char 4)");
        assert!(parse(b"\xff").unwrap_err().contains("byte 0xff in position 0"));
        assert_eq!(parse(b" {\"a\": 1}\n").expect("valid").get(), "{\"a\": 1}");
    }
}
