//! What a call does that begins, by its kind, and how its end is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use atlas_durable::{CallKind, CallOutcome, CallRecord, NAME_BYTES_MAX};
use atlas_types::{JobId, Micros, SpawnStep, StepKey, StepKind, StepUsage, Timestamp, ToolRequest, Wait, is_hidden};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::{Notify, OnceCell, Semaphore, mpsc, oneshot};

use super::frame::{CallFrame, Called, Made};
use super::inbox::Inbox;
use super::{SHORT_SLEEP, key_of, raw};
use crate::journal::{Book, ChildCall, JournalError, Made as Recording, UNATTENDED, made};
use crate::mailbox::Answer;
use crate::provider::durable::past::raw_of;
use crate::provider::library::is_of_library;
use crate::provider::llm::fault::Fault;
use crate::provider::program_model::{Asked, ProgramModel, ends_job, told_of};
use crate::provider::round::caller::Told;
use crate::provider::{Shared, elsewhere};
use crate::secrets::Secrets;

/// The most bytes that the records of one job have together. Each attempt keeps them in memory.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// The longest time of a wait: a hundred years, so that no sum overflows.
const LONGEST_US: i64 = 100 * 365 * 24 * 3_600 * 1_000_000;

/// What is on its way to a wait whose time has come arrives within this.
const LAST_MOMENT: Duration = Duration::from_millis(100);

/// The tool by which people are asked.
pub(super) const QUESTION: &str = ToolRequest::QUESTION;

/// What the calls of an attempt share.
pub(super) struct Inner {
    pub(super) shared: Shared,
    pub(super) job: JobId,
    pub(super) book: Book,
    pub(super) secrets: Secrets,
    /// None if the contract states no model, or with the reason why there is none.
    pub(super) model: Option<ProgramModel>,
    pub(super) no_model: String,
    pub(super) models_at_once: Semaphore,
    /// The first step of the journal. It is recorded before the first call is.
    pub(super) start: (StepKey, Vec<u8>),
    pub(super) started: OnceCell<()>,
    pub(super) began_us: i64,
    /// A random number of the record: that of a job that goes on from another's record is the same.
    pub(super) seed: u64,
    /// Whether there were attempts before this one.
    pub(super) again: bool,
    /// Whether this attempt has recorded a call.
    pub(super) is_ahead: AtomicBool,
    /// What earlier attempts began and must not be done twice.
    pub(super) intents: BTreeSet<StepKey>,
    /// Functions that run in the program, by their calls.
    pub(super) functions: Mutex<BTreeMap<u64, oneshot::Sender<Made>>>,
    pub(super) inbox: Inbox,
    pub(super) says: mpsc::UnboundedSender<Called>,
    pub(super) told: mpsc::UnboundedSender<Told>,
    pub(super) bytes: AtomicUsize,
    pub(super) value_bytes_max: usize,
}

/// A call that is carried out.
pub(super) struct Carried {
    pub(super) call: u64,
    pub(super) kind: CallKind,
    pub(super) name: String,
    /// Its place in the code.
    pub(super) at: String,
    pub(super) id: String,
    pub(super) key: StepKey,
    /// No other call was open so far.
    pub(super) alone: AtomicBool,
    /// When it was asked for, by the monotonic clock. None if an earlier attempt may have asked for it before.
    asked: Option<Duration>,
    /// When its wait began, by the wall clock, if that is recorded; otherwise 0.
    began_us: AtomicI64,
    /// How long its function ran in this attempt.
    ran_us: AtomicU64,
    /// Told when the program no longer waits.
    pub(super) forgotten: Notify,
}

impl Carried {
    pub(super) fn new(
        call: u64,
        (kind, name, at): (CallKind, String, String),
        (id, key): (String, StepKey),
        (alone, asked): (bool, Option<Duration>),
    ) -> Self {
        Self {
            call,
            kind,
            name,
            at,
            id,
            key,
            alone: AtomicBool::new(alone),
            asked,
            began_us: AtomicI64::new(0),
            ran_us: AtomicU64::new(0),
            forgotten: Notify::new(),
        }
    }

    /// Notes how long its function ran.
    pub(super) fn ran(&self, time: Duration) {
        self.ran_us.store(Micros::from(time).0, Ordering::Relaxed);
    }
}

/// How many characters are left of the text of an error that is too large.
const ERROR_CHARS: usize = 10_000;

/// How a wait for another job ended.
enum Waited {
    Answered(Answer),
    TooLong,
    Forgotten,
}

/// How a call ended.
pub(super) enum End {
    /// What came of it, and when it was recorded.
    Outcome(CallOutcome, Option<i64>),
    /// The program waits for it no longer, and it leaves no record.
    Forgotten,
}

impl Inner {
    pub(super) fn now(&self) -> Duration {
        self.shared.env.clock.monotonic()
    }

    fn wall(&self) -> Timestamp {
        self.shared.env.clock.wall()
    }

    /// Records what the job is fixed to, once.
    pub(super) async fn started(&self) -> Result<(), JournalError> {
        let (key, outcome) = &self.start;
        let record = || async {
            let usage = StepUsage::default();
            let make = || async { Ok::<_, JournalError>(Recording { outcome: outcome.clone(), usage }) };
            self.book.step(StepKind::Start, *key, make).await.map(drop)
        };
        self.started.get_or_try_init(record).await.map(drop)
    }

    pub(super) async fn carry_out(&self, call: &Carried, frame: CallFrame) -> Result<End, JournalError> {
        self.started().await?;
        match call.kind {
            CallKind::Step => self.step(call, frame.effects.as_deref(), frame.reconcile).await,
            CallKind::Sleep => self.sleep(call, (frame.until_us, frame.for_us)).await,
            CallKind::Ask => self.ask(call, frame.question.unwrap_or_default()).await,
            CallKind::Receive => self.receive(call, frame.for_us).await,
            CallKind::Spawn => self.spawn(call, frame).await,
            CallKind::Tool => self.tool(call, frame).await,
            CallKind::Model => self.ask_model(call, frame.input.as_deref()).await,
            CallKind::Version => self.record(call, StepKind::Effect, CallOutcome::Value(raw("true"))).await,
        }
    }

    async fn sleep(&self, call: &Carried, (until_us, for_us): (Option<i64>, Option<i64>)) -> Result<End, JournalError> {
        let _working = self.book.begin().await?;
        let until = match (until_us, for_us) {
            (Some(at), _) => Timestamp(at.min(self.wall().0.saturating_add(LONGEST_US))),
            (None, Some(us)) => self.until(call, Duration::from_micros(us.try_into().unwrap_or_default())).await?,
            (None, None) => return Ok(refused("a sleep says for how long, as \"for\" in seconds, or \"until\" when")),
        };
        if let Some(left) = self.book.left(until) {
            let over = async {
                tokio::select! {
                    () = self.shared.env.clock.sleep(left) => true,
                    () = call.forgotten.notified() => false,
                }
            };
            if !self.book.wait(vec![Wait::Time { at: until }], over).await {
                return Ok(End::Forgotten);
            }
        }
        self.record(call, StepKind::Sleep, CallOutcome::null()).await
    }

    /// When a wait ends that has so much time. It is the same time in each attempt.
    pub(super) async fn until(&self, call: &Carried, time: Duration) -> Result<Timestamp, JournalError> {
        let us = i64::try_from(time.as_micros()).unwrap_or(LONGEST_US).min(LONGEST_US);
        let until = || self.wall().0.saturating_add(us);
        if time <= SHORT_SLEEP {
            return Ok(Timestamp(until()));
        }
        let make = || async { made(&until()) };
        let outcome = self.book.step(StepKind::Effect, key_of("until", &call.id), make).await?;
        let unreadable = |error| JournalError::Unreadable { step: 0, error };
        let until: i64 = serde_json::from_slice(&outcome).map_err(unreadable)?;
        call.began_us.store(until.saturating_sub(us), Ordering::Relaxed);
        Ok(Timestamp(until))
    }

    /// Waits until a time, for ever without one. If it has come, what is on its way here has a moment.
    pub(super) async fn sleep_until(&self, until: Option<Timestamp>) {
        match until {
            Some(until) => {
                let left = self.book.left(until).unwrap_or_default();
                self.shared.env.clock.sleep(left.max(LAST_MOMENT)).await;
            }
            None => std::future::pending().await,
        }
    }

    async fn ask(&self, call: &Carried, mut question: Value) -> Result<End, JournalError> {
        let _working = self.book.begin().await?;
        self.secrets.redactor().json(&mut question);
        if let Value::Object(members) = &mut question {
            members.remove("needs_people");
        }
        let asked = self.book.question(call.key, QUESTION, &question);
        let answer = tokio::select! {
            biased;
            answer = asked => answer?,
            () = call.forgotten.notified() => return Ok(End::Forgotten),
        };
        let outcome = match answered(answer)? {
            Ok(answer) => CallOutcome::Value(raw_of(&answer)),
            Err(why) => CallOutcome::error("QuestionError", why),
        };
        self.record(call, StepKind::Question, outcome).await
    }

    async fn spawn(&self, call: &Carried, frame: CallFrame) -> Result<End, JournalError> {
        let _working = self.book.begin().await?;
        let CallFrame { agent, skill, input, priority, timeout, .. } = frame;
        let child = ChildCall { agent, input: input.unwrap_or_else(|| RawValue::NULL.to_owned()), priority, skill };
        let limit = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
        let until = match limit {
            Some(limit) => Some(self.until(call, limit).await?),
            None => None,
        };
        let step = SpawnStep { number: 0, key: call.key };
        let begun = self.book.asker().child(step, child).await?;
        let waits = [begun.wait].into_iter().chain(until.map(|at| Wait::Time { at })).collect();
        let over = async {
            tokio::select! {
                biased;
                answer = begun.end => answer.map(Waited::Answered).map_err(|_| JournalError::Stopped),
                () = call.forgotten.notified() => Ok(Waited::Forgotten),
                () = self.sleep_until(until) => Ok(Waited::TooLong),
            }
        };
        let waited = self.book.wait(waits, over).await?;
        if !matches!(waited, Waited::Answered(_)) {
            self.book.cancel(call.key).await?;
        }
        let told = match waited {
            Waited::Answered(answer) => told(answer)?,
            Waited::TooLong => {
                let seconds = limit.unwrap_or_default().as_secs_f64();
                let error = format!("the job was not finished in {seconds} s, and is cancelled");
                CallOutcome::Value(raw_of(&json!({ "error": error, "timed_out": true })))
            }
            Waited::Forgotten => return Ok(End::Forgotten),
        };
        self.record(call, StepKind::Child, told).await
    }

    async fn tool(&self, call: &Carried, frame: CallFrame) -> Result<End, JournalError> {
        let _working = self.book.begin().await?;
        let tool = if frame.tool.is_empty() { &call.name } else { &frame.tool };
        let answer = if is_hidden(tool) {
            Answer::Refused(format!("Unknown tool: {tool}"))
        } else {
            let input = frame.input.as_deref().map_or("{}", RawValue::get);
            let mut arguments: Value = serde_json::from_str(input).unwrap_or_default();
            if is_of_library(tool) {
                self.secrets.redactor().json(&mut arguments);
            }
            let begun = self.book.asker().question(call.key, tool, &arguments).await?;
            begun.end.await.map_err(|_| JournalError::Stopped)?
        };
        self.record(call, StepKind::Tools, told(answer)?).await
    }

    async fn ask_model(&self, call: &Carried, input: Option<&RawValue>) -> Result<End, JournalError> {
        // The semaphore is never closed.
        let _permit = self.models_at_once.acquire().await;
        let _working = self.book.begin().await?;
        let wrong = |kind: &str, text: String| CallOutcome::error(kind, text);
        let asked = match (Asked::read(input), &self.model) {
            (Err(why), _) => Err(wrong("ValueError", why)),
            (_, None) => Err(wrong("LLMError", self.no_model.clone())),
            (Ok(asked), Some(model)) => Ok((asked, model)),
        };
        let (asked, model) = match asked {
            Ok(asked) => asked,
            Err(outcome) => return self.record(call, StepKind::Effect, outcome).await,
        };
        let job = self.job.to_string();
        let answer = model.call(&self.book, call.key, &asked, (&self.shared.env, &job, &self.told)).await;
        let outcome = match answer {
            Ok(answer) => CallOutcome::Value(raw_of(&answer)),
            Err(fault) => wrong("LLMError", told_of(&call_fault(fault)?)),
        };
        if self.book.known(call.key).is_some() {
            return Ok(End::Outcome(outcome, None));
        }
        // A call that failed is recorded too: the program goes on with its error.
        self.record(call, StepKind::Effect, outcome).await
    }

    /// Records what came of a call. The program is told what is recorded.
    pub(super) async fn record(
        &self,
        call: &Carried,
        kind: StepKind,
        outcome: CallOutcome,
    ) -> Result<End, JournalError> {
        let usage = self.usage(call);
        let record = self.record_of(call, outcome).await;
        let bytes = self.bytes_of(&record)?;
        self.book.record(kind, call.key, bytes, usage).await?;
        self.is_ahead.store(true, Ordering::Relaxed);
        Ok(ended(record))
    }

    /// How long a call took: a step as long as its function ran, another one from when it was asked for. That of a wait which an earlier
    /// attempt may have begun is not known, unless its beginning is recorded.
    pub(super) fn usage(&self, call: &Carried) -> StepUsage {
        let began_us = call.began_us.load(Ordering::Relaxed);
        let duration = match (call.kind, call.asked) {
            (CallKind::Step, _) => Micros(call.ran_us.load(Ordering::Relaxed)),
            _ if began_us > 0 => Micros(u64::try_from(self.wall().0.saturating_sub(began_us)).unwrap_or_default()),
            (_, Some(asked)) => Micros::from(self.now().saturating_sub(asked)),
            (_, None) => Micros(0),
        };
        StepUsage { duration, ..StepUsage::default() }
    }

    /// The time at which a call is asked for that no earlier attempt can have asked for: it comes after one that this attempt recorded.
    pub(super) fn asked_now(&self, now: Duration) -> Option<Duration> {
        (!self.again || self.is_ahead.load(Ordering::Relaxed)).then_some(now)
    }

    /// The record of a call, without values of secrets and within the bounds.
    pub(super) async fn record_of(&self, call: &Carried, outcome: CallOutcome) -> CallRecord {
        let outcome = match outcome {
            CallOutcome::Value(value) if value.get().len() > self.value_bytes_max => {
                let (bytes, most) = (value.get().len(), self.value_bytes_max);
                let what = call.kind.shown(&call.name);
                CallOutcome::error(
                    "ValueError",
                    format!(
                        "the result of {what} has {bytes} bytes, more than {most}; keep it elsewhere, and return where it is"
                    ),
                )
            }
            CallOutcome::Value(value) => CallOutcome::Value(self.redacted(value).await),
            CallOutcome::Error(mut error) => {
                self.secrets.redactor().json(&mut error);
                if error.to_string().len() > self.value_bytes_max {
                    shortened_error(&error)
                } else {
                    CallOutcome::Error(error)
                }
            }
        };
        let record = CallRecord::new(call.id.clone(), call.name.clone(), self.wall().0, outcome);
        CallRecord { alone: call.alone.load(Ordering::Relaxed), ..record }
    }

    async fn redacted(&self, value: Box<RawValue>) -> Box<RawValue> {
        let redactor = self.secrets.redactor().clone();
        if redactor.is_empty() {
            return value;
        }
        let redacted = elsewhere(&self.shared.env, value.get().len(), move || {
            let mut read: Value = serde_json::from_str(value.get()).ok()?;
            redactor.json(&mut read);
            to_raw_value(&read).ok()
        });
        // Only the end of the process interrupts it.
        redacted.await.flatten().unwrap_or_else(|| RawValue::NULL.to_owned())
    }

    pub(super) fn bytes_of(&self, record: &CallRecord) -> Result<Vec<u8>, JournalError> {
        let bytes = serde_json::to_vec(record).map_err(|error| JournalError::Unreadable { step: 0, error })?;
        self.note_bytes(bytes.len())?;
        Ok(bytes)
    }

    /// Counts what is recorded.
    pub(super) fn note_bytes(&self, bytes: usize) -> Result<(), JournalError> {
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > RECORD_BYTES_MAX {
            let most = RECORD_BYTES_MAX >> 20;
            return Err(JournalError::TooMuch(format!(
                "the results of the job's calls have more than {most} MiB together; keep large values elsewhere, and return where they are"
            )));
        }
        Ok(())
    }
}

/// What a program is told of a record.
pub(super) fn ended(record: CallRecord) -> End {
    let at_us = record.at_us;
    End::Outcome(record.into_outcome(), Some(at_us))
}

/// An end without a record: the call has no meaning, in each attempt.
pub(super) fn refused(text: &str) -> End {
    End::Outcome(CallOutcome::error("ValueError", text), None)
}

/// The type of an error, and the beginning of its text.
fn shortened_error(error: &Value) -> CallOutcome {
    let member =
        |name: &str, chars: usize| -> String { error[name].as_str().unwrap_or("Error").chars().take(chars).collect() };
    CallOutcome::error(&member("type", NAME_BYTES_MAX), member("text", ERROR_CHARS) + "…")
}

fn call_fault(fault: Fault) -> Result<Fault, JournalError> {
    ends_job(fault)
}

/// The answer to a question, or why there is none. A question that nobody may answer ends the job.
pub(super) fn answered(answer: Answer) -> Result<Result<Value, String>, JournalError> {
    match answer {
        Answer::Completed(result) => {
            let result: Value = serde_json::from_slice(&result).unwrap_or_default();
            // Without an answer, its time has passed.
            Ok(Ok(result.get("answer").or_else(|| result.get("answers")).cloned().unwrap_or_default()))
        }
        Answer::Failed(why) | Answer::Refused(why) if why.starts_with(UNATTENDED) => Err(JournalError::Unattended(why)),
        Answer::Failed(why) | Answer::Refused(why) => Ok(Err(why)),
    }
}

/// What a program is told of a job or a tool.
fn told(answer: Answer) -> Result<CallOutcome, JournalError> {
    let told = match answer {
        Answer::Completed(output) => {
            let output = String::from_utf8_lossy(&output);
            RawValue::from_string(format!(r#"{{"data":{output}}}"#))
                .map_err(|error| JournalError::Unreadable { step: 0, error })?
        }
        Answer::Failed(error) => raw_of(&json!({ "error": error })),
        Answer::Refused(why) => raw_of(&json!({ "refused": why })),
    };
    Ok(CallOutcome::Value(told))
}
