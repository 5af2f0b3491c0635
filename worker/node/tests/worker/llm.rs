//! Tests agents that are a model in a loop: steps are recorded before they are used, and a later attempt repeats none.

mod anthropic;
pub(crate) mod confined;
mod direct;
mod documents;
mod graphs;
mod judged;
mod library;
mod limited;
mod local;
mod loki_agent;
mod mock;
mod outages;
mod python;
mod recorded;
mod scene;
mod servers;
mod stored;
mod tools;
