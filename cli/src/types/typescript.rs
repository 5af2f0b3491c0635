//! Writes TypeScript.

use std::fmt::Write as _;

use serde_json::Value;

use super::naming::{comment, is_identifier, quoted};
use super::{Declared, Field, Object, Shape};

/// The longest tuple whose items are written one by one.
const ITEMS_MAX: usize = 50;

pub(super) fn write(title: &str, declared: &[Declared]) -> String {
    let mut text = format!("// {}\n", comment(title));
    for Declared { name, about, shape } in declared {
        text.push('\n');
        text.push_str(&documented(about, ""));
        match shape {
            Shape::Object(object) if !object.fields.is_empty() => {
                let _ = writeln!(text, "export interface {name} {}", members(object, ""));
            }
            shape => {
                let _ = writeln!(text, "export type {name} = {};", written(shape, ""));
            }
        }
    }
    text
}

fn documented(about: &str, indent: &str) -> String {
    match comment(about) {
        about if about.is_empty() => String::new(),
        about => format!("{indent}/** {about} */\n"),
    }
}

fn members(object: &Object, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let mut text = "{\n".to_owned();
    for Field { name, shape, required, about } in &object.fields {
        text.push_str(&documented(about, &inner));
        let name = if is_identifier(name) { name.clone() } else { quoted(name) };
        let sign = if *required { "" } else { "?" };
        let _ = writeln!(text, "{inner}{name}{sign}: {};", written(shape, &inner));
    }
    if object.rest.is_some() {
        // The members above have to be of its type, too.
        let _ = writeln!(text, "{inner}[member: string]: unknown;");
    }
    text.push_str(indent);
    text.push('}');
    text
}

fn written(shape: &Shape, indent: &str) -> String {
    match shape {
        Shape::Any => "unknown".to_owned(),
        Shape::Never => "never".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::Flag => "boolean".to_owned(),
        Shape::Integer | Shape::Number => "number".to_owned(),
        Shape::Text => "string".to_owned(),
        Shape::OneOf(values) => values.iter().map(literal).collect::<Vec<_>>().join(" | "),
        Shape::List(item) => listed(item, indent),
        Shape::Tuple(items, rest) if items.len() <= ITEMS_MAX => {
            let rest = rest.iter().map(|rest| format!("...{}", listed(rest, indent)));
            let items: Vec<String> = items.iter().map(|item| written(item, indent)).chain(rest).collect();
            format!("[{}]", items.join(", "))
        }
        Shape::Tuple(..) => "unknown[]".to_owned(),
        Shape::Object(object) if object.fields.is_empty() => {
            let rest = object.rest.as_deref().map_or_else(|| "unknown".to_owned(), |rest| written(rest, indent));
            format!("{{ [member: string]: {rest} }}")
        }
        Shape::Object(object) => members(object, indent),
        Shape::Union(shapes) => shapes.iter().map(|shape| written(shape, indent)).collect::<Vec<_>>().join(" | "),
        Shape::Named(name) => name.clone(),
    }
}

fn listed(item: &Shape, indent: &str) -> String {
    let text = written(item, indent);
    let is_several = matches!(item, Shape::Union(_)) || matches!(item, Shape::OneOf(values) if values.len() > 1);
    if is_several { format!("({text})[]") } else { format!("{text}[]") }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        value => value.to_string(),
    }
}
