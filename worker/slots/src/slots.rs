//! The machine itself: one arm per input, helpers below.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use atlas_types::{Assignment, FencingToken, HeldLease, Inventory, JobId, Report, ReportKind, ReportResult, Usage};

use crate::attempts::{Attempt, Attempts, Stage, Stop, Stopping};
use crate::deadline::Deadline;
use crate::lease_clock::LeaseClock;
use crate::pool::Pool;
use crate::reports::{Reports, cancelled_report, finished};
use crate::{AttemptEnd, Effect, Input, Leave, StopReason};

use self::drain::Farewell;

mod admission;
mod drain;
mod park;

pub use park::PARK_AFTER;

/// How long a leader may take to answer what an earlier process saved.
const DELIVERY_MAX: Duration = Duration::from_secs(30);

/// How long a hello may stay without an answer.
const GREETING_MAX: Duration = Duration::from_secs(10);

/// What an operator may choose, and what the node has.
#[derive(Debug, Clone)]
pub struct Options {
    /// Idle slots kept for each package (compatibility §7: 2).
    pub warm_pool_size: u32,
    /// How long a slot may be idle (compatibility §7: 300 s).
    pub idle_timeout: Duration,
    /// Time between SIGTERM and SIGKILL when the worker itself gives up an attempt.
    pub stop_grace: Duration,
    /// What the node has: its slots, busy and idle, occupy no more memory and GPU memory.
    pub inventory: Inventory,
    /// How long an attempt waits before its job is parked.
    pub park_after: Duration,
    /// How long a process that has nothing left to do waits for its leader to let it go. One that goes before loses what the leader grants it
    /// meanwhile.
    pub farewell_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            warm_pool_size: 2,
            idle_timeout: Duration::from_secs(300),
            stop_grace: Duration::from_secs(2),
            inventory: Inventory::default(),
            park_after: PARK_AFTER,
            farewell_max: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Session {
    /// No stream.
    Away,
    /// Hello is sent; the leases' time counts from here.
    Greeting { sent_at: Duration },
    /// Welcomed.
    Live,
}

/// The delivery of results that an earlier process saved. Nothing is run meanwhile.
#[derive(Debug, Default)]
struct Delivery {
    /// By when the leader must have answered, from the first welcome on.
    until: Option<Duration>,
}

/// One node's sessions, leases and slots.
#[derive(Debug)]
pub struct Slots {
    options: Options,
    session: Session,
    /// None until the first welcome, and after the time to live was used up.
    clock: Option<LeaseClock>,
    next_renewal: u64,
    attempts: Attempts,
    pool: Pool,
    reports: Reports,
    /// Set while the results of an earlier process are delivered under its boot id.
    delivery: Option<Delivery>,
    draining: bool,
    /// How far this process is with its goodbye.
    farewell: Farewell,
    /// By when a node that is drained gives back what it runs.
    hand_back: Deadline,
    next_park: u64,
}

impl Slots {
    /// A machine without a session, leases or slots.
    pub fn new(options: Options) -> Self {
        let pool = Pool::new(&options);
        Self {
            options,
            session: Session::Away,
            clock: None,
            next_renewal: 1,
            attempts: Attempts::default(),
            pool,
            reports: Reports::new(),
            delivery: None,
            draining: false,
            farewell: Farewell::default(),
            hand_back: Deadline::default(),
            next_park: 1,
        }
    }

    /// A machine that first delivers the reports which an earlier process of this node saved, under the boot id of that process. It then
    /// asks for a new epoch, which takes back all else that the earlier process held.
    pub fn deliver(options: Options, reports: impl IntoIterator<Item = (u64, Report)>) -> Self {
        let reports = Reports::saved(reports);
        let delivery = (!reports.is_empty()).then(Delivery::default);
        Self { reports, delivery, ..Self::new(options) }
    }

    /// Takes one input and returns what to do, in order. `now` never goes back.
    pub fn step(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        // First of all: no input may keep an attempt alive that our own clock has ended.
        self.expire(now, &mut effects);
        self.give_up_greeting(now, &mut effects);
        match input {
            Input::Connected => self.greet(now, &mut effects),
            Input::Welcome { epoch: _, ttl, leases } => self.welcome(ttl, leases, now, &mut effects),
            Input::Granted(assignment) if self.session == Session::Live && self.delivery.is_none() => {
                self.grant(*assignment, &mut effects)
            }
            Input::Granted(_) => {}
            Input::Cancelled { token, grace } => self.cancel(token, grace, &mut effects),
            Input::Revoked { token } => self.drop_attempt(token, StopReason::Revoked, &mut effects),
            Input::RenewAcked { number } => self.acknowledge_renewal(number),
            Input::ReportAcked { number, result } => self.acknowledge_report(number, result, &mut effects),
            Input::Saved { number } => self.saved(number, &mut effects),
            Input::Prepared { token } => self.prepared(token, &mut effects),
            Input::Unprepared { token, report } => self.unprepared(token, report, &mut effects),
            Input::Ended { token, end } => self.end(token, end, now, &mut effects),
            Input::Waits { token, park, waited } => self.waits(token, (park, waited), now, &mut effects),
            Input::WaitOver { token } => self.wait_over(token, &mut effects),
            Input::ParkAnswered { number, result } => self.park_answered(number, result, now, &mut effects),
            Input::SlotDied { slot } => self.slot_died(slot, &mut effects),
            Input::SlotGone { slot } => self.pool.gone(slot),
            Input::Disconnected => self.session = Session::Away,
            Input::HandBack(by) => {
                self.told_drained(by.is_some(), &mut effects);
                self.hand_back.tell(by, now);
                self.hurry(now);
            }
            Input::Drain => self.drain(now, &mut effects),
            Input::Abandon => self.abandon(now, &mut effects),
            Input::Tick => {}
        }
        if self.hand_back.has_passed(now) {
            self.give_all_back(&mut effects);
        }
        self.make_room(&mut effects);
        self.end_delivery(now, &mut effects);
        // Only now: the answer may have come while this machine was too busy to look at it.
        self.leave_the_silent(now, &mut effects);
        self.renew(now, &mut effects);
        self.ask(now, &mut effects);
        self.evict(now, self.draining, &mut effects);
        self.say_farewell(now, &mut effects);
        effects
    }

    /// When the next [`Input::Tick`] is due; none if only an input can change anything.
    pub fn next_tick(&self) -> Option<Duration> {
        let clock = self.clock.as_ref();
        let live = clock.filter(|_| self.session == Session::Live);
        let (renew, leave) = (live.map(LeaseClock::renew_at), live.and_then(LeaseClock::leave_at));
        let greeting = match self.session {
            Session::Greeting { sent_at } => Some(sent_at + GREETING_MAX),
            Session::Away | Session::Live => None,
        };
        let delivered = self.delivery.as_ref().and_then(|delivery| delivery.until);
        let others = [
            renew,
            leave,
            greeting,
            self.pool.next_expiry(),
            self.hand_back.next(),
            delivered,
            self.next_ask(),
            self.farewell.until,
        ];
        others.into_iter().chain([clock.map(LeaseClock::deadline)]).flatten().min()
    }

    /// The instant by which whoever holds a process of an attempt must have killed it, if this machine was not asked in time; none
    /// without a session.
    pub fn lease_end(&self) -> Option<Duration> {
        self.clock.as_ref().map(LeaseClock::last_moment)
    }

    /// The leases this process believes to hold.
    pub fn held(&self) -> Vec<HeldLease> {
        self.attempts.leases()
    }

    /// True while no attempt runs or stops and every report is answered.
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.reports.is_empty()
    }

    fn greet(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        self.farewell.known = false;
        self.session = Session::Greeting { sent_at: now };
        effects.push(Effect::SendHello { held: self.attempts.leases() });
    }

    fn welcome(&mut self, ttl: Duration, leases: Vec<Assignment>, now: Duration, effects: &mut Vec<Effect>) {
        let Session::Greeting { sent_at } = self.session else { return };
        self.session = Session::Live;
        self.clock = Some(LeaseClock::new(ttl, sent_at, self.next_renewal));
        if self.expire(now, effects) {
            return; // the welcome itself was too old to be believed
        }
        let granted: BTreeSet<FencingToken> = leases.iter().map(|lease| lease.token).collect();
        for token in self.attempts.tokens() {
            if !granted.contains(&token) {
                self.drop_attempt(token, StopReason::Revoked, effects);
            }
        }
        for (number, report) in self.reports.to_send() {
            effects.push(Effect::SendReport { number, report: Arc::clone(report) });
        }
        self.ask_again(effects);
        if let Some(delivery) = &mut self.delivery {
            // The new epoch revokes all other leases of the earlier process.
            delivery.until.get_or_insert(now + DELIVERY_MAX);
            return;
        }
        for lease in leases {
            if self.attempts.is_new(lease.token) {
                self.grant(lease, effects); // its grant was lost on the way
            } else if !self.attempts.contains(lease.token) && !self.reports.mentions(lease.token) {
                self.give_back(lease.job, lease.token, effects);
            }
        }
        if self.draining {
            effects.push(Effect::SendDraining);
        }
    }

    /// Tells that a lease is not held, as soon as nothing runs under it any more: the leader grants the job again.
    fn give_back(&mut self, job: JobId, token: FencingToken, effects: &mut Vec<Effect>) {
        if !self.attempts.give_back_later(token) {
            self.report(job, token, ReportKind::NotHeld, effects);
        }
    }

    fn grant(&mut self, assignment: Assignment, effects: &mut Vec<Effect>) {
        let (job, token) = (assignment.job, assignment.token);
        if !self.attempts.is_new(token) {
            return;
        }
        match self.attempts.of_job(job) {
            // Outdated by what came before it.
            Some(newer) if newer > token => return self.attempts.forget(token),
            Some(older) => self.drop_attempt(older, StopReason::Revoked, effects),
            None => {}
        }
        let lease = HeldLease { job, token, attempt: assignment.attempt };
        let assignment = Box::new(assignment);
        match self.attempts.stopping_of(job) {
            Some(older) => {
                self.attempts.insert(Attempt { lease, stage: Stage::AwaitingEnd { assignment, older } });
            }
            None => self.proceed(lease, assignment, effects),
        }
    }

    /// Has the attempt prepared if its start must be committed, else starts it when there is room.
    fn proceed(&mut self, lease: HeldLease, assignment: Box<Assignment>, effects: &mut Vec<Effect>) {
        if assignment.needs_start {
            effects.push(Effect::PrepareAttempt { assignment: assignment.clone() });
            self.attempts.insert(Attempt { lease, stage: Stage::Preparing { assignment } });
        } else {
            self.admit(lease, assignment, false, effects);
        }
    }

    /// Has the start committed when there is room.
    fn prepared(&mut self, token: FencingToken, effects: &mut Vec<Effect>) {
        if !self.attempts.is_preparing(token) {
            return;
        }
        if let Some(Attempt { lease, stage: Stage::Preparing { assignment } }) = self.attempts.take(token) {
            self.admit(lease, assignment, true, effects);
        }
    }

    fn unprepared(&mut self, token: FencingToken, report: ReportKind, effects: &mut Vec<Effect>) {
        if self.attempts.is_preparing(token)
            && let Some(attempt) = self.attempts.remove(token)
        {
            self.report(attempt.lease.job, token, report, effects);
        }
    }

    fn cancel(&mut self, token: FencingToken, grace: Duration, effects: &mut Vec<Effect>) {
        let Some(attempt) = self.attempts.get_mut(token) else { return };
        let job = attempt.lease.job;
        match &mut attempt.stage {
            Stage::Running { stop: Some(_), .. } => {}
            Stage::Running { stop, .. } => {
                *stop = Some(Stop::Cancelled);
                effects.push(Effect::StopAttempt { token, why: StopReason::Cancelled, grace });
            }
            Stage::AwaitingEnd { .. }
            | Stage::Preparing { .. }
            | Stage::AwaitingRoom { .. }
            | Stage::AwaitingStart { .. } => {
                self.drop_attempt(token, StopReason::Revoked, effects);
                self.report(job, token, cancelled_report(Usage::default()), effects);
            }
        }
    }

    /// Ends a lease without a report.
    fn drop_attempt(&mut self, token: FencingToken, why: StopReason, effects: &mut Vec<Effect>) {
        let Some(attempt) = self.attempts.remove(token) else { return };
        match attempt.stage {
            Stage::Running { slot, .. } => {
                self.attempts.stopping(attempt.lease, slot, why == StopReason::Parked);
                effects.push(Effect::StopAttempt { token, why, grace: Duration::ZERO });
            }
            Stage::Preparing { .. } | Stage::AwaitingRoom { prepared: true, .. } => {
                effects.push(Effect::ForgetPrepared { token });
            }
            Stage::AwaitingStart { report, slot, .. } => {
                // Sent again, it would commit the start of what never runs.
                self.reports.withdraw(report);
                effects.push(Effect::ForgetPrepared { token });
                self.unreserve(slot, effects);
            }
            Stage::AwaitingEnd { .. } | Stage::AwaitingRoom { prepared: false, .. } => {}
        }
    }

    fn end(&mut self, token: FencingToken, end: AttemptEnd, now: Duration, effects: &mut Vec<Effect>) {
        if let Some(stopping) = self.attempts.stopped(token) {
            return self.stopped(token, &stopping, end.slot_usable, now, effects);
        }
        let Some(Attempt { lease, stage: Stage::Running { slot, stop, once, .. } }) = self.attempts.remove(token)
        else {
            return;
        };
        let usable = end.slot_usable && !self.draining;
        if end.slot_usable && !usable {
            effects.push(Effect::EvictSlot { slot });
        }
        let digest = self.pool.digest(slot);
        if self.pool.release(slot, usable, now) {
            effects.push(Effect::EvictSlot { slot });
        }
        let idle = digest.map_or(0, |digest| self.pool.idle_of_digest(digest));
        let kind = finished(end.report, stop, idle);
        if once && kind != ReportKind::NotHeld {
            let (number, report) = self.reports.push(Report { job: lease.job, token, kind }, true);
            effects.push(Effect::SaveReport { number, report });
        } else {
            self.report(lease.job, token, kind, effects);
        }
    }

    /// A report that had to be on disk first may be sent.
    fn saved(&mut self, number: u64, effects: &mut Vec<Effect>) {
        if let Some(report) = self.reports.set_saved(number)
            && self.session == Session::Live
        {
            effects.push(Effect::SendReport { number, report });
        }
    }

    /// Begins an epoch of this process once the earlier one's results are answered, or the leader had time enough.
    fn end_delivery(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        let Some(delivery) = &self.delivery else { return };
        let over = delivery.until.is_some_and(|until| now >= until);
        if !over && !self.reports.is_empty() {
            return;
        }
        for number in self.reports.numbers() {
            self.reports.withdraw(number);
            effects.push(Effect::SavedAnswered { number, result: None });
        }
        self.delivery = None;
        (self.session, self.clock) = (Session::Away, None);
        effects.push(Effect::BeginEpoch);
    }

    /// The process of a lease that is over is dead.
    fn stopped(
        &mut self,
        token: FencingToken,
        stopping: &Stopping,
        slot_usable: bool,
        now: Duration,
        effects: &mut Vec<Effect>,
    ) {
        let slot = stopping.slot;
        // The slot of an attempt that was stopped is not handed on, whatever its process says; one that left a parked job is.
        let usable = slot_usable && stopping.is_parked && !self.draining;
        if slot_usable && !usable {
            effects.push(Effect::EvictSlot { slot });
        }
        if self.pool.release(slot, usable, now) {
            effects.push(Effect::EvictSlot { slot });
        }
        if stopping.give_back {
            self.report(stopping.job, token, ReportKind::NotHeld, effects);
        }
        let next = self.attempts.awaiting_end(token).and_then(|next| self.attempts.take(next));
        if let Some(Attempt { lease, stage: Stage::AwaitingEnd { assignment, .. } }) = next {
            self.proceed(lease, assignment, effects);
        }
    }

    fn acknowledge_renewal(&mut self, number: u64) {
        if let Some(clock) = &mut self.clock {
            clock.acknowledge(number);
        }
    }

    fn acknowledge_report(&mut self, number: u64, result: ReportResult, effects: &mut Vec<Effect>) {
        let Some(saved) = self.reports.acknowledge(number) else { return };
        if saved {
            effects.push(Effect::SavedAnswered { number, result: Some(result) });
        }
        let Some(token) = self.attempts.awaiting(number) else { return };
        let Some(Attempt { lease, stage: Stage::AwaitingStart { assignment, slot, .. } }) = self.attempts.take(token)
        else {
            return;
        };
        match result {
            ReportResult::Applied => self.start(lease, assignment, slot, effects),
            ReportResult::Fenced => {
                self.attempts.forget(token);
                effects.push(Effect::ForgetPrepared { token });
                self.unreserve(slot, effects);
            }
        }
    }

    /// Ends everything if the time to live is used up; says so.
    fn expire(&mut self, now: Duration, effects: &mut Vec<Effect>) -> bool {
        if self.clock.as_ref().is_none_or(|clock| now < clock.deadline()) {
            return false;
        }
        if let Some(clock) = self.clock.take() {
            self.next_renewal = clock.next_number();
        }
        for token in self.attempts.tokens() {
            self.drop_attempt(token, StopReason::SessionExpired, effects);
        }
        if self.session == Session::Live {
            self.session = Session::Away;
            effects.push(Effect::Disconnect { why: Leave::TimeUsedUp });
        }
        true
    }

    /// Closes a stream whose other end does not answer the hello.
    fn give_up_greeting(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if let Session::Greeting { sent_at } = self.session
            && now >= sent_at + GREETING_MAX
        {
            self.session = Session::Away;
            effects.push(Effect::Disconnect { why: Leave::NoWelcome });
        }
    }

    /// Closes the stream to a leader that answers no renewals. What runs goes on, for another leader to confirm.
    fn leave_the_silent(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        let leave_at = self.clock.as_ref().and_then(LeaseClock::leave_at);
        if self.session == Session::Live && leave_at.is_some_and(|at| now >= at) {
            self.session = Session::Away;
            effects.push(Effect::Disconnect { why: Leave::Unanswered });
        }
    }

    fn renew(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if self.session != Session::Live {
            return;
        }
        if let Some(clock) = &mut self.clock
            && let Some(number) = clock.renew(now)
        {
            self.next_renewal = clock.next_number();
            effects.push(Effect::SendRenew { number });
        }
    }

    /// Numbers and keeps a report, and sends it if there is a session.
    fn report(&mut self, job: JobId, token: FencingToken, kind: ReportKind, effects: &mut Vec<Effect>) -> u64 {
        let (number, report) = self.reports.push(Report { job, token, kind }, false);
        if self.session == Session::Live {
            effects.push(Effect::SendReport { number, report });
        }
        number
    }

    /// The attempts that occupy a slot: those that run, and those that were stopped and have not ended.
    pub fn busy(&self) -> Vec<FencingToken> {
        self.pool.busy()
    }
}
