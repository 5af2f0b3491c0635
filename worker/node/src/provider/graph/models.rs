//! The models of a graph: its own one, and those that its nodes name. The first step of the journal says which they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_graph::{Graph, Kind, Node, Rag};
use atlas_model::{NanoDollars, Purpose};
use atlas_package::model_name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::attempt::Work;
use crate::provider::llm::fault::Fault;
use crate::provider::llm::fixed::Fixed;
use crate::provider::llm::model::Models;
use crate::provider::round::caller::Callable;
use crate::provider::{Control, Shared};

/// The models of a run.
pub(super) struct GraphModels {
    /// For nodes that name none.
    own: Callable,
    nodes: BTreeMap<String, Callable>,
    /// Those that search documents.
    searches: BTreeMap<String, Callable>,
    /// The names of the own one.
    names: Vec<String>,
}

/// What step 0 records besides the graph's own model.
#[derive(Default, Serialize, Deserialize)]
struct Others {
    /// By the names in the contract.
    #[serde(default)]
    nodes: BTreeMap<String, Fixed>,
}

/// Whether the run calls models.
pub(super) fn calls_models(graph: &Graph) -> bool {
    let searches = |node: &Node| node.search_models().next().is_some();
    graph.nodes.iter().any(|node| matches!(node.kind, Kind::Llm(_)) || extracts(&node.kind) || searches(node))
}

/// Whether the result of an agent is brought into a form, which needs the graph's own model.
fn extracts(kind: &Kind) -> bool {
    matches!(kind, Kind::Agent(agent) if agent.output_schema.is_some())
}

/// The names of the graph's own model: as the contract has it, and as the graph has it.
fn own_names(graph: &Graph, work: &Work) -> Vec<String> {
    let model = &work.agent.contract.model;
    let contract = model.name.as_ref().unwrap_or(&model.preference).clone();
    [contract].into_iter().chain(graph.model.as_deref().map(model_name)).collect()
}

/// What the run is fixed to, as step 0 records it. A model of a node that does not exist is left out: the reasons are returned.
pub(super) fn fix(graph: &Graph, work: &Work, shared: &Shared) -> Result<(Value, Vec<String>), Fault> {
    let (agent, attachments) = (&work.agent, &work.assignment.attachments);
    let own_names = own_names(graph, work);
    let (mut others, mut missing) = (Others::default(), Vec::new());
    let named = graph.nodes.iter().filter_map(|node| node.model()).map(model_name);
    for name in named.filter(|name| !own_names.contains(name)) {
        if others.nodes.contains_key(&name) {
            continue;
        }
        match Fixed::of_other(agent, &name, attachments, shared) {
            Ok(fixed) => drop(others.nodes.insert(name, fixed)),
            Err(fault) => missing.push(format!("the model \"{name}\" of a node: {fault}")),
        }
    }
    let searches = searches(graph, work, shared, &mut missing);
    let calls_own = |kind: &Kind| match kind {
        Kind::Llm(llm) => llm.model.as_deref().is_none_or(|name| own_names.contains(&model_name(name))),
        kind => extracts(kind),
    };
    let needs_own = graph.nodes.iter().any(|node| calls_own(&node.kind));
    let mut own = match Fixed::of(agent, attachments, shared) {
        Err(fault) if !needs_own => others.nodes.values().chain(searches.values()).next().cloned().ok_or(fault)?,
        own => own?,
    };
    own.searches = searches;
    let unreadable = |error: serde_json::Error| Fault::internal(error.to_string());
    let mut start = serde_json::to_value(&own).map_err(unreadable)?;
    if let (Some(members), false) = (start.as_object_mut(), others.nodes.is_empty()) {
        members.insert("nodes".to_owned(), serde_json::to_value(&others.nodes).map_err(unreadable)?);
    }
    Ok((start, missing))
}

/// The models of nodes that search.
fn searches(graph: &Graph, work: &Work, shared: &Shared, missing: &mut Vec<String>) -> BTreeMap<String, Fixed> {
    let rag = |node: &'_ Node| if let Kind::Rag(rag) = &node.kind { Some(rag.clone()) } else { None };
    let named = |rag: Box<Rag>| [(rag.embedding_model, Purpose::Embedding), (rag.reranker_model, Purpose::Reranker)];
    let mut searches = BTreeMap::new();
    for (name, purpose) in graph.nodes.iter().filter_map(rag).flat_map(named) {
        let Some(name) = name.as_deref().map(model_name) else { continue };
        match Fixed::of_search(&work.agent, (&name, purpose), &work.assignment.attachments, shared) {
            Ok(fixed) => drop(searches.insert(name, fixed)),
            Err(fault) => missing.push(format!("the model \"{name}\" of a search: {fault}")),
        }
    }
    searches
}

impl GraphModels {
    /// The models of a recorded step 0, and why some of them cannot be called.
    pub(super) fn open(
        recorded: &Arc<[u8]>,
        graph: &Graph,
        work: &Work,
        control: &Control<'_>,
        shared: &Shared,
    ) -> Result<(Self, Vec<String>), Fault> {
        let mut fixed = Fixed::read(recorded)?;
        let searches = std::mem::take(&mut fixed.searches);
        let others: Others = serde_json::from_slice(recorded)
            .map_err(|error| Fault::internal(format!("step 0 is not readable: {error}")))?;
        let open = |mut fixed: Fixed| {
            // The budget is that of the job, also where the record is of the job that it forks.
            fixed.settings.limits.budget = work.assignment.budget_nanodollars.map(NanoDollars);
            let models = Models::open(&fixed.source, &fixed.settings.model, work, control, shared)?;
            Ok::<_, Fault>((fixed, models))
        };
        let own = open(fixed)?;
        let nodes: Result<BTreeMap<_, _>, Fault> =
            others.nodes.into_iter().map(|(name, fixed)| Ok((name, open(fixed)?))).collect();
        let searches: Result<BTreeMap<_, _>, Fault> =
            searches.into_iter().map(|(name, fixed)| Ok((name, open(fixed)?))).collect();
        let models = Self { own, nodes: nodes?, searches: searches?, names: own_names(graph, work) };
        let left_out = models.all().flat_map(|(_, models)| models.left_out.clone()).collect();
        Ok((models, left_out))
    }

    fn all(&self) -> impl Iterator<Item = &Callable> {
        std::iter::once(&self.own).chain(self.nodes.values()).chain(self.searches.values())
    }

    /// The model of a search for a name of a node.
    pub(super) fn search(&self, name: &str) -> Option<&Callable> {
        self.searches.get(&model_name(name))
    }

    /// The model for a name of a node or a graph; the own one without a name.
    pub(super) fn named(&self, name: Option<&str>) -> Option<&Callable> {
        let Some(name) = name.map(model_name) else { return Some(&self.own) };
        if self.names.contains(&name) {
            return Some(&self.own);
        }
        self.nodes.get(&name)
    }

    /// What the job's metadata says about them.
    pub(super) fn metadata(&self) -> Map<String, Value> {
        let mut seen = Map::new();
        for (_, models) in self.all() {
            if let Some(Value::Object(members)) = models.seen.as_ref().and_then(|seen| seen.value()) {
                seen.extend(members);
            }
        }
        let mut metadata = Map::from_iter([("model".to_owned(), json!(self.own.0.settings.model))]);
        if !seen.is_empty() {
            metadata.insert("_models".to_owned(), Value::Object(seen));
        }
        metadata
    }
}
