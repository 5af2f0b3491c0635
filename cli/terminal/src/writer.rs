//! Lines of a terminal: letters with their looks go in, lines wrapped between words come out.
//!
//! A word is written when it ends, so what is written is never touched again. All letters of a model pass [`Writer::letter`] or
//! [`Writer::verbatim`], which replace what controls a terminal.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::look::{Look, paint};
use crate::{Style, visible};

/// Columns that a line has at least, whatever it begins with.
const ROOM_MIN: usize = 10;

/// Letters that share one place on the screen. More marks on one letter would only cover the lines around it.
const CLUSTER_LETTERS_MAX: usize = 24;

/// Letters of a word that are kept, though they may have no width at all.
const WORD_LETTERS_MAX: usize = 2_000;

/// Where the letters of inline text go: to lines of the terminal, or to a cell of a table.
pub(crate) trait Sink {
    fn letter(&mut self, letter: char, look: Look);
    fn gap(&mut self, look: Look);
    fn line_break(&mut self);
    /// Makes an address known, and returns its number for [`Look::link`].
    fn link(&mut self, url: &str) -> u16;
}

/// What lines of a quote or of a list item begin with.
#[derive(Debug, Clone)]
pub(crate) struct Margin {
    /// Of the next line, if it is the first one.
    pub(crate) first: Option<String>,
    /// Of all others.
    pub(crate) rest: String,
    pub(crate) look: Look,
}

#[derive(Debug)]
pub(crate) struct Writer {
    style: Style,
    width: usize,
    out: String,
    margins: Vec<Margin>,
    /// Whether the current line has its margins.
    is_open: bool,
    column: usize,
    /// Blanks before the word.
    gap: usize,
    gap_look: Look,
    /// The word that is not written yet, in pieces of one look.
    word: Vec<(String, Look)>,
    word_width: usize,
    word_letters: usize,
    /// The last letters of the word that share one place, and their width.
    cluster: String,
    cluster_width: usize,
    before: char,
    links: Vec<String>,
    /// The widths of the lines that ended.
    widths: Vec<usize>,
}

impl Writer {
    pub(crate) fn new(style: Style, width: usize) -> Self {
        Self {
            style,
            width,
            out: String::new(),
            margins: Vec::new(),
            is_open: false,
            column: 0,
            gap: 0,
            gap_look: Look::default(),
            word: Vec::new(),
            word_width: 0,
            word_letters: 0,
            cluster: String::new(),
            cluster_width: 0,
            before: ' ',
            links: Vec::new(),
            widths: Vec::new(),
        }
    }

    /// What was written since the last time.
    pub(crate) fn take(&mut self) -> String {
        self.widths.clear();
        std::mem::take(&mut self.out)
    }

    /// The lines that were written, and their widths in columns.
    pub(crate) fn into_lines(mut self) -> Vec<(String, usize)> {
        self.end_line();
        self.out.lines().map(str::to_owned).zip(self.widths).collect()
    }

    pub(crate) fn add_margin(&mut self, margin: Margin) {
        self.margins.push(margin);
    }

    /// Removes all margins but the first `count`.
    pub(crate) fn keep_margins(&mut self, count: usize) {
        self.margins.truncate(count);
    }

    /// Columns between the margins and the end of the line.
    pub(crate) fn room(&self) -> usize {
        let margins: usize = self.margins().map(|margin| margin.rest.width()).sum();
        self.width.saturating_sub(margins).max(ROOM_MIN.min(self.width))
    }

    /// The margins that there is space for: in half of the width.
    fn margins(&self) -> impl Iterator<Item = &Margin> {
        let mut left = self.width / 2;
        self.margins.iter().take_while(move |margin| {
            let width = margin.rest.width();
            let fits = width <= left;
            left = left.saturating_sub(width);
            fits
        })
    }

    fn begin_line(&mut self) {
        if self.is_open {
            return;
        }
        let count = self.margins().count();
        let mut line = String::new();
        for (index, margin) in self.margins.iter_mut().enumerate() {
            // A list item beyond the last margin keeps its mark.
            let text = match margin.first.take() {
                Some(first) => first,
                None if index < count => margin.rest.clone(),
                None => continue,
            };
            self.column += text.width();
            paint(&mut line, &self.style, &[], [(text.as_str(), margin.look)].into_iter());
        }
        self.out.push_str(&line);
        self.is_open = true;
        self.gap = 0;
    }

    /// Writes the word.
    pub(crate) fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.is_open && self.column + self.gap + self.word_width > self.width && self.has_text() {
            self.end_open_line();
        }
        self.begin_line();
        let mut pieces = std::mem::take(&mut self.word);
        if self.gap > 0 {
            let blanks = " ".repeat(self.gap);
            match pieces.first_mut() {
                Some((text, look)) if *look == self.gap_look => text.insert_str(0, &blanks),
                _ => {
                    let is_seen = self.gap_look.underline || self.gap_look.strike;
                    pieces.insert(0, (blanks, if is_seen { self.gap_look } else { Look::default() }));
                }
            }
        }
        let links = std::mem::take(&mut self.links);
        paint(&mut self.out, &self.style, &links, pieces.iter().map(|(text, look)| (text.as_str(), *look)));
        self.links = links;
        self.column += self.gap + self.word_width;
        (self.gap, self.word_width, self.word_letters, self.cluster_width) = (0, 0, 0, 0);
        self.cluster.clear();
    }

    /// Whether the open line has more than its margins.
    fn has_text(&self) -> bool {
        let margins: usize = self.margins().map(|margin| margin.rest.width()).sum();
        self.column > margins
    }

    fn end_open_line(&mut self) {
        self.out.push('\n');
        self.widths.push(self.column);
        (self.is_open, self.column, self.gap) = (false, 0, 0);
    }

    /// Ends the line, if one is open or a list item has not shown its mark.
    pub(crate) fn end_line(&mut self) {
        self.end_word();
        if self.margins.iter().any(|margin| margin.first.is_some()) {
            self.begin_line();
        }
        if self.is_open {
            self.end_open_line();
        }
        self.before = ' ';
    }

    /// Writes a line without text. The line before it has ended.
    pub(crate) fn blank_line(&mut self) {
        self.end_line();
        self.begin_line();
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        self.end_open_line();
    }

    /// Writes text without wrapping it: lines of code stay lines, so that they can be copied.
    pub(crate) fn verbatim(&mut self, text: &str, look: Look) {
        self.end_word();
        self.begin_line();
        let shown = visible(text).replace('\t', "    ");
        paint(&mut self.out, &self.style, &[], [(shown.as_str(), look)].into_iter());
        self.column += shown.width();
    }

    /// Text of ours in a look, for a line that is [`painted`](Self::painted_line) elsewhere.
    pub(crate) fn painted(&self, text: &str, look: Look) -> String {
        let mut painted = String::new();
        paint(&mut painted, &self.style, &[], [(text, look)].into_iter());
        painted
    }

    /// Writes a line of a table, which has its looks already.
    pub(crate) fn painted_line(&mut self, line: &str) {
        self.end_line();
        self.begin_line();
        self.out.push_str(line.trim_end());
        self.end_open_line();
    }

    fn put(&mut self, letter: char, look: Look) {
        if self.word_letters >= WORD_LETTERS_MAX {
            self.end_word();
        }
        self.word_letters += 1;
        let is_ascii = letter.is_ascii() && self.cluster.is_ascii();
        if !is_ascii && self.joins(letter) {
            self.cluster.push(letter);
            let width = self.cluster.width();
            self.word_width = (self.word_width + width).saturating_sub(self.cluster_width);
            self.cluster_width = width;
        } else {
            let width = letter.width().unwrap_or_default();
            let last = self.cluster.chars().next();
            if last.is_some_and(|last| may_break(last, letter)) {
                self.end_word();
            }
            // A letter beyond ASCII may still grow, by a mark that makes an emoji of it.
            let room = self.room().saturating_sub(usize::from(!letter.is_ascii()));
            if self.word_width + width > room {
                self.end_word();
            }
            self.cluster.clear();
            self.cluster.push(letter);
            self.cluster_width = width;
            self.word_width += width;
        }
        match self.word.last_mut() {
            Some((text, last)) if *last == look => text.push(letter),
            _ => self.word.push((letter.to_string(), look)),
        }
    }

    /// Whether the letter shares the place of the letters before it.
    fn joins(&self, letter: char) -> bool {
        let count = self.cluster.chars().count();
        if count == 0 || count >= CLUSTER_LETTERS_MAX {
            return false;
        }
        let mut both = self.cluster.clone();
        both.push(letter);
        both.graphemes(true).count() == 1
    }
}

impl Sink for Writer {
    fn letter(&mut self, letter: char, look: Look) {
        let before = std::mem::replace(&mut self.before, letter);
        visible::replace(letter, before, &mut |letter| self.put(letter, look));
    }

    fn gap(&mut self, look: Look) {
        self.end_word();
        if self.is_open {
            self.gap += 1;
            self.gap_look = look;
        }
        self.before = ' ';
    }

    fn line_break(&mut self) {
        self.end_line();
    }

    fn link(&mut self, url: &str) -> u16 {
        self.links.push(url.to_owned());
        u16::try_from(self.links.len()).unwrap_or_default()
    }
}

/// Whether a line may end between two letters of a word: beside letters of Chinese, Japanese and Korean, but not before a mark that closes
/// or behind one that opens.
fn may_break(last: char, next: char) -> bool {
    (is_wide(last) || is_wide(next)) && !closes(next) && !opens(last)
}

/// Whether the letter takes two columns: Chinese, Japanese, Korean, emoji.
pub(crate) fn is_wide(letter: char) -> bool {
    !letter.is_ascii() && letter.width() == Some(2)
}

fn closes(letter: char) -> bool {
    "、。，．：；？！）」』】〕〉》］｝ー々…‥・~.,;:!?)]}%\"'’”".contains(letter)
}

fn opens(letter: char) -> bool {
    "（「『【〔〈《［｛([{\"'‘“".contains(letter)
}
