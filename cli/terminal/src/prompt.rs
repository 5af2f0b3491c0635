//! Templates of prompts: text with `{variable}`, `{?variable text}` and `{!variable text}`.
//!
//! The language is that of Loki, so that its prompts are used as they are. Unlike there, a brace that is not closed is an error.

use std::collections::BTreeMap;

use crate::{ColorDepth, visible};

const BYTES_MAX: usize = 4_096;
const DEPTH_MAX: usize = 8;

/// The colours that a template may name, and their codes.
const COLORS: [(&str, u8); 19] = [
    ("reset", 0),
    ("black", 30),
    ("dark_gray", 90),
    ("red", 31),
    ("light_red", 91),
    ("green", 32),
    ("light_green", 92),
    ("yellow", 33),
    ("light_yellow", 93),
    ("blue", 34),
    ("light_blue", 94),
    ("purple", 35),
    ("light_purple", 95),
    ("magenta", 35),
    ("light_magenta", 95),
    ("cyan", 36),
    ("light_cyan", 96),
    ("white", 37),
    ("light_gray", 97),
];

/// Why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct PromptError {
    /// The character at which the problem is, from 1.
    pub column: usize,
    /// A description of the problem.
    pub problem: String,
}

/// The template of a prompt.
///
/// ```
/// # use std::collections::BTreeMap;
/// # use atlas_terminal::{ColorDepth, PromptTemplate};
/// let template = PromptTemplate::parse("{?role {role} in }{model}> ")?;
/// let values = BTreeMap::from([("model".to_owned(), "gpt".to_owned()), ("role".to_owned(), "sql".to_owned())]);
/// assert_eq!(template.render(&values, ColorDepth::None), "sql in gpt> ");
/// # Ok::<(), atlas_terminal::PromptError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(String),
    /// Shown if the variable has a value, or if it has none.
    Condition {
        is_set: bool,
        variable: String,
        parts: Vec<Part>,
    },
}

impl PromptTemplate {
    /// Reads a template. Blocks may be nested 8 deep, and a template has at most 4,096 bytes.
    pub fn parse(text: &str) -> Result<Self, PromptError> {
        if text.len() > BYTES_MAX {
            let problem = format!("a prompt has at most {BYTES_MAX} bytes, and this one has {}", text.len());
            return Err(PromptError { column: 1, problem });
        }
        let letters: Vec<char> = text.chars().collect();
        Ok(Self { parts: parse(&letters, 0, 0)? })
    }

    /// The prompt for these values. `color.red` and the other colours are known without a value, and empty if `colors` is none. Control
    /// characters in values are made visible, and line ends in them are blanks.
    ///
    /// A variable without a value is empty. The values `0` and `false` count as none in conditions.
    pub fn render(&self, values: &BTreeMap<String, String>, colors: ColorDepth) -> String {
        let mut text = String::new();
        render(&self.parts, values, colors, &mut text);
        text
    }
}

/// The parts of a text whose first letter is at `start` of the template.
fn parse(letters: &[char], start: usize, depth: usize) -> Result<Vec<Part>, PromptError> {
    if depth > DEPTH_MAX {
        let problem = format!("blocks may be nested {DEPTH_MAX} deep");
        return Err(PromptError { column: start + 1, problem });
    }
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        if letter != '{' {
            text.push(letter);
            at += 1;
            continue;
        }
        let inside = &letters[at + 1..];
        let Some(length) = block_length(inside) else {
            let problem = "\"{\" has no \"}\": close the block".to_owned();
            return Err(PromptError { column: start + at + 1, problem });
        };
        let block = &inside[..length];
        match block_part(block, start + at + 1, depth)? {
            Some(part) => {
                push_text(&mut parts, &mut text);
                parts.push(part);
            }
            None => {
                text.push('{');
                text.extend(block);
                text.push('}');
            }
        }
        at += length + 2;
    }
    push_text(&mut parts, &mut text);
    Ok(parts)
}

fn push_text(parts: &mut Vec<Part>, text: &mut String) {
    if !text.is_empty() {
        parts.push(Part::Text(visible(&std::mem::take(text))));
    }
}

/// How many letters there are before the brace that closes a block.
fn block_length(letters: &[char]) -> Option<usize> {
    let mut depth = 0usize;
    for (at, letter) in letters.iter().enumerate() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// What a block is; none if it is text.
fn block_part(block: &[char], start: usize, depth: usize) -> Result<Option<Part>, PromptError> {
    let name_length = block.iter().position(|letter| *letter == ' ').unwrap_or(block.len());
    let name: String = block[..name_length].iter().collect();
    let condition = match name.chars().next() {
        Some('?') => Some(true),
        Some('!') => Some(false),
        _ => None,
    };
    let Some(is_set) = condition else {
        return Ok((name_length == block.len()).then_some(Part::Variable(name)));
    };
    let body = block.get(name_length + 1..).unwrap_or_default();
    let parts = parse(body, start + name_length + 1, depth + 1)?;
    Ok(Some(Part::Condition { is_set, variable: name[1..].to_owned(), parts }))
}

fn render(parts: &[Part], values: &BTreeMap<String, String>, colors: ColorDepth, text: &mut String) {
    for part in parts {
        match part {
            Part::Text(part) => text.push_str(part),
            Part::Variable(name) => text.push_str(&value(name, values, colors)),
            Part::Condition { is_set, variable, parts } => {
                let value = value(variable, values, colors);
                let has_value = !matches!(value.as_str(), "" | "0" | "false");
                if has_value == *is_set {
                    render(parts, values, colors, text);
                }
            }
        }
    }
}

fn value(name: &str, values: &BTreeMap<String, String>, colors: ColorDepth) -> String {
    if let Some(color) = name.strip_prefix("color.") {
        let code = COLORS.iter().find(|(known, _)| *known == color).map(|(_, code)| code);
        return match code {
            Some(code) if colors != ColorDepth::None => format!("\u{1b}[{code}m"),
            _ => String::new(),
        };
    }
    values.get(name).map(|value| visible(value).replace(['\n', '\t'], " ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(template: &str, values: &[(&str, &str)], expected: &str) {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let template = PromptTemplate::parse(template).expect("a template");
        assert_eq!(template.render(&values, ColorDepth::None), expected);
    }

    #[test]
    fn variables_and_conditions_are_replaced() {
        check("{model}> ", &[("model", "m")], "m> ");
        check("{?a yes}{!a no}", &[("a", "1")], "yes");
        for value in ["", "0", "false"] {
            check("{?a yes}{!a no}", &[("a", value)], "no");
        }
        check("{?a ({?b {a}/{b}}{!b {a}})}", &[("a", "x"), ("b", "y")], "(x/y)");
        check("{?a ({?b {a}/{b}}{!b {a}})}", &[("a", "x")], "(x)");
        check("{unknown}.", &[], ".");
        check("{?a}{}", &[("a", "1")], "");
    }

    #[test]
    fn braces_with_a_blank_are_text() {
        check("{a b} {x {a} y} }", &[("a", "1")], "{a b} {x {a} y} }");
    }

    #[test]
    fn colours_are_sequences_where_there_are_colours() {
        let template = PromptTemplate::parse("{color.green}{?color.red c}{a}{color.reset}{color.pink}").expect("valid");
        let values = BTreeMap::from([("a".to_owned(), "\u{1b}[2J\n".to_owned())]);
        assert_eq!(template.render(&values, ColorDepth::Ansi16), "\u{1b}[32mc^[[2J \u{1b}[0m");
        assert_eq!(template.render(&values, ColorDepth::None), "^[[2J ");
    }

    #[test]
    fn errors_say_where() {
        let error = |text: &str| PromptTemplate::parse(text).expect_err("refused").to_string();
        assert_eq!(error("日本 {a"), "column 4: \"{\" has no \"}\": close the block");
        assert_eq!(error("{?a {b}"), "column 1: \"{\" has no \"}\": close the block");
        let deep = format!("{}x{}", "{?a ".repeat(9), "}".repeat(9));
        assert_eq!(error(&deep), "column 37: blocks may be nested 8 deep");
        assert!(PromptTemplate::parse(&format!("{}x{}", "{?a ".repeat(8), "}".repeat(8))).is_ok());
        assert!(error(&"x".repeat(5_000)).starts_with("column 1: a prompt has at most 4096 bytes"));
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_shown(text in "[{}?! a\\u{1b}é]{0,60}") {
            if let Ok(template) = PromptTemplate::parse(&text) {
                let shown = template.render(&BTreeMap::new(), ColorDepth::True);
                prop_assert!(shown.chars().all(|letter| !letter.is_control()));
            }
        }
    }
}
