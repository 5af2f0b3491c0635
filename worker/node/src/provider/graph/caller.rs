//! Model calls that are found by the key of their work: made within the budget, recorded, and told to those who follow.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::Env;
use atlas_model::{CallError, CallErrorKind, Request};
use atlas_turn::outage::OutageStep;
use atlas_turn::record::AnswerOutcome as Recorded;
use atlas_turn::{Key, Outage, Turn, CountedUsage, used};
use atlas_types::{Micros, SecretText, StepKey, StepKind, StepUsage, Timestamp, Wait};
use tokio::sync::mpsc;

use super::book::Book;
use super::host::{Told, locked};
use super::models::Callable;
use crate::journal::{JournalError, Made, Purse};
use crate::provider::llm::model::{Answered, Listener, News};
use crate::provider::llm::outage::{Down, Limit, Patience, Unanswered};
use crate::secrets::Secrets;

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
    /// Makes a call within the budget, and records its answer without values of secrets; or returns the recorded one. While the provider is
    /// down, the work waits, and the job parks if all its work does.
    pub(in crate::provider) async fn called(
        &self,
        callable: &Callable,
        key: StepKey,
        request: Request,
    ) -> Result<Arc<[u8]>, CallFault> {
        let clock = &self.env.clock;
        let outage_key = StepKey(Outage::key_of_job(Key(key.0), self.job).0);
        let recorded: Option<Arc<[u8]>> = self.book.known(outage_key);
        let mut is_recorded = recorded.is_some();
        let recorded = recorded.map(|outcome| serde_json::from_slice::<OutageStep>(&outcome)).transpose();
        let mut outage = recorded.map_err(unreadable)?.map(|step| step.outage);
        loop {
            let patience = self.outage_limit.patience(outage.as_ref(), &**clock);
            let calling = self.book.calling();
            let down = match self.tried(callable, key, request.clone(), patience).await {
                Ok(outcome) => return Ok(outcome),
                Err(Missed::Fault(fault)) => return Err(fault),
                Err(Missed::Down(down)) => down,
            };
            calling.was_in_vain().await;
            let wall = clock.wall().0;
            let outage = outage.get_or_insert_with(|| {
                let why = locked(self.secrets).redactor().text(&down.why).into_owned();
                down.begin(&why, &**clock, self.outage_limit)
            });
            let again = outage.again(wall.max(self.book.slept_until().0), down.named, down.random);
            let Some(again) = again.filter(|_| !self.outage_limit.attempt_left(&**clock).is_zero()) else {
                return Err(CallFault::Call(down.given_up(outage.age(wall))));
            };
            let pause = again.pause.as_secs_f64();
            let text = format!("no model answered: {}; the next try is in {pause:.1} s", down.why);
            // The receiver lives as long as the run.
            let _ = self.told.send(Told::Log { level: "warning", text });
            if again.parks && !is_recorded {
                let step = OutageStep { outage: outage.clone(), job: self.job.to_owned() };
                let outcome = serde_json::to_vec(&step).map_err(unreadable)?;
                self.book.record(StepKind::Sleep, outage_key, outcome, StepUsage::default()).await?;
                is_recorded = true;
            }
            let left = Duration::from_micros(u64::try_from(again.at_us.saturating_sub(wall)).unwrap_or(0));
            let since = clock.monotonic().saturating_sub(again.waited);
            let waits = vec![Wait::Time { at: Timestamp(again.at_us) }];
            self.book.wait_since(waits, since, clock.sleep(left)).await;
        }
    }

    async fn tried(
        &self,
        (fixed, models): &Callable,
        key: StepKey,
        mut request: Request,
        patience: Patience,
    ) -> Result<Arc<[u8]>, Missed> {
        let env = self.env;
        let make = || async move {
            // The same in each attempt that gets this far.
            request.idempotency_key = Some(format!("{}-{key}", self.job));
            let began = env.clock.monotonic();
            let mut listener = Followers { told: self.told.clone(), secrets: self.secrets };
            // Calls at the same time have numbers of their own, by which followers keep them apart.
            let number = u32::from_be_bytes([key.0[0], key.0[1], key.0[2], key.0[3]]);
            self.purse.reserve(key, &fixed.settings, &mut request).await?;
            let called = models.call(&request, number, (&env.clock, &mut listener), patience).await;
            let Answered { answer, place } = match called {
                Ok(answered) => answered,
                Err(unanswered) => {
                    self.purse.free(key).await?;
                    return Err(match unanswered {
                        Unanswered::Down(down) => Missed::Down(down),
                        Unanswered::Failed(error) => Missed::Fault(CallFault::Call(error)),
                    });
                }
            };
            let CountedUsage { usage, .. } = used(&fixed.settings, || request.clone(), &answer);
            let usage = StepUsage {
                duration: Micros::from(env.clock.monotonic().saturating_sub(began)),
                tokens_input: usage.input,
                tokens_output: usage.output,
                cost_nanodollars: Turn::new(fixed.settings.clone()).cost(place, &usage).0,
            };
            let mut value = serde_json::to_value(Recorded { place, answer }).map_err(unreadable)?;
            locked(self.secrets).redactor().json(&mut value);
            Ok(Made { outcome: serde_json::to_vec(&value).map_err(unreadable)?, usage })
        };
        self.book.step(StepKind::Model, key, make).await
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err calls")]
fn unreadable(error: serde_json::Error) -> CallFault {
    CallFault::Call(CallError::new(CallErrorKind::Answer, error.to_string()))
}

/// Why a try has no answer.
enum Missed {
    Down(Box<Down>),
    Fault(CallFault),
}

impl<F: Into<CallFault>> From<F> for Missed {
    fn from(fault: F) -> Self {
        Self::Fault(fault.into())
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
