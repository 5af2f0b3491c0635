//! The methods of a client, from the rows.

use crate::operations::operation::{Body, Content, Operation, Parameter};
use crate::operations::operations;

/// One method.
pub(super) struct Method {
    /// As the row has it, `getJob`.
    pub(super) name: String,
    pub(super) row: &'static Operation,
    /// The names in the path.
    pub(super) names: Vec<&'static str>,
    pub(super) parameters: Vec<&'static Parameter>,
    pub(super) result: Outcome,
}

/// What a method returns.
pub(super) enum Outcome {
    /// One of these; each with whether it is a list of them.
    Json(Vec<(String, bool)>),
    Text,
    /// Bytes, piece by piece.
    Bytes,
    /// Events with data of a type.
    Events(String),
}

/// The methods of all operations. One that has JSON and a stream becomes two.
pub(super) fn all() -> Vec<Method> {
    operations().flat_map(of).collect()
}

fn of(row: &'static Operation) -> Vec<Method> {
    let (mut json, mut events, mut other) = (Vec::new(), None, None);
    for content in row.successes.iter().flat_map(|success| success.contents) {
        match content {
            Content::Json(shape) => json.push((shape.name().into_owned(), false)),
            Content::List(shape) => json.push((shape.name().into_owned(), true)),
            Content::Events(shape) => events = Some(shape.name().into_owned()),
            Content::Other(kind) => other = Some(*kind),
        }
    }
    json.dedup();
    let name = row.id.name();
    let streamed = if json.is_empty() { name.to_owned() } else { format!("stream{}", super::pascal(name)) };
    let mut methods = Vec::new();
    if let Some(kind) = other {
        let is_text = kind.contains("text");
        methods.push(method(name.to_owned(), row, if is_text { Outcome::Text } else { Outcome::Bytes }));
    }
    if !json.is_empty() {
        methods.push(method(name.to_owned(), row, Outcome::Json(json)));
    }
    if let Some(events) = events {
        methods.push(method(streamed, row, Outcome::Events(events)));
    }
    methods
}

fn method(name: String, row: &'static Operation, result: Outcome) -> Method {
    Method { name, row, names: row.path_parameters().collect(), parameters: row.parameters().collect(), result }
}

impl Method {
    /// One sentence on what it does, and the right that it needs.
    pub(super) fn says(&self) -> String {
        format!("{} Needs the right `{}`.", self.row.says, self.row.right.as_str())
    }

    /// The type of its body and whether it may be missing; none if it has no JSON.
    pub(super) fn body(&self) -> Option<(String, bool)> {
        match self.row.body {
            Body::Json(shape) => Some((shape.name().into_owned(), false)),
            Body::MaybeJson(shape) => Some((shape.name().into_owned(), true)),
            Body::None | Body::Package => None,
        }
    }

    /// Whether its body is a package.
    pub(super) fn takes_package(&self) -> bool {
        matches!(self.row.body, Body::Package)
    }
}

/// Whether a parameter may be given several times.
pub(super) fn is_repeatable(parameter: &Parameter) -> bool {
    parameter.says.ends_with("repeatable")
}
