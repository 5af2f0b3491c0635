//! Agents that are graphs. The engine and its driver are atlas-graph and atlas-graph-run; this module records the result of each piece of
//! work, and of each model call, in the job's journal, so that a later attempt goes on where the last one stopped.

mod calls;
mod helpers;
mod host;
mod models;
mod past;
mod permitted;
mod remote;
mod searches;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use atlas_graph::{Graph, Kind, LoadedGraph};
use atlas_graph_run::Runner;
use atlas_model::NanoDollars;
use atlas_package::{GraphError, GraphFolder, KnownNames, graph_tools};
use atlas_types::{StepKey, StepKind, StepUsage, StreamKind};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use self::helpers::Helpers;
use self::host::{Surroundings, Tokens};
use self::models::GraphModels;
use self::past::Past;
use self::permitted::Permitted;
use self::remote::Remote;
use super::llm::drive::{ESTIMATED, USAGE};
use super::llm::fault::Fault;
use super::llm::loki_agent::toolbox::Toolbox;
use super::llm::outage::Limit;
use super::mcp::Servers;
use super::platform::Platform;
use super::round::caller::pass;
use super::{Execution, exec, stopped};
use crate::attempt::Work;
use crate::journal::{Book, Made, hashed};
use crate::provider::{Control, Shared};

/// How often a question is asked again after an answer that its rule refuses.
const ASKS_AGAIN: u32 = 3;

/// An agent in its slot. Its scripts are processes of their own, and its slot ends with the job.
pub(crate) struct GraphAgent {
    shared: Shared,
}

/// The input of a graph with a derived contract. Other members are part of the first state.
#[derive(Debug, Default, Deserialize)]
struct Input {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    variables: Map<String, Value>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// What the first step records for all runs.
#[derive(Debug, Deserialize)]
struct Begun {
    /// The names that templates can read, with their values when the job began.
    #[serde(default)]
    special: Map<String, Value>,
}

impl GraphAgent {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone() }
    }

    pub(super) async fn execute(&mut self, work: &Arc<Work>, control: &mut Control<'_>) -> Execution {
        let (env, mailbox, limit) = (control.env, control.mailbox, work.assignment.execution_timeout);
        let mut metadata = Map::new();
        let end = tokio::select! {
            biased;
            () = stopped(mailbox) => return Execution::stopped(),
            end = self.run(work, control, &mut metadata) => end,
            () = env.clock.sleep(limit.as_duration()) => return Execution::timed_out(limit),
        };
        match end.and_then(|output| {
            RawValue::from_string(output.to_string()).map_err(|error| Fault::internal(error.to_string()))
        }) {
            Ok(output) => Execution::Output { output, metadata, usable: false },
            Err(fault) => {
                metadata.extend(fault.code().map(|code| ("_error_code".to_owned(), code.into())));
                metadata.extend(fault.seen().map(|seen| ("_models".to_owned(), seen)));
                Execution::Failed { failure: fault.failure(), metadata, usable: false }
            }
        }
    }

    async fn run(
        &self,
        work: &Arc<Work>,
        control: &mut Control<'_>,
        metadata: &mut Map<String, Value>,
    ) -> Result<Value, Fault> {
        let (mut folder, mut loaded) = self.load(work).await?;
        let input: Input = serde_json::from_slice(&work.input).map_err(|error| Fault::Input(error.to_string()))?;
        give(&mut loaded, input.variables).map_err(Fault::Input)?;
        let prompt = input.message.unwrap_or_default();
        loaded.graph.initial_state.extend(input.others);
        let journal = self.shared.journal(&work.assignment);
        let outage_limit = Limit::of(work, journal.parks(), self.shared.env.clock.monotonic());
        let purse = journal.purse(work.assignment.budget_nanodollars.map(NanoDollars));
        let (book, recorded) = Book::open(journal, Arc::clone(&self.shared.env.clock)).await?;
        let past = Past::of(&recorded)?;
        book.note_read(past.messages_read()).await;
        let (models, special) = self.models(work, control, &loaded, &book).await?;
        let workspace = Workspace::new(&work.assignment.job.to_string())
            .map_err(|error| Fault::internal(format!("could not make the folder of the run: {error}")))?;
        let toolbox = self.toolbox(work, control, &loaded, &workspace).await?;
        let (told, mut hears) = mpsc::unbounded_channel();
        let environment = exec::environment(work, &self.shared.settings);
        let secrets = Mutex::new(control.secrets.clone());
        let graph = loaded.graph.clone();
        let servers = Servers::of(work, &control.secrets, &self.shared);
        let (attempt, limit) = (work.assignment.attempt.0, work.assignment.execution_timeout.as_duration());
        let remote = Remote::new(servers, &work.agent.contract.requires.mcp_servers, attempt, limit);
        folder.known = known(&graph, toolbox.as_ref(), &remote, models.as_ref());
        let shared_tools = work.agent.contract.requires.shared_tools();
        folder.known.tools.get_or_insert_default().extend(shared_tools.into_iter().map(str::to_owned));
        let helpers = Helpers::new(work, &self.shared, &graph, past.helped);
        let host = Surroundings {
            shared: &self.shared,
            agent: &work.agent,
            graph: &graph,
            job: work.assignment.job.to_string(),
            namespace: work.assignment.namespace.clone(),
            searching: tokio::sync::Mutex::default(),
            book,
            purse,
            platform: Platform::of(work, &self.shared),
            permits: Permitted::new(&work.agent.contract, toolbox.as_ref()),
            toolbox,
            models,
            remote,
            helpers,
            environment: environment.clone(),
            secrets,
            told,
            tokens: Tokens::default(),
            outage_limit,
        };
        let runner = Runner {
            env: &self.shared.env,
            host: &host,
            workspace: workspace.0.clone(),
            variables: vec![("ATLAS_WORKSPACE".to_owned(), workspace.0.display().to_string())],
            inherits: false,
            asks_again: ASKS_AGAIN,
            special,
            set: past.set,
        };
        let run = runner.prepare(&folder, &loaded, &prompt).map_err(|error| definition(&error))?;
        let (_stopper, stop) = watch::channel(false);
        let running = runner.run(&folder, run, stop);
        tokio::pin!(running);
        let parking = host.book.park();
        tokio::pin!(parking);
        let ran = loop {
            tokio::select! {
                biased;
                Some(told) = hears.recv() => pass(control, told).await,
                error = host.book.failure() => return Err(error.into()),
                error = &mut parking => return Err(error.into()),
                ran = &mut running => break ran,
            }
        };
        host.helpers.dismiss().await?;
        while let Ok(told) = hears.try_recv() {
            pass(control, told).await;
        }
        let tokens = [("input_tokens", &host.tokens.input), ("output_tokens", &host.tokens.output)];
        if let Some(models) = &host.models {
            let counted = tokens.map(|(name, count)| (name.to_owned(), count.load(Ordering::Relaxed).into()));
            metadata.extend(counted);
            metadata.extend(models.metadata());
            if host.tokens.estimated.load(Ordering::Relaxed) {
                metadata.insert(USAGE.to_owned(), ESTIMATED.into());
            }
        }
        match ran.result {
            Ok(text) => Ok(json!({ "text": text, "state": ran.state })),
            Err(error) => Err(Fault::Graph(error.to_string())),
        }
    }

    async fn load(&self, work: &Arc<Work>) -> Result<(GraphFolder, LoadedGraph), Fault> {
        let directory = work.agent.directory.clone();
        let known = KnownNames { agents_elsewhere: true, ..KnownNames::default() };
        // Agents of the same name beside the package would be another package.
        let folder = GraphFolder { agents: directory.join("agents"), folder: directory, known };
        let read = self.shared.env.spawn_blocking("read graph", move || folder.read().map(|loaded| (folder, loaded)));
        match read.join().await {
            Ok(read) => read.map_err(|error| definition(&error)),
            Err(_) => Err(Fault::internal("reading the graph was interrupted")),
        }
    }

    /// The tools of model nodes.
    async fn toolbox(
        &self,
        work: &Arc<Work>,
        control: &Control<'_>,
        loaded: &LoadedGraph,
        workspace: &Workspace,
    ) -> Result<Option<Toolbox>, Fault> {
        let calls = |kind: &Kind| matches!(kind, Kind::Llm(llm) if llm.tools.iter().flatten().any(|name| is_own(name)));
        if !loaded.graph.nodes.iter().any(|node| calls(&node.kind)) {
            return Ok(None);
        }
        let variables = loaded.graph.variables.iter();
        let variables = variables.map(|variable| (variable.name.clone(), variable.default.clone().unwrap_or_default()));
        let (variables, files) = (variables.collect(), loaded.graph.global_tools.clone());
        let (work, secrets) = (Arc::clone(work), control.secrets.clone());
        let environment = exec::environment(&work, &self.shared.settings);
        // Tools see what scripts have written, and the other way round.
        let workspace = Some(workspace.0.clone());
        let opened = self.shared.env.spawn_blocking("read tools", move || {
            Toolbox::open(&work, &files, &variables, &secrets, environment, workspace)
        });
        opened.join().await.unwrap_or_else(|_| Err(Fault::internal("reading the tools was interrupted"))).map(Some)
    }

    /// What the job is fixed to: always its first step.
    async fn models(
        &self,
        work: &Arc<Work>,
        control: &mut Control<'_>,
        loaded: &LoadedGraph,
        book: &Book,
    ) -> Result<(Option<GraphModels>, Map<String, Value>), Fault> {
        let graph = &loaded.graph;
        let calls_models = models::calls_models(graph);
        let key: StepKey = hashed(&("start", "graph"));
        let mut missing = Vec::new();
        let told = &mut missing;
        let make = || async move {
            let mut fixed = match calls_models {
                true => {
                    let (fixed, mut missing) = models::fix(graph, work, &self.shared)?;
                    told.append(&mut missing);
                    fixed
                }
                false => json!({ "graph": graph.name }),
            };
            fixed["special"] = json!(super::special::names(self.shared.env.clock.wall()));
            let outcome = serde_json::to_vec(&fixed).map_err(|error| Fault::internal(error.to_string()))?;
            Ok::<_, Fault>(Made { outcome, usage: StepUsage::default() })
        };
        let recorded = book.step(StepKind::Start, key, make).await?;
        let unreadable = |error: serde_json::Error| Fault::internal(format!("step 0 is not readable: {error}"));
        let Begun { special } = serde_json::from_slice(&recorded).map_err(unreadable)?;
        if !calls_models {
            return Ok((None, special));
        }
        let (models, mut left_out) = GraphModels::open(&recorded, graph, work, control, &self.shared)?;
        left_out.append(&mut missing);
        for why in left_out {
            control.say(StreamKind::Log, "warning", why).await;
        }
        Ok((Some(models), special))
    }
}

/// The names that model nodes can use.
fn known(graph: &Graph, toolbox: Option<&Toolbox>, remote: &Remote, models: Option<&GraphModels>) -> KnownNames {
    let own = toolbox.map(Toolbox::offered).unwrap_or_default();
    let tools = graph_tools(graph).into_iter().chain(own.into_iter().map(|tool| tool.name));
    let servers = graph.mcp_servers.iter().filter(|server| remote.has(server)).cloned();
    let named = graph.nodes.iter().filter_map(|node| node.model()).chain(graph.model.as_deref());
    let searches = graph.nodes.iter().flat_map(|node| node.search_models());
    let has = |models: &GraphModels| {
        let named = named.filter(|name| models.named(Some(*name)).is_some());
        named.chain(searches.filter(|name| models.search(name).is_some())).map(str::to_owned).collect()
    };
    KnownNames {
        tools: Some(tools.collect()),
        servers: Some(servers.collect()),
        models: models.map(has),
        agents_elsewhere: true,
    }
}

/// Whether a tool that a node lists is one of the graph's files.
fn is_own(name: &str) -> bool {
    !name.starts_with("mcp:") && !helpers::is_one(name) && super::user::find(name).is_none()
}

/// Sets variables to the values that the input has.
fn give(loaded: &mut LoadedGraph, values: Map<String, Value>) -> Result<(), String> {
    for (name, value) in values {
        let Value::String(value) = value else { return Err(format!("the variable \"{name}\" is no text")) };
        let mut variables = loaded.graph.variables.iter_mut();
        // A value for a variable that does not exist has no effect.
        if let Some(variable) = variables.find(|variable| variable.name == name) {
            variable.default = Some(value);
        }
    }
    Ok(())
}

fn definition(error: &GraphError) -> Fault {
    Fault::Definition(atlas_env::chain(error))
}

/// The folder in which scripts run. It is removed with the attempt.
struct Workspace(PathBuf);

impl Workspace {
    fn new(job: &str) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("atlas-graph-{job}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
