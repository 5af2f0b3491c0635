//! Jobs that attempts of this worker spawned: sent to the leader until it answers, across sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_types::{FencingToken, INLINE_BYTES_MAX, Micros, Payload, PayloadBody, Spawn, SpawnEnd, SpawnStep, Spawner};
use atlas_wire::session::ToLeader;

use super::{News, Pump};
use crate::attempt::{Asker, JournaledCall, SpawnCall};
use crate::mailbox::Answer;

/// The most children that one attempt may wait for at once.
const CHILDREN_MAX: usize = 1_024;

/// All unanswered spawns by the number that is sent to the leader.
#[derive(Default)]
pub(crate) struct Spawns {
    last: u64,
    open: BTreeMap<u64, Open>,
}

/// One unanswered spawn.
struct Open {
    asker: Asker,
    /// The time until which the attempt waits. Zero if it no longer waits.
    until: Duration,
    spawner: Spawner,
    agent: String,
    skill: bool,
    priority: i64,
    /// The input. None while a large one is being stored.
    input: Option<Payload>,
    /// The step of the journal to which the child belongs.
    step: Option<SpawnStep>,
    /// True if it was sent, so that the leader may know of it.
    said: bool,
}

impl Pump {
    /// Handles a spawn of an attempt.
    pub(super) fn on_spawn(&mut self, token: FencingToken, call: SpawnCall) {
        let Some(job) = self.attempts.get(&token).map(|place| place.job) else { return };
        let (asker, step, said) = match call.journaled {
            Some(JournaledCall { step, again, answer }) => (Asker::Journal(answer), Some(step), again),
            None => (Asker::Program { token, call: call.call }, None, false),
        };
        let mine = self.spawns.open.values().filter(|open| open.spawner.token == token).count();
        if mine >= CHILDREN_MAX {
            let why = format!("a job can wait for at most {CHILDREN_MAX} others at once");
            return self.answer_call(asker, Answer::Refused(why));
        }
        self.spawns.last += 1;
        let number = self.spawns.last;
        let bytes = Box::<str>::from(call.input).into_boxed_bytes();
        let (input, large) =
            if bytes.len() <= INLINE_BYTES_MAX { (Some(Payload::inline(&bytes)), None) } else { (None, Some(bytes)) };
        let until = self.env.clock.monotonic().saturating_add(call.timeout);
        let spawner = Spawner { job, token };
        let (agent, skill, priority) = (call.agent, call.skill, call.priority);
        let open = Open { asker, until, spawner, agent, skill, priority, input, step, said };
        self.spawns.open.insert(number, open);
        let Some(bytes) = large else { return self.send_spawn(number) };
        let (transfers, news) = (self.transfers.clone(), self.news.clone());
        self.env.spawn("store input", async move {
            let input = transfers.store(bytes.into_vec()).await.map_err(|error| error.to_string());
            // If the pump has ended, it has no attempts left.
            let _ = news.send(News::SpawnStored { number, input }).await;
        });
    }

    pub(super) fn on_spawn_stored(&mut self, number: u64, input: Result<Payload, String>) {
        match (self.spawns.open.get_mut(&number), input) {
            (Some(open), Ok(input)) => {
                open.input = Some(input);
                self.send_spawn(number);
            }
            (Some(_), Err(why)) => {
                let end = SpawnEnd::Refused(format!("could not store the child's input: {why}"));
                self.on_spawned(number, end);
            }
            (None, _) => {}
        }
    }

    /// Handles an attempt that no longer waits for one of its children.
    pub(super) fn on_leave(&mut self, token: FencingToken, call: u64) {
        let mine = |open: &Open| matches!(open.asker, Asker::Program { token: t, call: c } if (t, c) == (token, call));
        let Some((&number, open)) = self.spawns.open.iter_mut().find(|(_, open)| mine(open)) else { return };
        open.until = Duration::ZERO;
        self.send_spawn(number);
    }

    /// Sends all unanswered spawns again.
    pub(super) fn resend_spawns(&mut self) {
        for number in self.spawns.open.keys().copied().collect::<Vec<_>>() {
            self.send_spawn(number);
        }
    }

    fn send_spawn(&mut self, number: u64) {
        let now = self.env.clock.monotonic();
        let Some(open) = self.spawns.open.get_mut(&number).filter(|_| self.welcomed) else { return };
        let Some(input) = open.input.clone() else { return };
        let spawn = Spawn {
            spawner: open.spawner,
            agent: open.agent.clone(),
            skill: open.skill,
            input,
            priority: open.priority,
            timeout: Micros::from(open.until.saturating_sub(now)),
            again: std::mem::replace(&mut open.said, true),
            step: open.step,
        };
        self.send(ToLeader::Spawn { number, spawn: Box::new(spawn) });
    }

    /// Handles the result of a child. A large output is fetched first, outside the pump's loop.
    pub(super) fn on_spawned(&mut self, number: u64, end: SpawnEnd) {
        let Some(Open { asker, .. }) = self.spawns.open.remove(&number) else { return };
        let answer = match end {
            SpawnEnd::Completed(Payload { body: PayloadBody::Inline(output), .. }) => Answer::Completed(output),
            SpawnEnd::Failed(error) => Answer::Failed(error),
            SpawnEnd::Refused(why) => Answer::Refused(why),
            SpawnEnd::Completed(output) => {
                let (transfers, news) = (self.transfers.clone(), self.news.clone());
                self.env.spawn("load output", async move {
                    let answer = match transfers.load(&output).await {
                        Ok(output) => Answer::Completed(output),
                        Err(error) => Answer::Failed(format!("could not fetch the child's output: {error}")),
                    };
                    // If the pump has ended, it has no attempts left.
                    let _ = news.send(News::SpawnLoaded { asker, answer }).await;
                });
                return;
            }
        };
        self.answer_call(asker, answer);
    }

    /// Passes an answer to the attempt, if it still runs.
    pub(super) fn answer_call(&mut self, asker: Asker, answer: Answer) {
        let (token, call) = match asker {
            Asker::Program { token, call } => (token, call),
            Asker::Journal(asker) => {
                // An attempt that has ended does not wait for it.
                let _ = asker.send(answer);
                return;
            }
        };
        let mailbox = self.attempts.get(&token).and_then(|place| self.mailboxes.get(&place.slot));
        if let Some(mailbox) = mailbox {
            mailbox.answer(token, call, answer);
        }
    }

    /// Removes the spawns of an ended attempt. The controller decides about the children based on how the attempt
    /// ended.
    pub(super) fn forget_spawns(&mut self, token: FencingToken) {
        if !self.spawns.open.is_empty() {
            self.spawns.open.retain(|_, open| open.spawner.token != token);
        }
    }
}
