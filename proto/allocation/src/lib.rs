//! What is free on a node, and whether a demand fits there.
//!
//! The scheduler proposes with it, the state checks each grant with it, and a worker counts its warm slots with it: all three must
//! agree on each byte. It chooses no node and knows no leases.

pub mod amount;
mod free;
mod permits;
mod sort;

pub use free::{Free, GpuFree, Places};
pub use permits::ConcurrencyPermits;
pub use sort::{has_architecture, has_devices, has_labels, has_nodejs, has_python, suits};
