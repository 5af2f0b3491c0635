//! The text of a paragraph: emphasis, code, links and formulas, decided as soon as they can be.
//!
//! A mark such as `**` may be the beginning of strong text or two asterisks. Which one is known when its partner arrives, when the paragraph
//! ends, or after [`SPAN_LETTERS_MAX`] letters, when nobody should wait any longer. Until then the text behind the mark is kept. What is
//! decided depends on the letters alone, never on how they were cut into pieces. The rules are those of CommonMark, with the marks beside
//! letters of Chinese, Japanese and Korean as people there use them, and with formulas of LaTeX as they are written.

mod emphasis;
mod queue;
mod search;

use std::collections::VecDeque;

use crate::look::{Look, is_safe_url};
use crate::writer::Sink;
use emphasis::{Neighbours, Openers};
use queue::{Node, Queue};
use search::{Closer, Search, Searches};

/// How long a mark waits for its partner.
const SPAN_LETTERS_MAX: usize = 600;
/// How long a span of code may be.
const CODE_LETTERS_MAX: usize = 1_000;
/// How long a formula may be.
const FORMULA_LETTERS_MAX: usize = 400;
/// How long the address of a link may be, with its title.
const ADDRESS_LETTERS_MAX: usize = 2_048;
/// Backticks or asterisks beyond this are text.
const RUN_LETTERS_MAX: usize = 64;
const BACKTICKS_MAX: usize = 8;

/// The text of one paragraph, heading or cell after the other.
#[derive(Debug)]
pub(crate) struct Inline {
    /// Whether marks are shown, because looks are not.
    shows_marks: bool,
    /// The letters that nothing was decided about.
    letters: VecDeque<char>,
    /// How many letters were decided about.
    passed: usize,
    before: char,
    searches: Searches,
    openers: Openers,
    queue: Queue,
}

/// What one step did.
enum Step {
    /// It decided about this many letters.
    Passed(usize),
    /// The next letters decide.
    Wait,
}

impl Inline {
    pub(crate) fn new(shows_marks: bool) -> Self {
        Self {
            shows_marks,
            letters: VecDeque::new(),
            passed: 0,
            before: ' ',
            searches: Searches::default(),
            openers: Openers::default(),
            queue: Queue::new(shows_marks),
        }
    }

    /// Begins a text in which letters look like this where nothing else is said.
    pub(crate) fn begin(&mut self, base: Look) {
        *self = Self { queue: Queue::with_base(self.shows_marks, base), ..Self::new(self.shows_marks) };
    }

    /// Takes the next letter; a line end is a break within the text.
    pub(crate) fn push(&mut self, letter: char, sink: &mut dyn Sink) {
        self.letters.push_back(letter);
        self.run(false, sink);
    }

    /// Ends the text.
    pub(crate) fn end(&mut self, sink: &mut dyn Sink) {
        self.run(true, sink);
        self.openers.clear();
        self.queue.write(usize::MAX, sink);
        self.begin(Look::default());
    }

    fn run(&mut self, is_end: bool, sink: &mut dyn Sink) {
        while let Some(&letter) = self.letters.front() {
            match self.step(letter, is_end, sink) {
                Step::Passed(count) => {
                    if let Some(last) = self.letters.drain(..count).next_back() {
                        self.before = last;
                    }
                    self.passed += count;
                    self.openers.forget_before(self.passed.saturating_sub(SPAN_LETTERS_MAX));
                }
                Step::Wait => break,
            }
            self.queue.write(self.openers.first_node().unwrap_or(usize::MAX), sink);
        }
    }

    fn step(&mut self, letter: char, is_end: bool, sink: &mut dyn Sink) -> Step {
        let next = self.letters.get(1).copied();
        if next.is_none() && !is_end && matches!(letter, '\\' | '$' | '!' | ']') {
            return Step::Wait;
        }
        match (letter, next) {
            ('\n', _) => self.pass(Node::Break, 1),
            (' ' | '\t', _) => self.pass(Node::Gap, 1),
            ('\\', Some('\n')) => Step::Passed(1),
            ('\\', Some('(')) => self.formula(Closer::RoundFormula, 2, is_end),
            ('\\', Some('[')) => self.formula(Closer::SquareFormula, 2, is_end),
            ('\\', Some(escaped)) if escaped.is_ascii_punctuation() => self.pass(Node::Letter(escaped), 2),
            ('$', Some('$')) => self.formula(Closer::Dollars, 2, is_end),
            ('$', Some(next)) if self.begins_formula(next) => self.formula(Closer::Dollar, 1, is_end),
            ('`', _) => self.code(is_end),
            ('*' | '_' | '~', _) => self.marks(letter, is_end),
            ('[', _) => self.bracket(1),
            ('!', Some('[')) => self.bracket(2),
            (']', _) => self.closing_bracket(next, is_end, sink),
            _ => self.pass(Node::Letter(letter), 1),
        }
    }

    fn pass(&mut self, node: Node, count: usize) -> Step {
        self.queue.push(node);
        Step::Passed(count)
    }

    /// Marks that mean nothing here.
    fn text(&mut self, letter: char, count: usize) -> Step {
        for _ in 0..count {
            self.queue.push(Node::Letter(letter));
        }
        Step::Passed(count)
    }

    /// How many times the first letter is repeated; none if the next letters decide.
    fn run_length(&self, letter: char, most: usize, is_end: bool) -> Option<usize> {
        let length = self.letters.iter().take(most).take_while(|next| **next == letter).count();
        (length < self.letters.len() || length == most || is_end).then_some(length)
    }

    fn search(&mut self, closer: Closer, skip: usize, most: usize, is_end: bool) -> Search {
        self.searches.find(closer, &self.letters, self.passed, skip, most, is_end)
    }

    fn begins_formula(&self, next: char) -> bool {
        !self.before.is_alphanumeric() && !next.is_whitespace() && !next.is_ascii_digit()
    }

    /// A formula as it is written, from the mark at the front to its partner.
    fn formula(&mut self, closer: Closer, mark: usize, is_end: bool) -> Step {
        match self.search(closer, mark, FORMULA_LETTERS_MAX, is_end) {
            Search::Wait => Step::Wait,
            Search::Found(at) => {
                for letter in self.letters.iter().take(at + mark) {
                    self.queue.push(Node::written(*letter));
                }
                Step::Passed(at + mark)
            }
            Search::Missing if closer.is_escape() => {
                let escaped = self.letters.get(1).copied().unwrap_or('\\');
                self.pass(Node::Letter(escaped), 2)
            }
            Search::Missing => self.text('$', mark),
        }
    }

    fn code(&mut self, is_end: bool) -> Step {
        let Some(ticks) = self.run_length('`', RUN_LETTERS_MAX, is_end) else { return Step::Wait };
        let found = match ticks {
            1..=BACKTICKS_MAX => self.search(Closer::Backticks(ticks), ticks, CODE_LETTERS_MAX, is_end),
            _ => Search::Missing,
        };
        match found {
            Search::Wait => Step::Wait,
            Search::Missing => self.text('`', ticks),
            Search::Found(at) => {
                let inside: Vec<char> = self.letters.range(ticks..at).copied().collect();
                // One blank on each side makes room for a backtick, and is not part of the code.
                let is_padded = inside.len() > 2 && inside.first() == Some(&' ') && inside.last() == Some(&' ');
                let has_text = inside.iter().any(|letter| *letter != ' ');
                let inside = if is_padded && has_text && !self.shows_marks {
                    inside.get(1..inside.len() - 1).unwrap_or_default()
                } else {
                    inside.as_slice()
                };
                self.queue.push(Node::CodeEdge { ticks });
                for letter in inside {
                    self.queue.push(Node::written(*letter));
                }
                self.queue.push(Node::CodeEdge { ticks });
                Step::Passed(at + ticks)
            }
        }
    }

    /// A run of marks that may open or close emphasis.
    fn marks(&mut self, letter: char, is_end: bool) -> Step {
        let Some(count) = self.run_length(letter, RUN_LETTERS_MAX, is_end) else { return Step::Wait };
        let is_text = count == RUN_LETTERS_MAX || (letter == '~' && count != 2);
        if is_text {
            return self.text(letter, count);
        }
        let after = self.letters.get(count).copied().unwrap_or(' ');
        let neighbours = Neighbours::new(letter, self.before, after);
        let node = self.queue.push_marks(letter, count);
        let left = self.openers.close(letter, count, neighbours, node, &mut self.queue);
        if left > 0 && neighbours.can_open {
            self.openers.open(letter, count, left, neighbours.can_close, node, self.passed);
        }
        Step::Passed(count)
    }

    fn bracket(&mut self, count: usize) -> Step {
        let node = self.queue.push(Node::Bracket { is_image: count == 2 });
        self.openers.open_bracket(node, self.passed);
        Step::Passed(count)
    }

    fn closing_bracket(&mut self, next: Option<char>, is_end: bool, sink: &mut dyn Sink) -> Step {
        let Some(opener) = self.openers.bracket() else { return self.pass(Node::Letter(']'), 1) };
        let found = match next {
            Some('(') => self.searches.address(&self.letters, ADDRESS_LETTERS_MAX, is_end),
            _ => Search::Missing,
        };
        match found {
            Search::Wait => Step::Wait,
            Search::Missing => {
                self.openers.drop_bracket(opener);
                self.pass(Node::Letter(']'), 1)
            }
            Search::Found(at) => {
                let address: String = self.letters.range(2..at).collect();
                let url = address.split_whitespace().next().unwrap_or_default();
                let url = url.strip_prefix('<').and_then(|url| url.strip_suffix('>')).unwrap_or(url);
                let link = if is_safe_url(url) { sink.link(url) } else { 0 };
                let node = self.openers.take_bracket(opener);
                self.queue.link(node, link, &address);
                Step::Passed(at + 1)
            }
        }
    }
}
