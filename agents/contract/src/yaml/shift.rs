//! Lines with too little indentation.
//!
//! PyYAML accepts any indentation inside quoted text, `[…]` and `{…}`. YAML 1.2, and with it our parser, requires more
//! indentation than that of the parent. This module indents such a line, which does not change its meaning, and the
//! text is parsed again.

use std::borrow::Cow;
use std::collections::BTreeSet;

use granit_parser::Marker;

use super::{Position, place_after};

/// Added indentation of a line, more than any real indentation.
const COLUMNS: usize = 200;

/// Maximum number of bytes that are parsed again; a text with many such lines is not a contract.
const READ_AGAIN_MAX: usize = 256 << 10;

/// A text with the numbers of its moved lines.
pub(super) struct Shifted<'t> {
    text: Cow<'t, str>,
    lines: BTreeSet<usize>,
    read_again: usize,
}

impl<'t> Shifted<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text: Cow::Borrowed(text), lines: BTreeSet::new(), read_again: 0 }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The position of a marker in the original text.
    pub(super) fn place(&self, at: &Marker) -> Position {
        self.moved_back(Position { line: at.line(), column: at.col() + 1 })
    }

    /// The position of a byte of [`Self::text`] in the original text.
    pub(super) fn place_of_byte(&self, at: usize) -> Position {
        self.moved_back(place_after(self.text.get(..at).unwrap_or_default()))
    }

    fn moved_back(&self, Position { line, column }: Position) -> Position {
        let moved = if self.lines.contains(&line) { COLUMNS } else { 0 };
        Position { line, column: column.saturating_sub(moved).max(1) }
    }

    /// Moves the line of `at`; false if the line was moved already or the limit is reached.
    pub(super) fn shift(&mut self, at: &Marker) -> bool {
        let Some(before) = at.byte_offset().and_then(|offset| self.text.get(..offset)) else { return false };
        let start = before.rfind(['\n', '\r']).map_or(0, |end| end + 1);
        self.read_again += self.text.len();
        if self.read_again > READ_AGAIN_MAX || !self.lines.insert(at.line()) {
            return false;
        }
        self.text.to_mut().insert_str(start, &" ".repeat(COLUMNS));
        true
    }
}
