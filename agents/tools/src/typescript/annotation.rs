//! Types of parameters.

use tree_sitter::Node;

use crate::declaration::{Kind, Type};
use crate::error::{DeclarationError, Fault};
use crate::limits;
use crate::syntax::{Parsed, children};

/// What a type says of the values of a parameter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Annotation {
    pub(super) kind: Type,
    pub(super) optional: bool,
}

/// Reads the type at a node.
pub(super) fn read(parsed: &Parsed<'_>, node: Node<'_>) -> Result<Annotation, DeclarationError> {
    at(parsed, node, 0)
}

fn at(parsed: &Parsed<'_>, node: Node<'_>, depth: usize) -> Result<Annotation, DeclarationError> {
    if depth > limits::TYPE_DEPTH_MAX {
        return Err(parsed.refused(Fault::Limit, node, "the type is nested too deeply"));
    }
    let required = |kind| Ok(Annotation { kind, optional: false });
    let first = children(node).into_iter().next();
    match (node.kind(), first) {
        ("predefined_type", _) => match parsed.text(node) {
            "number" => required(Type::plain(Kind::Number)),
            "boolean" => required(Type::plain(Kind::Boolean)),
            _ => required(Type::TEXT),
        },
        ("type_annotation" | "parenthesized_type", Some(inner)) => at(parsed, inner, depth + 1),
        ("array_type", Some(item)) => required(Type::list(at(parsed, item, depth + 1)?.kind)),
        ("generic_type", Some(name)) if parsed.text(name) == "Array" => {
            let arguments = node.child_by_field_name("type_arguments").map(children).unwrap_or_default();
            match arguments.first() {
                Some(item) => required(Type::list(at(parsed, *item, depth + 1)?.kind)),
                None => required(Type::TEXT),
            }
        }
        ("union_type", _) => union(parsed, node, depth),
        ("literal_type", _) => required(literal(parsed, node).map_or(Type::TEXT, |value| Type::choice(vec![value]))),
        _ => required(Type::TEXT),
    }
}

/// Alternatives: literals are a choice, other types count as the first of them. `null` and `undefined` make them optional.
fn union(parsed: &Parsed<'_>, node: Node<'_>, depth: usize) -> Result<Annotation, DeclarationError> {
    let (empty, some): (Vec<Node<'_>>, Vec<Node<'_>>) =
        alternatives(node).into_iter().partition(|member| is_empty(parsed, *member));
    let literals: Option<Vec<String>> = some.iter().map(|member| literal(parsed, *member)).collect();
    let kind = match (literals, some.first()) {
        (_, None) => Type::TEXT,
        (Some(values), _) if values.len() > limits::CHOICES_MAX => {
            return Err(parsed.refused(Fault::Limit, node, format!("more than {} values", limits::CHOICES_MAX)));
        }
        (Some(values), _) => Type::choice(values),
        (None, Some(first)) => at(parsed, *first, depth + 1)?.kind,
    };
    Ok(Annotation { kind, optional: !empty.is_empty() })
}

/// The members of a union, in order. Unions are nested to the left; no recursion, as they can be as many as the file is long.
fn alternatives(node: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        match node.kind() {
            "union_type" => open.extend(children(node).into_iter().rev()),
            _ => found.push(node),
        }
    }
    found
}

/// The value of a literal, as a text.
fn literal(parsed: &Parsed<'_>, node: Node<'_>) -> Option<String> {
    let value = children(node).into_iter().next().filter(|_| node.kind() == "literal_type")?;
    let text = parsed.text(value).trim();
    match value.kind() {
        "string" => Some(text.trim_matches(['"', '\'']).to_owned()),
        "number" | "true" | "false" | "unary_expression" => Some(text.to_owned()),
        _ => None,
    }
}

fn is_empty(parsed: &Parsed<'_>, node: Node<'_>) -> bool {
    match node.kind() {
        "literal_type" => ["null", "undefined"].contains(&parsed.text(node)),
        "predefined_type" => ["undefined", "void"].contains(&parsed.text(node)),
        _ => false,
    }
}
