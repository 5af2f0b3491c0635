//! Text that waits for the partner of a mark before it.

use std::collections::VecDeque;

use crate::look::{Ink, Look};
use crate::writer::Sink;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Letter(char),
    Gap,
    Break,
    /// Marks, as far as they are text, and what they open and close.
    Marks {
        letter: char,
        length: usize,
        text: usize,
        opens: Vec<Emphasis>,
        closes: Vec<Emphasis>,
    },
    /// An edge of a span of code.
    CodeEdge {
        ticks: usize,
    },
    /// `[` or `![`.
    Bracket {
        is_image: bool,
    },
    /// The start of a link that [`Sink::link`] has given this number.
    LinkStart {
        link: u16,
        is_image: bool,
    },
    /// The end of a link, with all between its round brackets.
    LinkEnd {
        address: String,
    },
}

impl Node {
    /// A letter in which no mark is looked for.
    pub(super) fn written(letter: char) -> Self {
        match letter {
            ' ' | '\t' | '\n' => Self::Gap,
            _ => Self::Letter(letter),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emphasis {
    Weak,
    Strong,
    Strike,
}

impl Emphasis {
    /// How many marks it takes on each side.
    pub(super) fn marks(self) -> usize {
        if self == Self::Weak { 1 } else { 2 }
    }
}

/// The parts that are not written yet, and the looks that are open where they begin.
#[derive(Debug)]
pub(super) struct Queue {
    shows_marks: bool,
    base: Look,
    nodes: VecDeque<Node>,
    written: usize,
    weak: usize,
    strong: usize,
    strike: usize,
    is_code: bool,
    link: Option<u16>,
    /// The text of the open link.
    link_text: String,
    /// Whether the last part was a blank: several look like one.
    has_gap: bool,
}

/// Longer texts of links differ from their addresses.
const LINK_TEXT_BYTES_MAX: usize = 2_048;

impl Queue {
    pub(super) fn new(shows_marks: bool) -> Self {
        Self::with_base(shows_marks, Look::default())
    }

    pub(super) fn with_base(shows_marks: bool, base: Look) -> Self {
        Self {
            shows_marks,
            base,
            nodes: VecDeque::new(),
            written: 0,
            weak: 0,
            strong: 0,
            strike: 0,
            is_code: false,
            link: None,
            link_text: String::new(),
            has_gap: false,
        }
    }

    /// Appends a part and returns its number.
    pub(super) fn push(&mut self, node: Node) -> usize {
        self.nodes.push_back(node);
        self.written + self.nodes.len() - 1
    }

    pub(super) fn push_marks(&mut self, letter: char, length: usize) -> usize {
        self.push(Node::Marks { letter, length, text: length, opens: Vec::new(), closes: Vec::new() })
    }

    fn get(&mut self, number: usize) -> Option<&mut Node> {
        self.nodes.get_mut(number.checked_sub(self.written)?)
    }

    /// Makes two runs of marks the ends of emphasis.
    pub(super) fn pair(&mut self, opener: usize, closer: usize, emphasis: Emphasis) {
        if let Some(Node::Marks { text, opens, .. }) = self.get(opener) {
            *text -= emphasis.marks();
            opens.push(emphasis);
        }
        if let Some(Node::Marks { text, closes, .. }) = self.get(closer) {
            *text -= emphasis.marks();
            closes.push(emphasis);
        }
    }

    /// Makes the text behind a bracket a link.
    pub(super) fn link(&mut self, bracket: usize, link: u16, address: &str) {
        if let Some(node) = self.get(bracket) {
            let is_image = matches!(node, Node::Bracket { is_image: true });
            *node = Node::LinkStart { link, is_image };
        }
        self.push(Node::LinkEnd { address: address.trim().to_owned() });
    }

    /// Writes all parts before this number.
    pub(super) fn write(&mut self, before: usize, sink: &mut dyn Sink) {
        while self.written < before {
            let Some(node) = self.nodes.pop_front() else { break };
            self.written += 1;
            self.write_node(node, sink);
        }
    }

    fn look(&self) -> Look {
        let mut look = self.base;
        look.bold |= self.strong > 0;
        look.italic |= self.weak > 0;
        look.strike |= self.strike > 0;
        if let Some(link) = self.link {
            (look.link, look.underline, look.ink) = (link, true, Ink::Link);
        }
        if self.is_code {
            look.ink = Ink::Code;
        }
        look
    }

    fn write_node(&mut self, node: Node, sink: &mut dyn Sink) {
        let is_gap = node == Node::Gap;
        match node {
            Node::Letter(letter) => self.letter(letter, sink),
            Node::Gap if self.is_code || !self.has_gap => sink.gap(self.look()),
            Node::Gap => {}
            Node::Break => sink.line_break(),
            Node::Marks { letter, length, text, opens, closes } => {
                closes.into_iter().for_each(|emphasis| *self.count(emphasis) -= 1);
                let shown = if self.shows_marks { length } else { text };
                (0..shown).for_each(|_| self.letter(letter, sink));
                opens.into_iter().for_each(|emphasis| *self.count(emphasis) += 1);
            }
            Node::CodeEdge { ticks } => {
                if self.shows_marks {
                    (0..ticks).for_each(|_| self.letter('`', sink));
                }
                self.is_code = !self.is_code;
            }
            Node::Bracket { is_image } => self.text(if is_image { "![" } else { "[" }, sink),
            Node::LinkStart { is_image, .. } if self.shows_marks => {
                self.text(if is_image { "![" } else { "[" }, sink);
            }
            Node::LinkStart { link, .. } => {
                self.link = Some(link);
                self.link_text.clear();
            }
            Node::LinkEnd { address } if self.shows_marks => self.text(&format!("]({address})"), sink),
            Node::LinkEnd { address } => self.end_link(&address, sink),
        }
        self.has_gap = is_gap;
    }

    fn letter(&mut self, letter: char, sink: &mut dyn Sink) {
        if self.link.is_some() && self.link_text.len() < LINK_TEXT_BYTES_MAX {
            self.link_text.push(letter);
        }
        sink.letter(letter, self.look());
    }

    fn text(&mut self, text: &str, sink: &mut dyn Sink) {
        for letter in text.chars() {
            match Node::written(letter) {
                Node::Gap => sink.gap(self.look()),
                _ => self.letter(letter, sink),
            }
        }
    }

    /// Shows the address behind the text of a link, unless it is the text.
    fn end_link(&mut self, address: &str, sink: &mut dyn Sink) {
        let link = self.link.take().unwrap_or_default();
        if address == self.link_text || address.strip_prefix("mailto:") == Some(self.link_text.as_str()) {
            return;
        }
        let look = Look { link, ..Look::DIM };
        if !self.link_text.is_empty() {
            sink.gap(Look::default());
        }
        for letter in format!("({address})").chars() {
            match Node::written(letter) {
                Node::Gap => sink.gap(look),
                _ => sink.letter(letter, look),
            }
        }
    }

    fn count(&mut self, emphasis: Emphasis) -> &mut usize {
        match emphasis {
            Emphasis::Weak => &mut self.weak,
            Emphasis::Strong => &mut self.strong,
            Emphasis::Strike => &mut self.strike,
        }
    }
}
