//! Mediation between two agents, the similarity of names, and the conversion by a model.

use atlas_mediation::{
    ATTEMPTS_MAX, Bridge, Coercion, Context, MediationError, MediationResult, Plan, Report, extract_json, mediate,
    similarity, tokenize,
};
use serde_json::{Map, Value, json};

use super::contract::only;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text};

pub(super) fn words(row: &Row) -> Judged {
    compare(&row.expect, &json!({"tokens": tokenize(row.text("name"))}), &Captures::new())
}

/// Rows have six decimals.
pub(super) fn score(row: &Row) -> Judged {
    let score = similarity(row.text("source"), row.text("target"));
    compare(&row.expect, &json!({"score": rounded(score)}), &Captures::new())
}

pub(super) fn mediation(row: &Row) -> Judged {
    let context = context(&row.input["chain_context"]);
    let (report, outcome) = mediate(plan(row, &context), &data(row)?);
    let (data, error, strategy) = match outcome {
        Ok(MediationResult::Data(data)) => (Value::Object(data), String::new(), report.level.strategy()),
        Ok(MediationResult::NeedsModel) => {
            (Value::Null, MediationError::NoStrategy(report.level.as_str()).to_string(), "")
        }
        Err(error @ MediationError::Failed { strategy, .. }) => (Value::Null, error.to_string(), strategy),
        Err(error) => (Value::Null, error.to_string(), ""),
    };
    let answer = json!({
        "success": error.is_empty(), "strategy": strategy, "data": data, "error": error, "cost": 0.0,
        "report": shown(&report, &row.expect["report"]),
    });
    // The order of changes has no meaning: rows sort them by the name of the field.
    let mut expect = row.expect.clone();
    if let Some(coercions) = expect.pointer_mut("/report/coercions").and_then(Value::as_array_mut) {
        coercions.sort_by_key(|coercion| text(coercion, "target").to_owned());
    }
    compare(&expect, &only(&expect, answer), &Captures::new())
}

/// Asks a model whose answers are part of the row.
pub(super) fn bridge(row: &Row) -> Judged {
    let (source, target) = (&row.input["source_schema"], &row.input["target_schema"]);
    let bridge = Bridge::new(source, target, &data(row)?);
    let answers: Vec<&str> = items(&row.input, "answers").filter_map(Value::as_str).collect();
    let (mut pauses, mut calls, mut outcome) = (Vec::new(), 0, Err(String::new()));
    for attempt in 1..=ATTEMPTS_MAX {
        let Some(answer) = answers.get(calls) else { break };
        calls += 1;
        if attempt > 1 {
            pauses.push(Bridge::pause_s(attempt));
        }
        match bridge.accept(answer) {
            Ok(data) => {
                outcome = Ok(data);
                break;
            }
            Err(error) => outcome = Err(Bridge::failed(&error)),
        }
    }
    let per_call: u64 = items(&row.input, "tokens_per_call").filter_map(Value::as_u64).sum();
    let error = outcome.as_ref().err().map(|why| MediationError::Failed { strategy: "llm_bridge", why: why.clone() });
    let prompt = bridge.prompt(1);
    let contained = items(&row.expect, "first_prompt_contains_json")
        .filter(|wanted| serde_json::to_string_pretty(wanted).is_ok_and(|text| prompt.contains(&text)));
    let answer = json!({
        "success": error.is_none(), "strategy": "llm_bridge", "data": outcome.ok(),
        "cost": 1.0, "error": error.map(|error| error.to_string()).unwrap_or_default(), "llm_calls": calls,
        "backoff_seconds": pauses, "total_tokens": per_call * calls as u64,
        "first_prompt_contains_json": contained.collect::<Vec<_>>(),
        "retry_prompts_end_with_first_prompt": (2..=ATTEMPTS_MAX).all(|attempt| bridge.prompt(attempt).ends_with(&prompt)),
    });
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

pub(super) fn extracted(row: &Row) -> Judged {
    let answer = match extract_json(row.text("response")) {
        Ok(text) => json!({"ok": true, "text": text}),
        Err(error) => json!({"ok": false, "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

pub(super) fn example(row: &Row) -> Judged {
    let properties = row.input["target_properties"].as_object().cloned().unwrap_or_default();
    compare(&row.expect, &json!({"example": Bridge::example(&properties)}), &Captures::new())
}

fn plan<'r>(row: &'r Row, context: &'r Context) -> Plan<'r> {
    let map = row.input.get("input_map").and_then(Value::as_object);
    Plan { source: &row.input["source_schema"], target: &row.input["target_schema"], map, context }
}

fn data(row: &Row) -> Result<Map<String, Value>, Stop> {
    row.input["data"].as_object().cloned().ok_or_else(|| Stop::fail("the row has no data".to_owned()))
}

fn context(context: &Value) -> Context {
    let step = |(place, step): (usize, &Value)| {
        let name = step["name"].as_str().filter(|name| !name.is_empty());
        (name.map_or_else(|| format!("step_{place}"), str::to_owned), step["output"].clone())
    };
    Context { trigger: context["trigger"].clone(), steps: items(context, "steps").enumerate().map(step).collect() }
}

/// The members of a report that a row expects, with the names of the rows.
fn shown(report: &Report, expect: &Value) -> Value {
    let mut all = report.to_json();
    if let (Some(members), Some(expected)) = (all.as_object_mut(), expect.as_object()) {
        members.retain(|name, _| expected.contains_key(name));
    }
    let mut coercions: Vec<Value> = report.coercions.iter().map(coercion).collect();
    coercions.sort_by_key(|coercion| text(coercion, "target").to_owned());
    all["coercions"] = Value::from(coercions);
    all
}

fn coercion(coercion: &Coercion) -> Value {
    let mut shown = json!({"op": coercion.name(), "source": coercion.source(), "target": coercion.target()});
    for (name, value) in coercion.details().as_object().into_iter().flatten() {
        shown[name] = value.clone();
    }
    if let Some(score) = shown["similarity"].as_f64() {
        shown["similarity"] = json!(rounded(score));
    }
    shown
}

fn rounded(score: f64) -> f64 {
    (score * 1e6).round() / 1e6
}
