//! Checks histories for linearizability: is there an order of the operations in which each takes effect at one moment between its
//! call and its answer, and in which every answer is right?
//!
//! A history contains the operations on one key. Keys are checked separately, because a history is linearizable if and
//! only if the history of each key is.
//! An operation with an unknown outcome stays open until the end: it may take effect at any time after its call, or
//! never.
//!
//! The search is the just-in-time algorithm of Wing, Gong and Lowe: it processes calls and answers in order, and keeps
//! all possible states of the object, with the open operations that have already taken effect. An operation takes
//! effect as late as its answer allows. When no operation is open, only the states are kept, so long histories are
//! checked piece by piece without being split.
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
