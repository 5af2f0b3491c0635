//! Tools in Bash.
//!
//! Comments with tags describe a tool, in the language of the program `argc`, whose parser is used here: a file in a folder of tools is
//! one command with `@describe`; in the file of an agent, each function with `@cmd` is a tool. Options and flags are what a model
//! can give; positional arguments are for people.

use argc::{ChoiceValue, CommandValue, FlagOptionValue};

use crate::declaration::{Declaration, Declarations, Kind, Parameter, Type};
use crate::error::{DeclarationError, Fault, Place};
use crate::source::{Scope, snake_case};

const INSTRUCTIONS: &str = "_instructions";
/// The name of a file without subcommands among an agent's tools.
const AGENT: &str = "tools";

pub(crate) fn declare(scope: Scope<'_>, source: &str) -> Result<Declarations, DeclarationError> {
    let stem = match scope {
        Scope::File { stem } => stem,
        Scope::Agent => AGENT,
    };
    let command = argc::export(source, stem).map_err(|error| refused(&error.to_string()))?;
    let mut declared = Declarations::default();
    if command.subcommands.is_empty() {
        declared.tools.push(tool(&command, snake_case(stem))?);
        return Ok(declared);
    }
    if scope != Scope::Agent {
        let detail = "a file in a folder of tools is one tool: only the file of an agent has subcommands";
        return Err(DeclarationError::new(Fault::Entry, None, detail));
    }
    for command in &command.subcommands {
        declared.instructions |= command.name == INSTRUCTIONS;
        if !command.name.starts_with('_') {
            declared.tools.push(tool(command, command.name.replace('-', "_"))?);
        }
    }
    Ok(declared)
}

/// An error of the parser, which names a line in its text.
fn refused(text: &str) -> DeclarationError {
    let line = text.split_once("line ").and_then(|(_, rest)| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    });
    DeclarationError::new(Fault::Annotation, line.map(|line| Place { line, column: 1 }), text)
}

fn tool(command: &CommandValue, name: String) -> Result<Declaration, DeclarationError> {
    if command.describe.is_empty() {
        let detail = format!(
            "\"{}\" has no description: write it after @describe at the top of the file, or after @cmd of a subcommand",
            command.name
        );
        return Err(DeclarationError::new(Fault::MissingDescription, None, detail));
    }
    let options = command.flag_options.iter().filter(|option| !["help", "version"].contains(&&option.id[..]));
    let parameters = options.map(parameter).collect();
    let (function, description) = (command.name.clone(), command.describe.clone());
    Ok(Declaration { name, function, description, parameters })
}

fn parameter(option: &FlagOptionValue) -> Parameter {
    let kind = match option.notations.first().map(String::as_str) {
        _ if option.flag => Kind::Boolean,
        _ if option.multiple_occurs => Kind::List(Box::new(Type::TEXT)),
        Some("INT") => Kind::Integer,
        Some("NUM") => Kind::Number,
        _ => Kind::Text,
    };
    let choices = match &option.choice {
        Some(ChoiceValue::Values(values)) => values.clone(),
        Some(ChoiceValue::Fn(..)) | None => Vec::new(),
    };
    Parameter {
        name: option.id.replace('-', "_"),
        description: option.describe.clone(),
        kind: Type { kind, choices },
        required: option.required,
    }
}
