//! The lower layers of the clients for programs: one method an operation, the types of bodies, and the codes of errors.

mod forms;
mod methods;
mod python;
mod typescript;

use expect_test::{Expect, ExpectFile, expect, expect_file};

use crate::catalogue::{ENTRIES, Entry};
use forms::{Form, Member};

/// What the files begin with.
const GENERATED: &str = "Generated from the table of operations by `cargo xtask fix`; do not edit.";

#[track_caller]
fn check(file: &ExpectFile, text: &str) {
    file.assert_eq(text);
}

#[test]
fn generated_python_client_is_fresh() {
    check(&expect_file!["../../../agents/sdk/client-python/src/atlas_client/_types.py"], &python::types());
    check(&expect_file!["../../../agents/sdk/client-python/src/atlas_client/_operations.py"], &python::operations());
    check(&expect_file!["../../../agents/sdk/client-python/src/atlas_client/_codes.py"], &python::codes());
}

#[test]
fn generated_typescript_client_is_fresh() {
    check(&expect_file!["../../../agents/sdk/client-typescript/src/types.d.ts"], &typescript::types());
    check(&expect_file!["../../../agents/sdk/client-typescript/src/operations.d.ts"], &typescript::declarations());
    check(&expect_file!["../../../agents/sdk/client-typescript/src/operations.js"], &typescript::operations());
    check(&expect_file!["../../../agents/sdk/client-typescript/src/codes.js"], &typescript::codes());
}

/// The word of an error's kind, by which clients choose a class.
fn kind(entry: &Entry) -> &'static str {
    use atlas_types::ErrorKind as Kind;
    match entry.kind {
        Kind::Invalid => "invalid",
        Kind::NotFound => "not_found",
        Kind::Conflict => "conflict",
        Kind::Busy => "busy",
        Kind::Denied => "denied",
        Kind::TooLarge => "too_large",
        Kind::Unavailable => "unavailable",
        Kind::Timeout => "timeout",
        Kind::NoSpace => "no_space",
        Kind::Gone => "gone",
        Kind::Internal => "internal",
    }
}

/// The codes with their titles, kinds and whether a repeat may succeed.
fn codes() -> impl Iterator<Item = (&'static str, &'static str, &'static str, bool)> {
    ENTRIES.iter().map(|entry| (entry.code, entry.title, kind(entry), entry.passes()))
}

/// `queue_wait`, `Idempotency-Key` and `getJob` as names with underscores.
fn snake(name: &str) -> String {
    let mut text = String::new();
    let mut before = '_';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && before != '_' && before != '-' {
            text.push('_');
        }
        text.push(if letter == '-' { '_' } else { letter.to_ascii_lowercase() });
        before = letter;
    }
    text
}

/// The same names with capitals inside.
fn camel(name: &str) -> String {
    let pascal = pascal(&snake(name));
    let mut letters = pascal.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// Names with underscores as names of types.
fn pascal(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            word.chars().enumerate().map(|(at, letter)| if at == 0 { letter.to_ascii_uppercase() } else { letter })
        })
        .collect()
}

#[test]
fn names_are_those_of_each_language() {
    #[track_caller]
    fn check(name: &str, expected: &Expect) {
        expected.assert_eq(&format!("{} {}", snake(name), camel(name)));
    }
    check("queue_wait", &expect!["queue_wait queueWait"]);
    check("Idempotency-Key", &expect!["idempotency_key idempotencyKey"]);
    check("followAllAtWs", &expect!["follow_all_at_ws followAllAtWs"]);
}

#[test]
fn parameters_of_a_method_have_names_of_their_own() {
    for method in methods::all() {
        let mut names: Vec<String> = method.names.iter().map(|name| snake(name)).collect();
        names.extend(method.parameters.iter().map(|parameter| snake(parameter.name)));
        names.extend(["body", "deadline"].map(str::to_owned));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}: {names:?}", method.name);
    }
}

#[test]
fn forms_of_schemas_are_those_of_clients() {
    let member = |schema: serde_json::Value| forms::form(&schema);
    let text = Form::Text;
    assert_eq!(member(serde_json::json!({"type": ["string", "null"]})), Form::Any(vec![text.clone(), Form::Null]));
    assert_eq!(
        member(serde_json::json!({"type": "array", "items": {"type": "string"}})),
        Form::List(Box::new(text.clone()))
    );
    let open = Form::Map(Box::new(Form::Unknown));
    assert_eq!(member(serde_json::json!({"type": "object"})), open);
    let closed = serde_json::json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let member_a = Member { name: "a".to_owned(), says: String::new(), is_required: true, form: text };
    assert_eq!(member(closed), Form::Object(vec![member_a]));
    assert_eq!(member(serde_json::json!({})), Form::Unknown);
}
