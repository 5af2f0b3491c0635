//! Parses expressions: tokens first, then operators by precedence.

use serde_json::Value;

use super::Node;

/// Maximum nesting.
const DEPTH_MAX: usize = 64;

/// Operators by precedence, lowest first. Operators in one row have the same precedence and are left-associative.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["==", "!=", "<=", ">=", "<", ">", "in"], &["+", "-"], &["*", "/", "%"]];

/// A token.
#[derive(Debug, Clone, PartialEq)]
enum Word {
    Sign(&'static str),
    Name(String),
    Literal(Value),
}

/// Reads a whole expression.
pub(super) fn expression(text: &str) -> Result<Node, String> {
    let words = words(text)?;
    let mut parser = Parser { words: &words, at: 0, depth: 0 };
    let node = parser.choice()?;
    match parser.words.get(parser.at) {
        None => Ok(node),
        Some(word) => Err(format!("unexpected {}", shown(word))),
    }
}

const SIGNS: [&str; 23] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "(", ")", "[", "]", ".", ",", "?", ":",
    "in",
];

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = if first == '\'' || first == '"' {
            quoted(rest, first)?
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            let value = digits.parse::<i64>().map(Value::from).or_else(|_| digits.parse::<f64>().map(Value::from));
            (Word::Literal(value.map_err(|_| format!("\"{digits}\" is not a number"))?), after)
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            (named(name), after)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("unexpected \"{first}\""))?;
            (Word::Sign(sign), rest.get(sign.len()..).unwrap_or_default())
        };
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

fn named(name: &str) -> Word {
    match name {
        "true" => Word::Literal(Value::Bool(true)),
        "false" => Word::Literal(Value::Bool(false)),
        "null" => Word::Literal(Value::Null),
        "in" => Word::Sign("in"),
        name => Word::Name(name.to_owned()),
    }
}

/// A quoted text; a backslash quotes the next character.
fn quoted(rest: &str, quote: char) -> Result<(Word, &str), String> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            let after = rest.get(at + quote.len_utf8()..).unwrap_or_default();
            return Ok((Word::Literal(Value::String(text)), after));
        }
        match c {
            '\\' => match chars.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, c)) => text.push(c),
                None => break,
            },
            c => text.push(c),
        }
    }
    Err("missing closing quote".to_owned())
}

struct Parser<'a> {
    words: &'a [Word],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// `condition ? yes : no`, the operator with the lowest precedence.
    fn choice(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("nested more than {DEPTH_MAX} levels"));
        }
        let condition = self.level(0)?;
        let node = if self.takes("?") {
            let yes = self.choice()?;
            self.wants(":")?;
            let no = self.choice()?;
            Node::Choice(Box::new(condition), Box::new(yes), Box::new(no))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(node)
    }

    fn level(&mut self, level: usize) -> Result<Node, String> {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some(sign) = signs.iter().find(|sign| self.takes(sign)) {
            left = Node::Binary(sign, Box::new(left), Box::new(self.level(level + 1)?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, String> {
        // Repeated signs are collected in a loop, so that they cannot exhaust the stack.
        let mut signs = Vec::new();
        while let Some(sign) = ["!", "-"].into_iter().find(|sign| self.takes(sign)) {
            signs.push(sign);
        }
        let node = self.postfix()?;
        let wrapped =
            |node, sign: &str| if sign == "!" { Node::Not(Box::new(node)) } else { Node::Minus(Box::new(node)) };
        if signs.len() > DEPTH_MAX {
            return Err(format!("nested more than {DEPTH_MAX} levels"));
        }
        Ok(signs.into_iter().rev().fold(node, wrapped))
    }

    fn postfix(&mut self) -> Result<Node, String> {
        let mut node = self.primary()?;
        for _ in 0..DEPTH_MAX {
            if self.takes(".") {
                let name = self.name()?;
                node = if self.takes("(") {
                    Node::Call(Some(Box::new(node)), name, self.until(")")?)
                } else {
                    Node::Member(Box::new(node), name)
                };
            } else if self.takes("[") {
                let at = self.choice()?;
                self.wants("]")?;
                node = Node::Index(Box::new(node), Box::new(at));
            } else {
                return Ok(node);
            }
        }
        Err(format!("more than {DEPTH_MAX} operations in a row"))
    }

    fn primary(&mut self) -> Result<Node, String> {
        if self.takes("(") {
            let node = self.choice()?;
            self.wants(")")?;
            return Ok(node);
        }
        if self.takes("[") {
            return Ok(Node::List(self.until("]")?));
        }
        let word = self.words.get(self.at).ok_or("it ends where a value is expected")?;
        self.at += 1;
        match word {
            Word::Literal(value) => Ok(Node::Value(value.clone())),
            Word::Name(name) if self.takes("(") => Ok(Node::Call(None, name.clone(), self.until(")")?)),
            Word::Name(name) => Ok(Node::Name(name.clone())),
            word => Err(format!("a value is expected, not {}", shown(word))),
        }
    }

    /// Values separated by commas, up to and including `end`.
    fn until(&mut self, end: &'static str) -> Result<Vec<Node>, String> {
        let mut nodes = Vec::new();
        while !self.takes(end) {
            if !nodes.is_empty() {
                self.wants(",")?;
            }
            nodes.push(self.choice()?);
        }
        Ok(nodes)
    }

    fn name(&mut self) -> Result<String, String> {
        let name = match self.words.get(self.at) {
            Some(Word::Name(name)) => name.clone(),
            Some(word) => return Err(format!("a name is expected, not {}", shown(word))),
            None => return Err("it ends where a name is expected".to_owned()),
        };
        self.at += 1;
        Ok(name)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.words.get(self.at), Some(Word::Sign(found)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn wants(&mut self, sign: &str) -> Result<(), String> {
        if self.takes(sign) {
            return Ok(());
        }
        Err(match self.words.get(self.at) {
            Some(word) => format!("\"{sign}\" is expected, not {}", shown(word)),
            None => format!("it ends where \"{sign}\" is expected"),
        })
    }
}

fn shown(word: &Word) -> String {
    match word {
        Word::Sign(sign) => format!("\"{sign}\""),
        Word::Name(name) => format!("\"{name}\""),
        Word::Literal(value) => value.to_string(),
    }
}
