//! Model calls by programs in Python. The worker makes them, as for agents that are a model in a loop: the program has neither a key nor a
//! package for them. Each call is a step of the job's journal, which counts against its budget; a later attempt that asks the same gets the
//! recorded answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use atlas_model::{Message, NanoDollars, Request, Stop};
use atlas_turn::record::AnswerOutcome;
use atlas_turn::used;
use atlas_types::{StepKind, StepUsage};
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::attempt::Work;
use crate::journal::{Book, Made, Purse, hashed};
use crate::mailbox::Answer;
use crate::provider::llm::drive::{ESTIMATED, USAGE};
use crate::provider::llm::fault::Fault;
use crate::provider::llm::fixed::{Fixed, Source};
use crate::provider::llm::model::Models;
use crate::provider::llm::outage::Limit;
use crate::provider::round::caller::{Callable, Caller, Told, pass};
use crate::provider::round::model::CallFault;
use crate::provider::{Control, Shared};
use crate::secrets::Secrets;

/// Characters of the name of a model that are repeated.
const MODEL_CHARS_MAX: usize = 200;

/// The most calls of one job at the same time.
const PARALLEL_MAX: usize = 64;

/// What a program asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    prompt: String,
    system: Option<String>,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
}

/// The calls of one attempt.
pub(super) struct Calls {
    work: Arc<Work>,
    shared: Shared,
    opened: Option<Arc<Opened>>,
    /// How long the attempt waits for providers. It has a process, so its job does not park.
    outage_limit: Limit,
    running: FuturesUnordered<BoxFuture<'static, (u64, Answer)>>,
    told: mpsc::UnboundedSender<Told>,
    hears: mpsc::UnboundedReceiver<Told>,
}

/// What the job is fixed to, ready to be called.
struct Opened {
    callable: Callable,
    book: Book,
    purse: Purse,
    secrets: Mutex<Secrets>,
    /// Whether tokens of a call are an estimate.
    estimated: AtomicBool,
    outage_limit: Limit,
}

/// The model that a job's program can call, or why there is none.
pub(super) fn offered(work: &Work, shared: &Shared) -> Result<String, String> {
    if !work.agent.contract.calls_models() {
        return Err("the contract states no model; add the block \"model\" to agent.yaml".to_owned());
    }
    let fixed = Fixed::of(&work.agent, &work.assignment.attachments, shared);
    fixed.map(|fixed| fixed.settings.model).map_err(|fault| fault.to_string())
}

impl Calls {
    pub(super) fn new(work: &Arc<Work>, shared: &Shared) -> Self {
        let (told, hears) = mpsc::unbounded_channel();
        Self {
            work: Arc::clone(work),
            shared: shared.clone(),
            opened: None,
            outage_limit: Limit::of(work, false, shared.env.clock.monotonic()),
            running: FuturesUnordered::new(),
            told,
            hears,
        }
    }

    /// Begins a call.
    pub(super) async fn ask(&mut self, call: u64, asked: Option<Box<RawValue>>, control: &mut Control<'_>) {
        let answer = match self.begin(asked, control).await {
            Ok(call) => call,
            Err(why) => futures::future::ready(Answer::Failed(why)).boxed(),
        };
        self.running.push(answer.map(move |answer| (call, answer)).boxed());
    }

    async fn begin(
        &mut self,
        asked: Option<Box<RawValue>>,
        control: &mut Control<'_>,
    ) -> Result<BoxFuture<'static, Answer>, String> {
        if self.running.len() >= PARALLEL_MAX {
            return Err(format!("the job has {PARALLEL_MAX} model calls at the same time already"));
        }
        let asked = asked.map_or("null".to_owned(), |asked| asked.get().to_owned());
        let asked: Asked = serde_json::from_str(&asked).map_err(|error| format!("the model call: {error}"))?;
        let opened = match &self.opened {
            Some(opened) => Arc::clone(opened),
            None => {
                let opened = open(&self.work, &self.shared, (self.outage_limit, control))
                    .await
                    .map_err(|fault| told_of(&fault))?;
                Arc::clone(self.opened.insert(Arc::new(opened)))
            }
        };
        let (env, told) = (self.shared.env.clone(), self.told.clone());
        let job = self.work.assignment.job.to_string();
        Ok(async move { opened.call(&asked, &env, &job, &told).await }.boxed())
    }

    /// The next call that is answered; what followers are told meanwhile is passed on. Waits for ever without a call.
    pub(super) async fn next(&mut self) -> News {
        tokio::select! {
            biased;
            Some(told) = self.hears.recv() => News::Told(told),
            Some((call, answer)) = self.running.next() => News::Answered(call, answer),
            else => std::future::pending().await,
        }
    }

    /// Passes on what followers were not told yet.
    pub(super) async fn finish(&mut self, control: &mut Control<'_>) {
        while let Ok(told) = self.hears.try_recv() {
            pass(control, told).await;
        }
    }

    /// What the job's metadata says about the calls: what the attempt has seen of the models of the namespace, and whether tokens are an estimate.
    pub(super) fn measured(&self) -> Map<String, Value> {
        let mut measured = Map::new();
        let Some(opened) = &self.opened else { return measured };
        let seen = opened.callable.1.seen.as_ref().and_then(|seen| seen.value());
        measured.extend(seen.map(|seen| ("_models".to_owned(), seen)));
        if opened.estimated.load(Ordering::Relaxed) {
            measured.insert(USAGE.to_owned(), ESTIMATED.into());
        }
        measured
    }
}

/// Fixes the job to a model, unless an earlier attempt or call has.
async fn open(
    work: &Work,
    shared: &Shared,
    (outage_limit, control): (Limit, &mut Control<'_>),
) -> Result<Opened, Fault> {
    let journal = shared.journal(&work.assignment);
    let budget = work.assignment.budget_nanodollars.map(NanoDollars);
    let purse = journal.purse(budget);
    let (book, _) = Book::open(journal, Arc::clone(&shared.env.clock)).await?;
    let make = || async {
        let fixed = Fixed::of(&work.agent, &work.assignment.attachments, shared)?;
        let outcome = serde_json::to_vec(&fixed).map_err(|error| Fault::internal(error.to_string()))?;
        Ok::<_, Fault>(Made { outcome, usage: StepUsage::default() })
    };
    let recorded = book.step(StepKind::Start, hashed(&("start", "python")), make).await?;
    let mut fixed = Fixed::read(&recorded)?;
    // The budget is that of the job, also where the record is of the job that it forks.
    fixed.settings.limits.budget = budget;
    let models = Models::open(&fixed.source, &fixed.settings.model, work, control, shared)?;
    let mut lines = models.left_out.clone();
    if fixed.source == Source::Mock {
        lines.push("the answers come from mock.yaml, because no model is configured".to_owned());
    }
    for text in lines {
        pass(control, Told::Log { level: "warning", text }).await;
    }
    let secrets = Mutex::new(control.secrets.clone());
    let estimated = AtomicBool::new(false);
    Ok(Opened { callable: (fixed, models), book, purse, secrets, estimated, outage_limit })
}

/// What has happened in a call.
pub(super) enum News {
    Told(Told),
    Answered(u64, Answer),
}

impl Opened {
    async fn call(&self, asked: &Asked, env: &atlas_env::Env, job: &str, told: &mpsc::UnboundedSender<Told>) -> Answer {
        let settings = &self.callable.0.settings;
        let request = Request {
            model: settings.model.clone(),
            system: asked.system.clone().unwrap_or_default(),
            messages: vec![Message::user(asked.prompt.clone())].into(),
            max_tokens: asked.max_tokens.or(settings.sampling.max_tokens),
            temperature: asked.temperature.or(settings.sampling.temperature),
            stream: settings.stream,
            ..Request::default()
        };
        let key = self.book.key(&("python model", asked));
        let (book, purse, secrets) = (&self.book, &self.purse, &self.secrets);
        let outage_limit = self.outage_limit;
        let caller = Caller { env, job, book, purse, secrets, told, outage_limit };
        let recorded = match caller.called(&self.callable, key, request.clone()).await {
            Ok(recorded) => recorded,
            Err(CallFault::Call(error)) => {
                return Answer::Failed(told_of(&Fault::Turn(atlas_turn::Failure::Call(error))));
            }
            Err(CallFault::Journal(error)) => return Answer::Failed(told_of(&error.into())),
        };
        let answer = match serde_json::from_slice::<AnswerOutcome>(&recorded) {
            Ok(recorded) => recorded.answer,
            Err(error) => return Answer::Failed(told_of(&Fault::internal(error.to_string()))),
        };
        if used(settings, || request, &answer).estimated {
            self.estimated.store(true, Ordering::Relaxed);
        }
        match answer.stop {
            Stop::Refused => {
                return Answer::Failed(told_of(&Fault::Turn(atlas_turn::Failure::refused(&answer))));
            }
            Stop::Length => {
                // A provider may name itself at any length.
                let model: String = answer.model.chars().take(MODEL_CHARS_MAX).collect();
                let text = format!("the answer of {model} was cut at its limit of tokens");
                // The receiver lives as long as the attempt.
                let _ = told.send(Told::Log { level: "warning", text });
            }
            _ => {}
        }
        let (input, output) = (answer.usage.input, answer.usage.output);
        let told =
            json!({"text": answer.text(), "input_tokens": input, "output_tokens": output, "model": answer.model});
        Answer::Completed(told.to_string().into_bytes().into())
    }
}

/// A fault as a text that begins with its code.
fn told_of(fault: &Fault) -> String {
    match fault.code() {
        Some(code) => format!("{code}: {fault}"),
        None => fault.to_string(),
    }
}
