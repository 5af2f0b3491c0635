//! Helpers: scripted rounds of one agent whose helpers have a scripted model, on a clock that jumps.

mod child;
mod team;

use regex::Regex;
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text, unknown};
use team::Team;

pub(super) fn judge(row: &Row) -> Judged {
    let known = ["agents", "agent", "replies", "rounds", "app"];
    if let Some(member) = unknown(&row.input, &known) {
        return Err(Stop::skip(format!("supervisor rows with \"{member}\"")));
    }
    let mut team = Team::new(row)?;
    let (mut ids, mut rounds) = (Vec::new(), Vec::new());
    for round in items(&row.input, "rounds") {
        if let Some(ms) = round["sleep_ms"].as_u64() {
            team.sleep(ms)?;
            continue;
        }
        let mut outputs = Vec::new();
        for call in items(round, "calls") {
            let arguments = named(&call["args"], &ids, |place| format!("$id{place}"), true)?;
            let output = team.call(text(call, "name"), &arguments)?;
            note(&output, &mut ids)?;
            outputs.push(json!({"name": call["name"], "output": output}));
        }
        if let Some((name, output)) = team.notification() {
            note(&output, &mut ids)?;
            outputs.push(json!({"name": name, "output": output}));
        }
        rounds.push(Value::Array(outputs));
    }
    let answer = named(&json!({ "rounds": rounds }), &ids, |place| format!("{{id{place}}}"), false)?;
    let answer = without_times(&answer)?;
    let mut expected = row.expect.clone();
    own_texts(&mut expected["rounds"], &answer["rounds"], row);
    let compared = compare(&expected, &answer, &Captures::new());
    match &row.differs[..] {
        [] => compared,
        differs if differs.iter().all(|one| one.contains("REQ-18")) => compared,
        differs => {
            compared.map_err(|_| Stop::skip(format!("a difference that this adapter does not know: {differs:?}")))
        }
    }
}

/// Takes over what is our own: texts of errors and, where the row says so, the status of a helper that failed.
fn own_texts(expected: &mut Value, own: &Value, row: &Row) {
    let failed = row.differs.iter().any(|differs| differs.contains("REQ-18"));
    match (expected, own) {
        (Value::Array(expected), Value::Array(own)) => {
            expected.iter_mut().zip(own).for_each(|(expected, own)| own_texts(expected, own, row));
        }
        (Value::Object(expected), Value::Object(own)) => {
            let is_text = |value: Option<&Value>| value.is_some_and(Value::is_string);
            for name in ["tool_call_error", "error", "fallback"] {
                if is_text(expected.get(name)) && is_text(own.get(name)) {
                    expected.insert(name.to_owned(), own[name].clone());
                }
            }
            let is_refusal = |value: &serde_json::Map<String, Value>| value.get("status") == Some(&json!("error"));
            if is_refusal(expected)
                && is_refusal(own)
                && is_text(expected.get("message"))
                && is_text(own.get("message"))
            {
                expected.insert("message".to_owned(), own["message"].clone());
            }
            let ended_badly =
                |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|text| text.starts_with("Failed("));
            if ended_badly(expected.get("exit_status")) && ended_badly(own.get("exit_status")) {
                expected.insert("exit_status".to_owned(), own["exit_status"].clone());
                if failed && is_text(own.get("error")) {
                    expected.insert("status".to_owned(), json!("failed"));
                    expected.insert("error".to_owned(), own["error"].clone());
                }
            }
            for (name, expected) in expected.iter_mut() {
                if let Some(own) = own.get(name) {
                    own_texts(expected, own, row);
                }
            }
        }
        _ => {}
    }
}

/// Replaces ids by names, or names by ids.
fn named(value: &Value, ids: &[String], name: impl Fn(usize) -> String, by_ids: bool) -> Result<Value, Stop> {
    let mut text = value.to_string();
    // The last first: `$id1` is the beginning of `$id10`.
    for (place, id) in ids.iter().enumerate().rev() {
        let name = name(place);
        text = if by_ids { text.replace(&name, id) } else { text.replace(id, &name) };
    }
    serde_json::from_str(&text).map_err(|error| Stop::system("name the ids of a row", error))
}

/// Adds the ids of an output that are not known yet.
fn note(output: &Value, ids: &mut Vec<String>) -> Result<(), Stop> {
    let pattern =
        Regex::new("(?:agent_[A-Za-z0-9_-]+|esc)_[0-9a-f]{8}").map_err(|error| Stop::system("find ids", error))?;
    for id in pattern.find_iter(&output.to_string()) {
        if !ids.iter().any(|known| known == id.as_str()) {
            ids.push(id.as_str().to_owned());
        }
    }
    Ok(())
}

fn without_times(answer: &Value) -> Result<Value, Stop> {
    let pattern = Regex::new(r#"("timestamp":)"[^"]*""#).map_err(|error| Stop::system("find times", error))?;
    let text = pattern.replace_all(&answer.to_string(), r#"$1"{time}""#).into_owned();
    serde_json::from_str(&text).map_err(|error| Stop::system("replace times", error))
}
