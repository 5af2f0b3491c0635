//! Templates: text with placeholders such as `{{users[0].name}}`.
//!
//! A placeholder has no spaces inside, and its path has only letters, digits, `_`, `.`, `[` and `]`; everything else stays text. Values
//! are inserted in one pass: a placeholder inside a value is never replaced.

use serde_json::{Map, Value};

/// Most bytes of a rendered template.
const BYTES_MAX: usize = 16 << 20;

/// Where the paths of a template are looked up, in this order.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The result of the node whose `state_updates` are evaluated, with its name: `output`, `choice` or `input`.
    pub result: Option<(&'static str, &'a Value)>,
    /// What the node itself has written.
    pub own: &'a Map<String, Value>,
    pub state: &'a Map<String, Value>,
    /// Names that are not state: `vars` and the special variables.
    pub given: &'a Map<String, Value>,
}

/// Why a template was not rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("not found: {}", .paths.join(", "))]
    Missing {
        /// All missing paths, as often as the template has them.
        paths: Vec<String>,
    },
    #[error("the text would have more than {BYTES_MAX} bytes")]
    TooLong,
}

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    Text(&'t str),
    Path(&'t str),
}

/// Renders a template whose paths must all exist. A null exists.
pub fn strict(template: &str, scope: &Scope<'_>) -> Result<String, TemplateError> {
    let paths: Vec<String> = paths(template).filter(|path| scope.find(path).is_none()).map(str::to_owned).collect();
    if paths.is_empty() { lenient(template, scope) } else { Err(TemplateError::Missing { paths }) }
}

/// Renders a template; missing paths become empty.
pub fn lenient(template: &str, scope: &Scope<'_>) -> Result<String, TemplateError> {
    let mut text = String::with_capacity(template.len());
    for piece in pieces(template) {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Path(path) => match scope.find(path) {
                Some(Value::String(value)) => text.push_str(value),
                Some(value) => text.push_str(&value.to_string()),
                None => {}
            },
        }
        if text.len() > BYTES_MAX {
            return Err(TemplateError::TooLong);
        }
    }
    Ok(text)
}

/// The value of a template that is a single placeholder, with its type; the text of any other one.
pub fn typed(template: &str, scope: &Scope<'_>) -> Result<Value, TemplateError> {
    match single(template) {
        Some(path) => {
            let missing = || TemplateError::Missing { paths: vec![path.to_owned()] };
            scope.find(path).cloned().ok_or_else(missing)
        }
        None => strict(template, scope).map(Value::String),
    }
}

/// The path of a template that, without white space around it, is a single placeholder.
pub fn single(template: &str) -> Option<&str> {
    match pieces(template.trim())[..] {
        [Piece::Path(path)] => Some(path),
        _ => None,
    }
}

/// The state keys that a template reads, in order of appearance, as often as it reads them.
pub fn root_keys(template: &str) -> Vec<&str> {
    paths(template).map(root_key).collect()
}

/// The paths of a template, in order of appearance.
pub fn paths(template: &str) -> impl Iterator<Item = &str> {
    pieces(template).into_iter().filter_map(|piece| match piece {
        Piece::Path(path) => Some(path),
        Piece::Text(_) => None,
    })
}

/// Parts of a template that look like placeholders but stay text, such as `{{ x }}`.
pub fn lookalikes(template: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for piece in pieces(template) {
        let Piece::Text(mut text) = piece else { continue };
        while let Some(start) = text.find("{{") {
            let rest = &text[start..];
            let Some(end) = rest.find("}}") else { break };
            let inner = rest[2..end].trim();
            if !inner.is_empty() && inner.len() <= 80 && !inner.contains(['{', '\n', '"', ':']) {
                found.push(&rest[..end + 2]);
            }
            text = &rest[end + 2..];
        }
    }
    found
}

/// The part of a path before its first `.` or `[`.
pub fn root_key(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut text_start, mut at) = (0, 0);
    while let Some(found) = template[at..].find("{{") {
        let open = at + found;
        let rest = &template[open + 2..];
        let length = rest.bytes().take_while(|byte| is_path(*byte)).count();
        if length > 0 && rest[length..].starts_with("}}") {
            if text_start < open {
                pieces.push(Piece::Text(&template[text_start..open]));
            }
            pieces.push(Piece::Path(&rest[..length]));
            at = open + 2 + length + 2;
            text_start = at;
        } else {
            at = open + 1;
        }
    }
    if text_start < template.len() {
        pieces.push(Piece::Text(&template[text_start..]));
    }
    pieces
}

fn is_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'[' | b']')
}

impl<'a> Scope<'a> {
    /// The value at a path. Wrong types, missing members and indexes out of range are missing values.
    fn find(&self, path: &str) -> Option<&'a Value> {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (root, rest) = path.split_at(end);
        let own = self.result.filter(|(name, _)| *name == root).map(|(_, value)| value);
        let value =
            own.or_else(|| self.own.get(root)).or_else(|| self.state.get(root)).or_else(|| self.given.get(root))?;
        inside(value, rest)
    }
}

/// The value below `value` at the rest of a path: `.name`, `[3]` or several of them. A dot without a name is skipped.
fn inside<'a>(mut value: &'a Value, mut path: &str) -> Option<&'a Value> {
    while !path.is_empty() {
        if let Some(rest) = path.strip_prefix('[') {
            let (index, rest) = rest.split_once(']')?;
            value = value.as_array()?.get(index.parse::<usize>().ok()?)?;
            path = rest;
            continue;
        }
        path = path.strip_prefix('.').unwrap_or(path);
        let end = path.find(['.', '[']).unwrap_or(path.len());
        let (name, rest) = path.split_at(end);
        if !name.is_empty() {
            value = value.as_object()?.get(name)?;
        }
        path = rest;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(template: &str, expected: &str) {
        let state = json!({
            "a": "{{b}}", "b": "S", "n": 42, "l": [1, [2, 3]], "z": null, "t": true, "o": {"k": {"x": 1.0}, "0": "zero"},
        });
        let output = json!({"field": "F"});
        let given = json!({"__cwd__": "/here", "b": "hidden"});
        let scope = Scope {
            result: Some(("output", &output)),
            own: &Map::new(),
            state: state.as_object().expect("an object"),
            given: given.as_object().expect("an object"),
        };
        let shown = |rendered: Result<String, TemplateError>| rendered.unwrap_or_else(|error| format!("! {error}"));
        let both = format!("{} | {}", shown(strict(template, &scope)), shown(lenient(template, &scope)));
        assert_eq!(both, expected, "{template}");
    }

    #[test]
    fn values_have_their_json_form_and_are_never_read_again() {
        check("{{a}}{{b}}", "{{b}}S | {{b}}S");
        check(
            "{{n}} {{l}} {{z}} {{t}} {{o}}",
            r#"42 [1,[2,3]] null true {"k":{"x":1.0},"0":"zero"} | 42 [1,[2,3]] null true {"k":{"x":1.0},"0":"zero"}"#,
        );
        check("{{output.field}} {{__cwd__}}", "F /here | F /here");
    }

    #[test]
    fn paths_go_into_lists_and_objects() {
        check(
            "{{l[1][0]}} {{o.k.x}} {{o.0}} {{o.}}",
            r#"2 1.0 zero {"k":{"x":1.0},"0":"zero"} | 2 1.0 zero {"k":{"x":1.0},"0":"zero"}"#,
        );
        check("{{l[9]}}{{l.k}}{{n[0]}}{{l[x]}}{{l[}}{{q}}{{q}}", "! not found: l[9], l.k, n[0], l[x], l[, q, q | ");
    }

    #[test]
    fn what_is_not_exactly_a_placeholder_is_text() {
        check("{{ b }} {{b-c}} {{}} {b} {{b", "{{ b }} {{b-c}} {{}} {b} {{b | {{ b }} {{b-c}} {{}} {b} {{b");
        check("{{{{b}}}} {{{b}}}", "{{S}} {S} | {{S}} {S}");
        assert_eq!(lookalikes("{{ b }} {{b-c}} {{b}} {{}} {\"a\": {\"b\": {{b}}}}"), ["{{ b }}", "{{b-c}}"]);
    }

    #[test]
    fn a_single_placeholder_keeps_its_type() {
        let state = json!({"l": [1]});
        let scope =
            Scope { result: None, own: &Map::new(), state: state.as_object().expect("an object"), given: &Map::new() };
        assert_eq!(typed(" {{l}}\n", &scope), Ok(json!([1])));
        assert_eq!(typed("{{l}}!", &scope), Ok(json!("[1]!")));
        assert_eq!(typed("{{x}}", &scope), Err(TemplateError::Missing { paths: vec!["x".to_owned()] }));
        assert_eq!(root_keys("{{l[0]}} {{o.k}} {{l}} {{.}}"), ["l", "o", "l", ""]);
    }

    #[test]
    fn a_bomb_is_refused() {
        let state = json!({"a": "x".repeat(1 << 20)});
        let scope =
            Scope { result: None, own: &Map::new(), state: state.as_object().expect("an object"), given: &Map::new() };
        assert_eq!(lenient(&"{{a}}".repeat(100_000), &scope), Err(TemplateError::TooLong));
    }

    proptest! {
        #[test]
        fn any_text_renders(template in r"[a-z{}\[\]. é]{0,30}") {
            let state = json!({"a": "é", "b": [1]});
            let scope = Scope { result: None, own: &Map::new(), state: state.as_object().expect("an object"), given: &Map::new() };
            let (all, empty) = (lenient(&template, &scope), strict(&template, &scope));
            prop_assert!(all.is_ok());
            prop_assert_eq!(empty.is_ok(), paths(&template).all(|path| scope.find(path).is_some()));
        }
    }
}
