//! A graph agent: its settings and its nodes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Reducer;

/// The visits of one node in a run, if the graph sets nothing else.
pub(crate) const LOOP_ITERATIONS: u64 = 100;
/// The branches of a super-step that run at the same time, if the graph sets nothing else.
pub(crate) const CONCURRENCY: usize = 8;
/// The state key that has the user's prompt.
pub const INITIAL_PROMPT: &str = "initial_prompt";

/// A graph agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    pub name: String,
    pub description: String,
    /// The version of the format.
    pub version: String,
    /// The model of nodes that name none.
    pub model: Option<String>,
    /// The sampling of nodes that set none.
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub reasoning_effort: Option<String>,
    /// Files of tools from which nodes choose.
    pub global_tools: Vec<String>,
    pub mcp_servers: Vec<String>,
    pub conversation_starters: Vec<String>,
    pub variables: Vec<Variable>,
    pub settings: Settings,
    pub initial_state: Map<String, Value>,
    pub reducers: BTreeMap<String, Reducer>,
    pub start: String,
    pub nodes: Nodes,
}

/// A variable of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub description: String,
    /// None if a value must be given.
    pub default: Option<String>,
}

/// How a graph is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Most visits of one node.
    pub max_loop_iterations: u64,
    /// Seconds that the whole run may take.
    pub timeout: Option<u64>,
    pub log_state_snapshots: bool,
    pub validate_before_run: bool,
    /// Branches of a super-step that run at the same time.
    pub max_concurrency: usize,
    /// True if the first failure of a super-step cancels its other branches.
    pub fail_fast: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_loop_iterations: LOOP_ITERATIONS,
            timeout: None,
            log_state_snapshots: true,
            validate_before_run: true,
            max_concurrency: CONCURRENCY,
            fail_fast: false,
        }
    }
}

/// The nodes of a graph in the order of the document.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Nodes {
    list: Vec<Node>,
    places: BTreeMap<String, usize>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub id: String,
    pub description: String,
    pub next: Option<Next>,
    /// The templates that are written into the state after the node, in order.
    pub updates: Option<Vec<(String, String)>>,
    pub kind: Kind,
}

/// `next`, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    One(String),
    Many(Vec<String>),
}

/// What a node does.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Llm(Box<Llm>),
    Script(Script),
    Approval(Approval),
    Input(Input),
    Rag(Box<Rag>),
    Map(MapNode),
    Agent(Agent),
    End {
        /// The template of the run's result.
        output: String,
    },
}

/// A model call with a bounded loop of tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Llm {
    pub prompt: String,
    pub instructions: Option<String>,
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub reasoning_effort: Option<String>,
    pub fallback: Option<String>,
    pub max_attempts: u64,
    pub max_iterations: u64,
    pub output_schema: Option<Value>,
    pub timeout: Option<u64>,
}

/// A program that reads the state and prints changes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Relative to the agent's folder.
    pub script: String,
    /// Seconds.
    pub timeout: u64,
    pub fallback: Option<String>,
}

/// A question with a list of answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub question: String,
    pub options: Vec<String>,
    /// The next node by answer.
    pub routes: Vec<(String, String)>,
    /// The next node after any other answer.
    pub on_other: String,
    /// Seconds to wait for an answer.
    pub timeout: Option<u64>,
    /// The next node if there is no answer in time.
    pub on_timeout: Option<String>,
}

/// A question that is answered with text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub question: String,
    pub default: Option<String>,
    pub validation: Option<String>,
}

/// A search in documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Rag {
    pub documents: Vec<String>,
    pub query: Option<String>,
    pub top_k: Option<u64>,
    pub embedding_model: Option<String>,
    pub chunk_size: Option<u64>,
    pub chunk_overlap: Option<u64>,
    pub reranker_model: Option<String>,
    pub batch_size: Option<u64>,
    /// Seconds.
    pub timeout: Option<u64>,
}

impl Rag {
    /// Most chunks of a result.
    pub const TOP_MAX: u64 = 100;
    /// Most bytes of a chunk, and the usual ones.
    pub const CHUNK_MAX: u64 = 100_000;
    pub const CHUNK_DEFAULT: u64 = 1_000;
    /// Most chunks of one call of an embedding model.
    pub const BATCH_MAX: u64 = 2_048;

    /// The models that it names.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        [&self.embedding_model, &self.reranker_model].into_iter().flatten().map(String::as_str)
    }
}

/// One run of a node for each item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapNode {
    pub over: String,
    /// The state key that has the item.
    pub item: String,
    /// The node that runs.
    pub branch: String,
    /// The state key that gets the results.
    pub collect_into: String,
    /// The key of a branch's state that has its result.
    pub output_key: String,
    pub max_concurrency: Option<usize>,
    pub on_item_error: Option<OnItemError>,
}

/// What a failed item of a map becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnItemError {
    /// The map fails.
    Fail,
    /// A null in the list of results.
    Null,
    /// Nothing: the list of results is shorter.
    Skip,
}

/// Another agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub agent: String,
    pub prompt: String,
    /// Seconds.
    pub timeout: Option<u64>,
    pub output_schema: Option<Value>,
}

/// Seconds that an agent may take, if its node sets nothing else.
pub const AGENT_SECONDS: u64 = 300;
/// Seconds that a search may take, if its node sets nothing else.
pub const RAG_SECONDS: u64 = 120;

/// An edge that the definition declares: all but those that a script chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge<'a> {
    /// `next`, `routes.LABEL`, `on_other`, `on_timeout`, `fallback` or `branch`.
    pub field: String,
    pub target: &'a str,
}

impl Graph {
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.get(id)
    }
}

impl Nodes {
    /// Adds a node behind the others; one with the same id is replaced.
    pub fn insert(&mut self, node: Node) {
        if let Some(place) = self.places.get(&node.id) {
            self.list[*place] = node;
        } else {
            self.places.insert(node.id.clone(), self.list.len());
            self.list.push(node);
        }
    }

    pub fn get(&self, id: &str) -> Option<&Node> {
        self.place(id).map(|place| &self.list[place])
    }

    /// The number of a node in the order of the document.
    pub fn place(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Node> {
        self.list.iter()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|node| node.id.as_str())
    }
}

impl Next {
    /// The targets as they are written.
    pub fn targets(&self) -> &[String] {
        match self {
            Self::One(target) => std::slice::from_ref(target),
            Self::Many(targets) => targets,
        }
    }
}

impl Node {
    /// The name of its type in `graph.yaml`.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Llm(_) => "llm",
            Kind::Script(_) => "script",
            Kind::Approval(_) => "approval",
            Kind::Input(_) => "input",
            Kind::Rag(_) => "rag",
            Kind::Map(_) => "map",
            Kind::Agent(_) => "agent",
            Kind::End { .. } => "end",
        }
    }

    /// The targets of `next` as they are written.
    pub fn next_targets(&self) -> &[String] {
        self.next.as_ref().map(Next::targets).unwrap_or_default()
    }

    /// The different targets of `next`.
    pub fn next_set(&self) -> Vec<&str> {
        let mut targets: Vec<&str> = Vec::new();
        for target in self.next_targets() {
            if !targets.contains(&target.as_str()) {
                targets.push(target);
            }
        }
        targets
    }

    /// The name under which `state_updates` see the node's result.
    pub fn result_name(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Llm(_) | Kind::Agent(_) | Kind::Rag(_) => Some("output"),
            Kind::Approval(_) => Some("choice"),
            Kind::Input(_) => Some("input"),
            Kind::Script(_) | Kind::Map(_) | Kind::End { .. } => None,
        }
    }

    /// The model that it names itself.
    pub fn model(&self) -> Option<&str> {
        match &self.kind {
            Kind::Llm(llm) => llm.model.as_deref(),
            _ => None,
        }
    }

    /// The models with which it searches.
    pub fn search_models(&self) -> impl Iterator<Item = &str> {
        let rag = if let Kind::Rag(rag) = &self.kind { Some(rag) } else { None };
        rag.into_iter().flat_map(|rag| rag.models())
    }

    pub fn fallback(&self) -> Option<&str> {
        match &self.kind {
            Kind::Llm(llm) => llm.fallback.as_deref(),
            Kind::Script(script) => script.fallback.as_deref(),
            _ => None,
        }
    }

    pub fn output_schema(&self) -> Option<&Value> {
        match &self.kind {
            Kind::Llm(llm) => llm.output_schema.as_ref(),
            Kind::Agent(agent) => agent.output_schema.as_ref(),
            _ => None,
        }
    }

    /// All declared edges, in the order of the fields.
    pub fn edges(&self) -> Vec<Edge<'_>> {
        let edge = |field: &str, target| Edge { field: field.to_owned(), target };
        let mut edges: Vec<Edge<'_>> = self.next_targets().iter().map(|target| edge("next", target.as_str())).collect();
        match &self.kind {
            Kind::Approval(approval) => {
                let routes = approval.routes.iter();
                edges.extend(routes.map(|(label, target)| edge(&format!("routes.{label}"), target)));
                edges.push(edge("on_other", &approval.on_other));
                edges.extend(approval.on_timeout.iter().map(|target| edge("on_timeout", target)));
            }
            Kind::Map(map) => edges.push(edge("branch", &map.branch)),
            _ => edges.extend(self.fallback().map(|target| edge("fallback", target))),
        }
        edges
    }
}
