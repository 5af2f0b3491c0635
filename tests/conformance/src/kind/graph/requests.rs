//! The requests that a run sent to the model of a row.

use atlas_graph::structured;
use atlas_model::{Request, Role};
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text, unknown};

/// Compares the requests; those of parallel branches can be in any order.
pub(super) fn same(row: &Row, expected: &Value, requests: &[Request]) -> Judged {
    let expected = expected.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut left: Vec<Value> = requests.iter().map(shown).collect();
    if expected.len() != left.len() {
        return Err(Stop::fail(format!("expected {} requests, got {}", expected.len(), json!(left))));
    }
    for wanted in expected {
        if let Some(member) = unknown(wanted, &["model", "messages", "temperature", "top_p"]) {
            return Err(Stop::skip(format!("requests of which \"{member}\" is expected")));
        }
        let place = left.iter().position(|request| is(row, wanted, request)).unwrap_or_default();
        let actual = left.remove(place);
        if !is(row, wanted, &actual) {
            return compare(wanted, &actual, &Captures::new());
        }
    }
    Ok(())
}

fn shown(request: &Request) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "text": request.system}));
    }
    for message in &request.messages {
        let role = if message.role == Role::User { "user" } else { "assistant" };
        messages.push(json!({"role": role, "text": message.text()}));
    }
    json!({"model": request.model, "messages": messages, "temperature": request.temperature, "top_p": request.top_p})
}

fn is(row: &Row, wanted: &Value, actual: &Value) -> bool {
    let sampling = ["temperature", "top_p"].iter().all(|name| {
        // Loki does not send the values of the graph.
        row.differs_in("REQ-29") || compare(&wanted[*name], &actual[*name], &Captures::new()).is_ok()
    });
    let (wanted_messages, messages): (Vec<_>, Vec<_>) =
        (items(wanted, "messages").collect(), items(actual, "messages").collect());
    sampling
        && wanted["model"] == actual["model"]
        && wanted_messages.len() == messages.len()
        && wanted_messages.iter().zip(messages).all(|(wanted, message)| is_message(row, wanted, message))
}

fn is_message(row: &Row, wanted: &Value, message: &Value) -> bool {
    let (own, expected) = (text(message, "text"), text(wanted, "text"));
    // Loki loses parts of instructions that look like a header.
    let is_plain = row.differs_in("REQ-35") && text(wanted, "role") == "system";
    let hint = structured::hint(&Value::Null);
    let marker = hint.split("\n\n").nth(1).unwrap_or_default();
    let own = match wanted["schema_hint"] == true {
        true => own.split_once(marker).map_or("", |(before, _)| before.trim_end()),
        false => own,
    };
    let prefix = wanted.get("text_prefix").and_then(Value::as_str).is_some_and(|prefix| own.starts_with(prefix));
    wanted["role"] == message["role"] && (is_plain || prefix || own == expected)
}
