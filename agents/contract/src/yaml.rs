//! YAML 1.1 text to JSON values, as PyYAML reads it (compatibility §0.3).
//!
//! The grammar comes from `granit-parser`; this module owns the meaning: which plain scalars are booleans,
//! numbers or dates (`scalar`), merge keys, anchors, "the last duplicate wins", and the budgets that keep a hostile
//! document small. It does not know contracts.

mod compose;
mod expand;
mod scalar;
mod shift;
mod tab;

use serde_json::Value;

/// How much a document may cost.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Longest text.
    pub bytes_max: usize,
    /// Deepest nesting.
    pub depth_max: usize,
    /// Most values, each alias counted with all that it stands for.
    pub nodes_max: usize,
    /// Most bytes of text in all values and in the pointers to foreign ones, each alias counted with all that it stands for.
    pub text_bytes_max: usize,
}

impl Default for Budget {
    /// Ample for contracts: 1 MiB of text, 64 levels, 30,000 values, 8 MiB after aliases are written out.
    fn default() -> Self {
        Self { bytes_max: 1 << 20, depth_max: 64, nodes_max: 30_000, text_bytes_max: 8 << 20 }
    }
}

/// A place in the text, both numbers from 1.
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

/// Why a text is not one YAML document that we accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// Not text.
    #[error("{place}: the file is not UTF-8")]
    NotUtf8 {
        /// Where the first wrong byte is.
        place: Position,
    },
    /// Not YAML.
    #[error("{place}: {problem}")]
    Syntax {
        /// Where reading stopped.
        place: Position,
        /// What was found there.
        problem: String,
    },
    /// YAML, but a value that no JSON document has.
    #[error("{place}: {problem}")]
    Meaning {
        /// Where the value is.
        place: Position,
        /// What is wrong with it.
        problem: String,
    },
    /// More than the [`Budget`] allows.
    #[error("the document has more than {max} {what}")]
    Budget {
        /// What there is too much of.
        what: &'static str,
        /// Most allowed.
        max: usize,
    },
}

/// A loaded document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The document as JSON; dates are ISO 8601 text, what JSON lacks otherwise (infinities, bytes) is null.
    pub value: Value,
    /// JSON pointers of the values that are not JSON at all, with what they are: they are no string and no number.
    pub foreign: Vec<(String, Foreign)>,
}

/// A YAML value for which JSON has no form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreign {
    /// An unquoted date or time; its ISO 8601 text.
    Date(String),
    /// `.inf` or `.nan`; as written.
    NonFinite(String),
    /// `!!binary` or `!!set`; the tag.
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

/// Loads one document and says which of its values JSON could not hold.
pub fn load_document(text: &[u8], budget: Budget) -> Result<Document, YamlError> {
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
    let root = compose::compose(text, budget)?;
    expand::Expand::new(budget).document(&root)
}

/// The characters that a YAML stream may hold.
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
