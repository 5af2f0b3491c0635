//! Orchestrators: which one a namespace has selected, and the tasks of the leader that ask it (compatibility §9, ADR 30).
//!
//! * [`selection`] reads and changes the selection;
//! * [`candidate`] resolves the name of an orchestrator, and asks what it wants;
//! * [`external`] asks a program outside of the cluster;
//! * [`consult`] calls an orchestrator that is an agent, in a job of the cluster itself; `wish.rs` reads what it answered,
//!   and decides by the rules of a document;
//! * [`router`] decides on the jobs that wait for that;
//! * [`chain`] asks the orchestrator that a chain names;
//! * [`teller`] tells the orchestrator about the jobs that ended, and asks a candidate what it would have decided;
//! * [`shadow`] compares that with what was decided.

mod candidate;
mod chain;
mod consult;
mod external;
mod router;
mod selection;
mod shadow;
mod teller;

pub use selection::Selected;

pub(crate) use router::run;
