//! Attempts that wait: their jobs are parked when the wait has lasted long enough, or at once when the node gives its jobs away.
//!
//! An attempt whose job may be parked does nothing until the leader has answered, because its lease may have ended. If its wait ends
//! meanwhile, it continues only if the answer is not `parked`.

use std::time::Duration;

use atlas_types::{FencingToken, Micros, Park, ParkResult};

use super::{Session, Slots};
use crate::attempts::{Stage, Waiting};
use crate::{Effect, StopReason};

/// How long a wait lasts before the job is parked.
pub const PARK_AFTER: Duration = Duration::from_secs(5);

/// How long a wait lasts on a node that gives its jobs away: long enough that a wait which is over does not ask the leader all the time.
const LEAVE_AFTER: Duration = Duration::from_millis(250);

impl Slots {
    /// An attempt waits. One that waits for nothing asks whether it should leave the node before its next step.
    pub(super) fn waits(
        &mut self,
        token: FencingToken,
        (park, waited): (Park, Duration),
        now: Duration,
        effects: &mut Vec<Effect>,
    ) {
        let (leaves, after) = (self.leaves(), self.patience());
        let Some(Stage::Running { stop: None, wait, .. }) = self.attempts.stage_mut(token) else { return };
        let between_steps = park.waits.is_empty();
        if between_steps && !leaves {
            return effects.push(Effect::Resume { token, refused: None });
        }
        let ask_at = if between_steps { now } else { now + after.saturating_sub(waited) };
        *wait = Some(Waiting { park, since: now, ask_at, asked: None, over: false });
    }

    /// What an attempt waited for has come.
    pub(super) fn wait_over(&mut self, token: FencingToken, effects: &mut Vec<Effect>) {
        let Some(Stage::Running { stop: None, wait, .. }) = self.attempts.stage_mut(token) else { return };
        match wait {
            Some(waiting) if waiting.asked.is_some() => waiting.over = true,
            Some(_) => {
                *wait = None;
                effects.push(Effect::Resume { token, refused: None });
            }
            None => {}
        }
    }

    /// The leader has answered.
    pub(super) fn park_answered(&mut self, number: u64, result: ParkResult, now: Duration, effects: &mut Vec<Effect>) {
        let after = self.patience();
        let Some(token) = self.attempts.asks(number) else { return };
        let Some(Stage::Running { stop, wait, .. }) = self.attempts.stage_mut(token) else { return };
        let refused = match result {
            ParkResult::Parked => return self.drop_attempt(token, StopReason::Parked, effects),
            ParkResult::Fenced => return self.drop_attempt(token, StopReason::Revoked, effects),
            ParkResult::Busy => {
                let waits = |waiting: &&mut Waiting| !waiting.over && !waiting.park.waits.is_empty();
                if let Some(waiting) = wait.as_mut().filter(waits) {
                    (waiting.asked, waiting.ask_at) = (None, now + after);
                    return;
                }
                None
            }
            ParkResult::Ready => None,
            ParkResult::Refused { why } => Some(why),
        };
        *wait = None;
        if stop.is_none() {
            effects.push(Effect::Resume { token, refused });
        }
    }

    /// The node begins to give its jobs away.
    pub(super) fn hurry(&mut self, now: Duration) {
        let ask_at = now + self.patience();
        for (_, waiting) in self.attempts.waiting_mut() {
            waiting.ask_at = waiting.ask_at.min(ask_at);
        }
    }

    /// Asks the leader again what it has not answered on an earlier stream.
    pub(super) fn ask_again(&mut self, effects: &mut Vec<Effect>) {
        for (lease, waiting) in self.attempts.waiting_mut() {
            if let Some(number) = waiting.asked {
                let park = Box::new(waiting.park.clone());
                effects.push(Effect::SendPark { number, job: lease.job, token: lease.token, park });
            }
        }
    }

    /// Asks the leader to park the jobs that have waited long enough.
    pub(super) fn ask(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if self.session != Session::Live {
            return;
        }
        let next = &mut self.next_park;
        for (lease, waiting) in self.attempts.waiting_mut() {
            if waiting.asked.is_some() || now < waiting.ask_at {
                continue;
            }
            let waited = Micros::from(now.saturating_sub(std::mem::replace(&mut waiting.since, now)));
            waiting.park.used = Micros(waiting.park.used.0.saturating_add(waited.0));
            waiting.asked = Some(*next);
            let park = Box::new(waiting.park.clone());
            effects.push(Effect::SendPark { number: *next, job: lease.job, token: lease.token, park });
            *next += 1;
        }
    }

    /// When the leader is to be asked next.
    pub(super) fn next_ask(&self) -> Option<Duration> {
        let waiting = self.attempts.waiting().filter(|waiting| waiting.asked.is_none());
        waiting.map(|waiting| waiting.ask_at).min().filter(|_| self.session == Session::Live)
    }

    fn patience(&self) -> Duration {
        if self.leaves() { LEAVE_AFTER.min(self.options.park_after) } else { self.options.park_after }
    }

    /// Whether jobs leave the node at their next step.
    fn leaves(&self) -> bool {
        self.draining || self.hand_back.is_told()
    }
}
