//! Drains: what runs may end, and is given back once the time for that has passed.

use std::time::Duration;

use atlas_types::{HeldLease, ReportKind};

use super::{Session, Slots};
use crate::attempts::{Stage, Stop};
use crate::{Effect, StopReason};

/// The end of a process that takes no new work: only when its leader grants it nothing more may it say that it leaves.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    /// The leader has said on this stream that the node is drained. All earlier grants came before.
    pub(super) known: bool,
    /// The leader was told that the process leaves.
    said: bool,
    /// Since when it has nothing left to do.
    since: Option<Duration>,
    /// By when the process ends, whatever the leader says.
    pub(super) until: Option<Duration>,
}

/// How long such a process tries to reach a leader.
const AWAY_MAX: Duration = Duration::from_secs(2);

impl Slots {
    /// Whether the leader has this node for drained.
    pub(super) fn told_drained(&mut self, is_drained: bool, effects: &mut Vec<Effect>) {
        let lifted = std::mem::replace(&mut self.farewell.known, is_drained) && !is_drained;
        // Somebody ended the drain in which this process ends.
        if lifted && self.draining && self.session == Session::Live {
            effects.push(Effect::SendDraining);
        }
    }

    /// Ends a process that takes no new work and has nothing left to do.
    pub(super) fn say_farewell(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if !self.draining || !self.is_idle() {
            (self.farewell.since, self.farewell.until) = (None, None);
            return;
        }
        let patience = match self.session {
            Session::Away => AWAY_MAX.min(self.options.farewell_max),
            // Whoever answers slowly may have granted it something.
            Session::Greeting { .. } | Session::Live => self.options.farewell_max,
        };
        let until = *self.farewell.since.get_or_insert(now) + patience;
        self.farewell.until = Some(until);
        // Without a session there is nobody who could grant it anything, or the leader finds that its stream broke.
        let is_alone = self.session == Session::Away && (self.farewell.said || self.clock.is_none());
        if is_alone || until <= now {
            effects.push(Effect::Drained);
        } else if self.session == Session::Live && self.farewell.known && !self.farewell.said {
            self.farewell.said = true;
            effects.push(Effect::SendLeaving);
        }
    }

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
