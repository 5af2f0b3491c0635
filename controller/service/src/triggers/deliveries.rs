//! What happened to the calls of webhooks: who called, under which delivery id, and the outcome.

use atlas_api::types;

use super::HookAnswer;
use crate::kept::{CALLS_MAX, Delivery, Outcome, short};
use crate::{Caller, Error, HookSender, Service};

impl Service {
    /// Notes what happened to the call of a webhook that exists.
    pub fn note_delivery(
        &self,
        caller: &Caller,
        trigger: &str,
        sender: &HookSender,
        id: Option<&str>,
        answer: Result<&HookAnswer, &Error>,
    ) {
        let outcome = match answer {
            Ok(HookAnswer::Started(job)) => Outcome::Fired(job.clone()),
            Ok(HookAnswer::Greeted(_)) => Outcome::Greeted,
            Err(error) => Outcome::Refused(error.entry().code, short(&error.to_string())),
        };
        let sender = HookSender { address: sender.address, program: short(&sender.program) };
        let at = self.shared.env.clock.wall();
        let delivery = Delivery { at, sender, id: short(id.unwrap_or_default()), outcome };
        self.shared.deliveries.add(&caller.namespace, trigger, delivery);
    }

    /// The latest calls of a webhook that reached this controller.
    pub async fn deliveries(&self, caller: &Caller, trigger: &str, most: usize) -> Result<Vec<types::Delivery>, Error> {
        self.trigger(caller, trigger, crate::View::Plain, crate::Consistency::Linearizable).await?;
        let found = self.shared.deliveries.of(&caller.namespace, trigger, most.min(CALLS_MAX));
        Ok(found.iter().map(shown).collect())
    }
}

fn shown(delivery: &Delivery) -> types::Delivery {
    let (outcome, job, code, error) = match &delivery.outcome {
        Outcome::Fired(job) => ("fired", job.as_str(), "", ""),
        Outcome::Greeted => ("greeted", "", "", ""),
        Outcome::Repeated(job) => ("repeated", job.as_str(), "", ""),
        Outcome::Refused(code, error) => ("refused", "", *code, error.as_str()),
    };
    types::Delivery {
        at: delivery.at.0 as f64 / 1e6,
        from: delivery.sender.address.map(|address| address.to_string()).unwrap_or_default(),
        program: delivery.sender.program.clone(),
        delivery: delivery.id.clone(),
        outcome: outcome.to_owned(),
        job_id: job.to_owned(),
        code: code.to_owned(),
        error: error.to_owned(),
    }
}
