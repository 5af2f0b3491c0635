//! Security policies (compatibility §25): what an operator allows agents to do.
//!
//! A [`Policy`] is read from a YAML file. [`Policy::permissions_of`] gives the permissions that it leaves an agent, [`Policy::limits`] the
//! limits to enforce, [`Policy::secret_rules`] the secrets that an agent may have, and [`Container`] the command line that runs an agent in
//! a container. [`decide`] evaluates the rules of policies that are objects ([ADR 43](../../../docs/adr/0043-policies.md)). These are plain functions: the crate starts nothing and enforces nothing
//! ([ADR 35](../../../docs/adr/0035-rules-before-doors.md)).

mod container;
mod effective;
mod file;
mod rules;

pub use container::{Container, ContainerError};
pub use effective::Limits;
pub use file::{Policy, PolicyError, SecretSource};
pub use rules::{Decision, Effect, Rule, RuleInput, RuleText, VARIABLES, decide};
