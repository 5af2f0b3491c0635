//! What a run needs from the program that executes it.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use atlas_documents::VectorCache;
use atlas_graph::run::{Effect, Fault, FaultKind, Question, Work, WorkId};
use atlas_model::{Answer, CallError, CallErrorKind, Request, ToolCall};
use atlas_turn::{OfferedTool, Outcome, ToolReturn};
use serde_json::Value;

use crate::script::{self, Process, ProcessEnd};
use crate::search::Embedder;

/// Which node of which run acts.
#[derive(Debug, Clone, Copy)]
pub struct NodePlace<'a> {
    /// 0 for the run itself, 1 for a graph that one of its nodes runs.
    pub depth: u32,
    /// The name of the graph.
    pub graph: &'a str,
    pub node: &'a str,
    /// The piece of work.
    pub work: &'a WorkId,
}

/// A question of a node.
#[derive(Debug, Clone, Copy)]
pub struct NodeQuestion<'a> {
    pub place: NodePlace<'a>,
    pub question: &'a Question,
}

/// What a host knows of a piece of work before it is done.
pub enum Beginning<'h> {
    /// The result, which was recorded before.
    Recorded(Result<Value, Fault>),
    /// There is none, and the work has begun.
    Open(Box<dyn Piece + 'h>),
}

/// A piece of work that was begun. It is dropped when the work has ended or is cancelled.
#[async_trait]
pub trait Piece: Send {
    /// It runs a graph here: from now on, only the work of that graph goes on.
    fn rests(&mut self) {}

    /// It goes on by itself.
    async fn goes_on(&mut self) {}
}

impl Piece for () {}

/// The surroundings of a run.
#[async_trait]
pub trait Host: Send + Sync {
    /// Begins a piece of work. A result that was recorded before is the result, and nothing is done.
    async fn begin(&self, _: NodePlace<'_>, _: &Work) -> Beginning<'_> {
        Beginning::Open(Box::new(()))
    }

    /// Ends a piece of work that was begun and not recorded before. The result is used afterwards.
    async fn finish(&self, _: NodePlace<'_>, _: &Result<Value, Fault>) {}

    /// Runs the process of a script. Dropping the future kills everything that it started.
    async fn process(&self, process: Process) -> io::Result<ProcessEnd> {
        script::local(process).await
    }

    /// Calls a model once, for a conversation, for vectors or for scores. `model` is that of the node or graph; none for the default.
    async fn call(&self, place: NodePlace<'_>, model: Option<&str>, request: Request) -> Result<Answer, CallError>;

    /// What is known of a model that makes the vectors of searches.
    fn embedder(&self, model: &str) -> Result<Embedder, CallError> {
        Err(CallError::new(CallErrorKind::UnknownModel, format!("there is no model \"{model}\" here")))
    }

    /// Where vectors are kept between runs.
    fn vectors(&self) -> Option<Arc<VectorCache>> {
        None
    }

    /// Whether answers of a model are judged by why it stopped. Those of a run that was recorded before they were are not.
    fn judges(&self, _model: Option<&str>) -> bool {
        true
    }

    /// The tools of a model node by the names in its list.
    async fn tools(&self, place: NodePlace<'_>, names: &[String]) -> Result<Vec<OfferedTool>, Fault> {
        match names.first() {
            None => Ok(Vec::new()),
            Some(name) => {
                Err(Fault::new(FaultKind::Llm, format!("node \"{}\" has no tool \"{name}\" here", place.node)))
            }
        }
    }

    /// Calls tools of a model node.
    async fn use_tools(&self, place: NodePlace<'_>, calls: Vec<ToolCall>) -> Vec<ToolReturn> {
        let text = format!("node \"{}\" has no tools here", place.node);
        let returned =
            |call: ToolCall| ToolReturn { call: call.id, outcome: Outcome::error("UnknownTool", text.clone()) };
        calls.into_iter().map(returned).collect()
    }

    /// Asks a person.
    async fn ask(&self, asked: NodeQuestion<'_>) -> Result<String, Fault>;

    /// Runs an agent that is not a graph.
    async fn agent(&self, place: NodePlace<'_>, agent: &str, prompt: &str) -> Result<String, Fault>;

    /// Ends an agent for which its node has waited too long, with everything that it started.
    async fn abandon(&self, _: NodePlace<'_>) {}

    /// Tells the log of the job what a person has to know about a result.
    async fn warn(&self, _: NodePlace<'_>, _: String) {}

    /// Learns what happens in a run, in order.
    fn observe(&self, depth: u32, graph: &str, effect: &Effect);
}
