//! Annotations of parameters.
//!
//! Everything that has no counterpart in JSON is a text: a model writes it, and the function reads it.

use tree_sitter::Node;

use super::docstring;
use crate::declaration::{Kind, Type};
use crate::error::{DeclarationError, Fault};
use crate::limits;
use crate::syntax::{Parsed, children};

/// What an annotation says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Annotation {
    pub(super) kind: Type,
    pub(super) optional: bool,
}

impl Annotation {
    pub(super) fn required(kind: Type) -> Self {
        Self { kind, optional: false }
    }
}

/// Reads the annotation at a node.
pub(super) fn read(parsed: &Parsed<'_>, node: Node<'_>) -> Result<Annotation, DeclarationError> {
    at(parsed, node, 0)
}

fn at(parsed: &Parsed<'_>, node: Node<'_>, depth: usize) -> Result<Annotation, DeclarationError> {
    if depth > limits::TYPE_DEPTH_MAX {
        return Err(parsed.refused(Fault::Limit, node, "the type is nested too deeply"));
    }
    let plain = |kind| Ok(Annotation::required(Type::plain(kind)));
    match node.kind() {
        "type" => match children(node).into_iter().next() {
            Some(inner) => at(parsed, inner, depth),
            None => plain(Kind::Text),
        },
        "identifier" => match parsed.text(node) {
            "int" => plain(Kind::Integer),
            "float" => plain(Kind::Number),
            "bool" => plain(Kind::Boolean),
            _ => plain(Kind::Text),
        },
        "generic_type" | "subscript" => generic(parsed, node, depth),
        "union_type" | "binary_operator" => union(parsed, &alternatives(parsed, node), depth),
        _ => plain(Kind::Text),
    }
}

/// A type with parameters: `List[int]`, `typing.Optional[str]`.
fn generic(parsed: &Parsed<'_>, node: Node<'_>, depth: usize) -> Result<Annotation, DeclarationError> {
    let mut parts = children(node).into_iter();
    let name = parts.next().and_then(|name| type_name(parsed, name)).unwrap_or_default();
    let parameters: Vec<Node<'_>> =
        parts.flat_map(|part| if part.kind() == "type_parameter" { children(part) } else { vec![part] }).collect();
    let Some(first) = parameters.first() else { return Ok(Annotation::required(Type::TEXT)) };
    match name {
        "Optional" => Ok(Annotation { optional: true, ..at(parsed, *first, depth + 1)? }),
        "List" | "list" => Ok(Annotation::required(Type::list(at(parsed, *first, depth + 1)?.kind))),
        "Literal" => Ok(Annotation::required(choices(parsed, node, &parameters)?)),
        "Union" => union(parsed, &parameters, depth),
        _ => Ok(Annotation::required(Type::TEXT)),
    }
}

/// The name of a type, with or without the module `typing`.
fn type_name<'s>(parsed: &Parsed<'s>, node: Node<'_>) -> Option<&'s str> {
    match node.kind() {
        "identifier" => Some(parsed.text(node)),
        "attribute" => {
            let module = parsed.text(node.child_by_field_name("object")?);
            let name = node.child_by_field_name("attribute")?;
            ["typing", "typing_extensions", "t"].contains(&module).then(|| parsed.text(name))
        }
        _ => None,
    }
}

/// The alternatives of `A | B | C`, from the last to the first. No recursion: they can be as many as the file is long.
///
/// The grammar has two nodes for `|`: a union of types where an alternative has parameters, as in `list[int] | None`, and
/// an operator elsewhere.
fn alternatives<'t>(parsed: &Parsed<'_>, node: Node<'t>) -> Vec<Node<'t>> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let is_union = match node.kind() {
            "type" | "union_type" => true,
            "binary_operator" => {
                node.child_by_field_name("operator").is_some_and(|operator| parsed.text(operator) == "|")
            }
            _ => false,
        };
        if is_union {
            open.extend(children(node));
        } else {
            found.push(node);
        }
    }
    found
}

/// One type or none is that type, and optional. Several types are a text.
fn union(parsed: &Parsed<'_>, alternatives: &[Node<'_>], depth: usize) -> Result<Annotation, DeclarationError> {
    let (none, some): (Vec<Node<'_>>, Vec<Node<'_>>) =
        alternatives.iter().partition(|node| parsed.text(**node) == "None");
    let optional = !none.is_empty();
    match some[..] {
        // An arithmetic expression is no type; reading it again would not end.
        [one] if one.kind() != "binary_operator" => {
            let inner = at(parsed, one, depth + 1)?;
            Ok(Annotation { optional: optional || inner.optional, ..inner })
        }
        _ => Ok(Annotation { kind: Type::TEXT, optional }),
    }
}

/// The values of `Literal`, as texts.
fn choices(parsed: &Parsed<'_>, node: Node<'_>, members: &[Node<'_>]) -> Result<Type, DeclarationError> {
    if members.len() > limits::CHOICES_MAX {
        return Err(parsed.refused(Fault::Limit, node, format!("more than {} values", limits::CHOICES_MAX)));
    }
    Ok(Type::choice(members.iter().map(|member| choice(parsed, *member)).collect()))
}

/// One value of `Literal`. A value that is computed is the text `any`, as in Loki.
fn choice(parsed: &Parsed<'_>, member: Node<'_>) -> String {
    let member = match member.kind() {
        "type" => children(member).into_iter().next().unwrap_or(member),
        _ => member,
    };
    let text = parsed.text(member).trim();
    match member.kind() {
        "string" => docstring::content(text).unwrap_or(text).to_owned(),
        "integer" | "float" | "true" | "false" | "none" | "identifier" | "unary_operator" => text.to_owned(),
        _ => "any".to_owned(),
    }
}
