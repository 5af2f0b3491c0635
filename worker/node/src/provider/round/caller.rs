//! Model calls of work that goes on at the same time: found by their keys, and told to those who follow the job through one channel.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_env::Env;
use atlas_model::Request;
use atlas_turn::outage::OutageStep;
use atlas_turn::{Key, Outage};
use atlas_types::{SecretText, StepKey, StreamKind};
use serde_json::Value;
use tokio::sync::mpsc;

use super::model::{CallFault, ModelCall, ModelRound};
use crate::journal::{Book, JournalError, Purse};
use crate::provider::Control;
use crate::provider::llm::fixed::Fixed;
use crate::provider::llm::model::{Listener, Models, News};
use crate::provider::llm::outage::Limit;
use crate::secrets::Secrets;

/// A model with its fallbacks, ready to be called.
pub(in crate::provider) type Callable = (Fixed, Models);

/// What work tells those who follow the job.
pub(in crate::provider) enum Told {
    Call { step: u32, news: News },
    Hide { name: String, value: SecretText },
    Progress(Value),
    Log { level: &'static str, text: String },
}

/// Passes on what work has told.
pub(in crate::provider) async fn pass(control: &mut Control<'_>, told: Told) {
    match told {
        Told::Call { step, news } => control.hear(step, news).await,
        Told::Hide { name, value } => control.hide(&name, value),
        Told::Progress(event) => control.say(StreamKind::Progress, "info", event.to_string()).await,
        Told::Log { level, text } => control.say(StreamKind::Log, level, text).await,
    }
}

pub(in crate::provider) fn locked(secrets: &Mutex<Secrets>) -> MutexGuard<'_, Secrets> {
    // Every change is complete while the lock is held.
    secrets.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a recorded model call needs of its attempt.
pub(in crate::provider) struct Caller<'a> {
    pub(in crate::provider) env: &'a Env,
    pub(in crate::provider) job: &'a str,
    pub(in crate::provider) book: &'a Book,
    pub(in crate::provider) purse: &'a Purse,
    pub(in crate::provider) secrets: &'a Mutex<Secrets>,
    pub(in crate::provider) told: &'a mpsc::UnboundedSender<Told>,
    /// How long the attempt waits for providers.
    pub(in crate::provider) outage_limit: Limit,
}

impl Caller<'_> {
    /// Makes a call, and records its answer; or returns the recorded one.
    pub(in crate::provider) async fn called(
        &self,
        (fixed, models): &Callable,
        key: StepKey,
        request: Request,
    ) -> Result<Arc<[u8]>, CallFault> {
        let Self { env, job, purse, outage_limit, .. } = *self;
        let outage_key = StepKey(Outage::key_of_job(Key(key.0), job).0);
        let recorded: Option<Arc<[u8]>> = self.book.known(outage_key);
        let recorded = recorded.map(|outcome| serde_json::from_slice::<OutageStep>(&outcome)).transpose();
        let recorded = recorded.map_err(|error| JournalError::Unreadable { step: 0, error })?;
        let round = ModelRound { clock: &env.clock, job, purse, outage_limit, settings: &fixed.settings, models };
        let call = ModelCall {
            step: key,
            outage: outage_key,
            idempotency_key: format!("{job}-{key}"),
            request: &|| request.clone(),
        };
        let mut followers = Followers { told: self.told.clone(), secrets: self.secrets };
        let mut book = self.book;
        round.answer(&mut book, (&call, recorded.map(|step| step.outage)), &mut followers).await
    }
}

/// Those who follow the job.
pub(in crate::provider) struct Followers<'s> {
    pub(in crate::provider) told: mpsc::UnboundedSender<Told>,
    pub(in crate::provider) secrets: &'s Mutex<Secrets>,
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

    fn secrets(&self) -> Secrets {
        locked(self.secrets).clone()
    }
}
