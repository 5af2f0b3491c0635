//! Makes shapes of a JSON Schema.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::naming::{Names, pascal};
use super::{Declared, Field, Object, Shape};

/// How many schemas inside of each other are read; what is deeper can be anything.
const DEPTH_MAX: usize = 32;

/// How many schemas are read in all, because a short document can refer to its parts any number of times.
const SCHEMAS_MAX: usize = 4_096;

/// How many values of an `enum` a type lists; a longer one is the type of its values.
const VALUES_MAX: usize = 100;

/// Keywords that say of what type a value is.
const TELLING: [&str; 14] = [
    "$ref",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "items",
    "prefixItems",
    "allOf",
    "anyOf",
    "oneOf",
    "nullable",
];

/// The text about a schema.
pub(super) fn about(schema: &Value) -> String {
    let text = |key: &str| schema[key].as_str().filter(|text| !text.trim().is_empty());
    text("description").or_else(|| text("title")).unwrap_or_default().to_owned()
}

/// Reads one document.
pub(super) struct Reader<'a> {
    document: &'a Value,
    name: String,
    names: &'a mut Names,
    /// The names of the parts that are referred to, by their pointers.
    parts: BTreeMap<String, String>,
    declared: Vec<Declared>,
    left: usize,
}

impl<'a> Reader<'a> {
    /// A reader of a document, whose type has this name.
    pub(super) fn new(document: &'a Value, name: &str, names: &'a mut Names) -> Self {
        Self { document, name: name.to_owned(), names, parts: BTreeMap::new(), declared: Vec::new(), left: SCHEMAS_MAX }
    }

    /// The shape of the document.
    pub(super) fn root(&mut self) -> Shape {
        self.shape(self.document, 0)
    }

    /// The types of the parts that the document refers to.
    pub(super) fn declared(self) -> Vec<Declared> {
        self.declared
    }

    fn shape(&mut self, schema: &'a Value, depth: usize) -> Shape {
        match schema {
            Value::Bool(false) => Shape::Never,
            Value::Object(schema) if depth < DEPTH_MAX && self.left > 0 => {
                self.left -= 1;
                let shape = self.of(schema, depth);
                if schema.get("nullable") == Some(&Value::Bool(true)) { union(vec![shape, Shape::Null]) } else { shape }
            }
            _ => Shape::Any,
        }
    }

    fn of(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Shape {
        if let Some(pointer) = reference(schema) {
            return self.part(pointer, depth);
        }
        let mut shape = self.own(schema, depth);
        for branch in schema.get("allOf").and_then(Value::as_array).into_iter().flatten().filter(|branch| tells(branch))
        {
            let branch = self.opened(branch, depth);
            shape = both(shape, branch);
        }
        for key in ["anyOf", "oneOf"] {
            // Branches such as {"required": ["a"]} say which members an object has, not of what type it is.
            let branches = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            let branches: Vec<&Value> = branches.filter(|branch| tells(branch) && !only_requires(branch)).collect();
            if branches.is_empty() {
                continue;
            }
            let is_object = matches!(&shape, Shape::Object(_));
            let mut shapes = Vec::new();
            for branch in branches {
                shapes.push(match is_object {
                    true => both(shape.clone(), self.opened(branch, depth)),
                    false => self.shape(branch, depth + 1),
                });
            }
            shape = both(if is_object { Shape::Any } else { shape }, union(shapes));
        }
        shape
    }

    /// The shape that a schema's own keywords say.
    fn own(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Shape {
        if let Some(value) = schema.get("const") {
            return values(&[value]);
        }
        if let Some(listed) = schema.get("enum").and_then(Value::as_array) {
            return values(&listed.iter().collect::<Vec<_>>());
        }
        let has = |keys: &[&str]| keys.iter().any(|key| schema.contains_key(*key));
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(word)) => vec![word],
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
            _ if has(&["properties", "required", "additionalProperties", "patternProperties"]) => vec!["object"],
            _ if has(&["items", "prefixItems"]) => vec!["array"],
            _ => return Shape::Any,
        };
        union(types.into_iter().map(|word| self.typed(word, schema, depth)).collect())
    }

    fn typed(&mut self, word: &str, schema: &'a Map<String, Value>, depth: usize) -> Shape {
        match word {
            "null" => Shape::Null,
            "boolean" => Shape::Flag,
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "string" => Shape::Text,
            "array" => self.list(schema, depth),
            "object" => Shape::Object(self.object(schema, depth)),
            _ => Shape::Any,
        }
    }

    fn list(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Shape {
        // Before 2020-12, `items` was a list for what `prefixItems` is now, and `additionalItems` was for the rest.
        let listed = schema.get("prefixItems").or_else(|| schema.get("items").filter(|items| items.is_array()));
        let Some(first) = listed.and_then(Value::as_array) else {
            let item = schema.get("items").map_or(Shape::Any, |item| self.shape(item, depth + 1));
            return Shape::List(Box::new(item));
        };
        let first: Vec<Shape> = first.iter().map(|item| self.shape(item, depth + 1)).collect();
        let rest = schema.get("items").filter(|items| !items.is_array()).or_else(|| schema.get("additionalItems"));
        let rest = match rest {
            Some(Value::Bool(false)) => None,
            Some(rest) => Some(self.shape(rest, depth + 1)),
            None => Some(Shape::Any),
        };
        // A value may have fewer items unless the schema says otherwise.
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if least >= first.len() as u64 {
            return Shape::Tuple(first, rest.map(Box::new));
        }
        Shape::List(Box::new(union(first.into_iter().chain(rest).collect())))
    }

    fn object(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Object {
        let required: BTreeSet<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut fields = Vec::new();
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let shape = self.shape(member, depth + 1);
            let required = required.contains(name.as_str());
            fields.push(Field { name: name.clone(), shape, required, about: about(member) });
        }
        let named: BTreeSet<String> = fields.iter().map(|field| field.name.clone()).collect();
        for name in required.into_iter().filter(|name| !named.contains(*name)) {
            fields.push(Field { name: name.to_owned(), shape: Shape::Any, required: true, about: String::new() });
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        let mut rest: Vec<Shape> = patterns.map(|(_, member)| self.shape(member, depth + 1)).collect();
        match schema.get("additionalProperties") {
            Some(Value::Bool(_)) => {}
            Some(member) => rest.push(self.shape(member, depth + 1)),
            // Anything else is allowed, but a type that says so would find no misspelt member.
            None => {}
        }
        Object { fields, rest: (!rest.is_empty()).then(|| Box::new(union(rest))) }
    }

    /// A part of the document that a schema refers to.
    fn part(&mut self, pointer: &'a str, depth: usize) -> Shape {
        let Some(schema) = self.at(pointer) else { return Shape::Any };
        if pointer.is_empty() {
            return Shape::Named(self.name.clone());
        }
        if let Some(name) = self.parts.get(pointer) {
            return Shape::Named(name.clone());
        }
        let name = self.names.take(&pascal(pointer.rsplit('/').next().unwrap_or_default()));
        self.parts.insert(pointer.to_owned(), name.clone());
        // Its place is that of the first reference.
        let place = self.declared.len();
        self.declared.push(Declared { name: name.clone(), about: about(schema), shape: Shape::Any });
        let shape = self.shape(schema, depth + 1);
        // A part that is only another name of itself has no type.
        let is_itself = shape == Shape::Named(name.clone());
        if let Some(declared) = self.declared.get_mut(place).filter(|_| !is_itself) {
            declared.shape = shape;
        }
        Shape::Named(name)
    }

    /// A branch that is merged with others, which needs its members and not its name.
    fn opened(&mut self, schema: &'a Value, depth: usize) -> Shape {
        let target = schema.as_object().and_then(reference).and_then(|pointer| self.at(pointer));
        match target {
            Some(target) if depth < DEPTH_MAX && self.left > 0 => {
                self.left -= 1;
                self.opened(target, depth + 1)
            }
            _ => self.shape(schema, depth + 1),
        }
    }

    fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.document.pointer(pointer)
    }
}

/// The pointer of a reference inside of the document; others cannot be followed.
fn reference(schema: &Map<String, Value>) -> Option<&str> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    (pointer.is_empty() || pointer.starts_with('/')).then_some(pointer)
}

fn tells(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => TELLING.iter().any(|key| members.contains_key(*key)),
        _ => schema == &Value::Bool(false),
    }
}

fn only_requires(schema: &Value) -> bool {
    let telling = |members: &Map<String, Value>| {
        TELLING.iter().filter(|key| members.contains_key(**key)).all(|key| *key == "required")
    };
    schema.as_object().is_some_and(telling)
}

/// The type of these values.
fn values(values: &[&Value]) -> Shape {
    let is_plain = values.iter().all(|value| !value.is_array() && !value.is_object());
    if is_plain && !values.is_empty() && values.len() <= VALUES_MAX {
        return union(vec![Shape::OneOf(values.iter().map(|value| (*value).clone()).collect())]);
    }
    let kinds = values.iter().map(|value| match value {
        Value::Null => Shape::Null,
        Value::Bool(_) => Shape::Flag,
        Value::Number(number) if number.is_f64() => Shape::Number,
        Value::Number(_) => Shape::Integer,
        Value::String(_) => Shape::Text,
        Value::Array(_) => Shape::List(Box::new(Shape::Any)),
        Value::Object(_) => Shape::Object(Object { fields: Vec::new(), rest: Some(Box::new(Shape::Any)) }),
    });
    union(kinds.collect())
}

/// One of several shapes.
pub(super) fn union(shapes: Vec<Shape>) -> Shape {
    let mut all: Vec<Shape> = Vec::new();
    let flat = shapes.into_iter().flat_map(|shape| match shape {
        Shape::Union(shapes) => shapes,
        shape => vec![shape],
    });
    let mut listed: Vec<Value> = Vec::new();
    for shape in flat {
        match shape {
            Shape::Any => return Shape::Any,
            Shape::Never => {}
            Shape::OneOf(values) => {
                for value in values {
                    if !listed.contains(&value) {
                        listed.push(value);
                    }
                }
            }
            shape if all.contains(&shape) => {}
            shape => all.push(shape),
        }
    }
    if !listed.is_empty() {
        all.insert(0, Shape::OneOf(listed));
    }
    // A number is an integer as well.
    if all.contains(&Shape::Number) {
        all.retain(|shape| *shape != Shape::Integer);
    }
    match all.len() {
        0 => Shape::Never,
        1 => all.remove(0),
        _ => Shape::Union(all),
    }
}

/// What is of both shapes, as far as a type can say it: the members of both objects, or else the one that says more.
fn both(one: Shape, other: Shape) -> Shape {
    match (one, other) {
        (Shape::Any, shape) | (shape, Shape::Any) => shape,
        (Shape::Never, _) | (_, Shape::Never) => Shape::Never,
        (Shape::Object(one), Shape::Object(other)) => Shape::Object(merged(one, other)),
        (Shape::Number, Shape::Integer) => Shape::Integer,
        (Shape::Object(one), Shape::Union(shapes)) | (Shape::Union(shapes), Shape::Object(one)) => {
            union(shapes.into_iter().map(|shape| both(Shape::Object(one.clone()), shape)).collect())
        }
        // Of what is not an object, the later one is usually the more precise one.
        (_, other) => other,
    }
}

fn merged(mut one: Object, other: Object) -> Object {
    for field in other.fields {
        match one.fields.iter_mut().find(|known| known.name == field.name) {
            Some(known) => {
                known.required |= field.required;
                known.shape = both(std::mem::replace(&mut known.shape, Shape::Any), field.shape);
                if known.about.is_empty() {
                    known.about = field.about;
                }
            }
            None => one.fields.push(field),
        }
    }
    one.rest = one.rest.or(other.rest);
    one
}
