//! Docstrings.

use tree_sitter::Node;

use super::annotation::Annotation;
use crate::declaration::{Kind, Type};
use crate::limits;
use crate::syntax::{Parsed, children};

/// The text of a function's docstring, as it is written: nothing is cut, and escapes are not interpreted.
pub(super) fn of<'s>(parsed: &Parsed<'s>, function: Node<'_>) -> Option<&'s str> {
    let statement = children(function.child_by_field_name("body")?).into_iter().next()?;
    if statement.kind() != "expression_statement" {
        return None;
    }
    let string = children(statement).into_iter().next().filter(|node| node.kind() == "string")?;
    content(parsed.text(string))
}

/// What is between the quotes of a string. None if it is computed when the program runs.
pub(super) fn content(literal: &str) -> Option<&str> {
    let start = literal.find(['"', '\''])?;
    let (prefix, quoted) = literal.split_at(start);
    if prefix.contains(['f', 'F', 't', 'T']) {
        return None;
    }
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    quotes.iter().find_map(|quote| quoted.strip_prefix(quote)?.strip_suffix(quote))
}

/// What the section `Args:` says of a parameter.
pub(super) struct Said<'d> {
    pub(super) name: &'d str,
    pub(super) text: &'d str,
    /// The type after the name, in parentheses or not; empty if there is none.
    written: &'d str,
}

/// The entries of the section `Args:`, which ends at the first line that is not indented.
pub(super) fn arguments(docstring: &str) -> Vec<Said<'_>> {
    let section = docstring.lines().skip_while(|line| !line.trim_start().starts_with("Args:")).skip(1);
    let indented = section.take_while(|line| line.starts_with([' ', '\t']));
    indented.filter_map(entry).collect()
}

fn entry(line: &str) -> Option<Said<'_>> {
    let (head, text) = line.trim().split_once(':')?;
    let head = head.trim();
    let (name, written) = head.split_once(' ').unwrap_or((head, ""));
    Some(Said { name: name.trim(), text: text.trim(), written: written.trim() })
}

impl Said<'_> {
    /// The type, without its parentheses.
    fn inner(&self) -> Option<&str> {
        self.written.strip_prefix('(')?.strip_suffix(')')
    }

    pub(super) fn is_optional(&self) -> bool {
        self.written.ends_with('?')
            || self.inner().is_some_and(|inner| inner.ends_with('?') || inner.to_lowercase().contains("optional"))
    }

    /// The type for a parameter without annotation.
    pub(super) fn annotation(&self) -> Annotation {
        let kind = named(self.inner().unwrap_or(self.written).trim_end_matches('?'), 0);
        Annotation { kind, optional: self.is_optional() }
    }
}

/// The type of a name: `int`, `list[str]`.
fn named(name: &str, depth: usize) -> Type {
    let item = name.strip_prefix("list[").and_then(|rest| rest.strip_suffix(']'));
    match name {
        "int" => Type::plain(Kind::Integer),
        "float" => Type::plain(Kind::Number),
        "bool" => Type::plain(Kind::Boolean),
        _ => match item {
            Some(item) if depth < limits::TYPE_DEPTH_MAX => Type::list(named(item.trim(), depth + 1)),
            _ => Type::TEXT,
        },
    }
}
