//! The envelope of a budget: model calls of a job draw on the budget of the nearest job above it that has one, or on its own.

use std::sync::Arc;

use atlas_types::{Envelope, Job, JobId, Rejection, Reservation, Step, level};

use super::Change;

impl Change<'_> {
    /// Reserves what a call may cost. A job without a budget above it needs no reservation.
    pub(crate) fn reserve(&mut self, job: JobId, call: Reservation) -> Result<(), Rejection> {
        use atlas_types::NotReserved::{Never, NotNow};
        let Some((payer, budget)) = self.payer_of(job)? else { return Ok(()) };
        let mut envelope = self.envelope(payer);
        Arc::make_mut(&mut envelope).reserve(job, call, budget).map_err(|why| match why {
            Never => Rejection::OverBudget { budget, spent: envelope.spent },
            NotNow => Rejection::BudgetReserved,
        })?;
        self.state.envelopes.insert(payer, envelope);
        Ok(())
    }

    /// Counts the cost of recorded steps, instead of what was reserved for them.
    pub(crate) fn settle(&mut self, job: JobId, envelope: Option<(JobId, Arc<Envelope>)>, steps: &[Arc<Step>]) {
        let Some((payer, mut envelope)) = envelope else { return };
        let mut changed = false;
        for step in steps {
            let (key, cost) = (step.key, step.usage.cost_nanodollars);
            if cost > 0 || envelope.reserved.contains_key(&(job, key)) {
                Arc::make_mut(&mut envelope).settle(job, key, cost);
                changed = true;
            }
        }
        if changed {
            self.state.envelopes.insert(payer, envelope);
        }
    }

    /// The envelope on which a job draws, before further steps are in its journal.
    pub(crate) fn envelope_of(&self, job: JobId) -> Option<(JobId, Arc<Envelope>)> {
        if self.state.level < level::ENVELOPES {
            return None;
        }
        let (payer, _) = self.payer_of(job).ok().flatten()?;
        Some((payer, self.envelope(payer)))
    }

    /// Frees what a job that ends has reserved, and drops its own envelope.
    pub(super) fn leave_envelope(&mut self, job: &Job) {
        self.state.envelopes.remove(&job.id);
        let Ok(Some((payer, _))) = self.payer_of(job.id) else { return };
        if let Some(envelope) = self.state.envelopes.get_mut(&payer)
            && envelope.reserved.keys().any(|(holder, _)| *holder == job.id)
        {
            Arc::make_mut(envelope).release(job.id);
        }
    }

    /// The job whose budget pays for a job, and the budget. A payer that has ended pays nothing more.
    fn payer_of(&self, job: JobId) -> Result<Option<(JobId, u64)>, Rejection> {
        let Some(payer) = self.state.payer(job) else { return Ok(None) };
        let budget = payer.budget_nanodollars.unwrap_or(u64::MAX);
        if payer.status.is_terminal() {
            return Err(Rejection::OverBudget { budget, spent: budget });
        }
        Ok(Some((payer.id, budget)))
    }

    /// The envelope of a job with a budget. A new one counts the steps with which the job began.
    fn envelope(&self, payer: JobId) -> Arc<Envelope> {
        let began = || {
            let spent = self.state.journals.get(&payer).map_or(0, |journal| journal.usage().cost_nanodollars);
            Arc::new(Envelope { spent, ..Envelope::default() })
        };
        self.state.envelopes.get(&payer).cloned().unwrap_or_else(began)
    }
}
