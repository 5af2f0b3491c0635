//! Code in fences, line by line.

use super::expand_tabs;
use crate::Style;
use crate::highlight::Highlighter;
use crate::look::Look;
use crate::writer::Writer;

/// A fenced block that is open.
#[derive(Debug)]
pub(super) struct Fence {
    mark: char,
    count: usize,
    /// Blanks before the fence, which are not part of its lines.
    indent: usize,
    highlighter: Option<Highlighter>,
}

impl Fence {
    pub(super) fn new(mark: char, count: usize, indent: usize, info: &str, style: &Style) -> Self {
        Self { mark, count, indent, highlighter: Highlighter::new(language(info), style) }
    }

    /// Whether a line ends the block.
    pub(super) fn is_end(&self, line: &str) -> bool {
        is_end(line, self.mark, self.count)
    }

    /// Writes a line of the block.
    pub(super) fn write(&mut self, line: &str, writer: &mut Writer) {
        let line = expand_tabs(without_indent(line, self.indent));
        match self.highlighter.as_mut().and_then(|highlighter| highlighter.line(&line)) {
            Some(pieces) => pieces.into_iter().for_each(|(look, text)| writer.verbatim(text, look)),
            None => writer.verbatim(&line, Look::default()),
        }
        writer.end_line();
    }
}

/// Whether a line ends a block that began with `count` marks.
pub(crate) fn is_end(line: &str, mark: char, count: usize) -> bool {
    let line = line.trim();
    line.len() >= count && line.chars().all(|letter| letter == mark)
}

/// The line without at most `indent` blanks at its start.
pub(crate) fn without_indent(line: &str, indent: usize) -> &str {
    let blanks = line.bytes().take(indent).take_while(|byte| *byte == b' ').count();
    line.get(blanks..).unwrap_or_default()
}

/// The language in the words behind a fence: `rust,ignore` and `{.python}` name one too.
pub(crate) fn language(info: &str) -> &str {
    let is_edge = |letter: char| letter.is_whitespace() || matches!(letter, ',' | '{' | '}' | ';');
    info.split(is_edge).find(|word| !word.is_empty()).unwrap_or_default().trim_start_matches('.')
}
