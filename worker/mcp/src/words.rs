//! What a server says in an answer without success: bounded, on one line, and without the code of a page.

use serde_json::Value;

/// Most characters.
const WORDS_MAX: usize = 500;

/// The words in a body; none if there are none.
pub(crate) fn words(body: &[u8]) -> Option<String> {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(value) => said(&value).unwrap_or_else(|| value.to_string()),
        Err(_) => plain(&String::from_utf8_lossy(body)),
    };
    let words: Vec<&str> = text.split(|char: char| char.is_whitespace() || char.is_control()).collect();
    let words = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let mut short: String = words.chars().take(WORDS_MAX).collect();
    if short.len() < words.len() {
        short.push('…');
    }
    (!short.is_empty() && short != "{}" && short != "null").then_some(short)
}

/// The text in an error of the protocol, of a problem document, or in the forms that frameworks use.
fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(members) => ["error", "message", "error_description", "detail", "title", "errors"]
            .iter()
            .find_map(|name| members.get(*name).filter(|value| !value.is_null()))
            .and_then(said),
        Value::Array(items) => items.first().and_then(said),
        _ => None,
    }
}

/// A page without its tags.
fn plain(text: &str) -> String {
    if !text.trim_start().starts_with('<') {
        return text.to_owned();
    }
    let begin = text.to_ascii_lowercase().find("<title>").map(|at| at + "<title>".len());
    if let Some(title) = begin.and_then(|begin| text.get(begin..)).and_then(|rest| rest.split('<').next()) {
        return title.to_owned();
    }
    let mut in_tag = false;
    let outside = text.chars().map(|char| {
        let was_in_tag = in_tag;
        in_tag = (in_tag && char != '>') || char == '<';
        if was_in_tag || in_tag { ' ' } else { char }
    });
    outside.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_usual_form() {
        let told = |text: &str| words(text.as_bytes());
        for text in [
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no such session"}}"#,
            r#"{"error":"no such session"}"#,
            r#"{"detail":"no such session"}"#,
            r#"{"errors":[{"message":"no such session"}]}"#,
            "no such\r\n  session\n",
            "<html><head><title>no such session</title></head><body>x</body></html>",
            "<p>no such</p><p>session</p>",
        ] {
            assert_eq!(told(text).as_deref(), Some("no such session"), "{text}");
        }
        for text in ["", " \n", "{}", "null", "<br>"] {
            assert_eq!(told(text), None, "{text}");
        }
        assert_eq!(told(&"x".repeat(600)).map(|text| text.chars().count()), Some(501));
        assert_eq!(told(r#"{"code":5}"#).as_deref(), Some(r#"{"code":5}"#));
    }
}
