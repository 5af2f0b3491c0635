//! Finds the partners of marks for code and formulas, and the ends of addresses.
//!
//! Each kind of partner is looked for from left to right once: where none was found before a letter, no later mark of that kind looks
//! there again. So the time is linear in the length of the text, however many marks have no partner.

use std::collections::{BTreeMap, VecDeque};

/// What ends a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Closer {
    /// So many backticks, no more and no fewer.
    Backticks(usize),
    /// `$` on the same line, behind text and not before a digit: "$5 and $6" is no formula.
    Dollar,
    /// `$$`.
    Dollars,
    /// `\)`.
    RoundFormula,
    /// `\]`.
    SquareFormula,
}

impl Closer {
    /// Whether the mark that it closes is an escaped letter if it has no partner.
    pub(super) fn is_escape(self) -> bool {
        matches!(self, Self::RoundFormula | Self::SquareFormula)
    }
}

/// What a search came to. Places count from the first letter that is not decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    Found(usize),
    Missing,
    /// The next letters decide.
    Wait,
}

/// What is at one place.
enum Place {
    Closer,
    /// Nothing, for this many letters.
    Other(usize),
    /// The span cannot go on.
    Stop,
    Wait,
}

#[derive(Debug, Default)]
pub(super) struct Searches {
    /// Up to where there is no closer of a kind, counted from the start of the text.
    cleared: BTreeMap<Closer, usize>,
    address: Option<Address>,
}

/// The address of a link, as far as it has been read.
#[derive(Debug, Clone, Copy)]
struct Address {
    at: usize,
    depth: usize,
    quote: Option<char>,
    /// Whether there was a blank: only a title may follow.
    has_blank: bool,
}

/// Brackets within an address.
const DEPTH_MAX: usize = 8;

impl Searches {
    /// Looks for a closer behind the first `skip` letters and before `most`. `passed` letters came before the first one.
    pub(super) fn find(
        &mut self,
        closer: Closer,
        letters: &VecDeque<char>,
        passed: usize,
        skip: usize,
        most: usize,
        is_end: bool,
    ) -> Search {
        let cleared = self.cleared.entry(closer).or_default();
        let mut at = skip.max(cleared.saturating_sub(passed));
        let found = loop {
            if at >= most {
                break Search::Missing;
            }
            match place(closer, letters, at, is_end) {
                Place::Closer => break Search::Found(at),
                Place::Other(count) => at += count,
                Place::Stop => break Search::Missing,
                Place::Wait if is_end => break Search::Missing,
                Place::Wait => break Search::Wait,
            }
        };
        *cleared = (*cleared).max(passed + at);
        found
    }

    /// Looks for the bracket that ends an address; the letters begin with `](`.
    pub(super) fn address(&mut self, letters: &VecDeque<char>, most: usize, is_end: bool) -> Search {
        let start = Address { at: 2, depth: 0, quote: None, has_blank: false };
        let mut address = self.address.take().unwrap_or(start);
        loop {
            let Some(&letter) = letters.get(address.at) else {
                if is_end {
                    return Search::Missing;
                }
                self.address = Some(address);
                return Search::Wait;
            };
            if address.at >= most {
                return Search::Missing;
            }
            match (address.quote, letter) {
                (_, '\n') => return Search::Missing,
                (Some(quote), _) if letter == quote => address.quote = None,
                (Some(_), _) => {}
                (None, ')') if address.depth == 0 => return Search::Found(address.at),
                (None, ')') => address.depth -= 1,
                (None, '(') if address.depth == DEPTH_MAX => return Search::Missing,
                (None, '(') => address.depth += 1,
                (None, ' ' | '\t') => address.has_blank = true,
                (None, '"' | '\'') if address.has_blank => address.quote = Some(letter),
                (None, _) if address.has_blank => return Search::Missing,
                (None, _) => {}
            }
            address.at += 1;
        }
    }
}

fn place(closer: Closer, letters: &VecDeque<char>, at: usize, is_end: bool) -> Place {
    let Some(&letter) = letters.get(at) else { return Place::Wait };
    let next = letters.get(at + 1).copied();
    let before = at.checked_sub(1).and_then(|before| letters.get(before)).copied();
    let escape = |last: char| match next {
        None if !is_end => Place::Wait,
        Some(next) if next == last => Place::Closer,
        _ => Place::Other(1),
    };
    match closer {
        Closer::RoundFormula if letter == '\\' => escape(')'),
        Closer::SquareFormula if letter == '\\' => escape(']'),
        Closer::RoundFormula | Closer::SquareFormula => Place::Other(1),
        Closer::Dollars if letter == '$' => match next {
            None if !is_end => Place::Wait,
            Some('$') => Place::Closer,
            _ => Place::Other(1),
        },
        Closer::Dollars => Place::Other(1),
        Closer::Dollar if letter == '\n' => Place::Stop,
        Closer::Dollar if letter == '$' && before.is_some_and(|before| !before.is_whitespace() && before != '\\') => {
            match next {
                None if !is_end => Place::Wait,
                Some(next) if next.is_alphanumeric() => Place::Other(1),
                _ => Place::Closer,
            }
        }
        Closer::Dollar => Place::Other(1),
        Closer::Backticks(count) if letter == '`' => {
            let length = (at..letters.len()).take_while(|at| letters.get(*at) == Some(&'`')).take(64).count();
            let is_whole = before != Some('`');
            match length == count && is_whole {
                _ if at + length == letters.len() && length < 64 && !is_end => Place::Wait,
                true => Place::Closer,
                false => Place::Other(length),
            }
        }
        Closer::Backticks(_) => Place::Other(1),
    }
}
