//! Tools in Python.
//!
//! A tool is a function at the top level of the file. Its description is its docstring, its parameters are those of the signature,
//! and the section `Args:` of the docstring describes them.

mod annotation;
mod docstring;

use tree_sitter::Node;

use crate::declaration::{Declaration, Declarations, Parameter, Type};
use crate::error::{DeclarationError, Fault};
use crate::source::{Scope, snake_case};
use crate::syntax::{Parsed, children};
use annotation::Annotation;

const ENTRY: &str = "run";
const INSTRUCTIONS: &str = "_instructions";

pub(crate) fn declare(scope: Scope<'_>, source: &str) -> Result<Declarations, DeclarationError> {
    let parsed = Parsed::new(&tree_sitter_python::LANGUAGE.into(), source)?;
    let mut declared = Declarations::default();
    for function in children(parsed.root()).into_iter().filter_map(function) {
        let name = function.child_by_field_name("name").map(|name| parsed.text(name)).unwrap_or_default();
        declared.instructions |= name == INSTRUCTIONS;
        match scope {
            Scope::File { stem } if name == ENTRY => declared.tools.push(tool(&parsed, function, name, stem)?),
            Scope::Agent if !name.starts_with('_') => declared.tools.push(tool(&parsed, function, name, name)?),
            _ => {}
        }
    }
    Ok(declared)
}

/// The function of a statement, also below its decorators.
fn function(statement: Node<'_>) -> Option<Node<'_>> {
    match statement.kind() {
        "function_definition" => Some(statement),
        "decorated_definition" => {
            statement.child_by_field_name("definition").filter(|definition| definition.kind() == "function_definition")
        }
        _ => None,
    }
}

fn tool(parsed: &Parsed<'_>, node: Node<'_>, function: &str, named: &str) -> Result<Declaration, DeclarationError> {
    let docstring = docstring::of(parsed, node).unwrap_or_default();
    let arguments = docstring::arguments(docstring);
    let mut parameters: Vec<Parameter> = Vec::new();
    let list = node.child_by_field_name("parameters").map(children).unwrap_or_default();
    for node in list {
        let Some(Found { name, annotation, default }) = parameter(parsed, node)? else { continue };
        if parameters.iter().any(|other| other.name == name) {
            return Err(parsed.refused(Fault::Syntax, node, format!("the parameter \"{name}\" exists twice")));
        }
        let said = arguments.iter().rev().find(|said| said.name == name);
        let Annotation { kind, optional } = match annotation {
            Some(node) => annotation::read(parsed, node)?,
            None => said.map(|said| said.annotation()).unwrap_or(Annotation::required(Type::TEXT)),
        };
        let optional = optional || default || said.is_some_and(|said| said.is_optional());
        let description = said.map(|said| said.text.to_owned()).unwrap_or_default();
        parameters.push(Parameter { name: name.to_owned(), description, kind, required: !optional });
    }
    let description = docstring.trim().to_owned();
    if description.is_empty() {
        let detail = format!("\"{function}\" has no description: begin it with a docstring");
        return Err(parsed.refused(Fault::MissingDescription, node, detail));
    }
    Ok(Declaration { name: snake_case(named), function: function.to_owned(), description, parameters })
}

/// A parameter in a signature.
struct Found<'t, 's> {
    name: &'s str,
    annotation: Option<Node<'t>>,
    default: bool,
}

/// The parameter of a node; none if it is the marker of parameters with keywords.
fn parameter<'t, 's>(parsed: &Parsed<'s>, node: Node<'t>) -> Result<Option<Found<'t, 's>>, DeclarationError> {
    let (name, default) = match node.kind() {
        "keyword_separator" => return Ok(None),
        "identifier" => (Some(node), false),
        "typed_parameter" => (children(node).into_iter().next(), false),
        "default_parameter" | "typed_default_parameter" => (node.child_by_field_name("name"), true),
        _ => (Some(node), false),
    };
    let name = name.unwrap_or(node);
    match name.kind() {
        "identifier" => {
            Ok(Some(Found { name: parsed.text(name), annotation: node.child_by_field_name("type"), default }))
        }
        "list_splat_pattern" | "dictionary_splat_pattern" | "positional_separator" => Err(parsed.refused(
            Fault::VariadicOrPositionalOnly,
            node,
            "tools are called with arguments that have names: replace \"*args\", \"**kwargs\" and \"/\" by parameters",
        )),
        _ => Err(parsed.refused(Fault::UnsupportedParameter, node, format!("\"{}\" is not a name", parsed.text(name)))),
    }
}
