//! Runs of chains: start, read, wait, cancel (compatibility §12.4 and §15.2, ADR 29).

mod branches;
mod bridge;
mod carry;
mod check;
mod drive;
mod failure;
mod maps;
mod publish;
mod shares;
mod show;
mod trace;
mod tree;

use std::sync::Arc;
use std::time::Duration;

use atlas_artifacts::hash;
use atlas_contract::requirement::Requirement;
use atlas_desk::{ownership, requests};
use atlas_records::View;
use atlas_runs::Chain;
use atlas_types::{
    CancelRun, Command, Event, EventRecord, ObjectName, Outcome, Run, RunDefinition, RunId, RunStatus, StartRun,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;

use crate::{Caller, Consistency, Error, Service, json};

pub(crate) use carry::carry;
pub(crate) use drive::drive;
pub(crate) use publish::is_made;

/// Which chain a run is of.
#[derive(Debug, Clone)]
pub enum ChainSource {
    /// The object of this name.
    Named(String),
    /// A definition that came with the request.
    Given(Value),
}

/// A run to be started.
#[derive(Debug, Clone)]
pub struct ChainStart {
    pub chain: ChainSource,
    /// The input of the chain, a JSON object.
    pub input: Bytes,
    /// The priority of its jobs.
    pub priority: i64,
    /// Metadata for its jobs, a JSON object.
    pub metadata: Arc<[u8]>,
}

impl ChainStart {
    /// A run with only a chain and an input.
    pub fn new(chain: ChainSource, input: Bytes) -> Self {
        Self { chain, input: json::mended("an input", input), priority: 0, metadata: (*b"{}").into() }
    }
}

impl Service {
    /// Starts a run of a chain and returns its id once it is committed. The caller's idempotency key makes a repeat return the same run.
    pub async fn start_chain(&self, caller: &Caller, start: ChainStart) -> Result<RunId, Error> {
        let ChainStart { chain, input, priority, metadata } = start;
        json::check(&input).map_err(|error| Error::Malformed(error.to_string()))?;
        if !input.trim_ascii_start().starts_with(b"{") {
            return Err(Error::Malformed("'input' must be an object".to_owned()));
        }
        let body = [format!("{chain:?}{priority}").as_bytes(), &input[..]].concat();
        let definition = match chain {
            ChainSource::Named(name) => RunDefinition::Named(ObjectName::new(&name)?),
            ChainSource::Given(document) => self.given(&document).await?,
        };
        let id = RunId(self.shared.env.entropy.u64());
        let unknown = match &definition {
            RunDefinition::Named(name) => format!("no such chain: {name}"),
            RunDefinition::Given { .. } => String::new(),
        };
        let input = self.payload(input).await?;
        let mut request =
            requests::of(caller, Command::StartRun(StartRun { id, definition, input, priority, metadata }));
        // The drawn id differs in a repeat.
        request.origin.body_hash = caller.request_id.as_ref().map_or(0, |_| hash(&body));
        match self.propose(request).await {
            Ok(Outcome::RunStarted { run }) => Ok(run),
            Ok(_) => Err(Error::OutcomeUnknown),
            Err(Error::UnknownObject(_)) => Err(Error::UnknownObject(unknown)),
            Err(error) => Err(error),
        }
    }

    /// A definition that came with a request (compatibility §15.2).
    async fn given(&self, document: &Value) -> Result<RunDefinition, Error> {
        let chain = read(document)?;
        let steps = u32::try_from(chain.steps.len()).unwrap_or(u32::MAX);
        let document = self.payload(chain.to_json().to_string().into()).await?;
        Ok(RunDefinition::Given { chain: chain.name.into(), steps, document })
    }

    /// A run as JSON.
    pub async fn chain_run(
        &self,
        caller: &Caller,
        id: &str,
        view: View,
        consistency: Consistency,
    ) -> Result<Value, Error> {
        let run = self.find_run(caller, id, consistency).await?;
        self.show_run(&run, view).await
    }

    /// Runs as JSON, the newest first. A status that no run can have finds none.
    pub async fn chain_runs(
        &self,
        caller: &Caller,
        status: Option<&str>,
        limit: usize,
        view: View,
        consistency: Consistency,
    ) -> Result<Vec<Value>, Error> {
        let wanted = status.map(|word| RunStatus::ALL.into_iter().find(|status| status.as_str() == word));
        let Some(status) = wanted.map_or(Some(None), |found| found.map(Some)) else { return Ok(Vec::new()) };
        let state = self.state(consistency).await?;
        let limit = limit.clamp(1, self.shared.limits.list_max);
        let mut shown = Vec::new();
        for run in state.runs(&caller.namespace, status).take(limit) {
            shown.push(self.show_run(run, view).await?);
        }
        Ok(shown)
    }

    /// Waits until a run has ended, or the timeout is reached, and returns it as JSON. Whoever started it needs no right to read others.
    pub async fn wait_chain_run(
        &self,
        caller: &Caller,
        id: &str,
        view: View,
        timeout: Duration,
    ) -> Result<Value, Error> {
        let run = self.find_run(caller, id, Consistency::Linearizable).await?;
        ownership::may_see(caller, &run.principal)?;
        let id = run.id;
        let ends = move |event: &EventRecord| matches!(&event.event, Event::Run { run, .. } if run.id == id && run.status.is_terminal());
        // Subscribed before it is looked at again, so that its end cannot be missed.
        let mut batches = self.shared.handle.subscribe_to(move |batch| batch.events.iter().any(ends));
        let mut over = self.shared.env.clock.sleep(timeout);
        loop {
            let run = self.run_in(caller, id, Consistency::Stale).await?;
            if run.status.is_terminal() {
                return self.show_run(&run, view).await;
            }
            tokio::select! {
                biased;
                batch = batches.recv() => if matches!(batch, Err(RecvError::Closed)) {
                    return Err(Error::NoLeader);
                },
                () = &mut over => return self.show_run(&run, view).await,
            }
        }
    }

    /// Cancels a run and the job of its current step. False if it had ended.
    pub async fn cancel_chain_run(&self, caller: &Caller, id: &str) -> Result<bool, Error> {
        ownership::may_control_own(caller)?;
        let run = self.find_run(caller, id, Consistency::Linearizable).await?;
        ownership::may_control(caller, Some(&run.principal))?;
        match self.propose(requests::of(caller, Command::CancelRun(CancelRun { run: run.id }))).await? {
            Outcome::Cancelled { accepted } => Ok(accepted),
            _ => Err(Error::OutcomeUnknown),
        }
    }

    /// The run of a complete id, or of a prefix that no other run of the namespace has.
    async fn find_run(&self, caller: &Caller, text: &str, consistency: Consistency) -> Result<Arc<Run>, Error> {
        let digits =
            text.strip_prefix(RunId::SHOWN_PREFIX).or_else(|| text.strip_prefix(RunId::PREFIX)).unwrap_or(text);
        if digits.is_empty() || digits.len() > 16 {
            return Err(Error::UnknownRun);
        }
        if digits.len() == 16 {
            let id = format!("{}{digits}", RunId::PREFIX).parse().map_err(|_| Error::UnknownRun)?;
            return self.run_in(caller, id, consistency).await;
        }
        let state = self.state(consistency).await?;
        let mut found =
            state.runs(&caller.namespace, None).filter(|run| format!("{:016x}", run.id.0).starts_with(digits));
        let run = found.next().cloned().ok_or(Error::UnknownRun)?;
        match found.next() {
            None => Ok(run),
            Some(other) => Err(Error::Malformed(format!(
                "\"{text}\" matches several runs: {}, {}",
                run.id.shown(),
                other.id.shown()
            ))),
        }
    }

    async fn run_in(&self, caller: &Caller, id: RunId, consistency: Consistency) -> Result<Arc<Run>, Error> {
        let state = self.state(consistency).await?;
        let run = state.run(id).filter(|run| run.namespace == caller.namespace);
        run.cloned().ok_or(Error::UnknownRun)
    }
}

/// Reads a definition that came with a request.
fn read(document: &Value) -> Result<Chain, Error> {
    let wrong = |why: String| Error::Malformed(format!("Invalid chain definition: {why}"));
    let chain = Chain::read(document).map_err(|error| wrong(error.to_string()))?;
    if chain.steps.is_empty() {
        return Err(Error::Malformed("Chain must have at least one step".to_owned()));
    }
    for range in chain.steps.iter().filter_map(|step| step.range.as_deref()) {
        Requirement::parse(range).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(chain)
}
