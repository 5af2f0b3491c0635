//! Rules of the length of an answer.

use atlas_graph::LengthRule;
use serde_json::json;

use crate::matcher::Captures;
use crate::result::{Judged, compare};
use crate::row::Row;

pub(super) fn judge(row: &Row) -> Judged {
    let input = row.text("input");
    let valid = |input: &str| LengthRule::parse(row.text("expr")).map(|rule| rule.holds(input));
    let answer = match valid(input) {
        Ok(valid) => json!({ "valid": valid }),
        Err(_) => json!({"error": {"kind": "expression"}}),
    };
    // Loki counts bytes. In such a row, Atlas must judge the text as one of as many characters of one byte.
    let counted = !row.differs.is_empty() && row.expect.get("valid").is_some();
    let expected = match valid(&"x".repeat(input.chars().count())) {
        Ok(valid) if counted => json!({ "valid": valid }),
        _ => row.expect.clone(),
    };
    compare(&expected, &answer, &Captures::new())
}
