//! Converts YAML text to JSON values: YAML 1.1 as PyYAML reads it (compatibility §0.3), or the core schema of YAML 1.2.
//!
//! `granit-parser` parses the grammar. This module defines the meaning: which plain scalars are booleans, numbers or
//! dates (`scalar`), merge keys, anchors, "the last duplicate wins", and the budgets that bound a hostile document. It
//! does not depend on contracts.

mod compose;
mod core;
mod expand;
mod scalar;
mod shift;
mod tab;

use std::collections::BTreeMap;

use serde_json::Value;

/// Limits on a document.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Maximum size of the text.
    pub bytes_max: usize,
    /// Maximum nesting.
    pub depth_max: usize,
    /// Maximum number of values; each alias counts with its whole expansion.
    pub nodes_max: usize,
    /// Maximum size of all text in values and in pointers to foreign values; each alias counts with its whole
    /// expansion.
    pub text_bytes_max: usize,
}

impl Default for Budget {
    /// Ample for contracts: 1 MiB of text, 64 levels, 30,000 values, 8 MiB after aliases are expanded.
    fn default() -> Self {
        Self { bytes_max: 1 << 20, depth_max: 64, nodes_max: 30_000, text_bytes_max: 8 << 20 }
    }
}

/// A position in the text; both numbers start at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text is not an acceptable YAML document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// The bytes are not UTF-8.
    #[error("{place}: the file is not UTF-8")]
    NotUtf8 {
        /// The position of the first invalid byte.
        place: Position,
    },
    /// The text is not YAML.
    #[error("{place}: {problem}")]
    Syntax {
        /// The position of the error.
        place: Position,
        /// A description of the error.
        problem: String,
    },
    /// A YAML value that JSON cannot represent.
    #[error("{place}: {problem}")]
    Meaning {
        /// The position of the value.
        place: Position,
        /// A description of the problem.
        problem: String,
    },
    /// The document exceeds the [`Budget`].
    #[error("the document has more than {max} {what}")]
    Budget {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        max: usize,
    },
}

/// A loaded document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The document as JSON. Dates are ISO 8601 text; other values that JSON cannot represent (infinities, bytes) are
    /// null.
    pub value: Value,
    /// The values that JSON cannot represent, by their JSON pointers.
    pub foreign: Vec<(String, Foreign)>,
}

/// A YAML value that JSON cannot represent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreign {
    /// An unquoted date or time, as ISO 8601 text.
    Date(String),
    /// `.inf` or `.nan`, as written.
    NonFinite(String),
    /// `!!binary` or `!!set`, by its tag.
    Tagged(&'static str),
}

/// Loads one document.
///
/// ```
/// # use atlas_contract::yaml::{load, Budget};
/// let value = load(b"on: 1:30\nmode: 010", Budget::default()).expect("valid");
/// assert_eq!(value, serde_json::json!({"true": 90, "mode": 8}));
/// ```
pub fn load(text: &[u8], budget: Budget) -> Result<Value, YamlError> {
    Ok(load_document(text, budget)?.value)
}

/// Loads one document as [`load`] does, and refuses what JSON cannot represent: `.inf`, `.nan`, bytes and sets.
///
/// ```
/// # use atlas_contract::yaml::{load_strictly, Budget};
/// let refused = load_strictly(b"a: 1\nb: [.inf]", Budget::default()).expect_err("no number");
/// assert!(refused.to_string().starts_with("line 2, column 5: .inf is no number"));
/// ```
pub fn load_strictly(text: &[u8], budget: Budget) -> Result<Value, YamlError> {
    let root = compose::compose(checked(text, budget)?, budget, Dialect::Python)?;
    Ok(expand::Expand::new(budget).strictly().document(&root)?.value)
}

/// Which plain scalars are something other than text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// YAML 1.1, as PyYAML reads it.
    Python,
    /// The core schema of YAML 1.2.
    Core,
    /// None, but empty ones are null and `<<` merges: what is written, and not what it means.
    Words,
}

/// A document with the lines of its values.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkedDocument {
    pub value: Value,
    /// The line of each value by its JSON pointer, from 1. A member has the line of its key.
    pub lines: BTreeMap<String, usize>,
}

/// Loads one document of YAML 1.2, where `yes` and dates are text and `<<` is a key like any other. What JSON cannot represent is refused.
///
/// ```
/// # use atlas_contract::yaml::{load_core, Budget};
/// let marked = load_core(b"on: yes\nmode: 0o10", Budget::default()).expect("valid");
/// assert_eq!(marked.value, serde_json::json!({"on": "yes", "mode": 8}));
/// assert_eq!(marked.lines["/mode"], 2);
/// ```
pub fn load_core(text: &[u8], budget: Budget) -> Result<MarkedDocument, YamlError> {
    let root = compose::compose(checked(text, budget)?, budget, Dialect::Core)?;
    let (value, lines) = expand::Expand::new(budget).strictly().with_lines(&root)?;
    Ok(MarkedDocument { value, lines })
}

/// Loads one document as [`load_core`] does, with null for what JSON cannot represent: so were definitions read that are registered already.
///
/// ```
/// # use atlas_contract::yaml::{load_core_with_nulls, Budget};
/// let marked = load_core_with_nulls(b"a: .inf", Budget::default()).expect("valid");
/// assert_eq!(marked.value, serde_json::json!({"a": null}));
/// ```
pub fn load_core_with_nulls(text: &[u8], budget: Budget) -> Result<MarkedDocument, YamlError> {
    let root = compose::compose(checked(text, budget)?, budget, Dialect::Core)?;
    let (value, lines) = expand::Expand::new(budget).with_lines(&root)?;
    Ok(MarkedDocument { value, lines })
}

/// Loads one document as [`load`] does, with the words of plain scalars instead of what they mean, and their lines.
pub(crate) fn load_texts(text: &[u8], budget: Budget) -> Result<MarkedDocument, YamlError> {
    let root = compose::compose(checked(text, budget)?, budget, Dialect::Words)?;
    let (value, lines) = expand::Expand::new(budget).with_lines(&root)?;
    Ok(MarkedDocument { value, lines })
}

/// Loads one document, with the values that JSON cannot represent.
pub fn load_document(text: &[u8], budget: Budget) -> Result<Document, YamlError> {
    let root = compose::compose(checked(text, budget)?, budget, Dialect::Python)?;
    expand::Expand::new(budget).document(&root)
}

/// The text of a document that is not too long and has no forbidden characters.
fn checked(text: &[u8], budget: Budget) -> Result<&str, YamlError> {
    if text.len() > budget.bytes_max {
        return Err(YamlError::Budget { what: "bytes", max: budget.bytes_max });
    }
    let text = std::str::from_utf8(text).map_err(|error| {
        let before = String::from_utf8_lossy(&text[..error.valid_up_to()]);
        YamlError::NotUtf8 { place: place_after(&before) }
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some((at, found)) = text.char_indices().find(|&(_, c)| !printable(c)) {
        let problem = format!("the character U+{:04X} is not allowed", u32::from(found));
        return Err(YamlError::Syntax { place: place_after(&text[..at]), problem });
    }
    Ok(text)
}

/// Whether a YAML stream may contain the character.
fn printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        || c >= '\u{10000}'
}

fn place_after(text: &str) -> Position {
    let line_start = text.rfind('\n').map_or(0, |at| at + 1);
    Position { line: text.matches('\n').count() + 1, column: text[line_start..].chars().count() + 1 }
}

#[cfg(test)]
mod tests;
