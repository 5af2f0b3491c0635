//! The files of the client for Python.

use std::fmt::Write as _;

use super::forms::{Form, Member, form};
use super::methods::{self, Method, Outcome, is_repeatable};
use super::{GENERATED, pascal, snake};
use crate::operations::operation::{Kind, Parameter, ParameterLocation};
use crate::types::schemas;

/// Words that cannot be the name of a member of a class.
const KEYWORDS: &[&str] = &["from", "class", "import", "global", "in", "is", "not", "or", "and", "with", "as", "pass"];

pub(super) fn codes() -> String {
    let mut text = format!("\"\"\"{GENERATED}\"\"\"\n\n#: Title, kind and whether a repeat may succeed, by code.\n");
    text.push_str("CODES: dict[str, tuple[str, str, bool]] = {\n");
    for (code, title, kind, passes) in super::codes() {
        let passes = if passes { "True" } else { "False" };
        writeln!(text, "    \"{code}\": (\"{title}\", \"{kind}\", {passes}),").expect("text grows");
    }
    text.push_str("}\n");
    text
}

pub(super) fn types() -> String {
    let mut text = format!("\"\"\"{GENERATED}\n\nObjects keep members that are not listed here.\"\"\"\n\n");
    text.push_str("from __future__ import annotations\n\nfrom typing import Any, TypedDict, Union\n");
    for (name, schema) in schemas() {
        let says = schema["description"].as_str().unwrap_or_default();
        match form(schema) {
            Form::Object(members) => class(name, says, &members, &mut text),
            other => {
                let shown = shown(&other, name, &mut text);
                write!(text, "\n\n#: {says}\n{name} = {}\n", alias(&shown)).expect("text grows");
            }
        }
    }
    text
}

/// A type that is evaluated: an alternative is written as older versions of Python read it.
fn alias(shown: &str) -> String {
    let parts: Vec<String> = shown.split(" | ").map(|part| format!("\"{part}\"")).collect();
    if parts.len() == 1 { shown.to_owned() } else { format!("Union[{}]", parts.join(", ")) }
}

/// A class, after the classes of objects in it.
fn class(name: &str, says: &str, members: &[Member], text: &mut String) {
    let typed: Vec<(&Member, String)> = members
        .iter()
        .map(|member| (member, shown(&member.form, &format!("{name}{}", pascal(&member.name)), text)))
        .collect();
    let (required, optional): (Vec<_>, Vec<_>) = typed.into_iter().partition(|(member, _)| member.is_required);
    let base = if required.is_empty() || optional.is_empty() {
        "TypedDict".to_owned()
    } else {
        body(&format!("_{name}"), "TypedDict", true, "Members that are always there.", &required, text);
        format!("_{name}")
    };
    let (members, total) = if optional.is_empty() { (&required, true) } else { (&optional, false) };
    body(name, &base, total, if says.is_empty() { "An object." } else { says }, members, text);
}

fn body(name: &str, base: &str, total: bool, says: &str, members: &[(&Member, String)], text: &mut String) {
    if members.iter().any(|(member, _)| KEYWORDS.contains(&&*member.name)) {
        // Such members can be written in this form alone.
        let pairs: Vec<String> =
            members.iter().map(|(member, shown)| format!("\"{}\": \"{shown}\"", member.name)).collect();
        let functional = if base == "TypedDict" { name.to_owned() } else { format!("_Further{name}") };
        let total = if total { "" } else { ", total=False" };
        write!(text, "\n\n{functional} = TypedDict(\"{functional}\", {{{}}}{total})\n", pairs.join(", "))
            .expect("text grows");
        if base != "TypedDict" {
            write!(text, "\n\nclass {name}({base}, {functional}):\n    \"\"\"{says}\"\"\"\n").expect("text grows");
        }
        return;
    }
    let total = if total { "" } else { ", total=False" };
    write!(text, "\n\nclass {name}({base}{total}):\n    \"\"\"{says}\"\"\"\n").expect("text grows");
    if !members.is_empty() {
        text.push('\n');
    }
    for (member, shown) in members {
        if !member.says.is_empty() {
            writeln!(text, "    #: {}", member.says).expect("text grows");
        }
        writeln!(text, "    {}: {shown}", member.name).expect("text grows");
    }
}

/// A form as a type; objects become classes with this name.
fn shown(form: &Form, name: &str, text: &mut String) -> String {
    match form {
        Form::Unknown => "Any".to_owned(),
        Form::Null => "None".to_owned(),
        Form::Boolean => "bool".to_owned(),
        Form::Whole => "int".to_owned(),
        Form::Number => "float".to_owned(),
        Form::Text | Form::Words(_) => "str".to_owned(),
        Form::Named(name) => name.clone(),
        Form::List(item) => format!("list[{}]", shown(item, name, text)),
        Form::Map(value) => format!("dict[str, {}]", shown(value, name, text)),
        Form::Object(members) => {
            class(name, "", members, text);
            name.to_owned()
        }
        Form::Any(forms) => {
            let number = |at: usize| format!("{name}{}", if at == 0 { String::new() } else { (at + 1).to_string() });
            let objects = forms.iter().filter(|form| matches!(form, Form::Object(_))).count();
            let name_of = |at: usize| if objects > 1 { format!("{name}{}", at + 1) } else { number(at) };
            let mut parts: Vec<String> =
                forms.iter().enumerate().map(|(at, form)| shown(form, &name_of(at), text)).collect();
            parts.dedup();
            parts.join(" | ")
        }
    }
}

pub(super) fn operations() -> String {
    let mut text = format!("\"\"\"{GENERATED}\"\"\"\n\n");
    text.push_str(
        "from __future__ import annotations\n\nfrom collections.abc import Sequence\nfrom typing import Literal\n\n",
    );
    text.push_str("from . import _types as t\n");
    text.push_str("from ._calls import AsyncBytes, AsyncCalls, AsyncEvents, Bytes, Calls, Events\n");
    let methods = methods::all();
    for (class, base, is_async) in [("AsyncOperations", "AsyncCalls", true), ("Operations", "Calls", false)] {
        let how = if is_async { "with async" } else { "without async" };
        write!(text, "\n\nclass {class}({base}):\n    \"\"\"Every operation of the interface, {how}.\"\"\"\n")
            .expect("text grows");
        for method in &methods {
            describe(method, is_async, &mut text);
        }
    }
    text
}

fn describe(method: &Method, is_async: bool, text: &mut String) {
    let mut arguments: Vec<String> = method.names.iter().map(|name| format!("{}: str", snake(name))).collect();
    if let Some((name, may_be_missing)) = method.body() {
        arguments.push(format!("body: t.{name}{}", if may_be_missing { " | None = None" } else { "" }));
    } else if method.takes_package() {
        arguments.push("body: bytes".to_owned());
    }
    arguments.push("*".to_owned());
    arguments.extend(
        method
            .parameters
            .iter()
            .map(|parameter| format!("{}: {} | None = None", snake(parameter.name), kind(parameter))),
    );
    arguments.push("deadline: float | None = None".to_owned());
    let (verb, outcome, is_awaited) = match &method.result {
        Outcome::Json(kinds) => ("_json", json(kinds), true),
        Outcome::Text => ("_text", "str".to_owned(), true),
        Outcome::Bytes => ("_bytes", if is_async { "AsyncBytes" } else { "Bytes" }.to_owned(), false),
        Outcome::Events(name) => ("_stream", format!("{}Events[t.{name}]", if is_async { "Async" } else { "" }), false),
    };
    let (define, wait) = if is_async && is_awaited { ("async def", "await ") } else { ("def", "") };
    write!(text, "\n    {define} {}(\n        self,\n", snake(&method.name)).expect("text grows");
    for argument in &arguments {
        writeln!(text, "        {argument},").expect("text grows");
    }
    writeln!(text, "    ) -> {outcome}:").expect("text grows");
    write!(text, "        \"\"\"{}", method.says()).expect("text grows");
    if !method.parameters.is_empty() {
        text.push_str("\n\n");
        for parameter in &method.parameters {
            writeln!(text, "        {}: {}", snake(parameter.name), parameter.says).expect("text grows");
        }
        text.push_str("        ");
    }
    text.push_str("\"\"\"\n");
    let pairs = |place: ParameterLocation| {
        let here = method.parameters.iter().filter(|parameter| parameter.place == place);
        here.map(|parameter| format!("\"{}\": {}", parameter.name, snake(parameter.name)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let names: Vec<String> = method.names.iter().map(|name| format!("\"{name}\": {}", snake(name))).collect();
    let body = if method.body().is_some() || method.takes_package() { "body" } else { "None" };
    writeln!(text, "        return {wait}self.{verb}(").expect("text grows");
    writeln!(text, "            \"{}\",\n            \"{}\",", method.row.verb.as_str(), method.row.path)
        .expect("text grows");
    for object in [names.join(", "), pairs(ParameterLocation::Query), pairs(ParameterLocation::Header)] {
        writeln!(text, "            {{{object}}},").expect("text grows");
    }
    writeln!(text, "            {body},\n            deadline,\n        )").expect("text grows");
}

fn json(kinds: &[(String, bool)]) -> String {
    let one = |(name, is_list): &(String, bool)| if *is_list { format!("list[t.{name}]") } else { format!("t.{name}") };
    kinds.iter().map(one).collect::<Vec<_>>().join(" | ")
}

fn kind(parameter: &Parameter) -> String {
    match parameter.kind {
        Kind::Text if is_repeatable(parameter) => "str | Sequence[str]".to_owned(),
        Kind::Text | Kind::Key | Kind::Lenient => "str".to_owned(),
        Kind::Whole | Kind::Limit => "int".to_owned(),
        Kind::Number => "float".to_owned(),
        Kind::Word(["true", "false"]) => "bool".to_owned(),
        Kind::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("Literal[{}]", words.join(", "))
        }
    }
}
