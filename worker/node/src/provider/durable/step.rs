//! Steps of a program's own code: the program runs them, and what must not happen twice leaves an intent before it begins.

use atlas_durable::CallOutcome;
use atlas_types::{StepKey, StepKind};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::call::{Carried, End, Inner, QUESTION, answered, refused};
use super::frame::{Called, Made, What};
use super::{key_of, lock};
use crate::journal::{Intent, JournalError, hashed, made};

/// Answers to the question what came of a step.
const HAPPENED: &str = "happened";
const DID_NOT: &str = "did not happen";

/// Most times that one step can be begun. Each is in doubt, and people say that it did not happen.
const BEGINS_MAX: u32 = 100;

/// Characters of an answer that are repeated.
const SAID_CHARS: usize = 100;

/// How often people are asked what came of a step, if what they answer says nothing about that.
const ASKS_MAX: u32 = 3;

/// How a program runs a function.
#[derive(Clone, Copy)]
struct Run {
    /// An earlier attempt may have run it.
    again: bool,
    /// It did begin it, and the program looks what came of that.
    doubt: bool,
}

impl Inner {
    pub(super) async fn step(
        &self,
        call: &Carried,
        effects: Option<&str>,
        reconcile: bool,
    ) -> Result<End, JournalError> {
        // Also while the program no longer waits for it: its function may still run, and the job must not go on elsewhere meanwhile.
        let _working = self.book.begin().await?;
        let made = match effects {
            None | Some("pure" | "idempotent") => self.run(call, Run { again: self.again, doubt: false }).await?,
            Some("once") => self.once(call, reconcile).await?,
            Some(other) => {
                let other: String = other.chars().take(20).collect();
                return Ok(refused(&format!("effects are pure, idempotent or once, not {other:?}")));
            }
        };
        let outcome = match made {
            Made::Outcome(outcome) => outcome,
            Made::DidNot => {
                CallOutcome::error("ValueError", "only a function that reconciles says that a step did not happen")
            }
            // It leaves no record; one that must not run twice is in doubt.
            Made::GivenUp => return Ok(End::Forgotten),
        };
        self.record(call, StepKind::Code, outcome).await
    }

    async fn run(&self, call: &Carried, Run { again, doubt }: Run) -> Result<Made, JournalError> {
        let (tell, told) = oneshot::channel();
        lock(&self.functions).insert(call.call, tell);
        let key = hashed(&("idempotency", self.seed, self.began_us, &call.id)).to_string();
        // Whoever hears it lives as long as the attempt.
        let _ = self.says.send(Called { call: call.call, what: What::Make { key, again, doubt } });
        let began = self.now();
        let made = told.await.map_err(|_| JournalError::Stopped)?;
        call.ran(self.now().saturating_sub(began));
        Ok(made)
    }

    /// Runs a function that must not run twice.
    async fn once(&self, call: &Carried, reconcile: bool) -> Result<Made, JournalError> {
        let mut number = 0;
        while number < BEGINS_MAX && self.intents.contains(&intent(&call.id, number)) {
            number += 1;
        }
        if number == BEGINS_MAX {
            return Err(doubt(call, "", &format!("it was begun {BEGINS_MAX} times")));
        }
        if let Some(last) = number.checked_sub(1) {
            match self.in_doubt(call, last, reconcile).await? {
                Made::DidNot => {}
                made => return Ok(made),
            }
        }
        let make = || async { made(&Intent { attempt: number + 1, tools: vec![call.name.clone()] }) };
        self.book.step(StepKind::Intent, intent(&call.id, number), make).await?;
        self.run(call, Run { again: number > 0, doubt: false }).await
    }

    /// What came of a step that an earlier attempt began.
    async fn in_doubt(&self, call: &Carried, last: u32, reconcile: bool) -> Result<Made, JournalError> {
        if reconcile {
            return self.run(call, Run { again: true, doubt: true }).await;
        }
        let place = if call.at.is_empty() { String::new() } else { format!(" ({})", call.at) };
        let prompt = format!(
            "Step '{}'{place} was under way when the worker was lost. Did it happen? Another answer is its result, in JSON.",
            call.name
        );
        let mut question = json!({
            "kind": "choose",
            "prompt": prompt,
            "options": [HAPPENED, DID_NOT],
            "other": true,
            // A rule of the job cannot know.
            "needs_people": true,
        });
        self.secrets.redactor().json(&mut question);
        let asked = question["prompt"].clone();
        for round in 0..ASKS_MAX {
            let key = hashed(&("doubt", &call.id, last, round));
            let answer = match answered(self.book.question(key, QUESTION, &question).await?) {
                Ok(Ok(answer)) => answer,
                Ok(Err(why)) => return Err(doubt(call, &place, &why)),
                Err(JournalError::Unattended(_)) => return Err(doubt(call, &place, "the job asks nobody")),
                Err(error) => return Err(error),
            };
            match answer.as_str() {
                Some(DID_NOT) => return Ok(Made::DidNot),
                Some(HAPPENED) => return Ok(Made::Outcome(CallOutcome::null())),
                Some(text) => {
                    if let Ok(value) = RawValue::from_string(text.to_owned()) {
                        return Ok(Made::Outcome(CallOutcome::Value(value)));
                    }
                    let said: String = text.chars().take(SAID_CHARS).collect();
                    let allowed = format!("{said:?} is none of \"{HAPPENED}\", \"{DID_NOT}\" and a result in JSON.");
                    question["prompt"] = format!("{allowed} {}", asked.as_str().unwrap_or_default()).into();
                    self.secrets.redactor().json(&mut question);
                }
                None => return Err(doubt(call, &place, "nobody has answered in time")),
            }
        }
        Err(doubt(call, &place, "no answer said so"))
    }
}

fn doubt(call: &Carried, place: &str, why: &str) -> JournalError {
    JournalError::Doubt(format!(
        "step {:?}{place} is in doubt: it was under way when its worker was lost, and must not run twice; {why}. Look whether it happened, \
         and say so: atlasctl job retry --resume --questions wait",
        call.name
    ))
}

/// The key of the record that a step begins for the time after so many others.
fn intent(id: &str, number: u32) -> StepKey {
    match number {
        0 => key_of("intent", id),
        number => hashed(&("intent", id, number)),
    }
}
