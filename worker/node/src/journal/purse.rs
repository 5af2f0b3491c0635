//! The budget of a running attempt: what a model call may cost is reserved at the leader before the call is made, and the step that
//! records the call settles it.

use atlas_env::Env;
use atlas_model::{NanoDollars, Request};
use atlas_turn::{Failure, Settings, cost_max};
use atlas_types::{FencingToken, Reservation, StepKey, StepsResult};
use tokio::sync::mpsc;

use super::{Entry, Journal, JournalError, Sender};
use crate::attempt::SlotEvent;

/// The budget that pays for the model calls of an attempt: that of its job, or of a job above it.
#[derive(Clone)]
pub(crate) struct Purse {
    /// None if nothing limits the calls.
    budget: Option<NanoDollars>,
    token: FencingToken,
    told: mpsc::Sender<SlotEvent>,
    env: Env,
}

impl Journal {
    /// What pays for the calls of the attempt.
    pub(crate) fn purse(&self, budget: Option<NanoDollars>) -> Purse {
        Purse { budget, token: self.token, told: self.told.clone(), env: self.env.clone() }
    }
}

impl Purse {
    /// Reserves what the call of this request may cost, and limits its answer. `key` is that of the step that will record the call. While calls of
    /// other jobs hold what is left, this waits for them.
    pub(crate) async fn reserve(
        &self,
        key: StepKey,
        settings: &Settings,
        request: &mut Request,
    ) -> Result<(), JournalError> {
        let Some(budget) = self.budget else { return Ok(()) };
        let Some(next) = cost_max(settings, request) else {
            return Err(JournalError::Budget(Failure::Unpriced { model: settings.model.clone(), budget }));
        };
        // A model without a price needs no budget.
        if next == NanoDollars(0) {
            return Ok(());
        }
        match self.send(key, next).await? {
            StepsResult::OverBudget { budget, spent } => {
                let (budget, spent) = (NanoDollars(budget), NanoDollars(spent));
                Err(JournalError::Budget(Failure::Budget { budget, spent, next }))
            }
            StepsResult::Refused { step, why } => Err(JournalError::Refused { step, why }),
            _ => Ok(()),
        }
    }

    /// Frees what was reserved for a call that failed: no step records it.
    pub(crate) async fn free(&self, key: StepKey) -> Result<(), JournalError> {
        match self.budget {
            Some(_) => self.send(key, NanoDollars(0)).await.map(|_| ()),
            None => Ok(()),
        }
    }

    async fn send(&self, key: StepKey, amount: NanoDollars) -> Result<StepsResult, JournalError> {
        let sender = Sender { token: self.token, told: &self.told, env: &self.env };
        sender.send(Entry::Reserve(Reservation { key, nanodollars: amount.0 })).await
    }
}
