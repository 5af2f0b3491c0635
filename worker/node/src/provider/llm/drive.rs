//! Carries out the effects of one turn. Each model call is a step of the journal: its answer is used once it is
//! recorded, and a later attempt takes the recorded one.

use std::sync::Arc;

use atlas_checks::Schemas;
use atlas_contract::{Contract, ProviderKind};
use atlas_model::NanoDollars;
use atlas_turn::outage::OutageStep;
use atlas_turn::record::{AGAIN, AnswerOutcome as Recorded, START};
use atlas_turn::{
    ChosenSettings, Effect, Event, Halt, Key, Outage, Permits, Turn, Warning, images, messages, model_member,
};
use atlas_types::{KEPT_METADATA, LEFT_METADATA, StepKey, StepKind, StepUsage, StreamKind};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tracing::warn;

use super::fault::Fault;
use super::fixed::{Fixed, Source};
use super::loki_agent::{Launcher, LokiAgent};
use super::model::Models;
use super::outage;
use super::team::Team;
use super::tools::{self, Table};
use crate::attempt::Work;
use crate::journal::{Journal, JournalError, Made, Purse};
use crate::provider::library::{self, Library, LibraryError};
use crate::provider::mcp::Servers;
use crate::provider::round::model::{CallFault, ModelCall, ModelRound, usable};
use crate::provider::{Control, Shared, elsewhere};

/// The measurement that says whether tokens and costs are as the provider reports them.
pub(in crate::provider) const USAGE: &str = "usage";
/// The provider reports none for some answer.
pub(in crate::provider) const ESTIMATED: &str = "estimated";

/// One attempt.
pub(super) struct Driver<'a, 'c> {
    pub(super) work: &'a Arc<Work>,
    pub(super) shared: &'a Shared,
    pub(super) control: &'a mut Control<'c>,
    pub(super) journal: Journal,
    /// The measurements of the job.
    pub(super) metadata: &'a mut Map<String, Value>,
    /// What `config.yaml` says, if the agent has one.
    pub(super) loki: Option<LokiAgent>,
    /// The helpers of an agent with a `config.yaml`.
    pub(super) team: Option<Team>,
    /// What people have allowed.
    pub(super) permits: Permits,
    /// What is recorded of outages before the next call.
    pub(super) before: outage::Before,
    /// How long the attempt waits for providers.
    pub(super) outage_limit: outage::Limit,
}

/// The model of a contract.
fn own_name(contract: &Contract) -> &str {
    contract.model.name.as_ref().unwrap_or(&contract.model.preference)
}

/// The settings that an input chooses, if the contract lets it.
fn chosen(contract: &Contract, input: &[u8]) -> Result<ChosenSettings, Fault> {
    let Some(member) = &contract.provider.llm.settings else { return Ok(ChosenSettings::default()) };
    let mut input = serde_json::from_slice(input).map_err(|error| Fault::internal(format!("the input: {error}")))?;
    ChosenSettings::take(&mut input, member).map_err(Fault::Input)
}

impl Driver<'_, '_> {
    pub(super) async fn run(mut self) -> Result<Value, Fault> {
        if self.work.agent.contract.provider.llm.probe == Some(true) {
            return self.probe().await;
        }
        if self.work.agent.contract.provider.llm.documents == Some(true) {
            return self.document_models().await;
        }
        if self.work.agent.contract.provider.llm.direct == Some(true) {
            return self.direct().await;
        }
        if self.work.agent.contract.provider.kind == ProviderKind::LokiAgent {
            let loki = LokiAgent::open(self.work, self.control, self.shared).await?;
            self.team = Some(loki.team(&self.work.assignment));
            self.loki = Some(loki);
            self.tell_left().await;
        }
        // Connections with the credential of the caller end with it.
        let servers = Servers::of(self.work, &self.control.secrets, self.shared);
        let mut fixed = self.fix(START, &servers).await?;
        if let Some(prompt) = self.searched(&fixed).await? {
            fixed.prompt = Some(prompt);
        }
        // A fork is fixed again after the steps that it copied. These may contain the same of an earlier fork.
        let mut forks = self.work.assignment.fork_steps;
        let mut models: Option<Models> = None;
        let (mut checks, mut turn, mut effects) = self.begin(&fixed).await?;
        loop {
            if let Some(Effect::Call { key }) = effects.last() {
                let key = *key;
                let due = forks.is_some_and(|steps| self.journal.next() >= steps);
                let recorded = self.journal.peek().await?;
                if due || recorded == Some((StepKind::Start, StepKey(AGAIN.0))) {
                    forks = forks.filter(|_| !due);
                    fixed = self.fix(AGAIN, &servers).await?;
                    checks = Schemas::of(&fixed.settings);
                    effects = turn.refix(fixed.settings.clone());
                    (models, self.before) = (None, outage::Before::default());
                    continue;
                }
                let outage = StepKey(Outage::key(key).0);
                if recorded == Some((StepKind::Sleep, outage)) {
                    self.read_outage(outage).await?;
                    continue;
                }
                // What is recorded needs no model: the keys of those of an earlier fork may be gone.
                if models.is_none() && recorded.is_none() {
                    models = Some(self.open(&fixed).await?);
                }
            }
            let Some(effect) = effects.pop() else { return Err(Fault::internal("the turn has no effect")) };
            for effect in effects {
                match effect {
                    Effect::Warn(Warning::Halted(halt)) => self.warn(&halt).await,
                    Effect::Warn(Warning::Cut(cut)) => {
                        self.metadata.insert("_halted".to_owned(), "length".into());
                        self.control.say(StreamKind::Log, "warning", cut.to_string()).await;
                    }
                    _ => {}
                }
            }
            let event = match effect {
                Effect::Call { key } => self.call(key, &mut turn, models.as_ref()).await?,
                Effect::Finish { output, .. } => {
                    self.dismiss().await?;
                    self.keep(&fixed, &turn).await;
                    return Ok(self.output(output));
                }
                Effect::Fail(failure) => {
                    self.dismiss().await?;
                    return Err(Fault::Turn(failure));
                }
                Effect::Tools { key, calls, parallel } => {
                    let returned = self.tools(key, (calls, &fixed), (&servers, models.as_ref()), parallel).await?;
                    turn.set_helpers(self.team.as_ref().is_some_and(Team::works));
                    Event::Returned(returned)
                }
                Effect::Stop { key } => Event::Stopping(self.stopping(key).await?),
                Effect::Warn(_) => return Err(Fault::internal("the turn ends with a warning")),
            };
            effects = turn.step(event, &checks);
            self.measure(&turn, models.as_ref());
        }
    }

    /// Says why a spawned job is not in the session of its agent.
    async fn tell_left(&mut self) {
        let metadata: Map<String, Value> = serde_json::from_slice(&self.work.assignment.metadata).unwrap_or_default();
        if let Some(why) = metadata.get(LEFT_METADATA).and_then(Value::as_str) {
            let text = format!("{why}; this job goes on without the session of its agent");
            self.control.say(StreamKind::Log, "warning", text).await;
        }
    }

    /// Leaves for the next turn of the conversation what the agent keeps.
    async fn keep(&mut self, fixed: &Fixed, turn: &Turn) {
        let kept = self.loki.as_ref().and_then(|loki| loki.kept(fixed, turn.todo()));
        let Some((kept, left_out)) = kept else { return };
        self.metadata.insert(KEPT_METADATA.to_owned(), kept);
        if !left_out.is_empty() {
            let text = format!("the conversation has no room for these: {}", left_out.join(", "));
            self.control.say(StreamKind::Log, "warning", text).await;
        }
    }

    /// The output of the job. An agent with a `config.yaml` has a text.
    fn output(&self, output: Value) -> Value {
        match (&self.loki, output) {
            (Some(_), Value::Object(mut members)) => {
                let text = members.remove("result").unwrap_or_default();
                json!({ "text": text })
            }
            (_, output) => output,
        }
    }

    /// Starts processes of tools.
    pub(super) fn launcher(&self) -> Launcher {
        Launcher { shared: self.shared.clone(), agent: Arc::clone(&self.work.agent) }
    }

    /// The models that the job is fixed to.
    pub(super) async fn open(&mut self, fixed: &Fixed) -> Result<Models, Fault> {
        let models = Models::open(&fixed.source, &fixed.settings.model, self.work, self.control, self.shared)?;
        for why in &models.left_out {
            self.control.say(StreamKind::Log, "warning", why.clone()).await;
        }
        if fixed.source == Source::Mock {
            let text = "the answers come from mock.yaml, because no model is configured".to_owned();
            self.control.say(StreamKind::Log, "warning", text).await;
        }
        Ok(models)
    }

    /// What the job is fixed to from the step of this key on: as recorded, or determined now.
    async fn fix(&mut self, key: Key, servers: &Servers) -> Result<Fixed, Fault> {
        let (work, shared, mut told) = (self.work, self.shared, Vec::new());
        let (agent, warnings) = (&work.agent, &mut told);
        let budget = self.work.assignment.budget_nanodollars.map(NanoDollars);
        let platform = self.platform();
        let (loki, launcher) = (self.loki.as_ref(), self.launcher());
        let depth = work.assignment.spawn.map_or(0, |rule| rule.depth);
        let make = || async move {
            let mut fixed = Fixed::of(agent, &work.assignment.attachments, shared)?;
            chosen(&agent.contract, &work.input)?.apply(&mut fixed.settings);
            let table = tools::resolve(&agent.contract, &platform, servers, &work.input).await?;
            let Table { offered, sources, warnings: mut said } = table;
            (fixed.settings.tools, fixed.tools) = (offered, sources);
            warnings.append(&mut said);
            if let Some(loki) = loki {
                loki.apply(&mut fixed, &launcher, depth).await?;
                // A fork goes on after the messages so far.
                if key == START {
                    fixed.searches = loki.searches(work, shared)?;
                    if fixed.searches.is_empty() {
                        fixed.prompt = Some(loki.prompt(&launcher).await?);
                    }
                }
                if let Some(name) = loki.summarizer().filter(|name| *name != own_name(&agent.contract)) {
                    match Fixed::of_other(agent, &name, &work.assignment.attachments, shared) {
                        Ok(mut other) => {
                            other.settings.limits.budget = budget;
                            fixed.summarizer = Some(Box::new(other));
                        }
                        Err(fault) => warnings
                            .push(format!("the model \"{name}\" for summaries: {fault}; the agent's own one is used")),
                    }
                }
            }
            let known = Library::of(work, shared).known(&work.input).await.map_err(|error| match error {
                LibraryError::Refused(why) => Fault::Tools(why),
                LibraryError::Stopped => Fault::Journal(JournalError::Stopped),
            })?;
            fixed.settings.system = library::system(&fixed.settings.system, &known);
            fixed.settings.limits.budget = budget;
            let outcome = serde_json::to_vec(&fixed).map_err(|error| Fault::internal(error.to_string()))?;
            Ok::<_, Fault>(Made { outcome, usage: StepUsage::default() })
        };
        let recorded = self.journal.step(StepKind::Start, StepKey(key.0), make).await;
        servers.hide(&mut self.control.secrets);
        let recorded = recorded?;
        for warning in told {
            self.control.say(StreamKind::Log, "warning", warning).await;
        }
        Fixed::read(&recorded)
    }

    /// Reads the input and begins the turn, on another thread if the input is large.
    async fn begin(&self, fixed: &Fixed) -> Result<(Schemas, Turn, Vec<Effect>), Fault> {
        let settings = fixed.settings.clone();
        if let Some(loki) = &self.loki {
            let checks = Schemas::of(&settings);
            let mut turn = Turn::new(settings);
            let (input, images) = (Value::Object(Map::new()), Vec::new());
            let effects = turn.step(Event::Started { input, images, said: loki.said(fixed) }, &checks);
            return Ok((checks, turn, effects));
        }
        let (text, llm) = (self.work.input.clone(), self.work.agent.contract.provider.llm.clone());
        let named = self.work.agent.contract.model.name.as_deref().and_then(model_member).map(str::to_owned);
        let begin = move || {
            let mut input: Value =
                serde_json::from_slice(&text).map_err(|error| Fault::internal(format!("the input: {error}")))?;
            let images = llm.images.map_or(Ok(Vec::new()), |member| images::take(&mut input, &member));
            let images = images.map_err(Fault::Input)?;
            let said = llm.messages.map_or(Ok(Vec::new()), |member| messages::take(&mut input, &member));
            let said = said.map_err(Fault::Input)?;
            if let Some(member) = llm.settings {
                // They were read when the job was fixed.
                ChosenSettings::take(&mut input, &member).map_err(Fault::Input)?;
                if let (Some(named), Some(members)) = (named, input.as_object_mut()) {
                    members.shift_remove(&named);
                }
            }
            let checks = Schemas::of(&settings);
            let mut turn = Turn::new(settings);
            let effects = turn.step(Event::Started { input, images, said }, &checks);
            Ok((checks, turn, effects))
        };
        let begun = elsewhere(self.control.env, self.work.input.len(), begin).await;
        begun.unwrap_or_else(|| Err(Fault::internal("reading the input was interrupted")))
    }

    /// What pays for the calls of the attempt.
    pub(super) fn purse(&self) -> Purse {
        self.journal.purse(self.work.assignment.budget_nanodollars.map(NanoDollars))
    }

    /// Reads a recorded outage. One of a job that this one goes on from is over for it.
    pub(super) async fn read_outage(&mut self, key: StepKey) -> Result<(), Fault> {
        let number = self.journal.next();
        let Some(outcome) = self.journal.recorded(StepKind::Sleep, key).await? else { return Ok(()) };
        let OutageStep { outage, job } = read_step(&outcome, number)?;
        self.before.steps += 1;
        self.before.outage = Some(outage).filter(|_| job == self.work.assignment.job.to_string());
        Ok(())
    }

    /// Calls the model, unless the answer is recorded. While its provider is down, the job waits, and parks if that lasts.
    async fn call(&mut self, key: Key, turn: &mut Turn, models: Option<&Models>) -> Result<Event, Fault> {
        let outage::Before { outage, steps } = std::mem::take(&mut self.before);
        let (number, step) = (self.journal.next(), StepKey(key.0));
        let answered = match models {
            Some(models) => {
                let (clock, job) = (Arc::clone(&self.control.env.clock), self.work.assignment.job.to_string());
                let (purse, outage_limit, asking) = (self.purse(), self.outage_limit, &*turn);
                let settings = asking.settings();
                let round = ModelRound { clock: &clock, job: &job, purse: &purse, outage_limit, settings, models };
                let call = ModelCall {
                    step,
                    outage: StepKey(Outage::key(key).0),
                    // The number of the call if there was no outage.
                    idempotency_key: format!("{job}-{}", number - steps),
                    request: &|| asking.request(),
                };
                round.answer(&mut self.journal, (&call, outage), &mut *self.control).await
            }
            None => {
                let recorded = self.journal.recorded(StepKind::Model, step).await?;
                usable(recorded.ok_or_else(|| Fault::internal("no model was opened"))?)
            }
        };
        match answered {
            Ok(outcome) => {
                let Recorded { place, answer } = read_step(&outcome, number)?;
                turn.answered_by(place);
                Ok(Event::Answered(Box::new(answer)))
            }
            Err(CallFault::Call(error)) => Ok(Event::Failed(error)),
            Err(CallFault::Journal(error)) => Err(error.into()),
        }
    }

    /// Takes the totals of the turn over into the measurements, also of a job that fails later.
    fn measure(&mut self, turn: &Turn, models: Option<&Models>) {
        let totals = turn.totals();
        let measured: [(&str, Value); 3] = [
            ("input_tokens", totals.usage.input.into()),
            ("output_tokens", totals.usage.output.into()),
            ("model", totals.model.as_str().into()),
        ];
        self.metadata.extend(measured.map(|(name, value)| (name.to_owned(), value)));
        if totals.estimated {
            self.metadata.insert(USAGE.to_owned(), ESTIMATED.into());
        }
        let seen = models.and_then(|models| models.seen.as_ref()?.value());
        self.metadata.extend(seen.map(|seen| ("_models".to_owned(), seen)));
    }

    async fn warn(&mut self, halt: &Halt) {
        let Halt { tools, repeats, threshold, request, arguments, result } = halt;
        let (job, agent) = (self.work.assignment.job, &self.work.assignment.agent);
        // The part of a tool's name that says where it is: `files` of `files.read`.
        let server = tools.first().and_then(|tool| tool.split_once('.')).map_or("", |(server, _)| server);
        let tools = tools.join(", ");
        warn!(
            event = "loop_halt", %agent, conversation_id = %job, tool = tools, server, repeat_count = repeats, threshold,
            iteration = request, arguments_preview = arguments, result_preview = result,
            "agentic loop halted: identical tool call repeated"
        );
        self.metadata.insert("_halted".to_owned(), "repeat".into());
        let text =
            format!("the model called {tools} {repeats} times with the same arguments and results; the job ends");
        self.control.say(StreamKind::Log, "warning", text).await;
    }
}

fn read_step<T: DeserializeOwned>(outcome: &[u8], number: u64) -> Result<T, Fault> {
    serde_json::from_slice(outcome).map_err(|error| Fault::internal(format!("step {number} is not readable: {error}")))
}
