//! Types of programming languages, made from JSON Schemas: what an agent takes and gives.
//!
//! [`read`](read::Reader) makes shapes of schemas, which a language then writes. A schema says more than a type can, such as ranges and
//! patterns; that is left to the checks of the platform.

mod naming;
mod python;
mod read;
mod typescript;

use serde_json::Value;

/// A language of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    /// TypeScript: interfaces.
    Ts,
    /// Python: classes of the kind TypedDict.
    Python,
}

/// A type, as a program can state it.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Any,
    Never,
    Null,
    Flag,
    Integer,
    Number,
    Text,
    /// One of these values, which are neither lists nor objects.
    OneOf(Vec<Value>),
    List(Box<Shape>),
    /// A list with these items, and perhaps more.
    Tuple(Vec<Shape>, Option<Box<Shape>>),
    Object(Object),
    Union(Vec<Shape>),
    /// A declared type.
    Named(String),
}

/// The members of an object.
#[derive(Debug, Clone, Default, PartialEq)]
struct Object {
    fields: Vec<Field>,
    /// The type of all other members, if the schema has one.
    rest: Option<Box<Shape>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Field {
    name: String,
    shape: Shape,
    required: bool,
    about: String,
}

/// A type with a name.
#[derive(Debug, Clone, PartialEq)]
struct Declared {
    name: String,
    about: String,
    shape: Shape,
}

/// The text of the types of two schemas. `prefix` comes before the names `Input` and `Output`, and `title` says whose types they are.
pub(crate) fn written(language: Language, title: &str, prefix: &str, input: &Value, output: &Value) -> String {
    let mut names = naming::Names::default();
    let prefix = naming::pascal(prefix);
    let roots = [(names.take(&format!("{prefix}Input")), input), (names.take(&format!("{prefix}Output")), output)];
    let mut declared = Vec::new();
    for (name, schema) in roots {
        let mut reader = read::Reader::new(schema, &name, &mut names);
        let shape = reader.root();
        let about = read::about(schema);
        declared.push(Declared { name, about, shape });
        declared.extend(reader.declared());
    }
    match language {
        Language::Ts => typescript::write(title, &declared),
        Language::Python => python::write(title, &declared, &mut names),
    }
}

#[cfg(test)]
mod tests;
