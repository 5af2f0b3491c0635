//! Agents with a `config.yaml`: their settings, and their own tools, whose calls are processes.

mod knowledge;
mod prompt;
mod session;
pub(in crate::provider) mod toolbox;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use atlas_documents::Matches;
use atlas_graph_run::SearchSettings;
use atlas_loki_agent::Config;
use atlas_model::{Message, NanoDollars, Purpose, ToolCall};
use atlas_supervisor::{supervisor_tools, teammate_tools};
use atlas_tool_runner::{Launch, Process, ProcessEnd, ProcessStart};
use atlas_turn::{AtLimit, AutoContinue, Format, OfferedTool, Outcome, Plan, TodoList, messages, todo};
use atlas_types::Assignment;
use serde_json::Value;

use self::prompt::{Blocks, Values};
use self::session::{Kept, Session};
use self::toolbox::Toolbox;
use super::fault::Fault;
use super::fixed::Fixed;
use super::team::{PROJECT, Team};
use crate::agent::Agent;
use crate::attempt::Work;
use crate::provider::command::{self, Keep, Launch as Start};
use crate::provider::platform::ToolSource;
use crate::provider::{Control, Shared, exec, special};

/// Most requests to the model. Loki has no limit.
const REQUESTS_MAX: u32 = 200;
/// Equal calls in a row that are made; the next one is refused.
const SAME_CALLS: u32 = 2;
const SAME_CALLS_OF_HELPERS: u32 = 4;
/// Calls of one answer that run at the same time.
const PARALLEL: usize = 4;
/// The argument of a question that says how many seconds it is open.
const TIMEOUT: &str = "timeout_seconds";

/// What `config.yaml` says, with the values of this job.
pub(super) struct LokiAgent {
    config: Config,
    message: String,
    variables: BTreeMap<String, String>,
    toolbox: Toolbox,
    /// The conversation that the job continues.
    session: Option<Session>,
}

impl LokiAgent {
    /// Reads the definition and the declarations of the tools.
    pub(super) async fn open(work: &Arc<Work>, control: &Control<'_>, shared: &Shared) -> Result<Self, Fault> {
        let (work, secrets) = (Arc::clone(work), control.secrets.clone());
        let environment = exec::environment(&work, &shared.settings);
        let opened = shared.env.spawn_blocking("read definition", move || {
            let config = atlas_package::config(&work.agent.directory);
            let config = config.map_err(|error| Fault::Definition(atlas_env::chain(&error)))?;
            let input: Value = serde_json::from_slice(&work.input).map_err(|error| Fault::Input(error.to_string()))?;
            let session = Session::read(&work.assignment.metadata, &input)?;
            let variables = values(&config, &input, session.as_ref())?;
            let message = input.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
            let toolbox = Toolbox::open(&work, &config.global_tools, &variables, &secrets, environment, None)?;
            Ok(Self { config, message, variables, toolbox, session })
        });
        opened.join().await.unwrap_or_else(|_| Err(Fault::internal("reading the definition was interrupted")))
    }

    /// The prompt, as the job is fixed to it.
    pub(super) fn said(&self, fixed: &Fixed) -> Vec<Message> {
        let said = self.session.as_ref().map(|session| session.said.clone()).unwrap_or_default();
        let said = if said.is_empty() { vec![Message::user(&self.message)] } else { said };
        messages::prompted(said, fixed.prompt.as_deref())
    }

    /// The prompt, with what the documents of the agent say about it by their words.
    pub(super) async fn prompt(&self, launcher: &Launcher) -> Result<String, Fault> {
        let folder = launcher.agent.directory.clone();
        let found = knowledge::found(&launcher.shared, folder, self.search_settings(), &self.message).await?;
        Ok(self.with_excerpts(&found))
    }

    /// The prompt with parts of documents.
    pub(super) fn with_excerpts(&self, found: &Matches) -> String {
        knowledge::filled(self.config.rag_template.as_deref(), found, &self.message)
    }

    /// The prompt as it was given.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// How the documents are searched.
    pub(super) fn search_settings(&self) -> SearchSettings {
        knowledge::settings(&self.config)
    }

    /// The models that search the documents, as the job is fixed to them; none if words are enough.
    pub(super) fn searches(&self, work: &Work, shared: &Shared) -> Result<BTreeMap<String, Fixed>, Fault> {
        let config = &self.config;
        let named =
            [(&config.rag_embedding_model, Purpose::Embedding), (&config.rag_reranker_model, Purpose::Reranker)];
        let named = named.into_iter().filter(|_| !config.documents.is_empty());
        let named = named.filter_map(|(name, purpose)| Some((atlas_package::model_name(name.as_deref()?), purpose)));
        let budget = work.assignment.budget_nanodollars.map(NanoDollars);
        named
            .map(|(name, purpose)| {
                let attachments = &work.assignment.attachments;
                let mut fixed = Fixed::of_search(&work.agent, (&name, purpose), attachments, shared)?;
                fixed.settings.limits.budget = budget;
                Ok((name, fixed))
            })
            .collect()
    }

    /// The agent with its helpers.
    pub(super) fn team(&self, assignment: &Assignment) -> Team {
        let depth = assignment.spawn.map_or(0, |rule| rule.depth);
        // A folder of the attempt is not there for others.
        let project = self.variables.get(PROJECT).filter(|folder| folder.starts_with('/')).cloned();
        Team::new(assignment.job, assignment.agent.as_str(), depth, self.config.helpers.clone(), project)
    }

    /// Adds what the definition says to the settings that a job at this depth below the first one is fixed to.
    pub(super) async fn apply(&self, fixed: &mut Fixed, launcher: &Launcher, depth: u32) -> Result<(), Fault> {
        let config = &self.config;
        for tool in self.toolbox.offered() {
            if fixed.tools.insert(tool.name.clone(), ToolSource::Own).is_some() {
                return Err(Fault::Definition(format!("two tools have the name \"{}\"", tool.name)));
            }
            fixed.settings.tools.push(tool);
        }
        let continuation = AutoContinue::resolve(&[&config.auto_continue]);
        if continuation.enabled {
            let offered = |tool: atlas_model::Tool| OfferedTool { name: tool.name.clone(), tool };
            fixed.settings.tools.extend(todo::tools().into_iter().map(offered));
        }
        let leads = config.helpers.spawns;
        let helpers = if leads { supervisor_tools() } else { Vec::new() };
        for tool in helpers.into_iter().chain(teammate_tools()) {
            fixed.tools.insert(tool.name.clone(), ToolSource::Helper);
            fixed.settings.tools.push(OfferedTool { name: tool.name.clone(), tool });
        }
        let kept = self.session.as_ref().map(|session| &session.kept);
        let own = match (config.dynamic_instructions, kept.and_then(|kept| kept.instructions.clone())) {
            (true, Some(kept)) => kept,
            (true, None) => self.toolbox.instructions(launcher).await.map_err(Fault::Definition)?,
            (false, _) => config.instructions.clone(),
        };
        fixed.instructions = (config.dynamic_instructions && kept.is_some()).then(|| own.clone());
        let settings = &mut fixed.settings;
        // A contract without rules leaves them to the definition.
        if settings.permissions.is_empty() {
            settings.permissions.clone_from(&config.tool_permissions);
        }
        settings.permissions.extend(self.toolbox.guards());
        let blocks = Blocks {
            todo: continuation.enabled && continuation.inject,
            helpers: leads && config.inject_spawn_instructions,
        };
        let mut special = special::names(launcher.shared.env.clock.wall());
        // The folder of the attempt is another one in the next attempt.
        let folder = self.variables.get(PROJECT).filter(|folder| folder.starts_with('/'));
        special.insert("__cwd__".to_owned(), folder.map_or(".", String::as_str).to_owned());
        let values = Values { variables: &self.variables, special };
        settings.system = prompt::system(&own, blocks, &values, &settings.tools);
        settings.sampling.temperature = config.temperature;
        settings.sampling.top_p = config.top_p;
        settings.format = Format::Text;
        settings.all_texts = depth > 0;
        settings.mark_errors = true;
        settings.limits.requests = REQUESTS_MAX;
        settings.limits.at_limit = AtLimit::Partial;
        settings.limits.same_calls = if depth == 0 { SAME_CALLS } else { SAME_CALLS_OF_HELPERS };
        settings.limits.parallel = PARALLEL;
        let list = kept.and_then(|kept| kept.todo.clone()).unwrap_or_default();
        settings.plan = continuation.enabled.then_some(Plan { continuation, list });
        Ok(())
    }

    /// What the conversation keeps for the next turn, and what it has no room for. None if the job continues no conversation.
    pub(super) fn kept(&self, fixed: &Fixed, todo: Option<&TodoList>) -> Option<(Value, Vec<&'static str>)> {
        self.session.as_ref()?;
        let todo = todo.filter(|todo| **todo != TodoList::default()).cloned();
        Some(Kept { variables: self.variables.clone(), instructions: fixed.instructions.clone(), todo }.bounded())
    }

    /// The model that summarises the outputs of helpers, if the definition names another one.
    pub(super) fn summarizer(&self) -> Option<String> {
        let named = self.config.summarization_model.as_deref().filter(|_| self.config.helpers.spawns);
        named.map(atlas_package::model_name).filter(|name| !name.is_empty())
    }

    /// A question to people with the time for its answer, which only a helper's has. Models do not set it.
    pub(super) fn timed(&self, call: &ToolCall, depth: u32) -> ToolCall {
        let mut call = call.clone();
        if let Some(arguments) = call.arguments.as_object_mut() {
            arguments.remove(TIMEOUT);
            if depth > 0 {
                arguments.insert(TIMEOUT.to_owned(), (self.config.helpers.escalation_timeout_ms / 1000).into());
            }
        }
        call
    }

    /// Calls a tool of the agent.
    pub(super) async fn call(&self, call: &ToolCall, launcher: &Launcher) -> Outcome {
        self.toolbox.call(call, launcher).await
    }
}

/// The values of all variables: those of the input, then those that the conversation has kept, then the defaults.
fn values(config: &Config, input: &Value, session: Option<&Session>) -> Result<BTreeMap<String, String>, Fault> {
    let given = input.get("variables");
    let (mut values, mut missing) = (BTreeMap::new(), Vec::new());
    for variable in &config.variables {
        let own = given.and_then(|given| given.get(&variable.name)?.as_str().map(str::to_owned));
        let kept = session.and_then(|session| session.kept.variables.get(&variable.name).cloned());
        match own.or(kept).or_else(|| variable.default.clone()) {
            Some(value) => drop(values.insert(variable.name.clone(), value)),
            None => missing.push(format!("{} ({})", variable.name, variable.description)),
        }
    }
    if missing.is_empty() {
        return Ok(values);
    }
    Err(Fault::Definition(format!("these variables need a value: {}", missing.join(", "))))
}

/// Starts the processes of tools in trees of their own.
#[derive(Clone)]
pub(in crate::provider) struct Launcher {
    pub(in crate::provider) shared: Shared,
    pub(in crate::provider) agent: Arc<Agent>,
}

impl Launch for Launcher {
    fn launch(&self, process: Process) -> ProcessStart<'_> {
        Box::pin(self.run(process))
    }
}

impl Launcher {
    async fn run(&self, process: Process) -> io::Result<ProcessEnd> {
        let Process { program, arguments, directory, environment, stream_bytes } = process;
        let environment: Vec<(OsString, OsString)> = environment.into_iter().collect();
        let keep = Keep::Last(stream_bytes);
        // The folder of the attempt: its own work, and results, which this process reads.
        let writable = directory.parent().map(Path::to_owned).into_iter().collect();
        let start = Start { program, arguments, directory, environment, stdout: keep, stderr: keep, writable };
        let command::Ended { status, stdout, stderr } = command::run(&self.shared, &self.agent, start).await?;
        Ok(ProcessEnd { status, stdout, stderr })
    }
}
