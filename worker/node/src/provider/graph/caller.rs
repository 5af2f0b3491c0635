//! Calls of models that are found by the key of their work: made within the budget, recorded, and told to those who follow.

use std::sync::{Arc, Mutex};

use atlas_env::Env;
use atlas_model::{CallError, CallErrorKind, Request};
use atlas_turn::record::Answered as Recorded;
use atlas_turn::{Turn, Used, used};
use atlas_types::{Micros, SecretText, StepKey, StepKind, StepUsage};
use tokio::sync::mpsc;

use super::book::Book;
use super::host::{Told, locked};
use super::models::Callable;
use crate::journal::{JournalError, Made, Purse};
use crate::provider::llm::model::{Answered, Listener, News};
use crate::secrets::Secrets;

/// What a recorded call of a model needs of its attempt.
pub(in crate::provider) struct Caller<'a> {
    pub(in crate::provider) env: &'a Env,
    pub(in crate::provider) job: &'a str,
    pub(in crate::provider) book: &'a Book,
    pub(in crate::provider) purse: &'a Purse,
    pub(in crate::provider) secrets: &'a Mutex<Secrets>,
    pub(in crate::provider) told: &'a mpsc::UnboundedSender<Told>,
}

impl Caller<'_> {
    /// Makes a call within the budget, and records its answer without values of secrets; or returns the recorded one.
    pub(in crate::provider) async fn called(
        &self,
        (fixed, models): &Callable,
        key: StepKey,
        mut request: Request,
    ) -> Result<Arc<[u8]>, CallFault> {
        let env = self.env;
        let make = || async move {
            // The same in each attempt that gets this far.
            request.idempotency_key = Some(format!("{}-{key}", self.job));
            let began = env.clock.monotonic();
            let mut listener = Followers { told: self.told.clone(), secrets: self.secrets };
            // Calls at the same time have numbers of their own, by which followers keep them apart.
            let number = u32::from_be_bytes([key.0[0], key.0[1], key.0[2], key.0[3]]);
            self.purse.reserve(key, &fixed.settings, &mut request).await?;
            let Answered { answer, place } = match models.call(&request, number, (&env.clock, &mut listener)).await {
                Ok(answered) => answered,
                Err(error) => {
                    self.purse.free(key).await?;
                    return Err(CallFault::Call(error));
                }
            };
            let Used { usage, .. } = used(&fixed.settings, || request.clone(), &answer);
            let usage = StepUsage {
                duration: Micros::from(env.clock.monotonic().saturating_sub(began)),
                tokens_input: usage.input,
                tokens_output: usage.output,
                cost_nanodollars: Turn::new(fixed.settings.clone()).cost(place, &usage).0,
            };
            let unreadable =
                |error: serde_json::Error| CallFault::Call(CallError::new(CallErrorKind::Answer, error.to_string()));
            let mut value = serde_json::to_value(Recorded { place, answer }).map_err(unreadable)?;
            locked(self.secrets).redactor().json(&mut value);
            Ok(Made { outcome: serde_json::to_vec(&value).map_err(unreadable)?, usage })
        };
        self.book.step(StepKind::Model, key, make).await
    }
}

pub(in crate::provider) enum CallFault {
    Call(CallError),
    Journal(JournalError),
}

impl From<JournalError> for CallFault {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// Those who follow the job.
struct Followers<'s> {
    told: mpsc::UnboundedSender<Told>,
    secrets: &'s Mutex<Secrets>,
}

impl Listener for Followers<'_> {
    async fn hear(&mut self, step: u32, news: News) {
        // The receiver lives as long as the run.
        let _ = self.told.send(Told::Call { step, news });
    }

    fn hide(&mut self, name: &str, value: SecretText) {
        locked(self.secrets).hide(name, value.clone());
        let _ = self.told.send(Told::Hide { name: name.to_owned(), value });
    }
}
