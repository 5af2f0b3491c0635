//! A source, and the function that reads it.

use crate::declaration::{Declaration, Declarations};
use crate::error::{DeclarationError, Fault, Place};
use crate::{bash, limits, python, typescript};

/// The tag of tools that a person should allow.
const GUARD: &str = "@guard";
/// The tag in Bash, whose unknown tags are errors.
const GUARD_OF_BASH: &str = "@meta guard";

/// The language of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Python: the signature and the docstring of functions.
    Python,
    /// TypeScript: the signature and the JSDoc comment of exported functions.
    TypeScript,
    /// Bash: comments with the tags of `argc`.
    Bash,
}

impl Language {
    /// The language of a file name's ending, in lower case and without the dot.
    pub fn of_ending(ending: &str) -> Option<Self> {
        match ending {
            "py" => Some(Self::Python),
            // JavaScript is TypeScript without types.
            "ts" | "js" => Some(Self::TypeScript),
            "sh" => Some(Self::Bash),
            _ => None,
        }
    }
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// A file in a folder of tools: one tool with the name of the file.
    File {
        /// The file's name without its ending.
        stem: &'a str,
    },
    /// The file `tools.*` of an agent: a tool for each function.
    Agent,
}

/// The tools of a source.
pub fn declare(language: Language, scope: Scope<'_>, source: &str) -> Result<Declarations, DeclarationError> {
    if source.len() > limits::SOURCE_BYTES_MAX {
        let detail = format!("the file has {} bytes, more than {}", source.len(), limits::SOURCE_BYTES_MAX);
        return Err(DeclarationError::new(Fault::Limit, None, detail));
    }
    let declared = match language {
        Language::Python => python::declare(scope, source)?,
        Language::TypeScript => typescript::declare(scope, source)?,
        Language::Bash => bash::declare(scope, source)?,
    };
    guarded(scope, source, check(scope, declared)?)
}

/// Adds the tools that a comment `@guard` names, or all of them if it names none. The comment is a line of its own.
fn guarded(scope: Scope<'_>, source: &str, mut declared: Declarations) -> Result<Declarations, DeclarationError> {
    for (number, line) in source.lines().enumerate() {
        let comment = line.strip_prefix('#').or_else(|| line.strip_prefix("//")).map(str::trim_start);
        let rest =
            comment.and_then(|comment| comment.strip_prefix(GUARD).or_else(|| comment.strip_prefix(GUARD_OF_BASH)));
        let Some(rest) = rest else { continue };
        if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
            continue;
        }
        let functions: Vec<&str> = match scope {
            Scope::File { .. } => Vec::new(),
            Scope::Agent => rest.split([' ', '\t', ',']).filter(|name| !name.is_empty()).collect(),
        };
        let is_meant = |tool: &&Declaration| functions.is_empty() || functions.contains(&tool.function.as_str());
        if let Some(unknown) = functions.iter().find(|name| declared.tools.iter().all(|tool| tool.function != **name)) {
            let place = Place { line: number + 1, column: 1 };
            let detail = format!("{GUARD} names \"{unknown}\", which is no tool of the file");
            return Err(DeclarationError::new(Fault::Annotation, Some(place), detail));
        }
        let names: Vec<String> = declared.tools.iter().filter(is_meant).map(|tool| tool.name.clone()).collect();
        declared.guarded.extend(names);
    }
    declared.guarded.sort_unstable();
    declared.guarded.dedup();
    Ok(declared)
}

/// Checks what all languages have in common.
fn check(scope: Scope<'_>, declared: Declarations) -> Result<Declarations, DeclarationError> {
    let refused = |fault, detail: String| Err(DeclarationError::new(fault, None, detail));
    if declared.tools.len() > limits::TOOLS_MAX {
        let count = declared.tools.len();
        return refused(Fault::Limit, format!("the file has {count} tools, more than {}", limits::TOOLS_MAX));
    }
    for Declaration { name, function, parameters, .. } in &declared.tools {
        if name.is_empty() {
            let of = match scope {
                Scope::File { stem } => format!("the file name \"{stem}\""),
                Scope::Agent => format!("the function name \"{function}\""),
            };
            return refused(Fault::Name, format!("{of} has no letter or digit of ASCII, so the tool has no name"));
        }
        if parameters.len() > limits::PARAMETERS_MAX {
            let count = parameters.len();
            let detail = format!("\"{function}\" has {count} parameters, more than {}", limits::PARAMETERS_MAX);
            return refused(Fault::Limit, detail);
        }
    }
    match (scope, declared.tools.len()) {
        (Scope::Agent, _) | (_, 1) => Ok(declared),
        (Scope::File { .. }, 0) => refused(
            Fault::Entry,
            "the file has no function to call: define \"run\" at the top level, in TypeScript as \"export function run\"".to_owned(),
        ),
        (Scope::File { .. }, count) => {
            refused(Fault::Entry, format!("the file has {count} functions to call; a file in a folder of tools has one"))
        }
    }
}

/// A name that is legal for all providers: runs of anything but ASCII letters and digits become `_`, none at either end.
pub(crate) fn snake_case(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
}
