//! Agents that use a model.

mod example;

pub(super) use self::example::judge as example;
