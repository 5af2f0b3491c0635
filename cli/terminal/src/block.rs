//! The blocks of an answer: what each line is, decided at its start.
//!
//! A line is looked at until its first letters tell what it is: a heading, an item of a list, a fence, a row of a table, text. Then its text
//! goes on to [`Inline`] letter by letter, or is kept until the line ends: code is coloured by lines, and a table needs the widths of all
//! its cells. Line ends within a paragraph stay line ends, because models mean them.

mod collect;
mod fence;
mod start;
mod table;

use crate::Style;
use crate::inline::Inline;
use crate::look::{Ink, Look};
use crate::style::ColorDepth;
use crate::writer::{Margin, Sink, Writer};
pub(crate) use collect::fences;
use fence::Fence;
use start::{Container, Context, Leaf, Start};
use table::Table;

/// Letters that are looked at to tell what a line is.
const START_BYTES_MAX: usize = 256;
/// A row of a table, or a line of code, that is longer is text.
const ROW_BYTES_MAX: usize = 16 << 10;
/// Blocks of code behind this much code of an answer have no colours.
const COLORED_BYTES_MAX: usize = 512 << 10;

/// The state between two letters of an answer.
#[derive(Debug)]
pub(crate) struct Blocks {
    style: Style,
    writer: Writer,
    inline: Inline,
    containers: Vec<Container>,
    open: Open,
    /// A row that is a table if the next line says so.
    header: Option<String>,
    mode: Mode,
    /// The line, as far as it is kept.
    line: String,
    /// How much code there was.
    code_bytes: usize,
    /// Whether the source has an empty line before the next block.
    has_blank: bool,
    /// Whether something was printed.
    has_begun: bool,
    /// A carriage return, which is part of a line end if one follows.
    has_return: bool,
}

/// The block that takes the text of lines.
#[derive(Debug)]
enum Open {
    None,
    Paragraph,
    Heading,
    Fence(Box<Fence>),
    Formula { end: &'static str },
    Table(Box<Table>),
}

/// What happens to the next letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// It may tell what the line is.
    Start,
    /// It is text.
    Text,
    /// It is kept until the line ends: code, or a row.
    Line,
    /// It is the rest of a line of code that is too long to be kept.
    Rest,
}

impl Blocks {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            writer: Writer::new(style, style.width.max(20)),
            inline: Inline::new(style.colors == ColorDepth::None),
            containers: Vec::new(),
            open: Open::None,
            header: None,
            mode: Mode::Start,
            line: String::new(),
            code_bytes: 0,
            has_blank: false,
            has_begun: false,
            has_return: false,
        }
    }

    /// Takes the next piece of the answer and returns what to write now.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        for letter in piece.chars() {
            self.letter(letter);
        }
        self.writer.take()
    }

    /// Ends the answer, and all that is open in it.
    pub(crate) fn finish(&mut self) -> String {
        if std::mem::take(&mut self.has_return) {
            self.letter_of_line('\r');
        }
        if !self.line.is_empty() || self.mode == Mode::Line {
            self.end_line();
        }
        self.close();
        self.writer.end_line();
        let written = self.writer.take();
        *self = Self::new(self.style);
        written
    }

    fn letter(&mut self, letter: char) {
        if std::mem::take(&mut self.has_return) && letter != '\n' {
            self.letter_of_line('\r');
        }
        match letter {
            '\r' => self.has_return = true,
            '\n' => self.end_line(),
            _ => self.letter_of_line(letter),
        }
    }

    fn letter_of_line(&mut self, letter: char) {
        match self.mode {
            Mode::Start if self.takes_lines() => {
                self.mode = Mode::Line;
                self.line.push(letter);
            }
            Mode::Start => {
                self.line.push(letter);
                // A blank decides nothing: the letter behind it does.
                if letter != ' ' || self.line.len() > START_BYTES_MAX {
                    self.try_start(false);
                }
            }
            Mode::Text => self.inline.push(letter, &mut self.writer),
            Mode::Line => {
                self.line.push(letter);
                if self.line.len() > ROW_BYTES_MAX {
                    self.end_long_line();
                }
            }
            Mode::Rest => self.writer.verbatim(letter.encode_utf8(&mut [0; 4]), Look::default()),
        }
    }

    fn end_line(&mut self) {
        match self.mode {
            Mode::Start if self.takes_lines() => self.end_kept_line(),
            Mode::Start => {
                self.try_start(true);
                if self.mode == Mode::Text {
                    self.end_text_line();
                }
            }
            Mode::Line => self.end_kept_line(),
            Mode::Rest => self.writer.end_line(),
            Mode::Text => self.end_text_line(),
        }
        self.mode = Mode::Start;
    }

    fn end_text_line(&mut self) {
        match self.open {
            Open::Paragraph => self.inline.push('\n', &mut self.writer),
            _ => self.close(),
        }
    }

    /// Whether the open block takes lines as they are.
    fn takes_lines(&self) -> bool {
        matches!(self.open, Open::Fence(_) | Open::Formula { .. })
    }

    /// Decides what the line is, if its first letters tell.
    fn try_start(&mut self, is_whole: bool) {
        let context = Context {
            containers: &self.containers,
            has_paragraph: matches!(self.open, Open::Paragraph) || self.header.is_some(),
            is_forced: self.line.len() > START_BYTES_MAX,
        };
        let Some(start) = start::read(&self.line, is_whole, context) else { return };
        let line = std::mem::take(&mut self.line);
        let rest = line.get(start.at..).unwrap_or_default();
        self.begin(start, rest, is_whole);
    }

    fn begin(&mut self, start: Start, rest: &str, is_whole: bool) {
        if start.leaf == Leaf::Row {
            // Whether the row ends the paragraph before it is known when the next line is.
            let is_inside = start.added.is_empty() && start.kept == self.containers.len();
            if !(is_inside && (matches!(self.open, Open::Paragraph | Open::Table(_)) || self.header.is_some())) {
                self.close();
                self.enter(start);
            }
            self.line = rest.to_owned();
            self.mode = Mode::Line;
            if is_whole {
                self.end_kept_line();
                self.mode = Mode::Start;
            }
            return;
        }
        self.release_header();
        match start.leaf {
            Leaf::Text if start.added.is_empty() && matches!(self.open, Open::Paragraph) => {
                self.text_line(rest);
                return;
            }
            Leaf::Underline => {
                self.close();
                self.writer.verbatim(rest.trim(), Look::DIM);
                self.writer.end_line();
                return;
            }
            _ => self.close(),
        }
        if start.leaf == Leaf::Blank {
            self.leave(start.kept);
            self.has_blank = true;
            return;
        }
        let leaf = start.leaf;
        self.enter(start);
        match leaf {
            Leaf::Text => self.text_line(rest),
            Leaf::Heading { level } => self.heading(level, rest),
            Leaf::Fence { mark, count, indent } => {
                self.writer.verbatim(rest.trim_end(), Look::DIM);
                self.writer.end_line();
                let info = rest.trim_start_matches(mark);
                let highlight = self.style.highlight && self.code_bytes <= COLORED_BYTES_MAX;
                let style = Style { highlight, ..self.style };
                self.open = Open::Fence(Box::new(Fence::new(mark, count, indent, info, &style)));
            }
            Leaf::Formula { end } => {
                self.writer.verbatim(rest.trim_end(), Look::default());
                self.writer.end_line();
                self.open = Open::Formula { end };
            }
            Leaf::Rule => {
                let rule = if self.style.colors == ColorDepth::None { "-" } else { "─" };
                let width = self.writer.room().min(80);
                self.writer.verbatim(&rule.repeat(width), Look::DIM);
                self.writer.end_line();
            }
            Leaf::Verbatim => {
                self.line = rest.to_owned();
                self.mode = Mode::Line;
                if is_whole {
                    self.end_kept_line();
                    self.mode = Mode::Start;
                }
            }
            Leaf::Item => self.writer.end_line(),
            Leaf::Blank | Leaf::Row | Leaf::Underline => {}
        }
    }

    /// A line of a paragraph begins.
    fn text_line(&mut self, rest: &str) {
        if !matches!(self.open, Open::Paragraph) {
            self.open = Open::Paragraph;
            self.inline.begin(Look::default());
        }
        self.mode = Mode::Text;
        for letter in rest.chars() {
            self.inline.push(letter, &mut self.writer);
        }
    }

    fn heading(&mut self, level: usize, rest: &str) {
        let look = Look { bold: true, underline: level == 1, ..Look::of(Ink::Heading) };
        let marks = Look { underline: false, dim: level > 2, ..look };
        (0..level).for_each(|_| self.writer.letter('#', marks));
        self.writer.gap(marks);
        self.open = Open::Heading;
        self.inline.begin(look);
        self.mode = Mode::Text;
        for letter in rest.chars() {
            self.inline.push(letter, &mut self.writer);
        }
    }

    /// A line that was kept has ended.
    fn end_kept_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        match std::mem::replace(&mut self.open, Open::None) {
            Open::Fence(fence) => self.code_line(fence, line),
            Open::Formula { end } => self.formula_line(end, &line),
            Open::Table(mut table) => {
                table.add(&line, &mut self.writer);
                self.open = Open::Table(table);
            }
            other => {
                self.open = other;
                // What is indented as code is begins with blanks.
                if line.starts_with('|') {
                    self.row(line);
                } else {
                    self.writer.verbatim(&expand_tabs(line.trim_end()), Look::default());
                    self.writer.end_line();
                }
            }
        }
    }

    /// A row outside of a table: perhaps its header, perhaps the line below it.
    fn row(&mut self, line: String) {
        let Some(header) = self.header.take() else {
            self.header = Some(line);
            return;
        };
        match Table::begin(&header, &line, &self.style, self.writer.room()) {
            Some(table) => {
                self.close();
                self.open = Open::Table(Box::new(table));
            }
            None => {
                self.text_line(&header);
                self.end_text_line();
                self.header = Some(line);
            }
        }
    }

    /// The row before the line was no header of a table: it is text.
    fn release_header(&mut self) {
        if let Some(header) = self.header.take() {
            self.text_line(&header);
            self.end_text_line();
            self.mode = Mode::Start;
        }
    }

    /// A line that is too long to be kept: code is printed as it comes, a row is text.
    fn end_long_line(&mut self) {
        if self.takes_lines() || !self.line.starts_with('|') {
            let line = std::mem::take(&mut self.line);
            self.writer.verbatim(&line, Look::default());
            self.mode = Mode::Rest;
            return;
        }
        let line = std::mem::take(&mut self.line);
        self.release_header();
        if matches!(self.open, Open::Table(_)) {
            self.close();
        }
        self.text_line(&line);
    }

    fn code_line(&mut self, mut fence: Box<Fence>, line: String) {
        let Some(content) = start::within_quotes(&line, &self.containers) else {
            // The quote around the fence has ended, and the fence with it.
            self.line = line;
            self.mode = Mode::Start;
            self.try_start(true);
            return;
        };
        if fence.is_end(content) {
            self.writer.verbatim(content.trim(), Look::DIM);
            self.writer.end_line();
            return;
        }
        self.code_bytes += content.len();
        fence.write(content, &mut self.writer);
        self.open = Open::Fence(fence);
    }

    fn formula_line(&mut self, end: &'static str, line: &str) {
        let content = start::within_quotes(line, &self.containers).unwrap_or(line).trim_end();
        if content.trim().is_empty() {
            self.has_blank = true;
            return;
        }
        self.writer.verbatim(&expand_tabs(content), Look::default());
        self.writer.end_line();
        if !content.ends_with(end) {
            self.open = Open::Formula { end };
        }
    }

    /// Closes the open block.
    fn close(&mut self) {
        self.release_header();
        match std::mem::replace(&mut self.open, Open::None) {
            Open::Paragraph | Open::Heading => {
                self.inline.end(&mut self.writer);
                self.writer.end_line();
            }
            Open::Table(mut table) => table.end(&mut self.writer),
            Open::None | Open::Fence(_) | Open::Formula { .. } => {}
        }
    }

    /// Leaves the quotes and lists that ended, and enters those that begin.
    fn enter(&mut self, start: Start) {
        self.leave(start.kept);
        if std::mem::take(&mut self.has_blank) && self.has_begun {
            self.writer.blank_line();
        }
        self.has_begun = true;
        let is_plain = self.style.colors == ColorDepth::None;
        for container in start.added {
            self.writer.add_margin(match &container {
                Container::Quote => {
                    Margin { first: None, rest: if is_plain { "> " } else { "│ " }.to_owned(), look: Look::DIM }
                }
                Container::Item { mark, .. } => {
                    let is_bullet = mark.len() == 1;
                    let mark = if is_bullet && !is_plain { "•" } else { mark.as_str() };
                    let rest = " ".repeat(mark.chars().count() + 1);
                    Margin { first: Some(format!("{mark} ")), rest, look: Look::default() }
                }
            });
            self.containers.push(container);
        }
    }

    fn leave(&mut self, kept: usize) {
        if kept < self.containers.len() {
            self.writer.end_line();
            self.containers.truncate(kept);
            self.writer.keep_margins(kept);
        }
    }
}

/// Tabs as blanks up to the next column that is a multiple of four.
fn expand_tabs(line: &str) -> String {
    if !line.contains('\t') {
        return line.to_owned();
    }
    let mut expanded = String::with_capacity(line.len() + 16);
    let mut column = 0;
    for letter in line.chars() {
        if letter == '\t' {
            let blanks = 4 - column % 4;
            (0..blanks).for_each(|_| expanded.push(' '));
            column += blanks;
        } else {
            expanded.push(letter);
            column += 1;
        }
    }
    expanded
}
