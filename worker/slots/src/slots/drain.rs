//! Drains: what runs may end, and is given back once the time for that has passed.

use std::time::Duration;

use atlas_types::{HeldLease, ReportKind};

use super::{Session, Slots};
use crate::attempts::{Stage, Stop};
use crate::{Effect, StopReason};

impl Slots {
    pub(super) fn drain(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if !std::mem::replace(&mut self.draining, true) {
            if self.session == Session::Live {
                effects.push(Effect::SendDraining);
            }
            self.hurry(now);
            self.evict(now, true, effects);
        }
    }

    pub(super) fn abandon(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        self.drain(now, effects);
        self.give_all_back(effects);
    }

    /// Gives every lease back: at once where nothing runs, else when the process is dead, for the leader grants it again.
    pub(super) fn give_all_back(&mut self, effects: &mut Vec<Effect>) {
        let grace = self.options.stop_grace;
        for HeldLease { job, token, .. } in self.attempts.leases() {
            match self.attempts.get_mut(token).map(|attempt| &mut attempt.stage) {
                Some(Stage::Running { stop: stop @ None, .. }) => {
                    *stop = Some(Stop::Abandoned);
                    effects.push(Effect::StopAttempt { token, why: StopReason::Abandoned, grace });
                }
                Some(
                    Stage::AwaitingEnd { .. }
                    | Stage::Preparing { .. }
                    | Stage::AwaitingRoom { .. }
                    | Stage::AwaitingStart { .. },
                ) => {
                    self.drop_attempt(token, StopReason::Abandoned, effects);
                    self.report(job, token, ReportKind::NotHeld, effects);
                }
                Some(Stage::Running { stop: Some(_), .. }) | None => {}
            }
        }
    }
}
