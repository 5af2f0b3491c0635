//! Model calls by programs in Python. The worker makes them, as for agents that are a model in a loop: the program has neither a key nor a
//! package for them. Each call is a step of the job's journal, which counts against its budget; a later attempt that asks the same gets the
//! recorded answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_model::NanoDollars;
use atlas_secrets::Redactor;
use atlas_types::{Attempt, StepKey, StepKind, StepUsage};
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesUnordered;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::attempt::Work;
use crate::journal::{Book, JournalError, Made, hashed};
use crate::mailbox::Answer;
use crate::provider::durable::{Called, Durable, News as DurableNews};
use crate::provider::library::{is_of_library, without_secrets};
use crate::provider::llm::fault::Fault;
use crate::provider::llm::fixed::Fixed;
use crate::provider::llm::outage::Limit;
use crate::provider::program_model::{Asked, PARALLEL_MAX, ProgramModel, told_of};
use crate::provider::round::caller::{Told, pass};
use crate::provider::{Control, Shared};

/// The calls of one attempt that the worker carries out itself.
pub(super) struct Calls {
    work: Arc<Work>,
    shared: Shared,
    opened: Option<Arc<Opened>>,
    /// All calls of a durable program; its model calls are none of those below.
    pub(super) durable: Option<Durable>,
    /// How often it has made a call of memory or knowledge, by its key.
    repeats: BTreeMap<StepKey, u64>,
    /// How long the attempt waits for providers. It has a process, so its job does not park.
    outage_limit: Limit,
    running: FuturesUnordered<BoxFuture<'static, (u64, Answer)>>,
    told: mpsc::UnboundedSender<Told>,
    hears: mpsc::UnboundedReceiver<Told>,
}

/// What the job is fixed to, ready to be called.
struct Opened {
    model: ProgramModel,
    book: Book,
}

impl Calls {
    pub(super) fn new(work: &Arc<Work>, shared: &Shared) -> Self {
        let (told, hears) = mpsc::unbounded_channel();
        Self {
            work: Arc::clone(work),
            shared: shared.clone(),
            opened: None,
            durable: None,
            repeats: BTreeMap::new(),
            outage_limit: Limit::of(work, false, shared.env.clock.monotonic()),
            running: FuturesUnordered::new(),
            told,
            hears,
        }
    }

    /// The arguments of a tool call. If it is one of memory or knowledge, they have no values of secrets, and it has a key that is the same in
    /// each attempt, and says whether there were attempts before.
    pub(super) fn of_tool(
        &mut self,
        tool: &str,
        arguments: Box<str>,
        redactor: &Redactor,
    ) -> (Box<str>, Option<(StepKey, bool)>) {
        if !is_of_library(tool) {
            return (arguments, None);
        }
        let arguments = without_secrets(&arguments, redactor).map_or(arguments, String::into_boxed_str);
        let assignment = &self.work.assignment;
        let key = hashed(&("library", assignment.job.to_string(), tool, &arguments));
        let count = self.repeats.entry(key).or_default();
        *count += 1;
        let key = if *count == 1 { key } else { hashed(&(key.0, *count)) };
        (arguments, Some((key, assignment.attempt > Attempt(1))))
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
        let asked = Asked::read(asked.as_deref())?;
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
        let call = async move {
            let Opened { model, book } = &*opened;
            match model.call(book, book.key(&("python model", &asked)), &asked, (&env, &job, &told)).await {
                Ok(told) => Answer::Completed(told.to_string().into_bytes().into()),
                Err(fault) => Answer::Failed(told_of(&fault)),
            }
        };
        Ok(call.boxed())
    }

    /// What happens next in a call. Waits for ever without a call.
    pub(super) async fn next(&mut self) -> News {
        let Self { durable, running, hears, .. } = self;
        let durable = async {
            match durable {
                Some(durable) => durable.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(told) = hears.recv() => News::Told(told),
            Some((call, answer)) = running.next() => News::Answered(call, answer),
            news = durable => match news {
                DurableNews::Told(told) => News::Told(told),
                DurableNews::Called(called) => News::Called(called),
                DurableNews::Failed(error) => News::Failed(error),
            },
        }
    }

    /// Passes on what followers were not told yet.
    pub(super) async fn finish(&mut self, control: &mut Control<'_>) {
        if let Some(durable) = &mut self.durable {
            durable.finish(control).await;
        }
        while let Ok(told) = self.hears.try_recv() {
            pass(control, told).await;
        }
    }

    /// What the job's metadata says about the calls: what the attempt has seen of the models of the namespace, and whether tokens are an estimate.
    pub(super) fn measured(&self) -> Map<String, Value> {
        let durable = self.durable.as_ref().map(Durable::measured);
        durable.or_else(|| self.opened.as_ref().map(|opened| opened.model.measured())).unwrap_or_default()
    }
}

/// Fixes the job to a model, unless an earlier attempt or call has.
async fn open(
    work: &Work,
    shared: &Shared,
    (outage_limit, control): (Limit, &mut Control<'_>),
) -> Result<Opened, Fault> {
    let journal = shared.journal(&work.assignment);
    let purse = journal.purse(work.assignment.budget_nanodollars.map(NanoDollars));
    let (book, _) = Book::open(journal, Arc::clone(&shared.env.clock)).await?;
    let make = || async {
        let fixed = Fixed::of(&work.agent, &work.assignment.attachments, shared)?;
        let outcome = serde_json::to_vec(&fixed).map_err(|error| Fault::internal(error.to_string()))?;
        Ok::<_, Fault>(Made { outcome, usage: StepUsage::default() })
    };
    let recorded = book.step(StepKind::Start, hashed(&("start", "python")), make).await?;
    let model = ProgramModel::open(Fixed::read(&recorded)?, (work, shared), (purse, outage_limit), control).await?;
    Ok(Opened { model, book })
}

/// What has happened in a call.
pub(super) enum News {
    Told(Told),
    Answered(u64, Answer),
    /// Of a durable program.
    Called(Called),
    /// The job cannot go on.
    Failed(JournalError),
}
