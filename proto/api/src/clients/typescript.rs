//! The files of the client for TypeScript and JavaScript.

use std::fmt::Write as _;

use super::forms::{Form, Member, form};
use super::methods::{self, Method, Outcome, is_repeatable};
use super::{GENERATED, camel};
use crate::operations::operation::{Kind, Parameter, ParameterLocation};
use crate::types::schemas;

pub(super) fn codes() -> String {
    let mut text = format!("// {GENERATED}\n\n/** Title, kind and whether a repeat may succeed, by code. */\n");
    text.push_str("export const CODES = {\n");
    for (code, title, kind, passes) in super::codes() {
        writeln!(text, "  {code}: [\"{title}\", \"{kind}\", {passes}],").expect("text grows");
    }
    text.push_str("};\n");
    text
}

pub(super) fn types() -> String {
    let mut text = format!("// {GENERATED}\n// Objects keep members that are not listed here.\n");
    for (name, schema) in schemas() {
        let says = schema["description"].as_str().unwrap_or_default();
        text.push('\n');
        comment(says, "", &mut text);
        match form(schema) {
            Form::Object(of) => writeln!(text, "export interface {name} {}", members(&of, "")).expect("text grows"),
            other => writeln!(text, "export type {name} = {};", shown(&other, "")).expect("text grows"),
        }
    }
    text
}

fn comment(says: &str, indent: &str, text: &mut String) {
    if !says.is_empty() {
        writeln!(text, "{indent}/** {} */", says.replace("*/", "* /")).expect("text grows");
    }
}

fn members(members: &[Member], indent: &str) -> String {
    let mut text = "{\n".to_owned();
    let inner = format!("{indent}  ");
    for member in members {
        comment(&member.says, &inner, &mut text);
        let mark = if member.is_required { "" } else { "?" };
        writeln!(text, "{inner}{}{mark}: {};", member.name, shown(&member.form, &inner)).expect("text grows");
    }
    write!(text, "{indent}}}").expect("text grows");
    text
}

fn shown(form: &Form, indent: &str) -> String {
    match form {
        Form::Unknown => "unknown".to_owned(),
        Form::Null => "null".to_owned(),
        Form::Boolean => "boolean".to_owned(),
        Form::Whole | Form::Number => "number".to_owned(),
        Form::Text => "string".to_owned(),
        Form::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            // Newer servers may have other words.
            format!("{} | (string & {{}})", words.join(" | "))
        }
        Form::Named(name) => name.clone(),
        Form::List(item) => format!("Array<{}>", shown(item, indent)),
        Form::Map(value) => format!("Record<string, {}>", shown(value, indent)),
        Form::Object(of) => members(of, indent),
        Form::Any(forms) => {
            let mut parts: Vec<String> = forms.iter().map(|form| shown(form, indent)).collect();
            parts.dedup();
            parts.join(" | ")
        }
    }
}

pub(super) fn declarations() -> String {
    let mut text = format!("// {GENERATED}\n\nimport type * as t from \"./types.js\";\n");
    text.push_str("import type { Bytes, CallOptions, Calls, Events } from \"./calls.js\";\n\n");
    text.push_str("/** Every operation of the interface. */\nexport class Operations extends Calls {\n");
    for method in methods::all() {
        declare(&method, &mut text);
    }
    text.push_str("}\n");
    text
}

fn declare(method: &Method, text: &mut String) {
    comment(&method.says(), "  ", text);
    let mut arguments: Vec<String> = method.names.iter().map(|name| format!("{}: string", camel(name))).collect();
    if let Some((name, may_be_missing)) = method.body() {
        arguments.push(format!("body{}: t.{name}", if may_be_missing { "?" } else { "" }));
    } else if method.takes_package() {
        arguments.push("body: Uint8Array".to_owned());
    }
    let mut options = String::new();
    for parameter in &method.parameters {
        comment(parameter.says, "      ", &mut options);
        writeln!(options, "      {}?: {};", camel(parameter.name), kind(parameter)).expect("text grows");
    }
    let options =
        if options.is_empty() { "CallOptions".to_owned() } else { format!("CallOptions & {{\n{options}    }}") };
    arguments.push(format!("options?: {options}"));
    let outcome = match &method.result {
        Outcome::Json(kinds) => format!("Promise<{}>", json(kinds)),
        Outcome::Text => "Promise<string>".to_owned(),
        Outcome::Bytes => "Bytes".to_owned(),
        Outcome::Events(name) => format!("Events<t.{name}>"),
    };
    let arguments: String = arguments.iter().map(|argument| format!("    {argument},\n")).collect();
    writeln!(text, "  {}(\n{arguments}  ): {outcome};", method.name).expect("text grows");
}

pub(super) fn operations() -> String {
    let mut text = format!("// {GENERATED}\n\nimport {{ Calls }} from \"./calls.js\";\n\n");
    text.push_str("/** Every operation of the interface. */\nexport class Operations extends Calls {\n");
    for (at, method) in methods::all().iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        define(method, &mut text);
    }
    text.push_str("}\n");
    text
}

fn define(method: &Method, text: &mut String) {
    let mut arguments: Vec<String> = method.names.iter().map(|name| camel(name)).collect();
    let has_body = method.body().is_some() || method.takes_package();
    if has_body {
        arguments.push("body".to_owned());
    }
    arguments.push("options = {}".to_owned());
    let verb = match &method.result {
        Outcome::Json(_) => "json",
        Outcome::Text => "text",
        Outcome::Bytes => "bytes",
        Outcome::Events(_) => "stream",
    };
    let pairs = |place: ParameterLocation| {
        let here = method.parameters.iter().filter(|parameter| parameter.place == place);
        let pair = |parameter: &&&Parameter| {
            let name = if parameter.name.contains('-') {
                format!("\"{}\"", parameter.name)
            } else {
                parameter.name.to_owned()
            };
            format!("{name}: options.{}", camel(parameter.name))
        };
        here.map(|parameter| pair(&parameter)).collect::<Vec<_>>().join(", ")
    };
    let names: Vec<String> = method
        .names
        .iter()
        .map(|name| if camel(name) == **name { (*name).to_owned() } else { format!("{name}: {}", camel(name)) })
        .collect();
    let object = |inner: &str| if inner.is_empty() { "{}".to_owned() } else { format!("{{ {inner} }}") };
    writeln!(text, "  {}({}) {{", method.name, arguments.join(", ")).expect("text grows");
    writeln!(text, "    return this._{verb}(\n      \"{}\",\n      \"{}\",", method.row.verb.as_str(), method.row.path)
        .expect("text grows");
    for inner in [names.join(", "), pairs(ParameterLocation::Query), pairs(ParameterLocation::Header)] {
        writeln!(text, "      {},", object(&inner)).expect("text grows");
    }
    let body = if has_body { "body" } else { "undefined" };
    writeln!(text, "      {body},\n      options,\n    );\n  }}").expect("text grows");
}

fn json(kinds: &[(String, bool)]) -> String {
    let one =
        |(name, is_list): &(String, bool)| if *is_list { format!("Array<t.{name}>") } else { format!("t.{name}") };
    kinds.iter().map(one).collect::<Vec<_>>().join(" | ")
}

fn kind(parameter: &Parameter) -> String {
    match parameter.kind {
        Kind::Text if is_repeatable(parameter) => "string | string[]".to_owned(),
        Kind::Text | Kind::Key | Kind::Lenient => "string".to_owned(),
        Kind::Whole | Kind::Limit | Kind::Number => "number".to_owned(),
        Kind::Word(["true", "false"]) => "boolean".to_owned(),
        Kind::Word(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" | "),
    }
}
