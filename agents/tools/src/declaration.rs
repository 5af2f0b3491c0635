//! What a model is told about a tool.

use serde_json::{Map, Value, json};

/// The tools of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declarations {
    /// In the order of the source.
    pub tools: Vec<Declaration>,
    /// Whether the file has a function `_instructions`, which computes the instructions of its agent. It is never offered to a model.
    pub instructions: bool,
    /// The names of tools that a person should allow before they are called, as the source says with `@guard`.
    pub guarded: Vec<String>,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// The name for the model. Two functions of an agent can have the same; who offers them makes names unique.
    pub name: String,
    /// The function or the subcommand that is called. It can differ from `name`.
    pub function: String,
    /// Not empty.
    pub description: String,
    /// In the order of the source.
    pub parameters: Vec<Parameter>,
}

/// One parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name in the arguments of a call.
    pub name: String,
    /// Empty if the source has none.
    pub description: String,
    /// What its values are.
    pub kind: Type,
    /// Whether a call must have it.
    pub required: bool,
}

/// A type of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// The type without the restriction to `choices`.
    pub kind: Kind,
    /// The only values that are allowed, as texts; empty if all are.
    pub choices: Vec<String>,
}

/// A type of values without restriction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Also every type that is unknown here: a model can write all of them as a text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list of values of one type.
    List(Box<Type>),
}

impl Type {
    /// A text.
    pub const TEXT: Self = Self::plain(Kind::Text);

    /// A type without restriction.
    pub const fn plain(kind: Kind) -> Self {
        Self { kind, choices: Vec::new() }
    }

    /// One of some texts.
    pub fn choice(choices: Vec<String>) -> Self {
        Self { kind: Kind::Text, choices }
    }

    /// A list.
    pub fn list(of: Self) -> Self {
        Self::plain(Kind::List(Box::new(of)))
    }

    fn schema(&self, description: &str) -> Value {
        let name = match &self.kind {
            Kind::Text => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::List(_) => "array",
        };
        let mut schema = Map::from_iter([("type".to_owned(), json!(name))]);
        if !description.is_empty() {
            schema.insert("description".to_owned(), json!(description));
        }
        if let Kind::List(of) = &self.kind {
            schema.insert("items".to_owned(), of.schema(""));
        }
        if !self.choices.is_empty() {
            schema.insert("enum".to_owned(), json!(self.choices));
        }
        Value::Object(schema)
    }
}

impl Declaration {
    /// The JSON Schema of the arguments.
    pub fn schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .parameters
            .iter()
            .map(|parameter| (parameter.name.clone(), parameter.kind.schema(&parameter.description)))
            .collect();
        let required: Vec<&str> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.required)
            .map(|parameter| &parameter.name[..])
            .collect();
        json!({"type": "object", "properties": properties, "required": required})
    }

    /// The declaration as a model gets it.
    pub fn to_json(&self) -> Value {
        json!({"name": self.name, "description": self.description, "parameters": self.schema()})
    }
}
