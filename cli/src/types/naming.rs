//! Names of types, and texts that are safe in a source file.

use std::collections::BTreeSet;

/// Names that mean something else in one of the languages.
const RESERVED: [&str; 33] = [
    "Any",
    "Array",
    "BigInt",
    "Boolean",
    "Date",
    "Error",
    "False",
    "Function",
    "Infinity",
    "JSON",
    "Literal",
    "Map",
    "Math",
    "NaN",
    "Never",
    "None",
    "NotRequired",
    "Number",
    "Object",
    "Partial",
    "Pick",
    "Promise",
    "Readonly",
    "Record",
    "Required",
    "Set",
    "String",
    "Symbol",
    "True",
    "TypeAlias",
    "TypedDict",
    "Union",
    "Unpack",
];

/// The longest name.
const CHARS_MAX: usize = 80;

/// The longest text about a type that is written.
const ABOUT_CHARS_MAX: usize = 300;

/// The names that are in use.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// A name like this one that is not in use yet.
    pub(super) fn take(&mut self, wanted: &str) -> String {
        let wanted =
            if wanted.is_empty() || RESERVED.contains(&wanted) { format!("{wanted}Type") } else { wanted.to_owned() };
        let wanted: String = wanted.chars().take(CHARS_MAX).collect();
        let numbered = (2_u32..).map(|number| format!("{wanted}{number}"));
        let free = std::iter::once(wanted.clone()).chain(numbered).find(|name| !self.0.contains(name));
        let name = free.unwrap_or(wanted);
        self.0.insert(name.clone());
        name
    }
}

/// `order-item` as `OrderItem`.
pub(super) fn pascal(text: &str) -> String {
    let mut name = String::new();
    let mut begins = true;
    for char in text.chars().take(CHARS_MAX) {
        if !char.is_ascii_alphanumeric() {
            begins = true;
        } else if begins {
            name.push(char.to_ascii_uppercase());
            begins = false;
        } else {
            name.push(char);
        }
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("T{name}") } else { name }
}

/// Whether a text is a name in both languages. Names with other letters are written as texts.
pub(super) fn is_identifier(text: &str) -> bool {
    let first = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    first && text.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

/// A text between quotes, as both languages read it. What would hide or reorder the text around it is escaped.
pub(super) fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.chars().fold(String::new(), |mut safe, char| {
        if is_hidden(char) {
            safe.push_str(&escaped(char))
        } else {
            safe.push(char)
        }
        safe
    })
}

fn escaped(char: char) -> String {
    let mut units = [0; 2];
    char.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// A text for a comment: one line, and no end of a comment.
pub(super) fn comment(text: &str) -> String {
    let text: String = text.chars().map(|char| if is_hidden(char) { ' ' } else { char }).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ").replace("*/", "* /");
    let mut short: String = line.chars().take(ABOUT_CHARS_MAX).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

/// Whether a character cannot be seen, or changes how others are shown.
fn is_hidden(char: char) -> bool {
    let formats = ['\u{ad}', '\u{61c}', '\u{180e}', '\u{feff}'];
    char.is_control()
        || formats.contains(&char)
        || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}')
}
