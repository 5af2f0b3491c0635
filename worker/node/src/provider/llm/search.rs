//! Models that search documents: for an agent with a `config.yaml`, and for document bases. Each call is a step of the journal, in the order in
//! which the first attempt made them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use atlas_documents::VectorCache;
use atlas_env::Env;
use atlas_graph_run::{Embedder, SearchModels, search};
use atlas_model::{Answer, CallError, CallErrorKind, Request};
use atlas_package::model_name;
use atlas_turn::record::AnswerOutcome as Recorded;
use atlas_turn::{CountedUsage, Failure, Key, Outage, used};
use atlas_types::{StepKey, StepKind, StepUsage};

use super::drive::Driver;
use super::fault::Fault;
use super::fixed::Fixed;
use super::model::Models;
use super::outage;
use crate::journal::{Made, hashed};
use crate::provider::round::model::{CallFault, ModelCall, ModelRound, usable};

impl Driver<'_, '_> {
    /// The prompt with what the documents say about it. None if no model searches them: then the prompt is recorded with the settings.
    pub(super) async fn searched(&mut self, fixed: &Fixed) -> Result<Option<String>, Fault> {
        let Some(loki) = self.loki.as_ref().filter(|_| !fixed.searches.is_empty()) else { return Ok(None) };
        let (settings, message) = (loki.search_settings(), loki.message().to_owned());
        let (env, folder) = (self.shared.env.clone(), self.work.agent.directory.clone());
        let mut searching = Searching::new(self, fixed);
        let found = search::search(&env, &folder, &settings, &message, &mut searching).await;
        if let Some(fault) = searching.fault {
            return Err(fault);
        }
        let found = found.map_err(|why| Fault::Definition(format!("documents: {why}")))?;
        Ok(self.loki.as_ref().map(|loki| loki.with_excerpts(&found)))
    }
}

/// The models of one search.
pub(super) struct Searching<'s, 'a, 'c> {
    driver: &'s mut Driver<'a, 'c>,
    fixed: &'s Fixed,
    pub(super) opened: BTreeMap<String, Models>,
    /// What the answers used, also the recorded ones.
    pub(super) used: Used,
    /// Why the job ends.
    pub(super) fault: Option<Fault>,
}

/// What answers used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Used {
    pub(super) input: u64,
    pub(super) output: u64,
    /// Whether a part of it is an estimate.
    pub(super) estimated: bool,
}

impl<'s, 'a, 'c> Searching<'s, 'a, 'c> {
    /// The models of [`Fixed::searches`].
    pub(super) fn new(driver: &'s mut Driver<'a, 'c>, fixed: &'s Fixed) -> Self {
        Self { driver, fixed, opened: BTreeMap::new(), used: Used::default(), fault: None }
    }

    pub(super) fn env(&self) -> Env {
        self.driver.shared.env.clone()
    }
}

#[async_trait]
impl SearchModels for Searching<'_, '_, '_> {
    fn embedder(&self, model: &str) -> Result<Embedder, CallError> {
        let found = self.fixed.searches.get(&model_name(model)).ok_or_else(|| unknown(model))?;
        found.embedder(&self.driver.work.assignment.namespace)
    }

    async fn call(&mut self, model: &str, request: Request) -> Result<Answer, CallError> {
        self.made(model, request).await.map_err(|fault| self.ended(fault))
    }

    fn vectors(&self) -> Option<Arc<VectorCache>> {
        Some(Arc::clone(&self.driver.shared.settings.vectors))
    }

    async fn plan(&mut self, missing: Vec<String>) -> Result<Vec<String>, CallError> {
        self.planned(&missing).await.map_err(|fault| self.ended(fault))
    }
}

impl Searching<'_, '_, '_> {
    /// Notes why the job ends. The search ends with another error, which nobody sees.
    fn ended(&mut self, fault: Fault) -> CallError {
        let error = CallError::new(CallErrorKind::Request, fault.to_string());
        self.fault.get_or_insert(fault);
        error
    }

    /// What an earlier attempt found missing is embedded again in its order: the calls are recorded in it.
    async fn planned(&mut self, missing: &[String]) -> Result<Vec<String>, Fault> {
        let outcome = serde_json::to_vec(missing).map_err(|error| Fault::internal(error.to_string()))?;
        let make = || async { Ok::<_, Fault>(Made { outcome, usage: StepUsage::default() }) };
        let recorded = self.driver.journal.step(StepKind::Effect, hashed(&("search", "plan")), make).await?;
        serde_json::from_slice(&recorded).map_err(|error| Fault::internal(format!("the plan of a search: {error}")))
    }

    async fn made(&mut self, model: &str, request: Request) -> Result<Answer, Fault> {
        let name = model_name(model);
        let fixed = self.fixed.searches.get(&name).ok_or_else(|| call_fault(unknown(model)))?;
        let request = Request { model: fixed.settings.model.clone(), ..request };
        let step = hashed(&("search", &name, &request));
        let outage = StepKey(Outage::key(Key(step.0)).0);
        let driver = &mut *self.driver;
        while driver.journal.peek().await? == Some((StepKind::Sleep, outage)) {
            driver.read_outage(outage).await?;
        }
        let outage::Before { outage: before, steps } = std::mem::take(&mut driver.before);
        let number = driver.journal.next();
        let answered = if driver.journal.peek().await?.is_some() {
            let recorded = driver.journal.recorded(StepKind::Model, step).await?;
            usable(recorded.ok_or_else(|| Fault::internal("the call of a search is not recorded"))?)
        } else {
            if !self.opened.contains_key(&name) {
                let models = driver.open(fixed).await?;
                self.opened.insert(name.clone(), models);
            }
            let models = self.opened.get(&name).ok_or_else(|| Fault::internal("no model was opened"))?;
            let (clock, job) = (Arc::clone(&driver.control.env.clock), driver.work.assignment.job.to_string());
            let (purse, outage_limit, settings) = (driver.purse(), driver.outage_limit, &fixed.settings);
            let round = ModelRound { clock: &clock, job: &job, purse: &purse, outage_limit, settings, models };
            let idempotency_key = format!("{job}-{}", number.saturating_sub(steps));
            let call = ModelCall { step, outage, idempotency_key, request: &|| request.clone() };
            round.answer(&mut driver.journal, (&call, before), &mut *driver.control).await
        };
        match answered {
            Ok(outcome) => {
                let read = serde_json::from_slice(&outcome);
                let Recorded { answer, .. } =
                    read.map_err(|error| Fault::internal(format!("step {number} is not readable: {error}")))?;
                let CountedUsage { usage, estimated } = used(&fixed.settings, || request, &answer);
                self.used.input = self.used.input.saturating_add(usage.input);
                self.used.output = self.used.output.saturating_add(usage.output);
                self.used.estimated |= estimated;
                Ok(answer)
            }
            Err(CallFault::Call(error)) => Err(call_fault(CallError {
                message: format!("the model \"{model}\" of the search of documents: {}", error.message),
                ..error
            })),
            Err(CallFault::Journal(error)) => Err(error.into()),
        }
    }
}

fn unknown(model: &str) -> CallError {
    CallError::new(CallErrorKind::UnknownModel, format!("there is no model \"{model}\""))
}

fn call_fault(error: CallError) -> Fault {
    Fault::Turn(Failure::Call(error))
}
