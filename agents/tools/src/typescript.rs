//! Tools in TypeScript.
//!
//! A tool is an exported function. Its description is the JSDoc comment before it, up to the first tag; the tags `@param` describe its
//! parameters. Functions that are values of constants are not tools.

mod annotation;
mod jsdoc;

use tree_sitter::Node;

use crate::declaration::{Declaration, Declarations, Parameter, Type};
use crate::error::{DeclarationError, Fault};
use crate::source::{Scope, snake_case};
use crate::syntax::{Parsed, children};
use annotation::Annotation;

const ENTRY: &str = "run";
const INSTRUCTIONS: &str = "_instructions";

pub(crate) fn declare(scope: Scope<'_>, source: &str) -> Result<Declarations, DeclarationError> {
    let parsed = Parsed::new(&tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(), source)?;
    let mut declared = Declarations::default();
    let exports = children(parsed.root()).into_iter().filter(|statement| statement.kind() == "export_statement");
    for (export, function) in exports.filter_map(|export| Some((export, function(export)?))) {
        let name = function.child_by_field_name("name").map(|name| parsed.text(name)).unwrap_or_default();
        declared.instructions |= name == INSTRUCTIONS;
        match scope {
            Scope::File { stem } if name == ENTRY => declared.tools.push(tool(&parsed, export, function, stem)?),
            Scope::Agent if !name.starts_with('_') => declared.tools.push(tool(&parsed, export, function, name)?),
            _ => {}
        }
    }
    Ok(declared)
}

fn function(export: Node<'_>) -> Option<Node<'_>> {
    children(export).into_iter().find(|child| child.kind() == "function_declaration")
}

fn tool(parsed: &Parsed<'_>, export: Node<'_>, node: Node<'_>, named: &str) -> Result<Declaration, DeclarationError> {
    let function = node.child_by_field_name("name").map(|name| parsed.text(name)).unwrap_or_default();
    // At the top of a file the comment can also be between `export` and `function`.
    let before = export.prev_named_sibling().or_else(|| node.prev_named_sibling());
    let comment = before.filter(|before| before.kind() == "comment");
    let comment = jsdoc::parse(comment.map(|comment| parsed.text(comment)).unwrap_or_default());
    let mut parameters: Vec<Parameter> = Vec::new();
    let list = node.child_by_field_name("parameters").map(children).unwrap_or_default();
    for node in list {
        let (name, Annotation { kind, optional }) = parameter(parsed, node)?;
        if parameters.iter().any(|other| other.name == name) {
            return Err(parsed.refused(Fault::Syntax, node, format!("the parameter \"{name}\" exists twice")));
        }
        let said = comment.parameters.iter().rev().find(|(said, _)| *said == name);
        let description = said.map(|(_, text)| text.clone()).unwrap_or_default();
        parameters.push(Parameter { name: name.to_owned(), description, kind, required: !optional });
    }
    if comment.description.is_empty() {
        let detail = format!("\"{function}\" has no description: write a comment \"/** … */\" directly before it");
        return Err(parsed.refused(Fault::MissingDescription, node, detail));
    }
    let (name, function) = (snake_case(named), function.to_owned());
    Ok(Declaration { name, function, description: comment.description, parameters })
}

/// The name of a parameter and what is known of its values.
fn parameter<'s>(parsed: &Parsed<'s>, node: Node<'_>) -> Result<(&'s str, Annotation), DeclarationError> {
    let pattern = node.child_by_field_name("pattern").unwrap_or(node);
    let refused = |fault, detail: &str| Err(parsed.refused(fault, node, detail));
    match pattern.kind() {
        "identifier" => {}
        "rest_pattern" => return refused(Fault::Rest, "a tool has a fixed number of parameters: take a list instead"),
        "object_pattern" | "array_pattern" => {
            return refused(Fault::Destructured, "write one parameter for each value instead of taking one apart");
        }
        _ => return refused(Fault::UnsupportedParameter, &format!("\"{}\" is not a name", parsed.text(pattern))),
    }
    let annotation = match node.child_by_field_name("type") {
        Some(annotation) => annotation::read(parsed, annotation)?,
        None => Annotation { kind: Type::TEXT, optional: false },
    };
    let optional =
        annotation.optional || node.kind() == "optional_parameter" || node.child_by_field_name("value").is_some();
    Ok((parsed.text(pattern), Annotation { optional, ..annotation }))
}
