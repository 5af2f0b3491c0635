//! What people are told about the things that the interface shows: what is computed from its types.

mod cluster;
mod job;
mod node;

pub(crate) use cluster::ClusterDisplay;
pub(crate) use job::{JobDisplay, RouteDisplay};
pub(crate) use node::{CircuitDisplay, NodeDisplay, RivalDisplay};
