//! The reference page of the interface.

use std::fmt::Write;

use expect_test::expect_file;
use serde_json::Value;

use crate::document::path_parameter;
use crate::operations::operation::{ALWAYS, Body, Content, Kind, Operation, Ownership, ParameterLocation};
use crate::operations::operations;
use crate::types::schemas;

const INTRODUCTION: &str = "\
# HTTP operations

Generated from the program's table of operations by `cargo xtask fix`; the same as an OpenAPI document is at
`GET /api/openapi.json`. Rules for all operations are in [The HTTP interface](http.md).
";

#[test]
fn generated_api_reference_is_fresh() {
    expect_file!["../../../docs/reference/api.md"].assert_eq(&page());
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let always: Vec<String> = ALWAYS.iter().map(|entry| link(entry.code)).collect();
    let codes = always.join(", ");
    writeln!(page, "\nAny operation can be refused with {codes}; these are not repeated below.").expect("text grows");
    page.push_str(
        "\nEach operation names the right that it needs. As long as authentication is off, every caller has all rights.\n",
    );
    for operation in operations() {
        describe(operation, &mut page);
    }
    page.push_str("\n## Objects\n\nMembers marked with `?` may be absent.\n");
    for (name, schema) in schemas() {
        object(name, schema, &mut page);
    }
    page
}

fn link(code: &str) -> String {
    format!("[{code}](errors/{code}.md)")
}

fn describe(operation: &Operation, page: &mut String) {
    let method = operation.verb.method();
    write!(page, "\n## {method} {}\n\n{}\n\n", operation.path, operation.says).expect("text grows");
    let right = operation.right.as_str();
    let own = if operation.ownership == Ownership::OwnOrControl {
        ", or `jobs.submit` for what the caller began itself"
    } else {
        ""
    };
    writeln!(page, "* right: `{right}`{own}").expect("text grows");
    for name in operation.path_parameters() {
        writeln!(page, "* `{name}`, in the path: {}", path_parameter(name)).expect("text grows");
    }
    for parameter in operation.parameters() {
        let place = match parameter.place {
            ParameterLocation::Query => "in the query",
            ParameterLocation::Header => "a header",
        };
        let kind = match parameter.kind {
            Kind::Text | Kind::Key | Kind::Lenient | Kind::Word(_) => "",
            Kind::Limit if operation.compatible => "",
            Kind::Whole | Kind::Limit => ", a whole number",
            Kind::Number => ", a number",
        };
        writeln!(page, "* `{}`, {place}{kind}: {}", parameter.name, parameter.says).expect("text grows");
    }
    match operation.body {
        Body::None => {}
        Body::Json(shape) => writeln!(page, "* body: {}", anchor(&shape.name())).expect("text grows"),
        Body::MaybeJson(shape) => writeln!(page, "* body: {}, or none", anchor(&shape.name())).expect("text grows"),
        Body::Package => page.push_str("* body: a package, a tar archive compressed with gzip\n"),
    }
    page.push_str("\n| status | answer |\n|---|---|\n");
    for success in operation.successes {
        let contents: Vec<String> = success.contents.iter().map(content).collect();
        let shown = if contents.is_empty() { String::new() } else { format!(": {}", contents.join(", or ")) };
        writeln!(page, "| {} | {}{shown} |", success.status.as_str(), success.says).expect("text grows");
    }
    for (status, entries) in operation.refusals() {
        let told: Vec<String> = entries
            .iter()
            .filter(|entry| !ALWAYS.contains(entry))
            .map(|entry| format!("{} {}", link(entry.code), entry.title))
            .collect();
        if !told.is_empty() {
            writeln!(page, "| {} | {} |", status.as_str(), told.join(" · ")).expect("text grows");
        }
    }
}

fn content(content: &Content) -> String {
    match content {
        Content::Json(shape) => anchor(&shape.name()),
        Content::List(shape) => format!("an array of {}", anchor(&shape.name())),
        Content::Events(shape) => format!("`text/event-stream` of {}", anchor(&shape.name())),
        Content::Other(kind) => format!("`{kind}`"),
    }
}

fn anchor(name: &str) -> String {
    format!("[{name}](#{})", name.to_lowercase())
}

fn object(name: &str, schema: &Value, page: &mut String) {
    let says = schema["description"].as_str().unwrap_or_default();
    write!(page, "\n### {name}\n\n{says}\n").expect("text grows");
    let Some(members) = schema["properties"].as_object() else { return };
    page.push_str("\n| member | type | meaning |\n|---|---|---|\n");
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (member, schema) in members {
        let mark = if required.contains(&member.as_str()) { "" } else { "?" };
        let says = schema["description"].as_str().unwrap_or_default();
        writeln!(page, "| `{member}`{mark} | {} | {says} |", kind(schema)).expect("text grows");
    }
}

/// The type of a member in words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return anchor(name);
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        return words.join(", ");
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("array of {}", kind_of_items(schema)),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => "anything".to_owned(),
    }
}

fn kind_of_items(schema: &Value) -> String {
    kind(&schema["items"])
}
