//! What a line is, read from its first letters.

/// Quotes and items within each other; a mark beyond is text.
const DEPTH_MAX: usize = 24;

/// What is around the text of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Container {
    Quote,
    /// An item of a list: its mark, the column of the mark and the column of its text, both from the quote around it.
    Item {
        mark: String,
        column: usize,
        content: usize,
    },
}

/// What came before a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) containers: &'a [Container],
    /// Whether the line may continue a paragraph.
    pub(super) has_paragraph: bool,
    /// Whether a line that is not decided is text.
    pub(super) is_forced: bool,
}

/// How a line starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    /// How many of the containers go on.
    pub(super) kept: usize,
    /// Those that begin.
    pub(super) added: Vec<Container>,
    pub(super) leaf: Leaf,
    /// Where the text of the leaf begins, in bytes.
    pub(super) at: usize,
}

/// What a line is within its quotes and items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    Blank,
    Text,
    Heading {
        level: usize,
    },
    Fence {
        mark: char,
        count: usize,
        indent: usize,
    },
    Rule,
    /// The line below a heading that makes it one.
    Underline,
    Row,
    /// A formula on lines of its own, and what ends it.
    Formula {
        end: &'static str,
    },
    /// Text that is indented as code is.
    Verbatim,
    /// The mark of an item and nothing else.
    Item,
}

/// A place in a line, with its column.
#[derive(Debug, Clone, Copy)]
struct Scan<'a> {
    text: &'a str,
    at: usize,
    column: usize,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, column: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) {
        if let Some(letter) = self.peek() {
            self.at += letter.len_utf8();
            self.column += if letter == '\t' { 4 - self.column % 4 } else { 1 };
        }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.bump();
        }
    }

    /// Passes the mark of a quote and the blank behind it.
    fn skip_quote(&mut self) {
        self.bump();
        if matches!(self.peek(), Some(' ' | '\t')) {
            self.bump();
        }
    }
}

/// How a line starts; none if the next letters decide. `is_whole` says that there are none.
pub(super) fn read(line: &str, is_whole: bool, context: Context<'_>) -> Option<Start> {
    let mut scan = Scan::new(line);
    let mut base = 0;
    let mut kept = 0;
    for container in context.containers {
        let before = scan;
        scan.skip_blanks();
        match (container, scan.peek()) {
            (_, None) if !is_whole && !context.is_forced => return None,
            (Container::Quote, Some('>')) => {
                scan.skip_quote();
                base = scan.column;
            }
            (Container::Item { .. }, None) => scan = before,
            (Container::Item { column, .. }, Some(_)) if scan.column - base.min(scan.column) >= column + 2 => {
                scan = before;
            }
            _ => {
                scan = before;
                break;
            }
        }
        kept += 1;
    }
    Reading { scan, base, is_whole, context, kept, added: Vec::new() }.read()
}

/// The text of a line within the quotes around it; none if it is not within them.
pub(super) fn within_quotes<'a>(line: &'a str, containers: &[Container]) -> Option<&'a str> {
    let mut scan = Scan::new(line);
    for _ in containers.iter().filter(|container| **container == Container::Quote) {
        scan.skip_blanks();
        if scan.peek() != Some('>') {
            return None;
        }
        scan.skip_quote();
    }
    Some(scan.rest())
}

struct Reading<'a> {
    scan: Scan<'a>,
    /// The column of the text of the innermost quote.
    base: usize,
    is_whole: bool,
    context: Context<'a>,
    kept: usize,
    added: Vec<Container>,
}

/// What the letters at a place are.
enum Mark {
    /// Nothing but text.
    None,
    /// The next letters decide.
    Wait,
    Leaf(Leaf),
    /// A quote or an item begins, and its text may be another block.
    Container,
}

impl Reading<'_> {
    fn read(mut self) -> Option<Start> {
        loop {
            let line = self.scan;
            self.scan.skip_blanks();
            let Some(letter) = self.scan.peek() else {
                let leaf = if self.added.is_empty() { Leaf::Blank } else { Leaf::Item };
                return (self.is_whole || self.context.is_forced).then(|| self.start(leaf));
            };
            let indent = self.scan.column.saturating_sub(self.base);
            let is_deep = self.added.is_empty() && indent >= self.content() + 4;
            let mark = if is_deep && !(self.is_in_list() && is_list_mark(letter)) {
                if self.context.has_paragraph {
                    Mark::None
                } else {
                    self.scan = line;
                    Mark::Leaf(Leaf::Verbatim)
                }
            } else {
                self.mark(letter, indent)
            };
            match mark {
                Mark::Wait if !self.context.is_forced => return None,
                Mark::None | Mark::Wait => return Some(self.start(Leaf::Text)),
                Mark::Leaf(leaf) => return Some(self.start(leaf)),
                Mark::Container => {}
            }
        }
    }

    fn start(self, leaf: Leaf) -> Start {
        let is_lazy = leaf == Leaf::Text && self.context.has_paragraph && self.added.is_empty();
        let kept = if is_lazy { self.context.containers.len() } else { self.kept };
        Start { kept, added: self.added, leaf, at: self.scan.at }
    }

    fn is_in_list(&self) -> bool {
        self.context.containers.iter().any(|container| matches!(container, Container::Item { .. }))
    }

    /// The column in which text of the innermost item begins.
    fn content(&self) -> usize {
        match self.kept.checked_sub(1).and_then(|last| self.context.containers.get(last)) {
            Some(Container::Item { content, .. }) => *content,
            _ => 0,
        }
    }

    fn mark(&mut self, letter: char, indent: usize) -> Mark {
        let depth = self.kept + self.added.len();
        match letter {
            '>' if depth < DEPTH_MAX => self.quote(),
            '#' => self.heading(),
            '`' | '~' => self.fence(letter, indent),
            '-' | '*' | '+' | '_' | '=' => self.line_or_bullet(letter, indent, depth),
            '0'..='9' if depth < DEPTH_MAX => self.number(indent),
            '|' => Mark::Leaf(Leaf::Row),
            '$' => self.formula("$$", "$$"),
            '\\' => self.formula("\\[", "\\]"),
            _ => Mark::None,
        }
    }

    fn quote(&mut self) -> Mark {
        if self.scan.rest().len() == 1 && !self.is_whole {
            return Mark::Wait;
        }
        self.scan.skip_quote();
        self.base = self.scan.column;
        self.added.push(Container::Quote);
        Mark::Container
    }

    fn heading(&mut self) -> Mark {
        let rest = self.scan.rest();
        let level = rest.chars().take_while(|letter| *letter == '#').count();
        match rest[level..].chars().next() {
            None if !self.is_whole && level <= 6 => Mark::Wait,
            None | Some(' ' | '\t') if level <= 6 => {
                (0..level).for_each(|_| self.scan.bump());
                self.scan.skip_blanks();
                Mark::Leaf(Leaf::Heading { level })
            }
            _ => Mark::None,
        }
    }

    fn fence(&mut self, mark: char, indent: usize) -> Mark {
        let rest = self.scan.rest();
        let count = rest.chars().take_while(|letter| *letter == mark).count();
        let info = &rest[count..];
        if info.is_empty() && !self.is_whole {
            return Mark::Wait;
        }
        if count < 3 || (mark == '`' && info.contains('`')) {
            return Mark::None;
        }
        if self.is_whole { Mark::Leaf(Leaf::Fence { mark, count, indent }) } else { Mark::Wait }
    }

    /// A rule, the line below a heading, or the mark of an item.
    fn line_or_bullet(&mut self, mark: char, indent: usize, depth: usize) -> Mark {
        let rest = self.scan.rest();
        let is_line = rest.chars().all(|letter| letter == mark || letter == ' ' || letter == '\t');
        if is_line && !self.is_whole {
            return Mark::Wait;
        }
        let count = rest.chars().filter(|letter| *letter == mark).count();
        if is_line {
            let is_solid = rest.trim_end().len() == count;
            let is_below = self.context.has_paragraph
                && self.added.is_empty()
                && self.kept == self.context.containers.len()
                && is_solid
                && matches!(mark, '-' | '=');
            if is_below {
                return Mark::Leaf(Leaf::Underline);
            }
            if count >= 3 && matches!(mark, '-' | '*' | '_') {
                return Mark::Leaf(Leaf::Rule);
            }
        }
        let after = rest[1..].chars().next();
        let is_item = matches!(mark, '-' | '*' | '+') && matches!(after, None | Some(' ' | '\t')) && depth < DEPTH_MAX;
        // An empty item does not end a paragraph, but one of a list does.
        let is_empty = rest[1..].trim().is_empty();
        if !is_item || (is_empty && self.context.has_paragraph && !self.is_in_list() && self.added.is_empty()) {
            return Mark::None;
        }
        self.item(mark.to_string(), indent)
    }

    fn number(&mut self, indent: usize) -> Mark {
        let rest = self.scan.rest();
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        if digits > 9 {
            return Mark::None;
        }
        let mut behind = rest[digits..].chars();
        match (behind.next(), behind.next()) {
            (None, _) if !self.is_whole => return Mark::Wait,
            (Some('.' | ')'), None) if !self.is_whole => return Mark::Wait,
            (Some('.' | ')'), None | Some(' ' | '\t')) => {}
            _ => return Mark::None,
        }
        // "In the summer of⏎1986. It was hot": a list within a paragraph begins with 1.
        let is_first = rest[..digits].trim_start_matches('0') == "1";
        if self.context.has_paragraph && !self.is_in_list() && !is_first {
            return Mark::None;
        }
        self.item(rest[..=digits].to_owned(), indent)
    }

    /// The mark of an item and the blanks behind it.
    fn item(&mut self, mark: String, indent: usize) -> Mark {
        mark.chars().for_each(|_| self.scan.bump());
        let before = self.scan;
        self.scan.skip_blanks();
        let mut content = self.scan.column.saturating_sub(self.base);
        if self.scan.column - before.column > 4 {
            // Code that is indented within the item.
            self.scan = before;
            self.scan.bump();
            content = self.scan.column.saturating_sub(self.base);
        }
        self.added.push(Container::Item { mark, column: indent, content });
        Mark::Container
    }

    /// A mark on a line of its own.
    fn formula(&mut self, begin: &str, end: &'static str) -> Mark {
        let rest = self.scan.rest().trim_end();
        if !self.is_whole && begin.starts_with(rest) {
            return Mark::Wait;
        }
        if rest == begin { Mark::Leaf(Leaf::Formula { end }) } else { Mark::None }
    }
}

fn is_list_mark(letter: char) -> bool {
    matches!(letter, '-' | '*' | '+' | '0'..='9')
}
