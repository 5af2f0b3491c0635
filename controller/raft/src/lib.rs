//! openraft on our own log, and the leader loop.
//!
//! Nothing outside this crate names an openraft type.

pub mod log;
