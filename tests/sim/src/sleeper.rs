//! Jobs that park: the worker's side, the leader's side and their messages.
//!
//! A sleeper goes through rounds. In each it records that it begins to wait, asks to be parked until the wait is over, and records
//! its end. An attempt that finds a round begun asks to be parked again: `ready` tells it that the wait is over. So no attempt has to know
//! whether the one before parked or was lost. What was asked is repeated on each new connection until it is answered.

use std::sync::Arc;

use atlas_types::{
    Assignment, Command, DeliverMessage, FencingToken, Inbox, Job, JobId, MessageId, Micros, Outcome, ParkJob, Payload,
    PayloadBody, RecordSteps, Rejection, SpawnedBy, Spawner, Step, StepKey, StepKind, StepUsage, Timestamp, Wait,
};

use crate::Bug;
use crate::leader::Reply;
use crate::message::{Conn, Event, Frame, Member, Node, ToNode};
use crate::options::{MS, SECOND};
use crate::people::question;
use crate::rng::mix;
use crate::workload::{self, Agent};
use crate::world::World;

/// How often a sleeper waits before it ends.
const ROUNDS: u64 = 3;

/// How often a step is refused for lack of room before the attempt fails, as in workers.
const NO_ROOM_MAX: u32 = 10;

/// A running attempt of a sleeper.
#[derive(Debug, Clone)]
pub(crate) struct Sleeper {
    job: JobId,
    started: u64,
    /// Its recorded steps.
    length: u64,
    /// What the last recorded step says.
    note: Note,
    /// It waits for an answer to this.
    asks: Option<Doze>,
    /// How often there was no room for its first step.
    without_room: u32,
    /// The time of the state that answered last.
    seen: Timestamp,
}

/// What a step records: until when, or for which child a round waits, and how many messages are read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Note {
    waits_for: u64,
    read: u64,
}

/// What a sleeper asks of the leader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doze {
    job: JobId,
    token: FencingToken,
    length: u64,
    act: Act,
}

#[derive(Debug, Clone, Copy)]
enum Act {
    /// Records the next step, and spawns a child with it.
    Record { note: Note, child: Option<(u64, Agent)> },
    /// Parks.
    Park { wait: Wait, read: u64, used: u64 },
}

/// The leader's answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dozed {
    /// The step is recorded, or the wait is over.
    GoOn,
    /// There is no room for the first step now.
    NoRoom,
    /// The attempt is over.
    Over,
}

/// What the round that begins with a step waits for: the same in each attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Time,
    Message,
    Child,
    Question,
}

impl Round {
    fn of(job: JobId, begin: u64) -> Self {
        match mix(job.0 ^ begin) % 4 {
            0 => Self::Time,
            1 => Self::Message,
            2 => Self::Child,
            _ => Self::Question,
        }
    }
}

/// Step 0 starts the job; after it each round begins with an odd step and ends with an even one.
fn begins_round(step: u64) -> bool {
    !step.is_multiple_of(2)
}

/// The worker's side.
impl World {
    pub(crate) fn sleeper_starts(&mut self, node: Node, assignment: &Assignment) {
        let journal = assignment.journal.as_ref().map(|journal| Arc::clone(&journal.journal)).unwrap_or_default();
        let note = journal.steps.last().and_then(|step| note_in(&step.outcome)).unwrap_or_default();
        let (job, length) = (assignment.job, journal.next());
        let sleeper = Sleeper { job, started: self.now, length, note, asks: None, without_room: 0, seen: Timestamp(0) };
        self.nodes[node].sleepers.insert(assignment.token, sleeper);
        self.sleeper_acts(node, assignment.token);
    }

    /// Asks for the next thing.
    fn sleeper_acts(&mut self, node: Node, token: FencingToken) {
        let Some(sleeper) = self.nodes[node].sleepers.get(&token).cloned() else { return };
        let Sleeper { job, length, note, seen, .. } = sleeper;
        let act = if length == 0 {
            Act::Record { note, child: None }
        } else if length == 2 * ROUNDS + 1 {
            self.nodes[node].sleepers.remove(&token);
            return self.end_now(node, token);
        } else if begins_round(length) {
            self.begin_round(job, token, length, note, seen)
        } else {
            let wait = match Round::of(job, length - 1) {
                Round::Time => Wait::Time { at: Timestamp(note.waits_for as i64) },
                Round::Message => Wait::Message,
                Round::Child => Wait::Child { job: JobId(note.waits_for) },
                Round::Question => Wait::Question { id: question(job, length - 1) },
            };
            // It does nothing until it is answered.
            if self.options.bug != Some(Bug::ParkKeepsPlace) {
                self.oracle.child_waits(token, self.now);
            }
            Act::Park { wait, read: note.read, used: self.now - sleeper.started }
        };
        if let Some(sleeper) = self.nodes[node].sleepers.get_mut(&token) {
            sleeper.asks = Some(Doze { job, token, length, act });
        }
        self.say_doze(node, token);
    }

    fn begin_round(&mut self, job: JobId, token: FencingToken, length: u64, note: Note, seen: Timestamp) -> Act {
        let mut child = None;
        let waits_for = match Round::of(job, length) {
            Round::Time => seen.0 as u64 + self.rng.pick(&[200, 1_500, 4_000]) * MS,
            // It is asked when the round has begun.
            Round::Question => 0,
            Round::Message => {
                self.after_up_to(3 * SECOND, Event::Message { job, number: note.read });
                0
            }
            Round::Child => {
                let number = self.fresh();
                child = Some((number, self.rng.pick(&[Agent::Echo, Agent::Flaky, Agent::Sleeper])));
                Spawner { job, token }.child(number).0
            }
        };
        Act::Record { note: Note { waits_for, ..note }, child }
    }

    /// It asks again after a pause, or gives up: those who hold the room may wait for its job.
    fn sleeper_has_no_room(&mut self, node: Node, token: FencingToken) {
        let Some(sleeper) = self.nodes[node].sleepers.get_mut(&token) else { return };
        sleeper.without_room += 1;
        if sleeper.without_room < NO_ROOM_MAX {
            let pause = (200 * MS) << sleeper.without_room.min(4);
            return self.after(pause, Event::DozeSaid(node, token));
        }
        self.coverage.count("attempts without room");
        self.nodes[node].sleepers.remove(&token);
        self.fail_now(node, token, "no room for the journal");
    }

    pub(crate) fn say_doze(&mut self, node: Node, token: FencingToken) {
        if let Some(doze) = self.nodes[node].sleepers.get(&token).and_then(|sleeper| sleeper.asks) {
            self.send_frame(node, Frame::Doze(doze));
        }
    }

    /// Says again what was not answered before this connection.
    pub(crate) fn resend_dozes(&mut self, node: Node) {
        for token in self.nodes[node].sleepers.keys().copied().collect::<Vec<_>>() {
            self.say_doze(node, token);
        }
    }

    /// The leader has answered.
    pub(crate) fn dozed(&mut self, node: Node, doze: Doze, answer: Dozed, at: Timestamp) {
        let Some(sleeper) = self.nodes[node].sleepers.get_mut(&doze.token) else { return };
        // It was answered before, or the lease is gone: then the stop is on its way.
        let asked = sleeper.asks.is_some_and(|asked| {
            asked.length == doze.length && matches!(asked.act, Act::Park { .. }) == matches!(doze.act, Act::Park { .. })
        });
        match answer {
            Dozed::GoOn if asked => {}
            Dozed::NoRoom if asked => return self.sleeper_has_no_room(node, doze.token),
            _ => return,
        }
        (sleeper.asks, sleeper.seen) = (None, at);
        match doze.act {
            Act::Record { note, .. } => {
                (sleeper.length, sleeper.note) = (sleeper.length + 1, note);
                self.sleeper_acts(node, doze.token);
            }
            Act::Park { .. } => {
                let woken = Round::of(sleeper.job, doze.length - 1) == Round::Message;
                let note = Note { waits_for: 0, read: sleeper.note.read + u64::from(woken) };
                sleeper.asks = Some(Doze { act: Act::Record { note, child: None }, ..doze });
                self.oracle.child_goes_on(doze.token);
                self.say_doze(node, doze.token);
            }
        }
    }
}

/// The leader's side.
impl World {
    pub(crate) fn doze_said(&mut self, member: Member, node: Node, conn: Conn, doze: Doze) {
        let Doze { job, token, length, act } = doze;
        let id = self.nodes[node].id.clone();
        let command = match act {
            Act::Record { note, child } => {
                if let Some((number, agent)) = child {
                    self.gather(
                        member,
                        workload::spawn(SpawnedBy::Attempt(Spawner { job, token }), number, agent),
                        Reply::Nobody,
                    );
                }
                Command::RecordSteps(RecordSteps {
                    job,
                    node: id,
                    token,
                    from: length,
                    steps: vec![step(length, note)],
                })
            }
            Act::Park { wait, read, used } => {
                if let Wait::Question { .. } = wait {
                    self.ask(member, (job, id.clone(), token), length - 1);
                }
                Command::ParkJob(ParkJob {
                    job,
                    node: id,
                    token,
                    journal_length: length,
                    waits: vec![wait],
                    used: Micros(used),
                    read,
                })
            }
        };
        self.gather(member, workload::request(command), Reply::Doze { node, conn, doze });
    }

    pub(crate) fn answer_doze(
        &mut self,
        member: Member,
        (node, conn, doze): (Node, Conn, Doze),
        outcome: &Result<Outcome, Rejection>,
    ) {
        let answer = match outcome {
            Ok(Outcome::Parked { ready: false } | Outcome::Ended { .. }) | Err(Rejection::Fenced) => Dozed::Over,
            // What cannot be waited for is over: a child that was refused or pruned, a question that was refused.
            Ok(_) | Err(Rejection::UnknownJob { .. } | Rejection::UnknownQuestion) => Dozed::GoOn,
            // The journals of all jobs have a budget.
            Err(Rejection::LimitReached { .. }) => Dozed::NoRoom,
            // Said before, on another connection.
            Err(Rejection::JournalLength { .. } | Rejection::StepDiffers { .. }) => return,
            Err(rejection) => return self.oracle.violate(format!("{doze:?} was refused: {rejection}")),
        };
        let at = self.members[member].replica.state().at();
        self.send_to_node(node, conn, ToNode::Dozed { doze, answer, at });
    }

    /// Somebody sends a job a message until it has that.
    pub(crate) fn message(&mut self, job: JobId, number: u64) {
        let state = self.oracle.state();
        let waits = |job: &&Arc<Job>| !job.status.is_terminal();
        let had = |inbox: &&Arc<Inbox>| inbox.next() > number;
        if state.job(job).filter(waits).is_none() || state.inbox(job).filter(had).is_some() {
            return;
        }
        if let Some(member) = self.raft.leader {
            let name = format!("message-{}-{number}", job.0);
            let id = MessageId::new(&name).unwrap_or_else(|_| unreachable!("a short name"));
            let deliver = DeliverMessage { job, id, answers: None, channel: None, payload: Payload::inline(b"1") };
            self.gather(member, workload::named(&name, Command::DeliverMessage(deliver)), Reply::Nobody);
        }
        self.after(300 * MS, Event::Message { job, number });
    }
}

fn step(number: u64, note: Note) -> Arc<Step> {
    let kind = if number == 0 { StepKind::Start } else { StepKind::Sleep };
    let outcome = Payload::inline(format!("{} {}", note.waits_for, note.read).as_bytes());
    Arc::new(Step { kind, key: StepKey([number as u8; 16]), outcome, usage: StepUsage::default() })
}

fn note_in(outcome: &Payload) -> Option<Note> {
    let PayloadBody::Inline(bytes) = &outcome.body else { return None };
    let (waits_for, read) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
    Some(Note { waits_for: waits_for.parse().ok()?, read: read.parse().ok()? })
}
