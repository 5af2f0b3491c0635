//! Drives one run: does the work that the engine asks for, as much at the same time as it asks for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use atlas_documents::VectorCache;
use atlas_env::Env;
use atlas_graph::run::{Begin, Effect, Event, Fault, FaultKind, Run, RunError, Task, Work, WorkId};
use atlas_graph::{AGENT_SECONDS, Graph, Kind, LoadedGraph, RAG_SECONDS, Rag};
use atlas_model::{Answer, CallError, Request};
use atlas_package::{GraphError, GraphFolder};
use futures::future::{AbortHandle, Abortable};
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::host::{Beginning, Host, NodePlace, NodeQuestion, Piece};
use crate::model::{self, Said, structured};
use crate::script::{self, Script};
use crate::search::{self, Embedder, SearchModels, SearchSettings};

/// Most graphs that run inside each other, besides the first one.
const DEPTH_MAX: u32 = 3;

/// Becomes true when a run is to end.
pub type Stop = watch::Receiver<bool>;

/// What runs have in common.
pub struct Runner<'a> {
    pub env: &'a Env,
    pub host: &'a dyn Host,
    /// The folder in which scripts run.
    pub workspace: PathBuf,
    /// Variables of scripts.
    pub variables: Vec<(String, String)>,
    /// Whether scripts also have the variables of this process.
    pub inherits: bool,
    /// How often a question is asked again after an answer that its rule refuses.
    pub asks_again: u32,
    /// More names that templates can read and that are not state.
    pub special: Map<String, Value>,
    /// Values that a person sets in the state of the first graph before a super-step.
    pub set: BTreeMap<u64, Map<String, Value>>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    pub result: Result<String, RunError>,
    /// The state after the last super-step that was merged.
    pub state: Map<String, Value>,
}

/// A graph that runs.
struct Place<'a> {
    folder: &'a GraphFolder,
    graph: &'a Graph,
    depth: u32,
    variables: Vec<(String, String)>,
}

type Boxed<'b, T> = Pin<Box<dyn Future<Output = T> + Send + 'b>>;

/// The result of a piece of work; none if it was cancelled.
type Ended = (WorkId, Option<Result<Value, Fault>>);

impl Runner<'_> {
    /// Validates a graph, if its settings do not say otherwise, and returns a run of it.
    pub fn prepare(&self, folder: &GraphFolder, loaded: &LoadedGraph, prompt: &str) -> Result<Run, GraphError> {
        self.prepare_with(folder, loaded, prompt, self.set.clone())
    }

    fn prepare_with(
        &self,
        folder: &GraphFolder,
        loaded: &LoadedGraph,
        prompt: &str,
        set: BTreeMap<u64, Map<String, Value>>,
    ) -> Result<Run, GraphError> {
        let graph = &loaded.graph;
        let open = graph.variables.iter().filter(|variable| variable.default.is_none());
        let names: Vec<String> = open.map(|variable| variable.name.clone()).collect();
        if !names.is_empty() {
            return Err(GraphError::Variables { names });
        }
        if graph.settings.validate_before_run {
            folder.validate(loaded)?;
        }
        let begin = Begin { prompt: prompt.to_owned(), given: self.given(graph), asks_again: self.asks_again, set };
        Ok(Run::new(Arc::new(graph.clone()), begin))
    }

    /// The names that templates can read and that are not state.
    fn given(&self, graph: &Graph) -> Map<String, Value> {
        let default = |text: &Option<String>| text.clone().unwrap_or_default();
        let vars: Map<String, Value> =
            graph.variables.iter().map(|variable| (variable.name.clone(), json!(default(&variable.default)))).collect();
        let special = json!({
            "vars": vars,
            "__cwd__": self.workspace.display().to_string(),
            "__os__": std::env::consts::OS,
            "__os_family__": std::env::consts::FAMILY,
            "__arch__": std::env::consts::ARCH,
        });
        match special {
            Value::Object(mut given) => {
                given.extend(self.special.clone());
                given
            }
            _ => Map::new(),
        }
    }

    /// Executes a run to its end.
    pub async fn run(&self, folder: &GraphFolder, run: Run, stop: Stop) -> Ran {
        self.run_at(folder, run, 0, stop).await
    }

    /// A future of its own type, because a graph can run itself.
    fn run_at<'b>(&'b self, folder: &'b GraphFolder, run: Run, depth: u32, stop: Stop) -> Boxed<'b, Ran> {
        Box::pin(self.run_here(folder, run, depth, stop))
    }

    async fn run_here(&self, folder: &GraphFolder, mut run: Run, depth: u32, mut stop: Stop) -> Ran {
        let graph = Arc::clone(run.graph());
        let place = Place { folder, graph: &graph, depth, variables: self.script_variables(folder, &graph) };
        let limit = graph.settings.timeout.map(|seconds| self.env.clock.sleep(Duration::from_secs(seconds)));
        let mut limit = limit.unwrap_or_else(|| Box::pin(std::future::pending()));
        let mut working: FuturesUnordered<Boxed<'_, Ended>> = FuturesUnordered::new();
        let mut handles: Vec<(WorkId, AbortHandle)> = Vec::new();
        let mut effects = run.step(Event::Begin);
        let mut stopped = false;
        loop {
            for effect in effects {
                self.host.observe(depth, &graph.name, &effect);
                match effect {
                    Effect::Run(work) => {
                        let (handle, registration) = AbortHandle::new_pair();
                        handles.push((work.id.clone(), handle));
                        let id = work.id.clone();
                        let work = Abortable::new(self.work(&place, *work, stop.clone()), registration);
                        working.push(Box::pin(async move { (id, work.await.ok()) }));
                    }
                    Effect::Cancel(id) => {
                        for (_, handle) in handles.iter().filter(|(known, _)| *known == id) {
                            handle.abort();
                        }
                    }
                    Effect::Note(_) | Effect::Stepped(_) => {}
                    Effect::Ended(result) => return Ran { result, state: run.checkpoint().state.clone() },
                }
            }
            let event = tokio::select! {
                biased;
                ended = working.next(), if !working.is_empty() => ended.and_then(|(work, result)| {
                    handles.retain(|(known, _)| *known != work);
                    Some(Event::Finished { work, result: result? })
                }),
                () = stopping(&mut stop), if !stopped => {
                    stopped = true;
                    Some(Event::Abort)
                }
                () = &mut limit => Some(Event::TimedOut),
            };
            effects = event.map(|event| run.step(event)).unwrap_or_default();
        }
    }

    fn script_variables(&self, folder: &GraphFolder, graph: &Graph) -> Vec<(String, String)> {
        let text = |path: &Path| path.display().to_string();
        let root = folder.agents.parent().unwrap_or(&folder.agents);
        let fixed = [
            ("LLM_ROOT_DIR", text(root)),
            ("LLM_AGENT_DATA_DIR", text(&folder.folder)),
            ("CLICOLOR_FORCE", "1".to_owned()),
            ("FORCE_COLOR", "1".to_owned()),
        ];
        let own = graph.variables.iter().map(|variable| {
            let name = format!("LLM_AGENT_VAR_{}", variable.name.to_uppercase().replace('-', "_"));
            (name, variable.default.clone().unwrap_or_default())
        });
        let fixed = fixed.into_iter().map(|(name, value)| (name.to_owned(), value));
        fixed.chain(own).chain(self.variables.iter().cloned()).collect()
    }

    /// The result of a piece of work: as recorded, or done now.
    async fn work(&self, place: &Place<'_>, work: Work, stop: Stop) -> Result<Value, Fault> {
        let at = NodePlace { depth: place.depth, graph: &place.graph.name, node: &work.node, work: &work.id };
        let mut piece = match self.host.begin(at, &work).await {
            Beginning::Recorded(result) => return result,
            Beginning::Open(piece) => piece,
        };
        let result = self.perform(place, at, (&work, &mut *piece), stop).await;
        self.host.finish(at, &result).await;
        result
    }

    async fn perform(
        &self,
        place: &Place<'_>,
        at: NodePlace<'_>,
        (work, piece): (&Work, &mut dyn Piece),
        stop: Stop,
    ) -> Result<Value, Fault> {
        let unknown = || Fault::new(FaultKind::UnknownNode, format!("node \"{}\" does not exist", work.node));
        let node = place.graph.node(&work.node).ok_or_else(unknown)?;
        match (&work.task, &node.kind) {
            (Task::Script { state }, Kind::Script(script)) => {
                let mut variables = place.variables.clone();
                let WorkId { step, node, item, .. } = &work.id;
                let item = item.map(|item| format!("/{item}")).unwrap_or_default();
                variables.push(("GRAPH_WORK_ID".to_owned(), format!("{step}/{node}{item}")));
                let script = Script {
                    folder: &place.folder.folder,
                    path: &script.script,
                    timeout: script.timeout,
                    state,
                    workspace: &self.workspace,
                    variables: &variables,
                    inherits: self.inherits,
                };
                script::run(self.env, self.host, script).await
            }
            (Task::Llm { instructions, prompt }, Kind::Llm(llm)) => {
                let node = model::Node { place: at, graph: place.graph, llm, host: self.host, env: self.env };
                node.run(instructions.clone(), prompt.clone()).await
            }
            (Task::Agent { prompt }, Kind::Agent(agent)) => {
                let seconds = agent.timeout.unwrap_or(AGENT_SECONDS);
                let limit = self.env.clock.sleep(Duration::from_secs(seconds));
                let ended = tokio::select! {
                    biased;
                    result = self.agent(place, at, (&agent.agent, prompt), stop, piece) => Some(result),
                    () = limit => None,
                };
                piece.goes_on().await;
                let Some(result) = ended else {
                    self.host.abandon(at).await;
                    let text = format!("agent \"{}\" timed out after {seconds} s", agent.agent);
                    return Err(Fault::new(FaultKind::AgentTimeout, text));
                };
                let text = result?;
                match &agent.output_schema {
                    None => Ok(Value::from(text)),
                    Some(schema) => {
                        let model = place.graph.model.as_deref();
                        let value = structured(self.host, (at, model), schema, &Said::of(&text)).await;
                        let why = |fault: Fault| format!("the result of agent \"{}\": {}", agent.agent, fault.text);
                        value.map_err(|fault| Fault::new(FaultKind::Agent, why(fault)))
                    }
                }
            }
            (Task::Ask(question), _) => self.host.ask(NodeQuestion { place: at, question }).await.map(Value::from),
            (Task::Rag { query }, Kind::Rag(rag)) => self.search(place, at, rag, query).await,
            (_, _) => Err(unknown()),
        }
    }

    /// Searches the documents of a node.
    async fn search(&self, place: &Place<'_>, at: NodePlace<'_>, rag: &Rag, query: &str) -> Result<Value, Fault> {
        let settings = SearchSettings {
            documents: rag.documents.clone(),
            top: rag.top_k,
            chunk_size: rag.chunk_size,
            chunk_overlap: rag.chunk_overlap,
            embedding_model: rag.embedding_model.clone(),
            reranker_model: rag.reranker_model.clone(),
            batch_size: rag.batch_size,
            timeout: Some(Duration::from_secs(rag.timeout.unwrap_or(RAG_SECONDS))),
        };
        let mut models = NodeModels { host: self.host, place: at };
        let found = search::search(self.env, &place.folder.folder, &settings, query, &mut models).await;
        let found = found.map_err(|why| Fault::new(FaultKind::Rag, format!("node \"{}\": {why}", at.node)))?;
        Ok(json!({"context": found.context, "sources": found.sources}))
    }

    /// Runs another agent: a graph here, everything else by the host.
    async fn agent(
        &self,
        place: &Place<'_>,
        at: NodePlace<'_>,
        (name, prompt): (&str, &str),
        stop: Stop,
        piece: &mut dyn Piece,
    ) -> Result<String, Fault> {
        let depth = place.depth + 1;
        if depth > DEPTH_MAX {
            let text = format!("agent \"{name}\" would run at depth {depth}, and {DEPTH_MAX} is the deepest");
            return Err(Fault::new(FaultKind::AgentDepth, text));
        }
        let folder = GraphFolder { folder: place.folder.agents.join(name), ..place.folder.clone() };
        let failed = |error: &dyn std::fmt::Display| Fault::new(FaultKind::Agent, format!("agent \"{name}\": {error}"));
        let loaded = match folder.read() {
            Ok(loaded) => loaded,
            Err(GraphError::NoDefinition) => return self.host.agent(at, name, prompt).await,
            Err(error) => return Err(failed(&error)),
        };
        let run = self.prepare_with(&folder, &loaded, prompt, BTreeMap::new()).map_err(|error| failed(&error))?;
        // Its nodes count by themselves: while all of them wait, this one waits as well.
        piece.rests();
        self.run_at(&folder, run, depth, stop).await.result.map_err(|error| failed(&error))
    }
}

/// The models of a node that searches.
struct NodeModels<'a> {
    host: &'a dyn Host,
    place: NodePlace<'a>,
}

#[async_trait]
impl SearchModels for NodeModels<'_> {
    fn embedder(&self, model: &str) -> Result<Embedder, CallError> {
        self.host.embedder(model)
    }

    async fn call(&mut self, model: &str, request: Request) -> Result<Answer, CallError> {
        self.host.call(self.place, Some(model), request).await
    }

    fn vectors(&self) -> Option<Arc<VectorCache>> {
        self.host.vectors()
    }
}

/// Returns when a run is to end. Never if nobody can say so any more.
async fn stopping(stop: &mut Stop) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
