//! Cron expressions, definitions of triggers, their schedule, and the signatures of webhooks.

use atlas_triggers::{Cron, Definition, State, due, fired, sign, verify};
use serde_json::{Value, json};

use super::contract::only;
use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text};

/// The members of an expression, or that it is invalid.
pub(super) fn cron(row: &Row) -> Judged {
    let answer = match Cron::parse(row.text("expr")) {
        Ok(cron) => json!({
            "valid": true, "minutes": cron.minutes(), "hours": cron.hours(), "days": cron.days(), "months": cron.months(),
            "weekdays_monday0": cron.weekdays(),
        }),
        Err(error) => json!({"valid": false, "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

/// The next times of an expression: as many as the row expects.
pub(super) fn next(row: &Row) -> Judged {
    let cron = Cron::parse(row.text("expr")).map_err(|error| Stop::fail(error.to_string()))?;
    let wanted = items(&row.expect, "next").count();
    let mut after = number(&row.input["after"]);
    let mut times = Vec::new();
    while times.len() < wanted {
        let Some(next) = cron.next(after) else { break };
        times.push(next);
        #[expect(clippy::cast_precision_loss, reason = "times of this century")]
        let next = next as f64;
        after = next;
    }
    let mut answer = json!({ "next": times });
    // The same times as text.
    if let Some(texts) = row.expect.get("next_utc") {
        answer["next_utc"] = texts.clone();
    }
    if wanted == 0 {
        answer = json!({ "next": cron.next(after), "error": cron.next(after).is_none() });
        answer = only(&row.expect, answer);
    }
    compare(&row.expect, &answer, &Captures::new())
}

pub(super) fn hmac(row: &Row) -> Judged {
    let (secret, body) = (row.text("secret"), row.text("body").as_bytes());
    let valid = verify(secret, body, row.text("header"));
    compare(&row.expect, &json!({"valid": valid, "hex": sign(secret, body)}), &Captures::new())
}

pub(super) fn validate(row: &Row) -> Judged {
    let answer = match Definition::parse(&row.input["definition"]) {
        Ok(definition) => {
            let mut trigger = definition.to_json();
            add(&mut trigger, &State::default());
            json!({"valid": true, "trigger": only(&row.expect["trigger"], trigger)})
        }
        Err(error) => json!({"valid": false, "error": error.to_string()}),
    };
    compare(&row.expect, &only(&row.expect, answer), &Captures::new())
}

pub(super) fn next_fire(row: &Row) -> Judged {
    let document = &row.input["definition"];
    let definition = parsed(document)?;
    let next = definition.next_fire(number(&document["last_fired"]), number(&row.input["now"]));
    compare(&row.expect, &json!({ "next_fire": next }), &Captures::new())
}

/// Ticks of a scheduler that looks for due triggers and submits their jobs.
pub(super) fn ticks(row: &Row) -> Judged {
    let mut triggers = Vec::new();
    for document in items(&row.input, "triggers") {
        triggers.push((text(document, "id").to_owned(), parsed(document)?, state(document)));
    }
    let submit_fails = row.input["submit_fails"] == json!(true);
    let mut jobs = Vec::new();
    let mut now = number(&row.input["now"]);
    for _ in 0..row.input["ticks"].as_u64().unwrap_or(1) {
        let all = triggers.iter().enumerate().map(|(place, (_, definition, state))| (place, definition, state));
        for place in due(all, now) {
            let (id, definition, state) = &mut triggers[place];
            if submit_fails {
                continue;
            }
            jobs.push(job(id, definition));
            fired(definition, state, format!("job-{:08}", jobs.len()), now);
        }
        now += number(&row.input["tick_step_seconds"]);
    }
    let triggers: Vec<Value> = triggers.iter().map(|(id, definition, state)| trigger(id, definition, state)).collect();
    compare(&row.expect, &json!({"jobs": jobs, "triggers": triggers}), &Captures::new())
}

/// The job that a firing submits.
fn job(id: &str, definition: &Definition) -> Value {
    let submission = definition.submission(id);
    let mut job = json!({
        "input_data": submission.input, "priority": submission.priority, "metadata": submission.metadata,
    });
    match submission.target {
        atlas_triggers::Target::Agent(agent) => job["agent_name"] = json!(agent),
        atlas_triggers::Target::Chain(chain) => job["chain_name"] = json!(chain),
    }
    job
}

fn trigger(id: &str, definition: &Definition, state: &State) -> Value {
    let mut trigger = json!({"id": id, "enabled": definition.enabled, "next_fire": state.next_fire});
    add(&mut trigger, state);
    trigger
}

fn add(trigger: &mut Value, state: &State) {
    trigger["last_fired"] = json!(state.last_fired);
    trigger["fire_count"] = json!(state.fire_count);
    trigger["last_job_id"] = json!(state.last_job_id);
}

fn parsed(document: &Value) -> Result<Definition, Stop> {
    Definition::parse(document).map_err(|error| Stop::fail(error.to_string()))
}

fn state(document: &Value) -> State {
    State {
        last_fired: number(&document["last_fired"]),
        next_fire: number(&document["next_fire"]),
        fire_count: document["fire_count"].as_u64().unwrap_or_default(),
        last_job_id: text(document, "last_job_id").to_owned(),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}
