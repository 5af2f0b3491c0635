//! Which marks open and close emphasis.

use std::collections::{BTreeMap, VecDeque};

use super::queue::{Emphasis, Queue};
use crate::writer::is_wide;

/// What the letters on both sides of a run of marks let it be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neighbours {
    pub(super) can_open: bool,
    pub(super) can_close: bool,
}

impl Neighbours {
    pub(super) fn new(mark: char, before: char, after: char) -> Self {
        // Sentences of Chinese and Japanese have no blanks beside their marks.
        let is_edge = |letter: char| letter.is_whitespace() || is_punctuation(letter) || is_wide(letter);
        let opens = !after.is_whitespace() && (!is_punctuation(after) || is_edge(before));
        let closes = !before.is_whitespace() && (!is_punctuation(before) || is_edge(after));
        if mark == '_' {
            Self {
                can_open: opens && (!closes || is_punctuation(before)),
                can_close: closes && (!opens || is_punctuation(after)),
            }
        } else {
            Self { can_open: opens, can_close: closes }
        }
    }
}

fn is_punctuation(letter: char) -> bool {
    letter.is_ascii_punctuation() || (!letter.is_alphanumeric() && !letter.is_whitespace() && !letter.is_ascii())
}

/// A mark that waits for its partner.
#[derive(Debug, Clone, Copy)]
struct Opener {
    id: usize,
    kind: OpenerKind,
    node: usize,
    /// Where it is in the text.
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenerKind {
    Bracket,
    Marks { letter: char, length: usize, left: usize, can_close: bool },
}

/// What the search for an opener came to.
enum Partner {
    At(usize),
    Missing,
    /// Marks before a bracket that waits were not tried.
    BehindBracket,
}

/// The marks that wait, from left to right.
#[derive(Debug, Default)]
pub(super) struct Openers {
    waiting: VecDeque<Opener>,
    brackets: usize,
    opened: usize,
    /// Marks of a kind with a smaller id do not fit: they were tried before.
    tried: BTreeMap<(char, bool, usize), usize>,
}

impl Openers {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The first node that may still change.
    pub(super) fn first_node(&self) -> Option<usize> {
        self.waiting.front().map(|opener| opener.node)
    }

    /// Marks before this place are text: they waited for too long.
    pub(super) fn forget_before(&mut self, at: usize) {
        while let Some(first) = self.waiting.front().filter(|first| first.at < at) {
            self.brackets -= usize::from(first.kind == OpenerKind::Bracket);
            self.waiting.pop_front();
        }
    }

    fn push(&mut self, kind: OpenerKind, node: usize, at: usize) {
        self.opened += 1;
        self.waiting.push_back(Opener { id: self.opened, kind, node, at });
    }

    pub(super) fn open(&mut self, letter: char, length: usize, left: usize, can_close: bool, node: usize, at: usize) {
        self.push(OpenerKind::Marks { letter, length, left, can_close }, node, at);
    }

    pub(super) fn open_bracket(&mut self, node: usize, at: usize) {
        self.brackets += 1;
        self.push(OpenerKind::Bracket, node, at);
    }

    /// The place of the last bracket that waits.
    pub(super) fn bracket(&self) -> Option<usize> {
        if self.brackets == 0 {
            return None;
        }
        self.waiting.iter().rposition(|opener| opener.kind == OpenerKind::Bracket)
    }

    /// The bracket is text.
    pub(super) fn drop_bracket(&mut self, place: usize) {
        self.brackets -= 1;
        self.waiting.remove(place);
    }

    /// The bracket begins a link, and marks within the link have no partners outside. Returns its node.
    pub(super) fn take_bracket(&mut self, place: usize) -> usize {
        let node = self.waiting.get(place).map_or(0, |opener| opener.node);
        self.brackets -= 1;
        self.waiting.truncate(place);
        node
    }

    /// Closes what a run of marks closes, and returns how many of the marks are left.
    pub(super) fn close(
        &mut self,
        letter: char,
        length: usize,
        neighbours: Neighbours,
        node: usize,
        queue: &mut Queue,
    ) -> usize {
        let mut left = length;
        while neighbours.can_close && left > 0 {
            let kind = (letter, neighbours.can_open, length % 3);
            let tried = self.tried.get(&kind).copied().unwrap_or_default();
            let place = match self.partner(letter, length, neighbours, tried) {
                Partner::At(place) => place,
                Partner::Missing => {
                    self.tried.insert(kind, self.opened);
                    break;
                }
                Partner::BehindBracket => break,
            };
            self.waiting.truncate(place + 1);
            let Some(Opener { kind: OpenerKind::Marks { left: waiting, .. }, node: opener, .. }) =
                self.waiting.back_mut()
            else {
                break;
            };
            let emphasis = match (letter, left.min(*waiting)) {
                ('~', _) => Emphasis::Strike,
                (_, 1) => Emphasis::Weak,
                _ => Emphasis::Strong,
            };
            queue.pair(*opener, node, emphasis);
            *waiting -= emphasis.marks();
            left -= emphasis.marks();
            if *waiting == 0 {
                self.waiting.pop_back();
            }
        }
        left
    }

    /// The place of the nearest opener that fits. Brackets in between may still become links, whose marks have no partners outside.
    fn partner(&self, letter: char, length: usize, neighbours: Neighbours, tried: usize) -> Partner {
        for (place, opener) in self.waiting.iter().enumerate().rev() {
            if opener.id <= tried {
                return Partner::Missing;
            }
            match opener.kind {
                OpenerKind::Bracket => return Partner::BehindBracket,
                OpenerKind::Marks { letter: other, length: other_length, can_close, .. } => {
                    // `*a**b*`: the two in the middle are no partner of the others.
                    let is_odd = (can_close || neighbours.can_open)
                        && (length + other_length).is_multiple_of(3)
                        && !(length.is_multiple_of(3) && other_length.is_multiple_of(3));
                    if other == letter && !is_odd {
                        return Partner::At(place);
                    }
                }
            }
        }
        Partner::Missing
    }
}
