//! Cutting documents into chunks.

use std::collections::VecDeque;
use std::ops::Range;

use crate::separators;

/// How documents are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSize {
    /// Most bytes of a chunk; at least 1. A character that has more is a chunk.
    pub size: usize,
    /// Most bytes of the chunk before that a chunk repeats, in whole parts. At most half of `size` counts, so that each chunk has
    /// something new.
    pub overlap: usize,
}

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The document.
    pub source: String,
    pub text: String,
}

/// The chunks of a document, in order. Chunks without a visible character are left out.
///
/// The text is cut at the strongest separator that it has, which depends on the ending of the source: functions of programs, headings
/// of Markdown, and otherwise blank lines, lines, words and characters. Parts that are still too long are cut at the next one, and
/// neighbours that fit are joined again. A separator with a visible character begins the part after it. The time is in proportion to
/// the length of the text.
pub fn chunks(source: &str, text: &str, cut: ChunkSize) -> Vec<Chunk> {
    let size = cut.size.max(1);
    let mut joined = Joined {
        text,
        size,
        overlap: cut.overlap.min(size / 2),
        parts: VecDeque::new(),
        fresh: false,
        done: Vec::new(),
    };
    split(&mut joined, 0..text.len(), &separators::of(source));
    joined.flush();
    let chunk = |text: &str| Chunk { source: source.to_owned(), text: text.to_owned() };
    joined.done.into_iter().filter_map(|range| text.get(range)).map(chunk).collect()
}

/// Splits a range of the text at the first separator that it has, and again what is still too long.
fn split(joined: &mut Joined<'_>, range: Range<usize>, separators: &[&str]) {
    let text = joined.text.get(range.clone()).unwrap_or_default();
    if text.len() <= joined.size {
        return joined.push(range);
    }
    let found = separators.iter().position(|separator| separator.is_empty() || text.contains(separator));
    let (Some(place), Some(separator)) = (found, found.and_then(|place| separators.get(place))) else {
        return joined.alone(range);
    };
    let weaker = separators.get(place + 1..).unwrap_or_default();
    for part in parts(text, separator) {
        let part = range.start + part.start..range.start + part.end;
        if part.len() <= joined.size {
            joined.push(part);
        } else {
            joined.flush();
            if weaker.is_empty() {
                joined.alone(part);
            } else {
                split(joined, part, weaker);
                joined.flush();
            }
        }
    }
}

/// The parts of a text between separators; the empty separator is between all characters. What is visible of the text is in one of them.
fn parts<'a>(text: &'a str, separator: &'a str) -> Box<dyn Iterator<Item = Range<usize>> + 'a> {
    if separator.is_empty() {
        return Box::new(text.char_indices().map(|(place, character)| place..place + character.len_utf8()));
    }
    let kept = !separator.trim().is_empty();
    let mut begun = 0;
    let ends = text.match_indices(separator).map(|(place, _)| place).chain([text.len()]);
    Box::new(ends.map(move |end| {
        let part = begun..end;
        begun = if kept { end } else { end + separator.len() };
        part
    }))
}

/// Parts that are being joined to chunks.
struct Joined<'a> {
    text: &'a str,
    size: usize,
    overlap: usize,
    /// The parts of the chunk that is being made, in order.
    parts: VecDeque<Range<usize>>,
    /// Whether one of them is in no chunk yet.
    fresh: bool,
    done: Vec<Range<usize>>,
}

impl Joined<'_> {
    /// The bytes from the first part to a place.
    fn length(&self, end: usize) -> usize {
        self.parts.front().map_or(0, |first| end.saturating_sub(first.start))
    }

    /// Adds a part; what would be too long with it becomes a chunk, and its end that may be repeated stays.
    fn push(&mut self, part: Range<usize>) {
        if part.is_empty() {
            return;
        }
        if self.length(part.end) > self.size {
            self.emit();
            let end = self.parts.back().map_or(0, |last| last.end);
            while !self.parts.is_empty() && (self.length(end) > self.overlap || self.length(part.end) > self.size) {
                self.parts.pop_front();
            }
        }
        self.parts.push_back(part);
        self.fresh = true;
    }

    /// A part that is a chunk by itself.
    fn alone(&mut self, part: Range<usize>) {
        self.flush();
        self.parts.push_back(part);
        self.fresh = true;
        self.flush();
    }

    /// Makes a chunk of the parts, without the blanks around it.
    fn emit(&mut self) {
        let (Some(first), Some(last)) = (self.parts.front(), self.parts.back()) else { return };
        let text = self.text.get(first.start..last.end).unwrap_or_default();
        let start = first.start + (text.len() - text.trim_start().len());
        let end = start + text.trim().len();
        if self.fresh && start < end {
            self.done.push(start..end);
        }
        self.fresh = false;
    }

    fn flush(&mut self) {
        self.emit();
        self.parts.clear();
    }
}

#[cfg(test)]
mod tests;
