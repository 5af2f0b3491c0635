//! JSON values as YAML, in the subset that YAML 1.1 and 1.2 read alike: ambiguous values are quoted.

use serde_json::Value;

/// The value as a YAML document.
pub(crate) fn write(value: &Value) -> String {
    let mut text = String::new();
    node(value, 0, &mut text);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Writes a value at the cursor; nested lines are indented by `depth` blanks.
fn node(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push_str(&" ".repeat(depth));
                }
                text.push_str("- ");
                node(item, depth + 2, text);
                end_line(text);
            }
        }
        Value::Object(members) if !members.is_empty() => {
            for (number, (key, member)) in members.iter().enumerate() {
                if number > 0 {
                    text.push_str(&" ".repeat(depth));
                }
                text.push_str(&scalar(key));
                text.push(':');
                let nested = matches!(member, Value::Array(items) if !items.is_empty())
                    || matches!(member, Value::Object(members) if !members.is_empty());
                if nested {
                    text.push('\n');
                    text.push_str(&" ".repeat(depth + 2));
                } else {
                    text.push(' ');
                }
                node(member, depth + 2, text);
                end_line(text);
            }
        }
        Value::String(string) => text.push_str(&scalar(string)),
        // JSON numbers, booleans, null and empty collections are the same in YAML.
        value => text.push_str(&value.to_string()),
    }
}

fn end_line(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

/// A string: unquoted if every YAML parser reads it as a string, otherwise in JSON quotes.
fn scalar(string: &str) -> String {
    let first = string.bytes().next();
    let plain = first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'/')
        && string.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
        && !["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
            .contains(&string.to_ascii_lowercase().as_str());
    if plain { string.to_owned() } else { Value::from(string).to_string() }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_could_be_read_otherwise_is_quoted() {
        let value = json!({
            "name": "hello", "no": "no", "octal": "010", "time": "1:30", "text": "a: b\nc", "empty": "", "list": [[1, 2], [], {}],
            "deep": {"a": [{"b": "sha256:9f"}]}, "float": 1.5, "none": null,
        });
        expect![[r#"
            name: hello
            "no": "no"
            octal: "010"
            time: "1:30"
            text: "a: b\nc"
            empty: ""
            list:
              - - 1
                - 2
              - []
              - {}
            deep:
              a:
                - b: "sha256:9f"
            float: 1.5
            none: null
        "#]]
        .assert_eq(&write(&value));
    }
}
