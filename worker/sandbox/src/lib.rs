//! Confines the processes of an agent to the permissions of its contract ([ADR 45]).
//!
//! What is decided is plain data: [`Access`] is what a contract permits, [`Means`] what a machine offers, [`Sandbox`]
//! what is done to one process tree, and [`Sandbox::enforced`] says what that enforces and what it does not. The worker
//! passes a [`Sandbox`] as JSON to the supervisor of the tree, which carries it out in two steps: [`Sandbox::enter`]
//! creates the namespaces, and [`Sandbox::confine`] confines the first process inside them. All code between is
//! single-threaded, so no step needs `unsafe`.
//!
//! [ADR 45]: ../../../docs/adr/0045-sandbox.md

mod access;
mod enforced;
mod filter;
mod guard;
mod means;
mod mounts;
mod namespaces;
mod paths;
mod privileges;
mod refused;
mod rules;
mod sandbox;

pub use access::{Access, Files};
pub use enforced::Enforcement;
pub use guard::Guard;
pub use means::{Means, Namespaces};
pub use mounts::unescaped;
pub use namespaces::map_user;
pub use paths::Secrets;
pub use refused::{ConfinementStep, FailedStep};
pub use sandbox::{ParseError, Sandbox};
