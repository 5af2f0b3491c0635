//! Agents that use a model.

mod example;
mod provider;

pub(super) use self::example::judge as example;
pub(super) use self::provider::{fill, judge as provider};
