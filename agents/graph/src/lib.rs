//! Graph agents: `graph.yaml` describes nodes, and a run of the graph executes them in super-steps over a shared state.
//!
//! [`load`] reads a graph from its document, [`check`](check()) validates it. [`template`] renders the texts of nodes, [`Reducer`] combines
//! parallel writes, [`run::Run`] is the engine, and [`structured`] brings answers of models into the form of a schema.
//!
//! Pure: it reads no files and no clock.

mod check;
pub mod draw;
mod fields;
mod finding;
mod graph;
mod length;
mod load;
mod node;
mod reducer;
pub mod run;
mod show;
pub mod structured;
pub mod template;
mod uses;

pub use check::{Availability, Surroundings, check, inside};
pub use finding::{Check, Finding, Level, Lines};
pub use graph::{
    AGENT_SECONDS, Agent, Approval, Edge, Graph, INITIAL_PROMPT, Input, Kind, Llm, MapNode, Next, Node, Nodes,
    OnItemError, RAG_SECONDS, Rag, Script, Settings, Variable,
};
pub use length::{LengthRule, LengthRuleError};
pub use load::{LoadError, LoadErrorKind, LoadErrors, LoadedGraph, Source, load};
pub use reducer::{Reducer, ReducerError, type_name};
