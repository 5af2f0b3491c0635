//! Loki agents: agents with a model whose settings are in a `config.yaml` (compatibility §34).
//!
//! [`Config::read`] takes the parsed document. Pure: this crate reads no files, no environment and no clock.

mod config;
mod overrides;
mod read;
#[cfg(test)]
mod tests;
mod variables;

pub use config::{Config, OF_HELPERS, WITHOUT_EFFECT};
pub use overrides::{OverrideError, Overrides};
pub use read::ConfigError;
pub use variables::Variable;
