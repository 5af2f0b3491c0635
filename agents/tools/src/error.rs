//! Why a source has no declarations.

use std::fmt;

/// Why a source was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct DeclarationError {
    /// The kind of error.
    pub fault: Fault,
    /// Where it is; none if it is in no particular place.
    pub place: Option<Place>,
    /// What is wrong, and what to write instead.
    pub detail: String,
}

/// A position in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// A kind of error. Each has a word that programs can rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The text is not a program of its language.
    Syntax,
    /// A tool has no description.
    MissingDescription,
    /// A Python function takes any number of arguments, or arguments without a name.
    VariadicOrPositionalOnly,
    /// A TypeScript function takes any number of arguments.
    Rest,
    /// A TypeScript function takes its argument apart.
    Destructured,
    /// A parameter is something else than a name.
    UnsupportedParameter,
    /// A comment with a tag is wrong.
    Annotation,
    /// A file in the folder of tools does not have exactly one function to call.
    Entry,
    /// Nothing of a name is left when it is made legal.
    Name,
    /// One of [`limits`](crate::limits) is exceeded.
    Limit,
}

impl Fault {
    /// The word of this kind.
    pub fn word(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::MissingDescription => "missing-description",
            Self::VariadicOrPositionalOnly => "variadic-or-positional-only",
            Self::Rest => "rest",
            Self::Destructured => "destructured",
            Self::UnsupportedParameter => "unsupported-parameter",
            Self::Annotation => "annotation",
            Self::Entry => "entry",
            Self::Name => "name",
            Self::Limit => "limit",
        }
    }
}

impl DeclarationError {
    pub(crate) fn new(fault: Fault, place: Option<Place>, detail: impl Into<String>) -> Self {
        Self { fault, place, detail: detail.into() }
    }
}

impl fmt::Display for DeclarationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { line, column }) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        write!(f, "{}", self.detail)
    }
}
