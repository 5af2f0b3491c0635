//! The pump: takes every input in turn, passes it to the slot machine and performs its effects. It makes no decisions
//! itself.

mod closing;
mod deltas;
mod journals;
mod models;
mod parts;
mod preparation;
mod saving;
mod spawns;
mod tools;
mod waits;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use atlas_contract::Contract;
use atlas_env::Env;
use atlas_slots::{AttemptEnd, Deltas, Effect, Input, Leave, SlotId, Slots, Spool, StopReason};
use atlas_types::{
    BootId, Demand, Failure, FailureKind, FencingToken, Inventory, JobId, Level, NodeId, Payload, level,
};
use atlas_wire::limits::{STREAM_EVENTS_MAX, WORKER_FRAME_BYTES_MAX};
use atlas_wire::session::{Hello, ToLeader, ToWorker, Welcome};
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use self::journals::Journals;
use self::models::Tries;
pub(crate) use self::parts::Parts;
use self::preparation::echo;
use self::spawns::Spawns;
use self::tools::Tools;
use self::waits::Waits;
use crate::attempt::{Ended, SlotEvent, Work};
use crate::link::{LinkEvent, Stream};
use crate::mailbox::{Mailbox, Order};
use crate::news::News;
use crate::packages::Packages;
use crate::payloads::Transfers;
use crate::provider::{Settings, Shared};
use crate::results::Results;
use crate::slot;
use crate::tries::TryEvent;

/// The most stream events in one frame.
const EVENTS_PER_FRAME: usize = 256;
/// The most bytes of their text.
const EVENT_BYTES_PER_FRAME: usize = 256 << 10;

const _: () = assert!(EVENTS_PER_FRAME <= STREAM_EVENTS_MAX && EVENT_BYTES_PER_FRAME * 2 <= WORKER_FRAME_BYTES_MAX);

/// How long stream events wait if the stream cannot keep up.
const EVENTS_PAUSE: Duration = Duration::from_millis(5);

/// How long a stopping worker waits for the answers to its last reports.
const ANSWERS_PATIENCE: Duration = Duration::from_secs(2);

/// The identity of this worker.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) node: NodeId,
    pub(crate) boot_id: BootId,
    /// The process that used the data directory before this one.
    pub(crate) previous: Option<BootId>,
    /// The boot id after the results of that process are delivered.
    pub(crate) next: BootId,
    pub(crate) inventory: Inventory,
}

/// The pump's inputs.
pub(crate) struct Inbox {
    pub(crate) link: mpsc::Receiver<LinkEvent>,
    pub(crate) told: mpsc::Receiver<SlotEvent>,
    pub(crate) news: mpsc::Receiver<News>,
    pub(crate) tries: mpsc::UnboundedReceiver<TryEvent>,
}

/// Says what is known of the programs that run agents here: that there is a container engine, and what is missing. A label that the
/// operator gave counts.
pub(crate) fn label(inventory: &mut Inventory, settings: &Settings) {
    let labels = [
        (settings.containers.is_available(), Contract::CONTAINER, Contract::AVAILABLE),
        (settings.python.is_missing(), Demand::PYTHON, Demand::NONE),
        (settings.nodejs.is_missing(), Demand::NODE, Demand::NONE),
    ];
    for (_, label, value) in labels.into_iter().filter(|(counts, ..)| *counts) {
        inventory.labels.entry(label.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// The pump.
pub(crate) struct Pump {
    pub(crate) env: Env,
    pub(crate) identity: Identity,
    pub(crate) slots: Slots,
    pub(crate) spool: Spool,
    pub(crate) shared: Shared,
    pub(crate) packages: Packages,
    pub(crate) transfers: Transfers,
    pub(crate) results: Results,
    pub(crate) news: mpsc::Sender<News>,
    pub(crate) drain_timeout: Duration,
    pub(crate) prepare_timeout: Duration,
    pub(crate) stop_grace: Duration,
    stream: Option<Stream>,
    /// True if the hello was answered on this stream.
    welcomed: bool,
    /// The newest lease that the leader gave before it knew what this node told it last.
    earlier: Option<FencingToken>,
    /// The slot of each started attempt. A slot without a task is still being prepared.
    attempts: BTreeMap<FencingToken, RunningAttempt>,
    /// Attempts that are prepared before their start is committed, with their work once it is available.
    prepared: BTreeMap<FencingToken, Option<Arc<Work>>>,
    mailboxes: BTreeMap<SlotId, Arc<Mailbox>>,
    /// The number of running tasks of each slot. A second task is created if the first one's program ended between two
    /// attempts.
    tasks: BTreeMap<SlotId, u32>,
    /// Children that attempts wait for.
    spawns: Spawns,
    /// Steps and folds without an answer.
    journals: Journals,
    waits: Waits,
    /// Unanswered tool calls.
    tools: Tools,
    /// Tries of calls of limited models.
    tries: Tries,
    /// The feature level of the leader.
    leader_level: Level,
    /// Pieces of answers that wait to be joined, and until when.
    deltas: Deltas,
    deltas_due: Option<Duration>,
    /// Inputs that effects produced immediately.
    caused: VecDeque<Input>,
    /// True while stream events wait for the stream to catch up.
    held_back: bool,
    /// The end of the leases that was last sent to the supervisors.
    lease_end: Option<Duration>,
    drained: bool,
}

/// The slot of an attempt.
#[derive(Debug, Clone, Copy)]
struct RunningAttempt {
    job: JobId,
    slot: SlotId,
    /// True if the slot existed before.
    warm: bool,
}

impl Pump {
    /// Runs until drained.
    pub(crate) async fn run(mut self, mut inbox: Inbox) {
        while !self.drained {
            let wake = self.sleep();
            tokio::select! {
                // Frames of the leader come first, so that a cancel or a revoke does not wait behind an agent's log
                // lines.
                biased;
                Some(event) = inbox.link.recv() => self.on_link(event),
                Some(news) = inbox.news.recv() => self.on_news(news),
                Some(event) = inbox.tries.recv() => self.on_try(event),
                Some(told) = inbox.told.recv() => self.on_told(told),
                () = wake => self.step(Input::Tick),
            }
            // Events that have already arrived are handled in the same step.
            for _ in 0..64 {
                match inbox.told.try_recv() {
                    Ok(told) => self.on_told(told),
                    Err(_) => break,
                }
            }
            self.send_due_deltas();
            // Before the events of attempts, which may take all the room.
            self.say_tries();
            self.send_events();
            self.settle();
        }
        self.close(inbox).await;
    }

    fn sleep(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        let now = self.env.clock.monotonic();
        let tick = self.slots.next_tick().map(|at| at.saturating_sub(now));
        let deltas = self.deltas_due.map(|at| at.saturating_sub(now));
        let held_back = self.held_back || (self.welcomed && self.tries.has_unsaid());
        match tick.into_iter().chain(deltas).chain(held_back.then_some(EVENTS_PAUSE)).min() {
            Some(pause) => self.env.clock.sleep(pause),
            None => Box::pin(std::future::pending()),
        }
    }

    fn on_link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Connected(stream) => {
                self.stream = Some(stream);
                self.welcomed = false;
                self.step(Input::Connected);
            }
            LinkEvent::Said(said) => self.on_said(*said),
            LinkEvent::Disconnected => {
                self.stream = None;
                self.welcomed = false;
                self.step(Input::Disconnected);
            }
        }
    }

    fn on_said(&mut self, said: ToWorker) {
        match said {
            ToWorker::Welcome(Welcome { epoch, session_ttl, leases, controllers: _, level, hand_back }) => {
                info!(node = %self.identity.node, %epoch, leases = leases.len(), "session open");
                self.welcomed = true;
                self.leader_level = level;
                self.spool.resend();
                // A finished drain must be removed before the leases of the welcome are added.
                self.step(Input::HandBack(hand_back));
                self.read_welcome(&leases);
                self.earlier = leases.iter().map(|lease| lease.token).max();
                self.step(Input::Welcome { epoch, ttl: session_ttl.as_duration(), leases });
                self.resend_spawns();
                self.resend_entries();
                self.resend_calls();
                self.announce_models();
            }
            ToWorker::Grant(assignment) => self.step(Input::Granted(assignment)),
            ToWorker::Cancel { token, grace, .. } => {
                self.step(Input::Cancelled { token, grace: grace.as_duration() });
            }
            ToWorker::Revoke { token, .. } => self.step(Input::Revoked { token }),
            ToWorker::ReportAck { number, result } => self.step(Input::ReportAcked { number, result }),
            ToWorker::RenewAck { number } => self.step(Input::RenewAcked { number }),
            ToWorker::StreamAck { job, attempt, number } => self.spool.acknowledge(job, attempt, number),
            ToWorker::Spawned { number, end } => self.on_spawned(number, end),
            ToWorker::ToolCalled { number, end } => self.on_tool_called(number, end),
            ToWorker::ModelGranted { number } => self.on_model_granted(number),
            ToWorker::StepsAck { number, result } => self.on_steps_ack(number, result),
            ToWorker::ParkAck { number, result } => self.on_park_ack(number, result),
            ToWorker::Messages { token, mail, .. } => self.on_messages(token, mail),
            ToWorker::HandBack(by) => self.step(Input::HandBack(by)),
            ToWorker::Drain => self.drain(),
            // The link itself looks for the leader.
            ToWorker::NotLeader { .. } | ToWorker::Shutdown => {}
        }
    }

    fn on_news(&mut self, news: News) {
        match news {
            News::Prepared { token, work } => self.on_prepared(token, work),
            News::Said { token, event } => self.spool.push(token, event),
            News::Saved { number } => self.step(Input::Saved { number }),
            News::SpawnStored { number, input } => self.on_spawn_stored(number, input),
            News::SpawnLoaded { asker, answer } => self.answer_call(asker, answer),
            News::Stored { token, slot, end } => {
                self.end_later(token, slot, end);
                self.settle();
            }
            News::Inventory(inventory) => self.advertise(inventory),
            News::NoInterpreter | News::Containers => self.advertise(self.identity.inventory.clone()),
            News::Drain => self.drain(),
            News::Abandon => self.step(Input::Abandon),
            News::Leave => self.drained = true,
        }
    }

    /// Advertises another inventory: it is a part of the hello, so the stream is opened again. Leases and attempts stay.
    fn advertise(&mut self, mut inventory: Inventory) {
        label(&mut inventory, &self.shared.settings);
        if self.identity.inventory == inventory {
            return;
        }
        self.identity.inventory = inventory;
        // The hello is yet to come.
        if self.stream.is_none() {
            return;
        }
        self.stream = None;
        self.welcomed = false;
        self.step(Input::Disconnected);
    }

    /// Whether the leader knew of a label when it gave a lease.
    fn told_of(&self, label: &str, token: FencingToken) -> bool {
        let is_told = self.identity.inventory.labels.contains_key(label);
        is_told && self.earlier.is_none_or(|earlier| token > earlier)
    }

    fn on_told(&mut self, told: SlotEvent) {
        match told {
            SlotEvent::Event { token, event } => self.spool.push(token, event),
            SlotEvent::Delta { token, call, text } => self.on_delta(token, call, &text),
            SlotEvent::Spawn { token, call } => self.on_spawn(token, call),
            SlotEvent::Tool { token, call } => self.on_tool(token, call),
            SlotEvent::Leave { token, call } => self.on_leave(token, call),
            SlotEvent::Journal { token, entry, answer } => self.on_journal(token, entry, answer),
            SlotEvent::Wait { token, park, waited, answer } => self.on_wait(token, (park, waited), answer),
            SlotEvent::WaitOver { token } => self.step(Input::WaitOver { token }),
            SlotEvent::Read { token, number, answer } => self.on_read(token, number, answer),
            SlotEvent::Ended { token, end } => self.ended(token, end),
            SlotEvent::Died { slot } => self.on_died(slot),
            SlotEvent::Gone { slot } => self.on_gone(slot),
        }
    }

    /// Handles the end of a slot's idle program. If the slot was assigned to an attempt meanwhile, it gets another
    /// program.
    fn on_died(&mut self, slot: SlotId) {
        let Some(mailbox) = self.mailboxes.remove(&slot) else { return };
        let Some(Order::Run(work)) = mailbox.take() else { return self.step(Input::SlotDied { slot }) };
        let place = RunningAttempt { job: work.assignment.job, slot, warm: false };
        if !work.is_looked_at {
            return self.look_first(place, &work, mailbox.stop_asked());
        }
        self.begin(place, work);
        if let (Some(grace), Some(next)) = (mailbox.stop_asked(), self.mailboxes.get(&slot)) {
            next.stop(grace);
        }
    }

    /// Looks at the files of a package before another program is started from them.
    fn look_first(&mut self, place: RunningAttempt, work: &Work, stop: Option<Duration>) {
        let token = work.assignment.token;
        self.attempts.insert(token, place);
        match stop {
            // Nothing runs, so it ends here. What else a stop does was done when it was asked for.
            Some(grace) => self.stop(token, StopReason::Cancelled, grace),
            None => self.fetch(work.assignment.clone()),
        }
    }

    /// Handles the end of a slot's task, whose program has ended.
    fn on_gone(&mut self, slot: SlotId) {
        if let Some(left) = self.tasks.get_mut(&slot) {
            *left -= 1;
            if *left == 0 {
                self.tasks.remove(&slot);
                self.step(Input::SlotGone { slot });
            }
        }
    }

    /// Handles the end of an attempt. A large output is stored first, outside this loop.
    fn ended(&mut self, token: FencingToken, mut end: Ended) {
        self.send_deltas();
        self.deltas.close(token);
        self.spool.close(token);
        self.forget_spawns(token);
        self.forget_entries(token);
        self.forget_calls(token);
        self.forget_tries(token);
        self.forget_waits(token);
        let Some(RunningAttempt { slot, .. }) = self.attempts.remove(&token) else { return };
        if !end.slot_usable {
            self.mailboxes.remove(&slot);
        }
        let Some(output) = end.output.take() else {
            self.end_later(token, slot, end.into_end(None));
            return self.settle();
        };
        let bytes = Box::<str>::from(output).into_boxed_bytes();
        if bytes.len() <= atlas_types::INLINE_BYTES_MAX {
            self.end_later(token, slot, end.into_end(Some(Payload::inline(&bytes))));
            return self.settle();
        }
        let (transfers, news) = (self.transfers.clone(), self.news.clone());
        self.env.spawn("store output", async move {
            let end = match transfers.store(bytes.into_vec()).await {
                Ok(payload) => end.into_end(Some(payload)),
                Err(error) => {
                    let text = format!("could not store the output: {error}");
                    let failure = Failure { kind: FailureKind::Internal, error: text.into() };
                    Ended { failure: Some(failure), ..end }.into_end(None)
                }
            };
            // If the pump has ended, it has given the lease back.
            let _ = news.send(News::Stored { token, slot, end }).await;
        });
    }

    fn drain(&mut self) {
        let (clock, news) = (Arc::clone(&self.env.clock), self.news.clone());
        let (for_attempts, for_answers) = (self.drain_timeout, self.stop_grace + ANSWERS_PATIENCE);
        self.env.spawn("drain", async move {
            // If the pump has ended, the drain was faster.
            clock.sleep(for_attempts).await;
            let _ = news.send(News::Abandon).await;
            clock.sleep(for_answers).await;
            let _ = news.send(News::Leave).await;
        });
        self.step(Input::Drain);
    }

    fn step(&mut self, input: Input) {
        self.caused.push_back(input);
        self.settle();
    }

    /// Passes inputs produced by effects to the machine until there are none left.
    fn settle(&mut self) {
        while let Some(input) = self.caused.pop_front() {
            let now = self.env.clock.monotonic();
            let effects = self.slots.step(input, now);
            // Sent before anything is started under the new end.
            self.tell_supervisors();
            for effect in effects {
                self.perform(effect);
            }
        }
    }

    fn tell_supervisors(&mut self) {
        let end = self.slots.lease_end();
        if std::mem::replace(&mut self.lease_end, end) == end {
            return;
        }
        match end {
            Some(end) => self.shared.supervisor.watchdog().extend(end, &*self.env.clock),
            None => self.shared.supervisor.watchdog().lift(),
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::SendHello { held } => {
                let Identity { node, boot_id, previous, inventory, .. } = self.identity.clone();
                let level = Level::CURRENT;
                self.send(ToLeader::Hello(Hello { node, boot_id, inventory, level, leases: held, previous }));
            }
            Effect::SendRenew { number } => self.send(ToLeader::Renew { number }),
            Effect::SendReport { number, report } => {
                // The attempt's stream events must be sent before its end.
                while self.welcomed && self.send_some_events() {}
                self.send(ToLeader::Report { number, report: Arc::unwrap_or_clone(report) });
            }
            Effect::SaveReport { number, report } => self.save(number, report),
            Effect::SavedAnswered { number, result } => self.saved_answered(number, result),
            Effect::BeginEpoch => {
                let Identity { boot_id, previous, next, .. } = &mut self.identity;
                *previous = Some(std::mem::replace(boot_id, *next));
                self.stream = None;
                self.welcomed = false;
            }
            Effect::SendWarmChanged { digest, idle } => self.send(ToLeader::WarmChanged { digest, idle }),
            Effect::SendDraining => self.send(ToLeader::Draining),
            Effect::SendLeaving if self.leader_level < level::FAREWELL => {
                self.stream = None;
                self.welcomed = false;
                self.caused.push_back(Input::Disconnected);
            }
            Effect::SendLeaving => self.send(ToLeader::Leaving),
            Effect::Disconnect { why } => {
                match why {
                    Leave::TimeUsedUp => warn!("the session expired, stopping all attempts"),
                    Leave::Unanswered => warn!("the leader does not answer renewals, trying another controller"),
                    Leave::NoWelcome => warn!("the controller does not answer, trying another one"),
                }
                self.stream = None;
                self.welcomed = false;
            }
            Effect::PrepareAttempt { assignment } => self.prepare(assignment),
            Effect::ForgetPrepared { token } => {
                self.prepared.remove(&token);
                self.spool.discard(token);
            }
            Effect::StartAttempt { assignment, slot, warm } => {
                let job = assignment.job;
                self.start(assignment, RunningAttempt { job, slot, warm });
            }
            Effect::StopAttempt { token, why, grace } => self.stop(token, why, grace),
            Effect::SendPark { number, job, token, park } => self.send_park(number, job, token, *park),
            Effect::Resume { token, refused } => self.resume(token, refused),
            Effect::EvictSlot { slot } => {
                if let Some(mailbox) = self.mailboxes.remove(&slot) {
                    mailbox.post(Order::Shutdown);
                }
                self.gone_without_task(slot);
            }
            Effect::Drained => self.drained = true,
        }
    }

    fn send(&mut self, frame: ToLeader) {
        if self.stream.as_ref().is_some_and(|stream| !stream.send(frame)) {
            // Lost frames are sent again after the next welcome.
            debug!("the leader does not read its stream, closing it");
            self.stream = None;
            self.welcomed = false;
            self.caused.push_back(Input::Disconnected);
        }
    }

    /// Sends stream events of attempts, as far as the stream keeps up.
    fn send_events(&mut self) {
        self.held_back = false;
        while self.welcomed && !self.spool.is_empty() {
            if !self.stream.as_ref().is_some_and(Stream::has_room) {
                self.held_back = true;
                return;
            }
            if !self.send_some_events() {
                return;
            }
        }
    }

    /// Sends one frame for each attempt with stream events. False if there are none.
    fn send_some_events(&mut self) -> bool {
        let batches = self.spool.take_unsent(EVENTS_PER_FRAME, EVENT_BYTES_PER_FRAME);
        let some = !batches.is_empty();
        for batch in batches {
            self.send(ToLeader::StreamEvents { job: batch.job, attempt: batch.attempt, events: batch.events });
        }
        some
    }

    fn begin(&mut self, place: RunningAttempt, work: Arc<Work>) {
        let assignment = &work.assignment;
        let token = assignment.token;
        if work.agent.noop {
            self.attempts.remove(&token);
            // Its preparation may have opened it.
            self.spool.close(token);
            let end = echo(&work.input, &work.agent, place.warm);
            return self.end_later(token, place.slot, end);
        }
        self.spool.open(assignment.job, assignment.attempt, token);
        self.deltas.open(assignment.job, assignment.attempt, token);
        if let Some(journal) = &assignment.journal {
            self.waits.receive(token, journal.mail.clone());
        }
        self.mailbox(place.slot).post(Order::Run(work));
    }

    /// The mailbox of a slot. Its task is created if necessary.
    fn mailbox(&mut self, slot: SlotId) -> &Mailbox {
        self.mailboxes.entry(slot).or_insert_with(|| {
            let mailbox = Arc::new(Mailbox::default());
            self.env.spawn("slot", slot::serve(slot, Arc::clone(&mailbox), self.shared.clone()));
            *self.tasks.entry(slot).or_default() += 1;
            mailbox
        })
    }

    fn stop(&mut self, token: FencingToken, why: StopReason, grace: Duration) {
        debug!(%token, ?why, "stopping an attempt");
        self.forget_entries(token);
        self.forget_calls(token);
        self.forget_tries(token);
        self.forget_waits(token);
        if why != StopReason::Cancelled {
            self.spool.discard(token);
            self.deltas.close(token);
        }
        // An attempt that has ended is not in the map. Its output is being stored, and its end is reported then.
        let Some(RunningAttempt { slot, .. }) = self.attempts.get(&token).copied() else { return };
        match self.mailboxes.get(&slot) {
            Some(mailbox) if why == StopReason::Parked => mailbox.park(),
            Some(mailbox) => mailbox.stop(grace),
            // The attempt is still being prepared, so nothing runs.
            None => {
                self.attempts.remove(&token);
                self.spool.close(token);
                let failure = Failure { kind: FailureKind::Internal, error: "stopped before it started".into() };
                self.end_later(token, slot, Ended::failed(failure).into_end(None));
            }
        }
    }

    /// Queues the end of an attempt, and that of its slot if no program must end first.
    fn end_later(&mut self, token: FencingToken, slot: SlotId, end: AttemptEnd) {
        let usable = end.slot_usable;
        self.step_later(Input::Ended { token, end });
        if !usable {
            self.gone_without_task(slot);
        }
    }

    /// Queues the end of a slot without a task, which has no program. A slot with a task reports its own end.
    fn gone_without_task(&mut self, slot: SlotId) {
        if !self.tasks.contains_key(&slot) {
            self.step_later(Input::SlotGone { slot });
        }
    }

    /// Queues an input behind the effects that are being performed. `step` is running or about to run.
    fn step_later(&mut self, input: Input) {
        self.caused.push_back(input);
    }
}
