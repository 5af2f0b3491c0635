//! The beginning of an attempt of a durable program.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

use atlas_durable::{CallReplay, Numbers};
use atlas_model::NanoDollars;
use atlas_types::{Attempt, StepKey};
use futures::future::FutureExt as _;
use futures::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, Semaphore, mpsc};

use super::Durable;
use super::call::Inner;
use super::inbox::Inbox;
use super::past::Past;
use crate::attempt::Work;
use crate::journal::{Book, JournalError, hashed};
use crate::provider::llm::fault::Fault;
use crate::provider::llm::fixed::Fixed;
use crate::provider::llm::outage::Limit;
use crate::provider::program_model::{PARALLEL_MAX, ProgramModel};
use crate::provider::{Control, Shared};

/// What the first step says, besides what a job with a model is fixed to.
#[derive(Debug, Deserialize)]
struct Begun {
    #[serde(default)]
    began_us: i64,
    #[serde(default)]
    seed: u64,
}

impl Durable {
    /// Reads what earlier attempts recorded.
    pub(in crate::provider) async fn open(
        work: &Arc<Work>,
        shared: &Shared,
        control: &mut Control<'_>,
    ) -> Result<Self, Fault> {
        let assignment = &work.assignment;
        let journal = shared.journal(assignment);
        let purse = journal.purse(assignment.budget_nanodollars.map(NanoDollars));
        let clock = Arc::clone(&shared.env.clock);
        let outage_limit = Limit::of(work, journal.parks(), clock.monotonic());
        let (book, steps) = Book::open(journal, Arc::clone(&clock)).await?;
        let before = Past::of(&steps, &assignment.job.to_string())?;
        book.note_read(before.read).await;
        let (start, fixed) = start(work, shared, &book)?;
        let (model, no_model) = match fixed {
            Ok(fixed) => (
                Some(ProgramModel::open(fixed, (&**work, shared), (purse, outage_limit), control).await?),
                String::new(),
            ),
            Err(why) => (None, why),
        };
        let Begun { began_us, seed } = read(&start.1)?;
        let (says, said) = mpsc::unbounded_channel();
        let (told, hears) = mpsc::unbounded_channel();
        let inner = Arc::new(Inner {
            shared: shared.clone(),
            job: assignment.job,
            book,
            secrets: control.secrets.clone(),
            model,
            no_model,
            models_at_once: Semaphore::new(PARALLEL_MAX),
            start,
            started: OnceCell::new(),
            began_us,
            seed,
            again: assignment.attempt > Attempt(1) || !steps.is_empty(),
            is_ahead: AtomicBool::new(false),
            intents: before.intents,
            functions: Mutex::default(),
            inbox: Inbox::new(before.kept, before.read),
            says,
            told,
            bytes: AtomicUsize::new(before.bytes),
            value_bytes_max: shared.settings.output_bytes_max,
        });
        let (parks, reads) = (Arc::clone(&inner), Arc::clone(&inner));
        Ok(Self {
            replay: CallReplay::new(before.records, clock.monotonic(), assignment.execution_timeout.as_duration()),
            past: before.past,
            numbers: Numbers::default(),
            open: BTreeMap::new(),
            running: FuturesUnordered::new(),
            says: said,
            hears,
            answers: VecDeque::new(),
            parks: async move { parks.book.park().await }.boxed(),
            reads: async move {
                match reads.read_messages().await {
                    Ok(never) => match never {},
                    Err(error) => error,
                }
            }
            .boxed(),
            failed: None,
            calls: 0,
            inner,
        })
    }
}

/// The key and the outcome of the first step, which says when the job began, and the model to which the job is fixed, or why it has none.
type Start = ((StepKey, Vec<u8>), Result<Fixed, String>);

/// The beginning of the job: what is recorded of it, or what will be.
fn start(work: &Work, shared: &Shared, book: &Book) -> Result<Start, Fault> {
    let (with_model, without) = (hashed(&("start", "python")), hashed(&("start", "durable")));
    if let Some(recorded) = book.known(with_model) {
        let fixed = Fixed::read(&recorded)?;
        return Ok(((with_model, recorded.to_vec()), Ok(fixed)));
    }
    if let Some(recorded) = book.known(without) {
        return Ok(((without, recorded.to_vec()), Err("the job began without a model".to_owned())));
    }
    // Programs in JavaScript have numbers of 53 bits.
    let mut begun = json!({ "began_us": shared.env.clock.wall().0, "seed": shared.env.entropy.u64() >> 11 });
    let fixed = match work.agent.contract.calls_models() {
        true => Fixed::of(&work.agent, &work.assignment.attachments, shared).map_err(|fault| fault.to_string()),
        false => Err("the contract states no model; add the block \"model\" to agent.yaml".to_owned()),
    };
    let key = match &fixed {
        Ok(fixed) => {
            let fixed = serde_json::to_value(fixed).map_err(|error| Fault::internal(error.to_string()))?;
            if let (Value::Object(begun), Value::Object(fixed)) = (&mut begun, fixed) {
                begun.extend(fixed);
            }
            with_model
        }
        Err(_) => without,
    };
    Ok(((key, begun.to_string().into_bytes()), fixed))
}

fn read<'a, T: Deserialize<'a>>(outcome: &'a [u8]) -> Result<T, JournalError> {
    serde_json::from_slice(outcome).map_err(|error| JournalError::Unreadable { step: 0, error })
}
