//! Writes Python: each object is a class of the kind `TypedDict`.

use std::fmt::Write as _;

use serde_json::Value;

use super::naming::{Names, comment, is_identifier, pascal, quoted};
use super::read::union;
use super::{Declared, Field, Object, Shape};

/// Words that no field of a class can have as its name.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Names of types in annotations, which a field of the same class would hide.
const TYPES: [&str; 11] =
    ["Any", "Literal", "Never", "NotRequired", "TypedDict", "bool", "dict", "float", "int", "list", "str"];

/// How many classes are made of objects inside of others; what is left is a dictionary.
const CLASSES_MAX: usize = 1_000;

pub(super) fn write(title: &str, declared: &[Declared], names: &mut Names) -> String {
    let mut all = Vec::new();
    for declared in declared {
        let mut nested = Vec::new();
        let shape = match &declared.shape {
            Shape::Object(object) if !object.fields.is_empty() => {
                Shape::Object(apart(object, &declared.name, names, &mut nested))
            }
            shape => without_objects(shape, &declared.name, names, &mut nested),
        };
        all.extend(nested);
        all.push(Declared { shape, ..declared.clone() });
    }
    let mut text = format!("# {}\n\nfrom __future__ import annotations\n\n", comment(title));
    text.push_str("from typing import Any, Literal, Never, NotRequired, TypeAlias, TypedDict\n");
    for declared in &all {
        text.push_str("\n\n");
        text.push_str(&documented(&declared.about, ""));
        text.push_str(&declaration(&declared.name, &declared.shape));
    }
    text
}

fn documented(about: &str, indent: &str) -> String {
    match comment(about) {
        about if about.is_empty() => String::new(),
        about => format!("{indent}# {about}\n"),
    }
}

/// The same object with names in place of the objects inside of it, which become classes of their own.
fn apart(object: &Object, name: &str, names: &mut Names, nested: &mut Vec<Declared>) -> Object {
    let mut fields = Vec::new();
    for field in &object.fields {
        let shape = without_objects(&field.shape, &format!("{name}{}", pascal(&field.name)), names, nested);
        fields.push(Field { shape, ..field.clone() });
    }
    Object { fields, rest: object.rest.clone() }
}

fn without_objects(shape: &Shape, name: &str, names: &mut Names, nested: &mut Vec<Declared>) -> Shape {
    match shape {
        Shape::Object(object) if object.fields.is_empty() => {
            let rest = object
                .rest
                .as_deref()
                .map(|rest| Box::new(without_objects(rest, &format!("{name}Value"), names, nested)));
            Shape::Object(Object { fields: Vec::new(), rest })
        }
        Shape::Object(_) if nested.len() >= CLASSES_MAX => Shape::Object(Object::default()),
        Shape::Object(object) => {
            let name = names.take(name);
            let object = apart(object, &name, names, nested);
            nested.push(Declared { name: name.clone(), about: String::new(), shape: Shape::Object(object) });
            Shape::Named(name)
        }
        Shape::List(item) => Shape::List(Box::new(without_objects(item, &format!("{name}Item"), names, nested))),
        // A list of JSON is a list, and never a tuple.
        Shape::Tuple(items, rest) => {
            let items: Vec<Shape> = items.iter().chain(rest.as_deref()).cloned().collect();
            without_objects(&Shape::List(Box::new(union(items))), name, names, nested)
        }
        Shape::Union(shapes) => {
            Shape::Union(shapes.iter().map(|shape| without_objects(shape, name, names, nested)).collect())
        }
        shape => shape.clone(),
    }
}

fn declaration(name: &str, shape: &Shape) -> String {
    let Shape::Object(object) = shape else {
        // A text, because the types in it may be declared below.
        return format!("{name}: TypeAlias = {}\n", quoted(&written(shape)));
    };
    if object.fields.is_empty() {
        return format!("{name}: TypeAlias = {}\n", quoted(&written(shape)));
    }
    let is_plain = |field: &Field| {
        let name = field.name.as_str();
        // A name with two underscores would get that of the class in front.
        is_identifier(name) && !KEYWORDS.contains(&name) && !TYPES.contains(&name) && !name.starts_with("__")
    };
    if !object.fields.iter().all(is_plain) {
        return called(name, object);
    }
    let mut text = format!("class {name}(TypedDict):\n");
    for field in &object.fields {
        text.push_str(&documented(&field.about, "    "));
        let _ = writeln!(text, "    {}: {}", field.name, typed(field));
    }
    text
}

/// A class with fields that are no names in Python.
fn called(name: &str, object: &Object) -> String {
    let mut text = format!("{name} = TypedDict(\n    {},\n    {{\n", quoted(name));
    for field in &object.fields {
        text.push_str(&documented(&field.about, "        "));
        let _ = writeln!(text, "        {}: {},", quoted(&field.name), quoted(&typed(field)));
    }
    text.push_str("    },\n)\n");
    text
}

fn typed(field: &Field) -> String {
    let text = written(&field.shape);
    if field.required { text } else { format!("NotRequired[{text}]") }
}

fn written(shape: &Shape) -> String {
    match shape {
        Shape::Any => "Any".to_owned(),
        Shape::Never => "Never".to_owned(),
        Shape::Null => "None".to_owned(),
        Shape::Flag => "bool".to_owned(),
        Shape::Integer => "int".to_owned(),
        Shape::Number => "float".to_owned(),
        Shape::Text => "str".to_owned(),
        Shape::OneOf(values) => one_of(values),
        Shape::List(item) => format!("list[{}]", written(item)),
        Shape::Tuple(..) => "list[Any]".to_owned(),
        Shape::Object(object) => {
            let rest = object.rest.as_deref().filter(|_| object.fields.is_empty());
            format!("dict[str, {}]", rest.map_or_else(|| "Any".to_owned(), written))
        }
        Shape::Union(shapes) => shapes.iter().map(written).collect::<Vec<_>>().join(" | "),
        Shape::Named(name) => name.clone(),
    }
}

/// Literals, where Python has them: not of numbers with a fraction.
fn one_of(values: &[Value]) -> String {
    let literals: Vec<String> = values.iter().filter_map(literal).collect();
    let has_fractions = literals.len() < values.len();
    let listed = (!literals.is_empty()).then(|| format!("Literal[{}]", literals.join(", ")));
    let parts: Vec<String> = listed.into_iter().chain(has_fractions.then(|| "float".to_owned())).collect();
    parts.join(" | ")
}

fn literal(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => "None".to_owned(),
        Value::Bool(flag) => if *flag { "True" } else { "False" }.to_owned(),
        Value::String(text) => quoted(text),
        Value::Number(number) if !number.is_f64() => number.to_string(),
        _ => return None,
    })
}
