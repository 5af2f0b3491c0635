//! A recorded turn, run again without its models and tools: the loop gets the recorded outcomes, and each step that it asks for
//! is compared with the recorded one.

use std::fmt;

use atlas_model::{Image, Message, ToolCall};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::messages::prompted;
use crate::record::{
    AGAIN, AnswerOutcome, ChildEnd, FixedSettings, HelpOutcome, LEVEL, OwnStep, QuestionEnd, Ran, RoundStep, START,
    ServerRound, Spawn, StopOutcome, UnusableAnswer, round_step, server_counts, server_intent,
};
use crate::{Checks, Effect, End, Event, Failure, Key, Outage, Outcome, Permits, Settings, ToolReturn, Turn};

/// A recorded step. Its number is its place in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it records: `start`, `model`, `tools`, `child`.
    pub kind: String,
    /// The hash of what was asked, in hexadecimal digits.
    pub key: String,
    pub outcome: Value,
}

/// What came of a replay.
#[derive(Debug, Clone, PartialEq)]
pub enum Replay {
    /// The loop asked for the recorded steps in their order, and ended like this.
    Same(Ending),
    /// It left the recorded path.
    Differs(Difference),
}

/// How the loop ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    Finished {
        output: Value,
        end: End,
    },
    Failed(Failure),
    /// It asks for a step that is not recorded.
    Open {
        asked: Side,
    },
}

/// The first step at which the loop and the record differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub step: u64,
    pub recorded: Side,
    pub asked: Side,
}

/// One side of a difference.
#[derive(Debug, Clone, PartialEq)]
pub enum Side {
    /// A step of this kind and key.
    Step { kind: String, key: String },
    /// The end of the turn.
    End(String),
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { kind, key } => write!(f, "{kind} {key}"),
            Self::End(text) => f.write_str(text),
        }
    }
}

/// Why a record cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// There are no steps.
    #[error("the job has recorded no steps")]
    Empty,
    /// Another loop recorded it.
    #[error("the job was recorded by level {recorded} of the agent loop, and this program has level {LEVEL}")]
    Level { recorded: u64 },
    /// Step 0 is not that of an agent with a model.
    #[error("the job is not that of an agent with a model: step 0 is {kind} {key}")]
    NotAnAgent { kind: String, key: String },
    /// A step has another form than its kind has.
    #[error("the outcome of step {step} cannot be read: {why}")]
    Unreadable { step: u64, why: String },
}

/// Why a replay stops before its end.
enum Stop {
    Differs(Difference),
    Open(Side),
    Error(ReplayError),
}

impl From<ReplayError> for Stop {
    fn from(error: ReplayError) -> Self {
        Self::Error(error)
    }
}

/// Replays the steps of a job. `checks` compiles the schemas of the recorded settings, and `ran` makes the results of
/// [`RUN`](crate::record::RUN).
pub fn replay<C: Checks>(
    steps: &[Step],
    input: &Value,
    images: Vec<Image>,
    said: Vec<Message>,
    checks: impl Fn(&Settings) -> C,
    ran: Ran,
) -> Result<Replay, ReplayError> {
    let mut record = Record { steps, next: 0, ran, permits: Permits::default() };
    match record.run(input, images, said, checks) {
        Ok(ending) => Ok(Replay::Same(ending)),
        Err(Stop::Open(asked)) => Ok(Replay::Same(Ending::Open { asked })),
        Err(Stop::Differs(difference)) => Ok(Replay::Differs(difference)),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// The record, as far as it has been read.
struct Record<'a> {
    steps: &'a [Step],
    next: usize,
    ran: Ran,
    permits: Permits,
}

impl Record<'_> {
    fn run<C: Checks>(
        &mut self,
        input: &Value,
        images: Vec<Image>,
        said: Vec<Message>,
        checks: impl Fn(&Settings) -> C,
    ) -> Result<Ending, Stop> {
        let mut fixed = self.start()?;
        let mut check = checks(&fixed.settings);
        let mut turn = Turn::new(fixed.settings.clone());
        let started = match &fixed.prompt {
            Some(_) => Event::Started { input: json!({}), images, said: prompted(said, fixed.prompt.as_deref()) },
            None => Event::Started { input: input.clone(), images, said },
        };
        let mut effects = turn.step(started, &check);
        loop {
            let effect = effects.pop();
            if let Some(Effect::Call { key }) = &effect {
                self.pass_all("sleep", Outage::key(*key));
            }
            let event = match effect {
                Some(Effect::Call { .. }) if self.is_next("start", AGAIN) => {
                    fixed = self.fixed(AGAIN)?;
                    check = checks(&fixed.settings);
                    effects = turn.refix(fixed.settings.clone());
                    continue;
                }
                Some(Effect::Call { key }) => {
                    let outcome: Value = self.read("model", key)?;
                    match UnusableAnswer::deserialize(&outcome) {
                        Ok(answer) => Event::Failed(answer.failure()),
                        Err(_) => {
                            let AnswerOutcome { place, answer } = self.form(outcome)?;
                            turn.answered_by(place);
                            Event::Answered(Box::new(answer))
                        }
                    }
                }
                Some(Effect::Tools { key, calls, .. }) => {
                    let mut returned: Vec<ToolReturn> = Vec::with_capacity(calls.len());
                    let mut permits = std::mem::take(&mut self.permits);
                    let own = |permits: &Permits, call: &ToolCall| match permits.must_ask(&fixed.settings, call) {
                        true => Some(OwnStep::Guard),
                        false => fixed.own_step(call),
                    };
                    while let Some(step) = round_step(key, &calls, returned.len(), |call| own(&permits, call)) {
                        if let RoundStep::Guard(call) = step {
                            let asked = QuestionEnd::key(self.next as u64, &Permits::question(call));
                            let end: QuestionEnd = self.read("question", asked)?;
                            let refused = permits.answered(call, &end);
                            returned.extend(refused.map(|outcome| ToolReturn { call: call.id.clone(), outcome }));
                            continue;
                        }
                        if let Some(working) = self.round(step, &fixed, &mut returned)? {
                            turn.set_helpers(working);
                        }
                    }
                    permits.end_round();
                    self.permits = permits;
                    Event::Returned(returned)
                }
                Some(Effect::Stop { key }) => {
                    let StopOutcome { reminder } = self.read("effect", key)?;
                    Event::Stopping(reminder)
                }
                Some(Effect::Finish { output, end }) => {
                    self.must_be_over(&format!("the output {output}"))?;
                    return Ok(Ending::Finished { output, end });
                }
                Some(Effect::Fail(failure)) => {
                    self.must_be_over(&format!("the failure: {failure}"))?;
                    return Ok(Ending::Failed(failure));
                }
                // A warning is never the last effect, and an event always has effects.
                Some(Effect::Warn(_)) | None => continue,
            };
            effects = turn.step(event, &check);
        }
    }

    fn start(&mut self) -> Result<FixedSettings, Stop> {
        let first = self.steps.first().ok_or(ReplayError::Empty)?;
        if !self.is_next("start", START) {
            let (kind, key) = (first.kind.clone(), first.key.clone());
            return Err(ReplayError::NotAnAgent { kind, key }.into());
        }
        self.fixed(START)
    }

    fn fixed(&mut self, key: Key) -> Result<FixedSettings, Stop> {
        let outcome: Value = self.read("start", key)?;
        match outcome["level"].as_u64() {
            Some(recorded) if recorded != u64::from(LEVEL) => Err(ReplayError::Level { recorded }.into()),
            _ => self.form(outcome),
        }
    }

    /// A step of a round. After a call about helpers, it tells whether any work.
    fn round(
        &mut self,
        step: RoundStep<'_>,
        fixed: &FixedSettings,
        returned: &mut Vec<ToolReturn>,
    ) -> Result<Option<bool>, Stop> {
        match step {
            RoundStep::Together { key, calls } => {
                let outcomes: Vec<ToolReturn> = self.read("tools", key)?;
                self.as_many(&outcomes, calls)?;
                returned.extend(outcomes);
            }
            RoundStep::Servers { key, calls } => {
                // A definition that was changed since decides only whether there is an intent.
                self.pass("intent", server_intent(key));
                let ServerRound { returned: outcomes } = self.read("tools", key)?;
                self.as_many(&outcomes, calls)?;
                self.pass("effect", server_counts(key));
                returned.extend(outcomes);
            }
            RoundStep::Spawn(call) => {
                let spawn = Spawn::of(call, fixed.is_skill(call));
                let end: ChildEnd = match spawn.refused() {
                    Some(end) => end,
                    None => self.read("child", spawn.key())?,
                };
                returned.push(ToolReturn { call: call.id.clone(), outcome: spawn.outcome(end, self.ran) });
            }
            RoundStep::Ask(call) => {
                let end: QuestionEnd = self.read("question", QuestionEnd::key(self.next as u64, call))?;
                returned.push(ToolReturn { call: call.id.clone(), outcome: end.outcome() });
            }
            // It is asked before.
            RoundStep::Guard(_) => {}
            RoundStep::Help(call) => {
                let HelpOutcome { result, working } = self.read("effect", HelpOutcome::key(self.next as u64, call))?;
                returned.push(ToolReturn { call: call.id.clone(), outcome: Outcome::Value(result) });
                return Ok(Some(working));
            }
        }
        Ok(None)
    }

    fn as_many(&self, outcomes: &[ToolReturn], calls: &[ToolCall]) -> Result<(), Stop> {
        if outcomes.len() == calls.len() {
            return Ok(());
        }
        let why = format!("it has {} results, and the round has {} calls", outcomes.len(), calls.len());
        Err(ReplayError::Unreadable { step: self.last(), why }.into())
    }

    /// Passes over a step that may be there.
    fn pass(&mut self, kind: &str, key: Key) {
        self.next += usize::from(self.is_next(kind, key));
    }

    fn pass_all(&mut self, kind: &str, key: Key) {
        while self.is_next(kind, key) {
            self.next += 1;
        }
    }

    fn is_next(&self, kind: &str, key: Key) -> bool {
        self.steps.get(self.next).is_some_and(|step| step.kind == kind && step.key == key.to_string())
    }

    /// The outcome of the next step, which has to be of this kind and key.
    fn read<T: DeserializeOwned>(&mut self, kind: &str, key: Key) -> Result<T, Stop> {
        let asked = Side::Step { kind: kind.to_owned(), key: key.to_string() };
        let Some(step) = self.steps.get(self.next) else { return Err(Stop::Open(asked)) };
        if !self.is_next(kind, key) {
            return Err(self.differs(step, asked));
        }
        self.next += 1;
        self.form(step.outcome.clone())
    }

    fn form<T: DeserializeOwned>(&self, outcome: Value) -> Result<T, Stop> {
        let unreadable =
            |error: serde_json::Error| ReplayError::Unreadable { step: self.last(), why: error.to_string() };
        Ok(serde_json::from_value(outcome).map_err(unreadable)?)
    }

    /// The turn ends: a step that is recorded after that is a difference.
    fn must_be_over(&self, end: &str) -> Result<(), Stop> {
        match self.steps.get(self.next) {
            Some(step) => Err(self.differs(step, Side::End(end.to_owned()))),
            None => Ok(()),
        }
    }

    fn differs(&self, step: &Step, asked: Side) -> Stop {
        let recorded = Side::Step { kind: step.kind.clone(), key: step.key.clone() };
        Stop::Differs(Difference { step: self.next as u64, recorded, asked })
    }

    /// The number of the step that was read last.
    fn last(&self) -> u64 {
        (self.next as u64).saturating_sub(1)
    }
}

impl Step {
    /// A step as the driver records it.
    pub fn new(kind: &str, key: Key, outcome: &impl serde::Serialize) -> Self {
        Self { kind: kind.to_owned(), key: key.to_string(), outcome: json!(outcome) }
    }
}
