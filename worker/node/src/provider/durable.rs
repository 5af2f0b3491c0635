//! Durable programs ([ADR 82](../../../../docs/adr/0082-durable-code.md)): the calls of one attempt, whatever language the program has.
//!
//! A program says what it asks for in frames; [`atlas_durable`] decides what each call gets, and the files below carry out those that
//! begin. What came of a call is recorded before the program is told. While all open calls of a program wait, its job may be parked.

mod begin;
mod call;
mod frame;
mod inbox;
mod line;
mod past;
mod step;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_durable::{
    CallEffect, CallKind, CallOutcome, CallReplay, CallRequest, Difference, Key, NAME_BYTES_MAX, Numbers,
};
use atlas_types::{StepKey, StepKind};
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesUnordered;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use self::call::{Carried, End, Inner};
use self::frame::{CallFrame, Made, What};
pub(in crate::provider) use self::frame::{Called, Said, SaidKind};
use self::past::Past;
use crate::journal::{JournalError, hashed, made};
use crate::provider::Control;
use crate::provider::library::{Known, Library, LibraryError};
use crate::provider::program_model::ProgramModel;
use crate::provider::round::caller::{Told, pass};

/// The most calls of a program that are open at a time. A program that waits for more of them holds the rest back, or spawns jobs.
const OPEN_MAX: usize = 1_024;

/// The same, with those that the program has given up and whose functions still run.
const LEFT_MAX: usize = 8 * OPEN_MAX;

/// The most bytes that open calls ask with together.
const ASKED_BYTES_MAX: usize = 64 << 20;

/// The most calls of one job. Each of them is recorded, and read again by each attempt.
const CALLS_MAX: usize = 100_000;

/// Characters of arguments and of places in the code that are repeated.
const SHOWN_CHARS: usize = 120;

/// The calls of one attempt.
pub(in crate::provider) struct Durable {
    inner: Arc<Inner>,
    replay: CallReplay,
    past: Past,
    numbers: Numbers,
    open: BTreeMap<u64, Open>,
    running: FuturesUnordered<BoxFuture<'static, (u64, Result<End, JournalError>)>>,
    says: mpsc::UnboundedReceiver<Called>,
    hears: mpsc::UnboundedReceiver<Told>,
    /// What the program is told at once.
    answers: std::collections::VecDeque<Called>,
    /// Ends with an error only. The second reads the messages of the job.
    parks: BoxFuture<'static, JournalError>,
    reads: BoxFuture<'static, JournalError>,
    /// The job cannot go on.
    failed: Option<JournalError>,
    calls: usize,
}

/// A call that the program has not been answered.
struct Open {
    carried: Arc<Carried>,
    /// Until it begins.
    frame: Option<Box<CallFrame>>,
    /// The program no longer waits for it.
    is_forgotten: bool,
    /// How many bytes it keeps until its end.
    bytes: usize,
}

/// What happens in the calls.
pub(in crate::provider) enum News {
    Told(Told),
    /// For the program.
    Called(Called),
    /// The job cannot go on.
    Failed(JournalError),
}

impl Durable {
    /// The members of a frame that begins a run, each after a comma.
    pub(in crate::provider) fn beginning(&self) -> String {
        let Inner { seed, began_us, value_bytes_max, .. } = &*self.inner;
        let past = self.past.told();
        format!(r#", "past": {past}, "began_us": {began_us}, "seed": {seed}, "value_bytes_max": {value_bytes_max}"#)
    }

    /// What the program is told of memory and knowledge at its beginning. It is recorded, so that each attempt is told the same.
    pub(in crate::provider) async fn known(
        &mut self,
        library: &Library,
        input: &[u8],
    ) -> Result<Result<Known, LibraryError>, JournalError> {
        if !library.is_enabled() {
            return Ok(Ok(Known::default()));
        }
        self.inner.started().await?;
        let key = hashed(&"known");
        let outcome = match self.inner.book.known(key) {
            Some(outcome) => outcome,
            None => {
                let known = match library.known(input).await {
                    Ok(known) => known,
                    Err(LibraryError::Stopped) => return Err(JournalError::Stopped),
                    Err(refused) => return Ok(Err(refused)),
                };
                let made = made(&known)?;
                self.inner.book.record(StepKind::Effect, key, made.outcome, made.usage).await?
            }
        };
        serde_json::from_slice(&outcome).map(Ok).map_err(|error| JournalError::Unreadable { step: 1, error })
    }

    /// Handles what the program says.
    pub(in crate::provider) fn take(&mut self, said: Said) {
        match said {
            Said::Call(frame) => {
                let call = frame.call;
                if let Err(outcome) = self.ask(frame) {
                    self.answers.push_back(Called::outcome(call, outcome));
                }
            }
            Said::Made(frame) => {
                // A function that nobody waits for any more is no call of this run.
                if let Some(tell) = lock(&self.inner.functions).remove(&frame.call) {
                    let _ = tell.send(frame.end());
                }
            }
            Said::Forget(call) => self.forget(call),
            Said::Over(call) => {
                self.forget(call);
                if let Some(tell) = lock(&self.inner.functions).remove(&call) {
                    let _ = tell.send(Made::GivenUp);
                }
            }
        }
    }

    /// Asks for a call. The error is what the program is told of one that is no call.
    fn ask(&mut self, mut frame: Box<CallFrame>) -> Result<(), CallOutcome> {
        let wrong = |text: String| CallOutcome::error("ValueError", text);
        let too_much = |text: String| wrong(JournalError::TooMuch(text).to_string());
        let call = frame.call;
        // Also those that are refused, so that what a program is told has a bound.
        self.calls += 1;
        if self.calls > CALLS_MAX {
            self.fail(JournalError::TooMuch(format!(
                "the program has made {CALLS_MAX} calls, as many as one job may; give parts of its work to other jobs"
            )));
            return Ok(());
        }
        if self.open.contains_key(&call) {
            return Err(wrong(format!("the program has an open call {call} already")));
        }
        if self.open.values().filter(|open| !open.is_forgotten).count() >= OPEN_MAX {
            return Err(too_much(format!(
                "the program waits for {OPEN_MAX} calls already; let fewer of them run at a time, or give the work to other jobs"
            )));
        }
        if self.open.len() >= LEFT_MAX {
            return Err(too_much(format!(
                "{LEFT_MAX} steps run, most of which the program has given up; let steps end before it begins others"
            )));
        }
        let bytes = frame.bytes();
        if bytes + self.open.values().map(|open| open.bytes).sum::<usize>() > ASKED_BYTES_MAX {
            let most = ASKED_BYTES_MAX >> 20;
            return Err(too_much(format!(
                "what the program's open calls ask with has more than {most} MiB together; let fewer of them run at a time"
            )));
        }
        let kind = read_kind(frame.kind.as_deref()).map_err(wrong)?;
        let id = frame.id.take();
        atlas_durable::check_identity(id.as_deref(), kind, &frame.name).map_err(|error| wrong(error.to_string()))?;
        if self.inner.secrets.redactor().text(&frame.name) != frame.name {
            return Err(wrong(
                "the name of a call has the value of a secret in it; names are recorded and shown".to_owned(),
            ));
        }
        let id = match id {
            Some(id) => id,
            None => {
                let digest = frame.digest.take();
                let digest = digest.unwrap_or_else(|| frame.args.as_ref().map_or(String::new(), atlas_durable::digest));
                atlas_durable::check_digest(&digest).map_err(|error| wrong(error.to_string()))?;
                self.numbers.next(kind, &frame.name, &digest)
            }
        };
        let key = hashed(&("call", &id));
        let others = self.open.values().map(|open| &open.carried.alone);
        others.for_each(|alone| alone.store(false, Ordering::Relaxed));
        let is_alone = frame.alone && self.open.is_empty();
        let at = shortened(&frame.at, SHOWN_CHARS);
        // Values of secrets are found whole only.
        let redacted = |text: &str| shortened(&self.inner.secrets.redactor().text(text), SHOWN_CHARS);
        let given = match (&frame.args, frame.given.is_empty()) {
            (Some(args), true) => redacted(&args.to_string()),
            _ => redacted(&frame.given),
        };
        frame.drop_arguments();
        let asked =
            CallRequest { key: Key(key.0), kind, name: frame.name.clone(), given, at: at.clone(), alone: frame.alone };
        let now = self.inner.now();
        let mut effects = self.replay.claimed(frame.claimed.min(self.past.told_count()), now);
        let asked_now = self.inner.asked_now(now);
        let carried = Carried::new(call, (kind, std::mem::take(&mut frame.name), at), (id, key), (is_alone, asked_now));
        self.open.insert(call, Open { carried: Arc::new(carried), frame: Some(frame), is_forgotten: false, bytes });
        effects.extend(self.replay.ask(call, asked, now));
        self.carry_out(effects);
        Ok(())
    }

    fn forget(&mut self, call: u64) {
        if let Some(record) = self.replay.awaited(call) {
            self.note_message(call, record);
        }
        let effects = self.replay.forget(call, self.inner.now());
        // A message that the program did not get is for another call.
        self.inner.inbox.give_back(call);
        if let Some(open) = self.open.get_mut(&call) {
            // What has begun is recorded all the same, but for waits.
            match open.frame.take() {
                Some(_) => drop(self.open.remove(&call)),
                None => {
                    open.is_forgotten = true;
                    // A replay must not tell it at once: the program did not get it.
                    open.carried.alone.store(false, Ordering::Relaxed);
                    open.carried.forgotten.notify_one();
                }
            }
        }
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<CallEffect>) {
        for effect in effects {
            match effect {
                CallEffect::Begin(call) => self.begin(call),
                CallEffect::Release { call, record } => match self.past.outcome(record) {
                    Ok((outcome, at_us)) => {
                        self.note_message(call, record);
                        self.answer(call, outcome, at_us);
                    }
                    Err(error) => self.fail(JournalError::Unreadable { step: record as u64, error }),
                },
                CallEffect::Old(call) => self.answer(call, CallOutcome::Value(raw("false")), None),
                CallEffect::Repeated(call) => {
                    let text = "a call of this identity was made before; equal calls have numbers";
                    self.answer(call, CallOutcome::error("ValueError", text), None);
                }
                CallEffect::Differs(difference) => self.differs(&difference),
            }
        }
    }

    fn begin(&mut self, call: u64) {
        let Some(open) = self.open.get_mut(&call) else { return };
        let Some(frame) = open.frame.take() else { return };
        let (inner, carried) = (Arc::clone(&self.inner), Arc::clone(&open.carried));
        let end = async move {
            let end = inner.carry_out(&carried, *frame).await;
            (carried.call, end)
        };
        self.running.push(end.boxed());
    }

    fn answer(&mut self, call: u64, outcome: CallOutcome, at_us: Option<i64>) {
        match self.open.remove(&call) {
            Some(open) if open.is_forgotten => self.inner.inbox.give_back(call),
            Some(_) => self.answers.push_back(Called { call, what: What::Outcome(outcome, at_us) }),
            None => {}
        }
    }

    /// Notes the message that a call has taken by its record.
    fn note_message(&mut self, call: u64, record: usize) {
        if let Some((place, message)) = self.past.message(record, &self.inner.job.to_string()) {
            self.inner.inbox.note_given(call, place, message);
        }
    }

    fn fail(&mut self, error: JournalError) {
        self.failed.get_or_insert(error);
    }

    fn differs(&mut self, difference: &Difference) {
        let advice = "a durable program does the same again with the same records: change it back, ask version() before what is new, or \
                      let the job begin anew";
        self.fail(JournalError::Program(format!("{difference}; {advice}")));
    }

    /// What happens next in a call.
    pub(in crate::provider) async fn next(&mut self) -> News {
        loop {
            if let Some(called) = self.answers.pop_front() {
                return News::Called(called);
            }
            if let Some(error) = self.failed.take() {
                return News::Failed(error);
            }
            let Self { inner, replay, running, says, hears, parks, reads, .. } = self;
            let patience = async {
                match replay.deadline() {
                    Some(at) => inner.shared.env.clock.sleep(at.saturating_sub(inner.now())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(told) = hears.recv() => return News::Told(told),
                Some(called) = says.recv() => return News::Called(called),
                Some((call, end)) = running.next() => match end {
                    Ok(End::Outcome(outcome, at_us)) => self.answer(call, outcome, at_us),
                    Ok(End::Forgotten) => drop(self.open.remove(&call)),
                    Err(error) => return News::Failed(error),
                },
                error = parks => return News::Failed(self.over(error)),
                error = reads => return News::Failed(self.over(error)),
                () = patience => {
                    if let Some(difference) = self.replay.tick(self.inner.now()) {
                        self.differs(&difference);
                    }
                }
            }
        }
    }

    /// After one of the futures has ended that live as long as the attempt.
    fn over(&mut self, error: JournalError) -> JournalError {
        (self.parks, self.reads) = (std::future::pending().boxed(), std::future::pending().boxed());
        error
    }

    /// A call to which the program can be told that the job cannot go on.
    pub(in crate::provider) fn a_call(&self) -> Option<u64> {
        self.open.values().find(|open| !open.is_forgotten).map(|open| open.carried.call)
    }

    /// What a program has left out of its record that has ended: a warning, or an error if it must follow all of it. `claimed`: how many records
    /// that it was told at its beginning it has taken.
    pub(in crate::provider) fn left_out(&mut self, claimed: usize) -> Option<String> {
        // What else this would begin belongs to a program that has ended.
        drop(self.replay.claimed(claimed.min(self.past.told_count()), self.inner.now()));
        let left: Vec<String> = self.replay.unclaimed().map(|record| record.kind.shown(&record.name)).collect();
        let first = left.first()?;
        let others = match left.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        Some(format!("the program has ended, and its record has {first}{others}, for which it did not ask"))
    }

    /// Passes on what followers were not told yet.
    pub(in crate::provider) async fn finish(&mut self, control: &mut Control<'_>) {
        while let Ok(told) = self.hears.try_recv() {
            pass(control, told).await;
        }
    }

    /// What the job's metadata says about the calls.
    pub(in crate::provider) fn measured(&self) -> Map<String, Value> {
        self.inner.model.as_ref().map(ProgramModel::measured).unwrap_or_default()
    }
}

fn read_kind(kind: Option<&str>) -> Result<CallKind, String> {
    let Some(kind) = kind else { return Ok(CallKind::Step) };
    let read = serde_json::from_value::<CallKind>(kind.into());
    read.map_err(|_| format!("{:?} is no kind of call", shortened(kind, NAME_BYTES_MAX)))
}

/// The beginning of a text, in one line.
fn shortened(text: &str, chars: usize) -> String {
    text.chars().take(chars).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn raw(json: &'static str) -> Box<serde_json::value::RawValue> {
    serde_json::value::RawValue::from_string(json.to_owned())
        .unwrap_or_else(|_| serde_json::value::RawValue::NULL.to_owned())
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is complete while the lock is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps that end within this time leave no record of their beginning: an attempt that is lost meanwhile sleeps again. They end before a job
/// parks, or each attempt would sleep anew until it parks.
const SHORT_SLEEP: Duration = Duration::from_secs(2);
const _: () = assert!(SHORT_SLEEP.as_millis() < atlas_slots::PARK_AFTER.as_millis());

/// The key of a step about a call, besides its outcome.
fn key_of(what: &str, id: &str) -> StepKey {
    hashed(&(what, id))
}
