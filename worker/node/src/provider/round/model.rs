//! Model calls as steps: made within the budget, and recorded without values of secrets. While the provider is down, the job waits, and parks if
//! that lasts.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Clock;
use atlas_model::{CallError, Request};
use atlas_secrets::Redactor;
use atlas_turn::outage::OutageStep;
use atlas_turn::record::{AnswerOutcome as Recorded, UnusableAnswer};
use atlas_turn::{CountedUsage, Outage, Settings, cost, used};
use atlas_types::{Micros, StepKey, StepKind, StepUsage, Timestamp};
use serde::Deserialize as _;

use crate::journal::{JournalError, Made, Purse, Steps, once};
use crate::provider::llm::model::{Answered, Listener, Models, News};
use crate::provider::llm::outage::{Down, Limit, Patience, Unanswered};

/// What the model calls of an attempt have in common.
pub(in crate::provider) struct ModelRound<'a> {
    pub(in crate::provider) clock: &'a Arc<dyn Clock>,
    pub(in crate::provider) job: &'a str,
    pub(in crate::provider) purse: &'a Purse,
    /// How long the attempt waits for providers.
    pub(in crate::provider) outage_limit: Limit,
    pub(in crate::provider) settings: &'a Settings,
    pub(in crate::provider) models: &'a Models,
}

/// A call, which is the same in each attempt that gets this far.
pub(in crate::provider) struct ModelCall<'a> {
    /// The key of the step with its answer.
    pub(in crate::provider) step: StepKey,
    /// The key of the step that says that its provider is down.
    pub(in crate::provider) outage: StepKey,
    /// What the provider knows it by.
    pub(in crate::provider) idempotency_key: String,
    /// What is asked. It is not made for a call whose answer is recorded.
    pub(in crate::provider) request: &'a (dyn Fn() -> Request + Sync),
}

/// A call that was paid for.
pub(in crate::provider) struct PaidCall {
    pub(in crate::provider) answered: Answered,
    pub(in crate::provider) usage: StepUsage,
    /// Whether a part of the usage is an estimate.
    pub(in crate::provider) estimated: bool,
}

/// Why a call has no answer.
pub(in crate::provider) enum CallFault {
    Call(CallError),
    Journal(JournalError),
}

impl From<JournalError> for CallFault {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// Why a try has no answer.
pub(in crate::provider) enum TryFault {
    Down(Box<Down>),
    Fault(CallFault),
}

impl<F: Into<CallFault>> From<F> for TryFault {
    fn from(fault: F) -> Self {
        Self::Fault(fault.into())
    }
}

impl TryFault {
    /// The fault of a call that does not wait for its provider.
    pub(in crate::provider) fn into_fault(self) -> CallFault {
        match self {
            Self::Down(down) => CallFault::Call(down.error),
            Self::Fault(fault) => fault,
        }
    }
}

impl ModelRound<'_> {
    /// Makes a call, and records its answer; or returns the recorded one. `outage` is what is recorded of its provider.
    pub(in crate::provider) async fn answer(
        &self,
        journal: &mut impl Steps,
        (call, mut outage): (&ModelCall<'_>, Option<Outage>),
        listener: &mut impl Listener,
    ) -> Result<Arc<[u8]>, CallFault> {
        let (clock, mut is_recorded) = (self.clock, outage.is_some());
        loop {
            let patience = self.outage_limit.patience(outage.as_ref(), &**clock);
            let trial = journal.trial();
            let down = match self.tried(journal, call, patience, listener).await {
                Ok(outcome) => return usable(outcome),
                Err(TryFault::Fault(fault)) => return Err(fault),
                Err(TryFault::Down(down)) => down,
            };
            journal.in_vain(trial).await;
            let (wall, began) = (clock.wall().0, clock.monotonic());
            let outage = outage.get_or_insert_with(|| {
                let why = listener.secrets().redactor().text(&down.why).into_owned();
                down.begin(&why, &**clock, self.outage_limit)
            });
            // The clock of an earlier attempt may have been ahead.
            let again = outage.again(wall.max(journal.slept_until().0), down.named, down.random);
            let again = again.filter(|_| !self.outage_limit.attempt_left(&**clock).is_zero());
            let Some(again) = again else { return Err(CallFault::Call(down.given_up(outage.age(wall)))) };
            let pause = again.pause.as_secs_f64();
            let text = format!("no model answered: {}; the next try is in {pause:.1} s", down.why);
            listener.hear(journal.number(call.step), News::Log { level: "warning", text }).await;
            if again.parks && !is_recorded {
                let step = OutageStep { outage: outage.clone(), job: self.job.to_owned() };
                let outcome = serde_json::to_vec(&step).map_err(|error| journal.unreadable(error))?;
                journal.record(StepKind::Sleep, call.outage, outcome, StepUsage::default()).await?;
                is_recorded = true;
            }
            let left = Duration::from_micros(u64::try_from(again.at_us.saturating_sub(wall)).unwrap_or(0));
            journal.wait_until(Timestamp(again.at_us), left, again.waited).await?;
            self.outage_limit.rest(again.pause, began, &**clock).await;
        }
    }

    async fn tried(
        &self,
        journal: &mut impl Steps,
        call: &ModelCall<'_>,
        patience: Patience,
        listener: &mut impl Listener,
    ) -> Result<Arc<[u8]>, TryFault> {
        let number = journal.number(call.step);
        let make = || async move {
            let mut request = (call.request)();
            request.idempotency_key = Some(call.idempotency_key.clone());
            let paid = self.paid((call.step, number), &mut request, patience, &mut *listener).await?;
            let Answered { answer, place } = paid.answered;
            let recorded = Recorded { place, answer };
            // Vectors and scores are numbers, which we have written ourselves: letters in them are no secrets.
            let outcome = match request.task.is_chat() {
                true => outcome(&recorded, listener.secrets().redactor()),
                false => serde_json::to_vec(&recorded),
            };
            let outcome = outcome.map_err(|error| JournalError::Unreadable { step: u64::from(number), error })?;
            Ok(Made { outcome, usage: paid.usage })
        };
        once(journal, (StepKind::Model, call.step), make).await
    }

    /// Makes a call once, within the budget. `key` is that of the step that will record what it costs.
    pub(in crate::provider) async fn paid(
        &self,
        (key, number): (StepKey, u32),
        request: &mut Request,
        patience: Patience,
        listener: &mut impl Listener,
    ) -> Result<PaidCall, TryFault> {
        let Self { clock, settings, .. } = self;
        self.purse.reserve(key, settings, request).await?;
        let began = clock.monotonic();
        let called = self.models.call(request, number, (clock, listener), patience).await;
        let answered = match called {
            Ok(answered) => answered,
            Err(unanswered) => {
                self.purse.free(key).await?;
                return Err(match unanswered {
                    Unanswered::Down(down) => TryFault::Down(down),
                    Unanswered::Failed(error) => TryFault::Fault(CallFault::Call(error)),
                });
            }
        };
        let CountedUsage { usage, estimated } = used(settings, || request.clone(), &answered.answer);
        let usage = StepUsage {
            duration: Micros::from(clock.monotonic().saturating_sub(began)),
            tokens_input: usage.input,
            tokens_output: usage.output,
            cost_nanodollars: cost(settings, answered.place, &usage).0,
        };
        Ok(PaidCall { answered, usage, estimated })
    }
}

/// The outcome of a call, without values of secrets: some servers repeat the key of a request in their answer. One that nobody could read
/// then is recorded as what it is, since the call was paid for.
fn outcome(recorded: &Recorded, redactor: &Redactor) -> Result<Vec<u8>, serde_json::Error> {
    let mut value = serde_json::to_value(recorded)?;
    if redactor.json(&mut value) && Recorded::deserialize(&value).is_err() {
        let unusable = "the answer consists of a secret where only certain words are allowed".to_owned();
        let model = redactor.text(&recorded.answer.model).into_owned();
        return serde_json::to_vec(&UnusableAnswer { unusable, model, usage: recorded.answer.usage });
    }
    serde_json::to_vec(&value)
}

/// The recorded outcome of a call. One without an answer that can be used is that of a call that has failed.
pub(in crate::provider) fn usable(outcome: Arc<[u8]>) -> Result<Arc<[u8]>, CallFault> {
    match serde_json::from_slice::<UnusableAnswer>(&outcome) {
        Ok(answer) => Err(CallFault::Call(answer.failure())),
        Err(_) => Ok(outcome),
    }
}
