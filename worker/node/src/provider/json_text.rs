//! What an agent prints, read as one JSON document; faults in the words that Python uses.

use serde_json::value::RawValue;

/// Reads exactly one JSON document with white space around it.
pub(super) fn parse(bytes: &[u8]) -> Result<Box<RawValue>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        format!("'utf-8' codec can't decode byte 0x{:02x} in position {at}: invalid start byte", bytes[at])
    })?;
    serde_json::from_str::<Box<RawValue>>(text.trim()).map_err(|error| complaint(text, &error))
}

fn complaint(text: &str, error: &serde_json::Error) -> String {
    let skipped = text.len() - text.trim_start().len();
    let trimmed = &text[skipped..];
    let in_trimmed: usize = trimmed.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = (skipped + in_trimmed + error.column().saturating_sub(1)).min(text.len());
    let at = if error.is_eof() { text.len() } else { text.floor_char_boundary(at) };
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    let what = if error.to_string().starts_with("trailing characters") { "Extra data" } else { "Expecting value" };
    format!("{what}: line {line} column {column} (char {})", before.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_in_pythons_words() {
        let fault = |text: &str| parse(text.as_bytes()).map(drop).unwrap_err();
        assert_eq!(fault(""), "Expecting value: line 1 column 1 (char 0)");
        assert_eq!(fault("hello"), "Expecting value: line 1 column 1 (char 0)");
        assert_eq!(fault("{} {}"), "Extra data: line 1 column 4 (char 3)");
        assert_eq!(fault("{}\n x"), "Extra data: line 2 column 2 (char 4)");
        assert!(parse(b"\xff").unwrap_err().contains("byte 0xff in position 0"));
        assert_eq!(parse(b" {\"a\": 1}\n").expect("valid").get(), "{\"a\": 1}");
    }
}
