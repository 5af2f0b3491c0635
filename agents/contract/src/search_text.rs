//! The text of an input that is searched for in the knowledge.

use serde_json::{Map, Value};

/// Members that are used first, in this order.
const FIRST: [&str; 7] = ["text", "query", "content", "message", "topic", "question", "subject"];

/// Most characters of the text.
const CHARS_MAX: usize = 200;

/// The texts of an input's members, joined with spaces: first those of well-known names, then the others in their order, up to
/// 200 characters. White space around a text does not count, and members that are no texts or are empty are left out.
///
/// ```
/// use serde_json::json;
///
/// let input = json!({"a": " 1 ", "b": 2, "text": "t"});
/// assert_eq!(atlas_contract::search_text(input.as_object().unwrap()), "t 1");
/// ```
pub fn search_text(input: &Map<String, Value>) -> String {
    let first = FIRST.into_iter().filter_map(|name| input.get(name));
    let others = input.iter().filter(|(name, _)| !FIRST.contains(&name.as_str())).map(|(_, value)| value);
    let mut text = String::new();
    let mut chars = 0;
    for found in first.chain(others).filter_map(Value::as_str).map(trim).filter(|found| !found.is_empty()) {
        let space = (chars > 0).then_some(' ');
        let piece: String = space.into_iter().chain(found.chars()).take(CHARS_MAX - chars).collect();
        chars += piece.chars().count();
        text += &piece;
    }
    text
}

/// Removes what Python's `strip` removes: also the separators of files, groups, records and units.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(input: &Value, expected: &str) {
        assert_eq!(search_text(input.as_object().expect("an object")), expected);
    }

    #[test]
    fn well_known_members_come_first() {
        check(&json!({"z": "1", "subject": "2", "a": "3", "text": "4", "query": "5"}), "4 5 2 1 3");
    }

    #[test]
    fn other_values_are_left_out() {
        check(&json!({"text": "", "query": "  ", "a": 1, "b": ["x"], "c": {"text": "x"}, "d": null}), "");
        check(&json!({"text": "\u{1f} a b\n"}), "a b");
        check(&json!({}), "");
    }

    #[test]
    fn the_text_is_cut_between_characters() {
        let long = "é".repeat(198);
        check(&json!({ "text": long, "b": "xyz", "c": "more" }), &format!("{long} x"));
        check(&json!({ "text": "é".repeat(200), "b": "xyz" }), &"é".repeat(200));
        check(&json!({ "text": "é".repeat(199), "b": "xyz" }), &format!("{} ", "é".repeat(199)));
    }
}
