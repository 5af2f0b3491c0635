//! Declarations of tools, read from their source and never by running it.
//!
//! A tool is a function of a file in Python, TypeScript or Bash. [`declare`] reads the file and returns what a model is told:
//! the name of each tool, its description and the schema of its arguments (compatibility §31). The schema comes from the function's
//! signature and its documentation, in Bash from comments with tags.
//!
//! Pure. Every source is foreign text: its size, its depth and the number of its tools are limited ([`limits`]), and what is refused
//! is refused with a line and a column. This crate does not know how a tool is called; the worker does.
//!
//! ```
//! use atlas_tools::{Language, Scope, declare};
//!
//! let source = "def run(text: str, times: int = 1):\n    \"\"\"Repeats a text.\"\"\"\n    return text * times\n";
//! let declared = declare(Language::Python, Scope::File { stem: "repeat" }, source).expect("one tool");
//! let tool = &declared.tools[0];
//! assert_eq!((tool.name.as_str(), tool.description.as_str()), ("repeat", "Repeats a text."));
//! assert!(tool.parameters[0].required && !tool.parameters[1].required);
//! ```

mod bash;
mod declaration;
mod error;
pub mod limits;
mod python;
mod selection;
mod source;
mod syntax;
#[cfg(test)]
mod tests;
mod typescript;

pub use declaration::{Declaration, Declarations, Kind, Parameter, Type};
pub use error::{DeclarationError, Fault, Place};
pub use selection::offered;
pub use source::{Language, Scope, declare};
