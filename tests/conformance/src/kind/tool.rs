//! Tools: their declarations.

use atlas_tools::{Declarations, Language, Scope, declare};
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text};

/// The declarations of a source, or the kind of error.
pub(super) fn declaration(row: &Row) -> Judged {
    let language = match row.text("lang") {
        "python" => Language::Python,
        "typescript" => Language::TypeScript,
        "bash" => Language::Bash,
        other => return Err(Stop::skip(format!("tools in the language \"{other}\""))),
    };
    let file = row.text("file");
    let scope = match row.text("scope") {
        "agent" => Scope::Agent,
        _ => Scope::File { stem: file.rsplit_once('.').map_or(file, |(stem, _)| stem) },
    };
    let declared = declare(language, scope, row.text("source"));
    let answer = match &declared {
        Ok(declared) => json!({"declarations": declared.tools.iter().map(|tool| tool.to_json()).collect::<Vec<_>>()}),
        Err(error) => json!({"error": {"kind": error.fault.word()}}),
    };
    let equal = || compare(&with_required(row.expect.clone()), &answer, &Captures::new());
    if row.differs.is_empty() {
        return equal();
    }
    for ours in &row.differs {
        differs(row, ours, declared.as_ref().ok(), &answer, &equal)?;
    }
    Ok(())
}

/// Checks one sentence that says how Atlas differs from the row.
fn differs(
    row: &Row,
    ours: &str,
    declared: Option<&Declarations>,
    answer: &Value,
    equal: &dyn Fn() -> Judged,
) -> Judged {
    let has = |words: &str| ours.contains(words);
    if has("not specified") {
        return Ok(());
    }
    if has("entry function") {
        return compare(&json!({"error": {"kind": "entry"}}), answer, &Captures::new());
    }
    if has("_instructions is never offered") {
        let offered = items(&row.expect, "declarations").filter(|tool| !text(tool, "name").ends_with("instructions"));
        let expected = with_required(json!({"declarations": offered.collect::<Vec<_>>()}));
        return compare(&expected, answer, &Captures::new());
    }
    if has("comments between parameters") {
        let parameters = declared.map_or(0, |declared| declared.tools.iter().map(|tool| tool.parameters.len()).sum());
        return if parameters > 0 { Ok(()) } else { Err(Stop::fail(format!("no parameters: {answer}"))) };
    }
    if has("are understood (array / optional)") {
        // Only the types and whether they are required may differ, and one of them does.
        compare(&without_types(&row.expect), &without_types(answer), &Captures::new())?;
        return match equal() {
            Ok(()) => Err(Stop::fail(format!("the type is not understood: {answer}"))),
            Err(_) => Ok(()),
        };
    }
    if has("callable") || has("names as in 7.4") {
        let source = row.text("source");
        let missing = declared.into_iter().flat_map(|one| &one.tools).find(|tool| !source.contains(&tool.function));
        if let Some(tool) = missing {
            return Err(Stop::fail(format!("\"{}\" is no function of the source", tool.function)));
        }
        return equal();
    }
    equal().map_err(|_| Stop::skip(format!("a difference that this adapter does not know: {ours}")))
}

/// An absent list of required parameters is an empty one.
fn with_required(mut expected: Value) -> Value {
    for tool in expected.get_mut("declarations").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(parameters) = tool.get_mut("parameters").and_then(Value::as_object_mut) {
            parameters.entry("required").or_insert(json!([]));
        }
    }
    expected
}

/// The names and descriptions of tools and parameters.
fn without_types(answer: &Value) -> Value {
    let tools = items(answer, "declarations").map(|tool| {
        let properties = tool["parameters"]["properties"].as_object().into_iter().flatten();
        let described: Vec<_> = properties.map(|(name, schema)| json!([name, schema["description"]])).collect();
        json!([tool["name"], tool["description"], described])
    });
    tools.collect()
}
