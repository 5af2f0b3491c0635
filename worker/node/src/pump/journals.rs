//! Steps and folds of attempts: sent to the leader until it answers, across sessions.

use std::collections::BTreeMap;

use atlas_slots::Input;
use atlas_types::{FencingToken, JobId, StepsResult};
use atlas_wire::session::ToLeader;
use tokio::sync::oneshot;

use super::Pump;
use crate::journal::Entry;

/// All unanswered entries by the number that is sent to the leader.
#[derive(Default)]
pub(crate) struct Journals {
    last: u64,
    open: BTreeMap<u64, Open>,
}

/// One unanswered entry.
struct Open {
    job: JobId,
    token: FencingToken,
    entry: Entry,
    answer: oneshot::Sender<StepsResult>,
}

impl Pump {
    /// Handles a journal entry of an attempt. If the attempt has ended, its request is dropped, which ends its wait.
    pub(super) fn on_journal(&mut self, token: FencingToken, entry: Entry, answer: oneshot::Sender<StepsResult>) {
        let Some(job) = self.attempts.get(&token).map(|place| place.job) else { return };
        self.journals.last += 1;
        let number = self.journals.last;
        self.journals.open.insert(number, Open { job, token, entry, answer });
        self.send_entry(number);
    }

    /// Sends all unanswered entries again.
    pub(super) fn resend_entries(&mut self) {
        for number in self.journals.open.keys().copied().collect::<Vec<_>>() {
            self.send_entry(number);
        }
    }

    fn send_entry(&mut self, number: u64) {
        let Some(Open { job, token, entry, .. }) = self.journals.open.get(&number).filter(|_| self.welcomed) else {
            return;
        };
        let (job, token) = (*job, *token);
        let frame = match entry.clone() {
            Entry::Steps { from, steps } => ToLeader::RecordSteps { number, job, token, from, steps },
            Entry::Reserve(call) => ToLeader::ReserveBudget { number, job, token, call },
            Entry::Fold(fold) => ToLeader::FoldSteps { number, job, token, fold },
        };
        self.send(frame);
    }

    /// Handles the leader's answer to steps or a fold. An attempt whose lease has ended meanwhile is stopped first, so
    /// that it does not start another step.
    pub(super) fn on_steps_ack(&mut self, number: u64, result: StepsResult) {
        self.step(Input::Tick);
        if let Some(open) = self.journals.open.remove(&number) {
            // An attempt that has ended does not wait for the answer.
            let _ = open.answer.send(result);
        }
    }

    /// Removes the entries of an attempt that has ended or is being stopped.
    pub(super) fn forget_entries(&mut self, token: FencingToken) {
        self.journals.open.retain(|_, open| open.token != token);
    }
}
