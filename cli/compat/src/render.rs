//! Texts as Atlas for Python prints them.

use atlas_contract::python;
use serde_json::Value;

/// JSON indented by two spaces, with non-ASCII characters escaped and a line break at the end.
pub(super) fn json(value: &Value) -> String {
    let plain = format!("{value:#}");
    let mut text = String::with_capacity(plain.len() + 1);
    for character in plain.chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text.push('\n');
    text
}

/// The block `Result:`, with one line per member of the output.
pub(super) fn result(output: &Value) -> String {
    let mut text = "Result:\n".to_owned();
    match output {
        Value::Object(members) => {
            for (name, value) in members {
                text.push_str(&format!("  {name}: {}\n", python::display(value)));
            }
        }
        other => text.push_str(&format!("  {}\n", python::display(other))),
    }
    text
}

/// `  [a, b]` for the end of a line; empty if there are none.
pub(super) fn capabilities(words: &[String]) -> String {
    if words.is_empty() { String::new() } else { format!("  [{}]", words.join(", ")) }
}

/// A float as Python prints it: `10.0`.
pub(super) fn float(value: f64) -> String {
    python::display(&Value::from(value))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_are_in_python_notation() {
        let output = json!({"text": "it's", "ok": true, "none": null, "list": ["a", 1, 2.0], "map": {"k": false}});
        expect![[r#"
            Result:
              text: it's
              ok: True
              none: None
              list: ['a', 1, 2.0]
              map: {'k': False}
        "#]]
        .assert_eq(&result(&output));
    }

    #[test]
    fn json_is_ascii() {
        expect![[r#"
            {
              "name": "\u00e9\ud83d\ude00"
            }
        "#]]
        .assert_eq(&json(&json!({"name": "é😀"})));
        assert_eq!(float(10.0), "10.0");
    }
}
