//! Checks histories for linearizability: is there an order of the operations in which each takes effect at one moment between its
//! call and its answer, and in which every answer is right?
//!
//! A history is the operations on one key; keys are checked one by one, since a history is linearizable if and only if each key's is.
//! An operation with an unknown outcome stays open to the end: it may have taken effect at any moment after its call, or never.
//!
//! The search is that of Wing, Gong and Lowe, just in time: it walks through calls and answers in their order, and keeps all possible
//! states of the object, with the open operations that have already taken effect. An operation takes effect as late as its answer
//! allows. Where no operation is open, only states are left: windows between quiescent moments are checked one after the other
//! without being cut.
//!
//! Pure: no clock, no I/O, no dependency.

mod check;
mod history;
mod job;
mod keyed;
mod register;

pub use check::{CheckResult, Violation, check};
pub use history::{History, Model, Operation};
pub use job::{Job, JobInput, JobOutput, Status};
pub use keyed::{Keyed, check_keys};
pub use register::{Register, RegisterInput, RegisterOutput};
